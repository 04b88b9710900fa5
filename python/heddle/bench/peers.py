"""Others that do the same work: which are here, and why the rest is not.

Packages may also lie in a folder that HEDDLE_BENCH_PEERS names: unpacked wheels, where there is no network.
"""

import contextlib
import functools
import importlib.metadata
import os
import sys

from heddle.bench.timing import is_gpu

KNOWN = ("torch", "compile", "cudnn", "flash", "flex", "liger", "quack")
MODULES = {"liger": "liger_kernel.ops", "quack": "quack"}
PACKAGES = {"liger": "liger-kernel", "quack": "quack-kernels", "triton": "triton"}


class Peers:
    """`missing`: reason by name."""

    def __init__(self, device, wanted=KNOWN):
        self.device, self.missing = device, {}
        folder = os.environ.get("HEDDLE_BENCH_PEERS")
        if folder and folder not in sys.path:
            sys.path.append(folder)
        self.modules = {}
        for name in KNOWN:
            why = "" if name in wanted else "not asked for: --peers"
            why = why or self._why_not(name)
            if why:
                self.missing[name] = why

    def _why_not(self, name):
        if name == "torch":
            return ""
        if not is_gpu(self.device):
            return "runs on a GPU only" if name != "compile" else "torch.compile is a peer on a GPU only"
        if name == "cudnn":
            import torch

            return "" if torch.backends.cudnn.is_available() else "torch has no cuDNN"
        if name not in MODULES:
            return ""
        try:
            self.modules[name] = importlib.import_module(MODULES[name])
        except Exception as error:  # a foreign package may fail in any way
            return f"import {MODULES[name]}: {type(error).__name__}: {error}"
        return ""

    def versions(self):
        found = {}
        for name, package in PACKAGES.items():
            if name in self.modules or (name == "triton" and self.has("compile")):
                with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                    found[name] = importlib.metadata.version(package)
        return found

    def has(self, name):
        return name not in self.missing

    def only(self, **functions):
        """Keeps the functions whose peer is installed."""
        return {name: made for name, made in functions.items() if self.has(name)}

    def of(self, function, **others):
        """torch itself, the same compiled, and others."""
        return self.only(torch=function, compile=compiled(function), **others)

    def liger(self, name, *options):
        """An autograd function of liger_kernel.ops, with what comes after its tensors."""

        def call(*tensors):
            made = getattr(self.modules["liger"], name).apply(*tensors, *options)
            return made[0] if isinstance(made, tuple) else made

        return call

    def quack(self, name, **options):
        """A function of quack."""
        return lambda *tensors: getattr(self.modules["quack"], name)(*tensors, **options)


def compiled(function, **options):
    """The function by torch.compile, which is called when the first call is made."""

    @functools.cache
    def made():
        import torch
        import torch._dynamo.config
        import torch._functorch.config

        torch._functorch.config.donated_buffer = False  # gradients are timed on one graph again and again
        torch._dynamo.config.recompile_limit = 64  # one function is compiled for many shapes
        return torch.compile(function, dynamic=False, **options)

    def call(*tensors):
        return made()(*tensors)

    return call
