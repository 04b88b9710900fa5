"""What heddle finds here: `python -m heddle.env`."""

import importlib.metadata
import json
import platform
import shutil
import sys
import textwrap

import heddle
import heddle.ops
from heddle import _heddle
from heddle.body import compiler
from heddle.command_line import Parser, run_command


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


def main(words=None):
    parser = Parser("env", __doc__)
    parser.add_argument("--json", action="store_true", help="print JSON: a list of names and texts")
    if parser.parse_args(words).json:
        print(json.dumps([{"name": name, "text": text} for name, text in lines()], indent=2))
        return
    columns = max(shutil.get_terminal_size().columns, 40)
    for name, text in lines():
        print(
            textwrap.fill(f"{name:<11} {text}", columns, subsequent_indent=" " * 12, break_on_hyphens=False)
        )


if __name__ == "__main__":
    run_command("env", main)
