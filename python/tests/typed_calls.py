"""Calls as a type checker sees them: what they return, which are wrong. test_stubs.py has mypy read this."""

from typing import assert_type

import numpy
from numpy.typing import NDArray

import heddle.ops

Array = NDArray[numpy.float32]


def calls(x: Array, weight: Array) -> None:
    assert_type(heddle.ops.rms_norm(x, weight, eps=1e-6), Array)
    assert_type(heddle.ops.layer_norm(x, weight, bias=weight), Array)
    assert_type(heddle.ops.rms_norm_backward(x, weight, x), tuple[Array, Array])
    assert_type(heddle.ops.activation(x, kind="gelu", out=x), Array)
    heddle.ops.activation(x, kind="swish")  # type: ignore[arg-type]
    heddle.ops.rms_norm(x)  # type: ignore[call-arg]
    heddle.ops.rms_norm(x, weight, epsilon=1)  # type: ignore[call-arg]
    heddle.ops.rms_norm(x, weight, out="y")  # type: ignore[arg-type]
