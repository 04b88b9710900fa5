"""Ranges of NVTX around the calls of ops, which Nsight Systems and Nsight Compute show by name.

They are there where a profiler started the process, where HEDDLE_NVTX=1 asks for them, and from
`heddle.settings.set_nvtx(True)` on. Elsewhere a call asks one flag.
"""

import os
import sys

from heddle import _heddle
from heddle.errors import Unsupported

# Nsight Systems tells the libraries of a process so that it listens.
WATCHED = ("NVTX_INJECTION64_PATH", "HEDDLE_NVTX")


def _functions():
    """Returns the functions that begin a range of a name and end the last one: torch's, where it has CUDA, or
    those of nvtx."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda:
        return torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx.push_range, nvtx.pop_range


def start():
    """Raises Unsupported where neither torch with CUDA nor the package nvtx is there."""
    functions = _functions()
    if functions is None:
        raise Unsupported(
            "[nvtx] ranges need torch with CUDA, imported before, or the package nvtx: pip install nvtx"
        )
    _heddle.set_ranges(*functions)


def stop():
    _heddle.set_ranges(None, None)


def follow_profilers():
    """Starts ranges where somebody watches and they can be made."""
    asked = [name for name in WATCHED if os.environ.get(name, "0") != "0"]
    if not asked or _heddle.has_ranges():
        return
    if functions := _functions():
        _heddle.set_ranges(*functions)
