"""heddle.ops.sum, mean and amax against torch: dimensions, strides, dtypes, gradients, what is refused."""

import itertools
import math

import numpy as np
import pytest
import torch

import heddle
import heddle.ops

PAIRS = [(heddle.ops.sum, torch.sum), (heddle.ops.mean, torch.mean), (heddle.ops.amax, torch.amax)]
NAMES = ["sum", "mean", "amax"]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}


def assert_near(mine, wanted):
    assert mine.shape == wanted.shape
    assert mine.dtype == wanted.dtype
    bound = TOLERANCE[wanted.dtype]
    torch.testing.assert_close(mine, wanted, rtol=bound, atol=bound, equal_nan=True)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=NAMES)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_every_choice_of_dimensions(ours, theirs, dtype):
    x = torch.randn(3, 4, 5, 6).to(dtype)
    for count in range(1, 5):
        for dims in itertools.combinations(range(-2, 2), count):
            for keepdim in (False, True):
                assert_near(ours(x, dims, keepdim), theirs(x, dims, keepdim))
    assert_near(ours(x), theirs(x, (0, 1, 2, 3)))
    assert_near(ours(x[0, 0, 0], 0), theirs(x[0, 0, 0], 0))


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=NAMES)
def test_strides(ours, theirs):
    x = torch.randn(6, 20, 34)
    ways = (
        x.transpose(0, 1),
        x.permute(2, 0, 1),
        x[:, ::2],
        x[:, :, 3:19],
        x[..., ::2],
        x[:1].expand(4, 20, 34),
    )
    for way in ways:
        for dim in (0, 1, 2, (0, 1), (0, 2), (1, 2)):
            assert_near(ours(way, dim), theirs(way, dim))
    heddle.ops.sum(x.transpose(0, 1), 0)
    assert heddle.last_path().copies == 0, "dimensions in another order are no reason for a copy"


@pytest.mark.parametrize("shape", [(65, 30), (20000, 40), (3, 200000), (100000, 3)], ids=str)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_sums_are_as_exact_as_torchs(shape, dim):
    """Their errors stay those of a tree of sums, whose depth is the logarithm of the number of terms."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)) + 1
    exact = x.double().sum(dim)
    count = x.numel() / exact.numel()
    bound = 2.0**-24 * (4 + math.log2(count)) * x.abs().double().sum(dim) / 2
    assert ((heddle.ops.sum(x, dim) - exact).abs() <= bound).all()
    assert ((heddle.ops.mean(x, dim) - exact / count).abs() <= bound / count).all()


def test_a_maximum_over_nan_is_nan():
    for shape, dim in (((5, 40), 1), ((40, 5), 0), ((3, 40, 64), 1), ((40, 3), 0)):
        x = torch.randn(shape)
        x.view(-1)[7] = math.nan
        x.view(-1)[-1] = math.inf
        x.view(-1)[0] = -math.inf
        assert_near(heddle.ops.amax(x, dim), x.amax(dim))
    x = torch.tensor([[1.0, math.nan], [3.0, 2.0]])
    assert_near(heddle.ops.reduce(x, kind="max"), x.amax(1))


def test_no_elements():
    x = torch.zeros(3, 0, 4)
    assert_near(heddle.ops.sum(x, 1), x.sum(1))
    assert_near(heddle.ops.mean(x, (1, 2)), x.mean((1, 2)))
    assert_near(heddle.ops.amax(x, 0), x.amax(0))
    with pytest.raises(heddle.InvalidArgument, match=r"\[amax\] x is \[3, 0, 4\]: dim 1 has no elements"):
        heddle.ops.amax(x, 1)


def test_wrong_dimensions():
    x = torch.zeros(3, 4)
    with pytest.raises(
        heddle.InvalidArgument, match=r"\[sum\] dim is 2, x is \[3, 4\]; must be from -2 to 1"
    ):
        heddle.ops.sum(x, 2)
    with pytest.raises(
        heddle.InvalidArgument, match=r"\[mean\] dim is \[1, -1\]; must have each dimension once"
    ):
        heddle.ops.mean(x, (1, -1))
    with pytest.raises(heddle.InvalidArgument, match=r"\[sum\] dtype is torch.float16; must be float32"):
        heddle.ops.sum(x, 1, dtype=torch.float16)


def test_numbers_of_numpy():
    x = torch.randn(3, 4)
    assert_near(heddle.ops.sum(x, np.int64(1)), x.sum(1))
    assert_near(heddle.ops.sum(x, (np.int32(0), 1)), x.sum())
    assert_near(heddle.ops.softmax(x, dim=np.int64(0)), x.softmax(0))
    with pytest.raises(
        heddle.InvalidArgument, match=r"\[sum\] dim is 1.5; must be a whole number or several"
    ):
        heddle.ops.sum(x, 1.5)
    q = np.ones((1, 4, 2, 8), "f4")
    causal, plain = (heddle.ops.flash_attention(q, q, q, causal=each)[1] for each in (np.True_, np.False_))
    assert not np.array_equal(causal, plain)


def test_a_result_in_float32():
    x = torch.randn(64, 50).bfloat16()
    assert_near(heddle.ops.sum(x, 0, dtype=torch.float32), x.sum(0, dtype=torch.float32))
    # Several runs of dimensions are rounded once.
    x = torch.full((257, 3, 257), 1.0).bfloat16()
    assert_near(heddle.ops.sum(x, (0, 2)), x.sum((0, 2)))


def test_numpy():
    x = np.random.default_rng(0).standard_normal((4, 5, 6), np.float32)
    for dim in (0, 1, 2, (0, 2), None):
        assert np.allclose(heddle.ops.sum(x, dim), x.sum(dim), atol=1e-5)
        assert np.allclose(heddle.ops.mean(x, dim, True), x.mean(dim, keepdims=True), atol=1e-6)
        assert np.array_equal(heddle.ops.amax(x, dim), x.max(dim))
    assert np.allclose(heddle.ops.sum(x.transpose(2, 0, 1), 1), x.sum(0).T, atol=1e-5)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=NAMES)
def test_gradients(ours, theirs):
    for shape, dim in (((4, 7), 1), ((4, 7), 0), ((3, 4, 20), 1), ((3, 4, 20), (0, 2)), ((3, 4), (0, 1))):
        for turned in (False, True):
            x = torch.randint(0, 4, shape).float()  # with ties
            made = []
            for function in (ours, theirs):
                leaf = x.clone().requires_grad_()
                y = function(leaf.transpose(0, 1) if turned else leaf, dim)
                (y * torch.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
                made.append(leaf.grad)
            assert_near(*made)


def test_the_gradient_of_a_maximum_over_nan():
    x = torch.randn(3, 5)
    x[1, 2] = math.nan
    made = []
    for function in (heddle.ops.amax, torch.amax):
        leaf = x.clone().requires_grad_()
        function(leaf, 1).sum().backward()
        made.append(leaf.grad)
    assert_near(*made)


def test_a_compiled_function():
    @torch.compile(fullgraph=True, backend="aot_eager")
    def f(x):
        return heddle.ops.mean(heddle.ops.sum(x, (0, 2)) * 2, -1)

    x = torch.randn(4, 5, 6)
    assert_near(f(x), (x.sum((0, 2)) * 2).mean(-1))


def test_variants_of_rows_agree():
    x = torch.randn(50, 300)
    for variant in ("shuffle", "improved", "naive"):
        assert_near(heddle.ops.reduce(x, variant=variant), x.sum(1))
