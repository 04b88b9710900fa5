"""python -m heddle.env: what heddle finds here. The exit code says what is missing.

Codes are added up: 1 torch, 2 a C++ compiler, which ops of one's own need on a CPU, 4 a GPU that can be used,
8 NVRTC, which compiles for GPUs. `--need torch,compiler` asks for these alone, `--need none` for none.
"""

import importlib.metadata
import json
import platform
import shutil
import sys
import textwrap

from heddle import _heddle, ops
from heddle.commands.command_line import Parser, run_command
from heddle.own.body import compiler
from heddle.version import __version__

# name: (exit code, how to get it)
PARTS = {
    "torch": (1, "pip install torch"),
    "compiler": (2, "install g++ or clang++, or let HEDDLE_CXX name one"),
    "gpu": (4, "NVIDIA's driver, and a GPU from compute capability 8.0 on"),
    "nvrtc": (8, "pip install nvidia-cuda-nvrtc, or let HEDDLE_NVRTC name its folder"),
}


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


def _gradients():
    try:
        from heddle.torch import node
    except ImportError:
        return "not without torch"
    node.find()
    return node.state()


def device():
    """The CPU in a few words, as benchmarks name it."""
    return _heddle.device_name()


def lines():
    """(name, text) of all that matters for a report."""
    callable_ops = sum(ops.info(name).callable for name in ops.NAMES)
    yield "heddle", f"{__version__}, {_heddle.__file__}"
    yield "python", f"{platform.python_version()}, {sys.executable}"
    yield "system", platform.platform()
    yield "ops", f"{callable_ops} of {len(ops.NAMES)} can be called by themselves"
    yield "torch", _torch()
    yield "gradients", _gradients()
    yield "numpy", _version("numpy")
    command = compiler()
    yield "C++", " ".join(command) if command else "no compiler; ops of one's own need one (set HEDDLE_CXX)"
    for text in _heddle.describe_backends().values():
        for line in text.splitlines():
            name, _, rest = line.partition(" ")
            yield name, rest.strip()


def missing(found):
    """The parts that are not there, of what `lines` found."""
    has = {"torch": False, "compiler": compiler() is not None, "gpu": False, "nvrtc": False}
    for name, text in found:
        if name in has and not text.startswith(("none", "not installed")) and "cannot be used" not in text:
            has[name] = True
    return [name for name, there in has.items() if not there]


def main(words=None):
    parser = Parser("env", __doc__)
    parser.add_argument(
        "--need", default=",".join(PARTS), help=f"parts that the exit code counts: {', '.join(PARTS)}; none"
    )
    parser.add_argument("--json", action="store_true", help="print JSON: a list of names and texts")
    arguments = parser.parse_args(words)
    needed = [name for name in arguments.need.split(",") if name not in ("", "none")]
    if unknown := [name for name in needed if name not in PARTS]:
        parser.error(f"--need has {unknown[0]}; there are {', '.join(PARTS)}, none")
    found = list(lines())
    lacks = [name for name in missing(found) if name in needed]
    found += [("missing", f"{name} (exit code {PARTS[name][0]}): {PARTS[name][1]}") for name in lacks]
    if arguments.json:
        print(json.dumps([{"name": name, "text": text} for name, text in found], indent=2))
    else:
        columns = max(shutil.get_terminal_size().columns, 40)
        fill = {"width": columns, "subsequent_indent": " " * 12, "break_on_hyphens": False}
        for name, text in found:
            print(textwrap.fill(f"{name:<11} {text}", **fill))
    return sum(PARTS[name][0] for name in lacks)


if __name__ == "__main__":
    run_command("env", main)
