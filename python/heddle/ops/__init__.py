"""Every op of heddle as a function of tensors: `heddle.ops.<name>(*tensors, *, <attributes>, out=None)`.

Tensors are those of torch or NumPy; they are read where they lie, and outputs are made in the same library.
All but the last dimension may be any number of leading dimensions. `help(heddle.ops.rms_norm)` has an op's
arguments, `heddle.ops.info("rms_norm")` what it is.
"""

from heddle.errors import UnknownName, did_you_mean
from heddle.late_torch import follow_torch
from heddle.ops import rows  # noqa: F401  # calls with `dim`
from heddle.ops.functions import FUNCTIONS, NAMES
from heddle.ops.info import OpInfo, info
from heddle.ops.reductions import amax, mean, sum
from heddle.ranges import follow_profilers

globals().update(FUNCTIONS)
mm = FUNCTIONS["matmul"]  # torch's name of it

__all__ = ["NAMES", "OpInfo", "amax", "info", "mean", "mm", "sum", *NAMES]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    near = did_you_mean(name, __all__) or "; heddle.ops.NAMES lists what there is"
    raise UnknownName(f"[heddle.ops] has no {name}{near}")


follow_torch()  # torch.compile must know the functions before it first meets one
follow_profilers()
