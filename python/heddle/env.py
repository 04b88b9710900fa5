"""What heddle finds here: `python -m heddle.env`."""

import importlib.metadata
import platform
import sys

import heddle
import heddle.ops
from heddle import _heddle
from heddle.body import compiler


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _torch():
    try:
        import torch
    except ImportError:
        return "not installed"
    exchange = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
    return f"{torch.__version__}, {'with' if exchange else 'without'} an exchange table for fast calls"


def device():
    """The CPU in a few words, as benchmarks name it."""
    return _heddle.device_name()


def lines():
    """(name, text) of all that matters for a report."""
    callable_ops = sum(heddle.ops.info(name).callable for name in heddle.ops.NAMES)
    yield "heddle", f"{heddle.__version__}, {_heddle.__file__}"
    yield "python", f"{platform.python_version()}, {sys.executable}"
    yield "system", platform.platform()
    yield "ops", f"{callable_ops} of {len(heddle.ops.NAMES)} can be called by themselves"
    yield "torch", _torch()
    yield "numpy", _version("numpy")
    command = compiler()
    yield "C++", " ".join(command) if command else "no compiler; ops of one's own need one (set HEDDLE_CXX)"
    for text in _heddle.describe_backends().values():
        for line in text.splitlines():
            name, _, rest = line.partition(" ")
            yield name, rest.strip()


def main():
    for name, text in lines():
        print(f"{name:<11} {text}")


if __name__ == "__main__":
    main()
