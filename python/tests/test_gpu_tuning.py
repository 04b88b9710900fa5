"""Configurations that calls on a GPU choose, also on one that a build without a GPU emulates."""

import numpy
import pytest

import heddle
import heddle.ops
from gpu_array import Driver, GpuArray

try:
    DRIVER = Driver()
except OSError as error:
    pytest.skip(f"no GPU can be used here: {error}", allow_module_level=True)

RANDOM = numpy.random.default_rng(1)


def test_pick_best_compiles_and_times_what_fits():
    a, b = RANDOM.standard_normal((3, 16), "f"), RANDOM.standard_normal((16, 8), "f")
    on_gpu = [GpuArray(DRIVER, each) for each in (a, b, numpy.zeros((3, 8), "f"))]
    heddle.ops.matmul(*on_gpu[:2], out=on_gpu[2])
    plain = on_gpu[2].numpy()
    numpy.testing.assert_allclose(plain, a @ b, atol=1e-5)
    assert heddle.last_path().tuned == ""
    with heddle.settings.set(heddle.PickBest, num_workers=2):
        heddle.ops.matmul(*on_gpu[:2], out=on_gpu[2])
    assert heddle.last_path().tuned.endswith(" of 2")
    assert numpy.array_equal(on_gpu[2].numpy(), plain)
    numpy.testing.assert_array_equal(on_gpu[0].numpy(), a)
