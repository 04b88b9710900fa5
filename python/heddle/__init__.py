"""heddle: ops of transformers on the tensors that you have.

>>> import heddle
>>> y = heddle.ops.rms_norm(x, weight, eps=1e-5)  # NumPy arrays or torch tensors
>>> text = heddle.load("models/storyteller").generate("Once upon a time")

Importing it loads neither torch nor NumPy; `heddle.torch` registers the same ops with torch.
"""

import importlib

from heddle.errors import (
    CompileError,
    CompilerMissing,
    DeadlineExceeded,
    DeviceError,
    Error,
    FileError,
    InvalidArgument,
    PackageMissing,
    UnknownName,
    Unsupported,
    WrongCall,
    did_you_mean,
)
from heddle.late_torch import set_registration
from heddle.version import __version__ as __version__

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from heddle import buckets as buckets
    from heddle import distributed as distributed
    from heddle import env as env
    from heddle import float8 as float8
    from heddle import hardware as hardware
    from heddle import memory as memory
    from heddle import model as model
    from heddle import moe as moe
    from heddle import ops as ops
    from heddle import optim as optim
    from heddle import quant as quant
    from heddle import settings as settings
    from heddle import torch as torch
    from heddle.attention import power_attention
    from heddle.explain import explain
    from heddle.flex.lists import block_lists
    from heddle.megakernel import (
        Megakernel,
        MegakernelConfig,
        ScheduledOp,
        schedule,
        schedulers,
        set_default_scheduler,
    )
    from heddle.model import from_transformers, load
    from heddle.own.folder import load_ops
    from heddle.own.kernel import KernelPlan, Launch, TensorMap
    from heddle.own.op import Op
    from heddle.patching import is_patched, patch, patched, unpatch
    from heddle.paths import last_path, set_backend
    from heddle.scheduling import Work
    from heddle.settings import PickAny, PickBest
    from heddle.torch.linear_loss import linear_cross_entropy

__all__ = [
    "CompileError",
    "CompilerMissing",
    "DeadlineExceeded",
    "DeviceError",
    "Error",
    "FileError",
    "InvalidArgument",
    "KernelPlan",
    "Launch",
    "Megakernel",
    "MegakernelConfig",
    "Op",
    "PackageMissing",
    "PickAny",
    "PickBest",
    "ScheduledOp",
    "TensorMap",
    "UnknownName",
    "Unsupported",
    "Work",
    "WrongCall",
    "bf16",
    "block_lists",
    "explain",
    "f16",
    "f32",
    "from_transformers",
    "i32",
    "is_patched",
    "last_path",
    "linear_cross_entropy",
    "load",
    "load_ops",
    "ops",
    "patch",
    "patched",
    "power_attention",
    "schedule",
    "schedulers",
    "set_backend",
    "set_default_scheduler",
    "settings",
    "unpatch",
]

# Dtypes, as an op of one's own declares them.
f32, f16, bf16, i32 = "f32", "f16", "bf16", "i32"

_MODULES = (
    "ops",
    "torch",
    "buckets",
    "distributed",
    "env",
    "float8",
    "hardware",
    "memory",
    "model",
    "moe",
    "optim",
    "quant",
    "settings",
)
_HOMES = {
    "heddle.paths": ("set_backend", "last_path"),
    "heddle.megakernel": (
        "Megakernel",
        "MegakernelConfig",
        "ScheduledOp",
        "schedule",
        "schedulers",
        "set_default_scheduler",
    ),
    "heddle.attention": ("power_attention",),
    "heddle.flex.lists": ("block_lists",),
    "heddle.own.op": ("Op",),
    "heddle.own.folder": ("load_ops",),
    "heddle.own.kernel": ("KernelPlan", "Launch", "TensorMap"),
    "heddle.scheduling": ("Work",),
    "heddle.settings": ("PickAny", "PickBest"),
    "heddle.model": ("from_transformers", "load"),
    "heddle.torch.linear_loss": ("linear_cross_entropy",),
    "heddle.explain": ("explain",),
    "heddle.patching": ("patch", "unpatch", "is_patched", "patched"),
}
_FUNCTIONS = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name):
    if name in _MODULES:
        return _imported(name, f"heddle.{name}")
    if name in _FUNCTIONS:
        value = getattr(_imported(name, _FUNCTIONS[name]), name)
        globals()[name] = value
        return value
    if name.startswith("_"):  # imports look for modules so
        raise AttributeError(name)
    near = did_you_mean(name, [*__all__, *_MODULES]) or f"; it has {', '.join(sorted(__all__))}"
    raise UnknownName(f"[heddle] has no {name}{near}")


# From here on heddle.ops finds heddle.torch as soon as there is torch.
set_registration(lambda: importlib.import_module("heddle.torch"))


def _imported(name, module):
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "heddle":
            raise
        raise PackageMissing(
            f"[{name}] needs the package {error.name}, which is not installed: pip install {error.name}"
        ) from error


def __dir__():
    return sorted([*globals(), *_MODULES, *_FUNCTIONS])
