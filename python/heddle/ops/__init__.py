"""Every op of heddle as a function of tensors: `heddle.ops.<name>(*tensors, *, <attributes>, out=None)`.

Tensors are those of torch or NumPy; they are read where they lie, and outputs are made in the same library.
All but the last dimension may be any number of leading dimensions. `help(heddle.ops.rms_norm)` has an op's
arguments, `heddle.ops.info("rms_norm")` what it is.
"""

import sys

import heddle.ops.rows  # noqa: F401  # calls with `dim`
from heddle import _heddle
from heddle.errors import UnknownName, did_you_mean
from heddle.late_torch import follow_torch
from heddle.ops.info import OpInfo, info
from heddle.ops.reductions import amax, mean, sum
from heddle.ranges import follow_profilers

# NVIDIA's compiler may be a package of this interpreter, whether or not its environment is activated.
_heddle.set_python_packages([folder for folder in sys.path if folder])

NAMES = tuple(_heddle.names())
for _name in NAMES:
    globals()[_name] = _heddle.function(_name)

mm = globals()["matmul"]  # torch's name of it

__all__ = ["NAMES", "OpInfo", "amax", "info", "mean", "mm", "sum", *NAMES]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    near = did_you_mean(name, __all__) or "; heddle.ops.NAMES lists what there is"
    raise UnknownName(f"[heddle.ops] has no {name}{near}")


follow_torch()  # torch.compile must know the functions before it first meets one
follow_profilers()
