"""What is measured: a suite is a function (peers, device, tiny) that yields Work."""

import importlib

NAMES = ("smoke", "rows", "small", "gemm", "products", "attention", "sympow", "loss")


def works_of(name, peers, device, tiny):
    return list(importlib.import_module(f"heddle.bench.suites.{name}").works(peers, device, tiny))
