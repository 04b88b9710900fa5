"""heddle: ops of transformers on the tensors that you have.

>>> import heddle
>>> y = heddle.ops.rms_norm(x, weight, eps=1e-5)  # NumPy arrays or torch tensors

Importing it loads neither torch nor NumPy; `heddle.torch` registers the same ops with torch.
"""

import importlib

from heddle.errors import CompileError, CompilerMissing, DeviceError, Error, InvalidArgument, Unsupported

__version__ = "0.1.0"
__all__ = [
    "CompileError",
    "CompilerMissing",
    "DeviceError",
    "Error",
    "InvalidArgument",
    "Unsupported",
    "last_path",
    "ops",
    "set_backend",
]

_MODULES = ("ops", "torch", "env")
_FUNCTIONS = {"set_backend": "heddle.paths", "last_path": "heddle.paths"}


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"heddle.{name}")
    if name in _FUNCTIONS:
        value = getattr(importlib.import_module(_FUNCTIONS[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"heddle has no attribute {name!r}; it has {', '.join(sorted(__all__))}")


def __dir__():
    return sorted([*globals(), *_MODULES, *_FUNCTIONS])
