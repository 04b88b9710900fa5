"""NaN and infinities in the inputs of heddle.ops, against torch in fp64: its kernels for f32 may differ."""

import math

import pytest
import torch
from torch.nn import functional

import heddle
import heddle.ops

BAD = [math.nan, math.inf, -math.inf]
ROWS, COLUMNS = 5, 40


def same_kinds(mine, wanted):
    """True if NaN, plus and minus infinity stand at the same places."""
    kinds = [
        (each.isnan(), each.isposinf(), each.isneginf()) for each in (mine.float(), wanted.to(torch.float32))
    ]
    return all(torch.equal(one, other) for one, other in zip(*kinds, strict=True))


OPS = {
    "softmax": (heddle.ops.softmax, lambda x: x.softmax(-1)),
    "silu": (lambda x: heddle.ops.activation(x, kind="silu"), functional.silu),
    "gelu": (lambda x: heddle.ops.activation(x, kind="gelu"), functional.gelu),
    "gelu_tanh": (
        lambda x: heddle.ops.activation(x, kind="gelu_tanh"),
        lambda x: functional.gelu(x, approximate="tanh"),
    ),
    "relu": (lambda x: heddle.ops.activation(x, kind="relu"), functional.relu),
    "clamp": (lambda x: heddle.ops.clamp(x, low=-0.5, high=0.5), lambda x: x.clamp(-0.5, 0.5)),
    "softcap": (lambda x: heddle.ops.softcap(x, cap=3.0), lambda x: 3 * torch.tanh(x / 3)),
    "rms_norm": (
        lambda x: heddle.ops.rms_norm(x, torch.ones(COLUMNS, dtype=x.dtype), eps=1e-6),
        lambda x: functional.rms_norm(x, (COLUMNS,), eps=1e-6),
    ),
    "amax": (lambda x: heddle.ops.amax(x, -1), lambda x: x.amax(-1)),
    "sum": (lambda x: heddle.ops.sum(x, 0), lambda x: x.sum(0)),
    "argmax": (heddle.ops.argmax, lambda x: x.argmax(-1)),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("value", BAD)
def test_an_op_shows_what_torch_shows(name, dtype, value):
    ours, theirs = OPS[name]
    for place in (0, 17, ROWS * COLUMNS - 1):
        x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(place)).to(dtype)
        x.view(-1)[place] = value
        mine, wanted = ours(x), theirs(x.double())
        assert same_kinds(mine, wanted)
        if name == "argmax":
            assert torch.equal(mine.long(), wanted)


@pytest.mark.parametrize("value", BAD)
def test_the_gradient_of_relu(value):
    x, dy = torch.randn(2, ROWS, COLUMNS, generator=torch.Generator().manual_seed(0))
    x[1, 3] = dy[2, 4] = value
    dy[2, 4:6] = value
    leaf = x.clone().requires_grad_()
    functional.relu(leaf).backward(dy)
    mine = heddle.ops.activation_backward(x, dy, kind="relu")
    assert mine[1, 3] == leaf.grad[1, 3]
    assert mine[x > 0].isnan().equal(leaf.grad[x > 0].isnan())


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}])
def test_a_loss(value, options):
    logits = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 7, -100, 39, 7])
    logits[0, 0] = logits[1, 3] = logits[2, 5] = value
    mine, _ = heddle.ops.cross_entropy(logits, target, **options)
    wanted = functional.cross_entropy(logits, target, reduction="none", **options)
    assert same_kinds(mine, wanted)


@pytest.mark.parametrize("what", "qkv")
@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("causal", [True, False])
def test_attention(what, value, causal):
    """Rows that see the key of what is not finite have what torch's definition gives."""
    generator = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(1, 70, 2, 64, generator=generator) for name in "qkv"}
    tensors[what][0, 3, 1, 2] = value
    y, lse = heddle.ops.flash_attention(*tensors.values(), causal=causal)
    q, k, v = (each.double().transpose(1, 2) for each in tensors.values())
    scores = q @ k.transpose(-1, -2) / 8
    if causal:
        scores = scores.masked_fill(torch.ones(70, 70, dtype=torch.bool).triu(1), -math.inf)
    seeing = slice(3, None)  # queries that see key 3, as under a causal mask
    wanted = (scores.softmax(-1) @ v).transpose(1, 2)
    assert same_kinds(y[:, seeing], wanted[:, seeing])
    assert torch.equal(lse.isnan()[..., seeing], scores.softmax(-1).isnan().any(-1)[..., seeing])
    if what != "v":
        assert torch.equal(y.isnan(), wanted.isnan())


@pytest.mark.parametrize("value", BAD)
def test_a_product(value):
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        a, b = torch.randn(9, 33, generator=generator), torch.randn(33, 12, generator=generator)
        a[2, 5] = b[7, 3] = value
        a, b = a.to(dtype), b.to(dtype)
        assert same_kinds(heddle.ops.mm(a, b), a.double() @ b.double())


@pytest.mark.parametrize("code", ["e4m3", "i8"])
@pytest.mark.parametrize("value", BAD)
def test_the_scale_of_a_group(code, value):
    x = torch.randn(2, 256, generator=torch.Generator().manual_seed(0))
    x[0, 130] = value
    _, scales = heddle.ops.quantize(x, code=code, by="block")
    assert scales[0, 1].isnan() if math.isnan(value) else scales[0, 1].isposinf()
    assert scales.isfinite().sum() == 3
