"""The works that are measured: a suite is a function (peers, device, tiny) that yields Work. The one that
draws its shapes takes a seed and a count besides."""

import importlib

NAMES = ("smoke", "rows", "small", "gemm", "products", "attention", "sympow", "loss", "shapes")
DRAWN = "shapes"


def works_of(name, peers, device, tiny, **draws):
    return list(importlib.import_module(f"heddle.bench.suites.{name}").works(peers, device, tiny, **draws))
