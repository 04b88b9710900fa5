"""flex_attention: functions of the caller's for scores and masks. What they compute is compared with torch in
fp64, and the blocks of a mask with those that torch finds."""

import math

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask as block_mask_of_torch

import heddle
from heddle import attention
from heddle.flex import gradients
from heddle.flex.expression import SCORE, TRUE, Band, split_band
from heddle.flex.masks import evaluate, index_outside
from heddle.flex.trace import Captured, trace_mask, trace_score

BATCH, HEADS, LENGTH = 2, 4, 70
IDS = torch.tensor([0] * 20 + [1] * 31 + [5] * 19)
TABLE = torch.linspace(-1, 1, HEADS * 11).reshape(HEADS, 11)
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


def places(batch=BATCH, heads=HEADS, queries=LENGTH, keys=LENGTH):
    shapes = ((-1, 1, 1, 1), (-1, 1, 1), (-1, 1), (-1,))
    return [
        torch.arange(n).reshape(shape) for n, shape in zip((batch, heads, queries, keys), shapes, strict=True)
    ]


def exact(q, k, v, score_mod=None, mask_mod=None):
    """(result, log of sums) in fp64."""
    k, v = (each.double().repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    at = places(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    score = q.double() @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if score_mod:
        score = score_mod(score, *at)
    seen = mask_mod(*at) if mask_mod else torch.tensor(True)
    score = score.masked_fill(~seen, -math.inf)
    seen = seen.expand(score.shape)
    some = seen.any(-1, keepdim=True)
    return torch.softmax(score.where(some, 0), -1) * some @ v, torch.logsumexp(score, -1)


def inputs(queries=LENGTH, keys=LENGTH, groups=HEADS, dim=8, dtype=torch.float32):
    made = torch.Generator().manual_seed(queries + 7 * keys)

    def tensor(heads, length):
        return torch.randn(BATCH, heads, length, dim, generator=made).to(dtype).requires_grad_()

    return tensor(HEADS, queries), tensor(groups, keys), tensor(groups, keys)


def compare(given, score_mod=None, mask_mod=None, block=32, error=1e-5, outer=(None, None)):
    """Compares results, sums and gradients."""
    q, k, v = given
    mask = None
    if mask_mod:
        mask = attention.create_block_mask(
            mask_mod, *outer, q.shape[2], k.shape[2], device="cpu", BLOCK_SIZE=block
        )
    y, lse = attention.flex_attention(q, k, v, score_mod, mask, enable_gqa=True, return_lse=True)
    wanted, wanted_lse = exact(q, k, v, score_mod, mask_mod)
    dy = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
    torch.testing.assert_close(y.double(), wanted, rtol=error, atol=error)
    torch.testing.assert_close(lse.double(), wanted_lse, rtol=error, atol=error)
    pairs = zip(
        torch.autograd.grad(y, given, dy.to(y.dtype)),
        torch.autograd.grad(wanted, given, dy.double()),
        strict=True,
    )
    for gradient, wanted_gradient in pairs:
        torch.testing.assert_close(gradient, wanted_gradient, rtol=10 * error, atol=10 * error)


def everything(score, b, h, q_idx, kv_idx):
    """All operations that a score_mod may have, so that one compilation tests them."""
    far = torch.clamp(q_idx - kv_idx, -5, 5)
    bias = TABLE[h, far + 5] + SLOPES[h] * (q_idx % 3 - kv_idx // 4).abs()
    bent = 4 * torch.tanh(score / 4) + 0.1 * score * torch.sigmoid(score) - torch.exp(-(score**2)) / 2
    bent = torch.where((q_idx + b) % 2 == 0, bent, torch.maximum(score, 0.5 * score) - 1)
    return torch.minimum(bent + bias, torch.sqrt(score * score + 9.0))


MASK = attention.and_masks(
    attention.or_masks(attention.documents(IDS), attention.prefix(7)),
    attention.causal,
    lambda b, h, q_idx, kv_idx: q_idx != 3,  # it sees nothing
)


@pytest.mark.parametrize(("queries", "groups"), [(LENGTH, HEADS), (33, 2)])
def test_a_score_and_a_mask_with_gradients(queries, groups):
    compare(inputs(queries, LENGTH, groups), everything, MASK)


def test_half_precision():
    compare(inputs(dtype=torch.bfloat16), everything, MASK, error=2e-2)


BANDS = {
    "causal": attention.causal,
    "window": attention.sliding_window(9),
    "later keys": lambda b, h, q, kv: (kv <= q + 9) & (kv > q + 5),
    "earlier keys": lambda b, h, q, kv: (kv < q - 3) & (kv > q - 20),
    "none": lambda b, h, q, kv: (kv < q) & (kv > q),
}


@pytest.mark.parametrize("mask_mod", BANDS.values(), ids=BANDS)
def test_bands_are_compiled_into_nothing(mask_mod):
    before = attention.compilations()
    compare(inputs(), mask_mod=mask_mod)
    assert attention.compilations() == before


def test_lengths_batches_and_tensors_are_data():
    def score_mod(score, b, h, q_idx, kv_idx):
        return everything(score, b, h, q_idx, kv_idx)

    before = attention.compilations()
    for length in range(20, 70):
        window = attention.and_masks(MASK, attention.sliding_window(length))
        q, k, v = inputs(length, length)
        mask = attention.create_block_mask(window, None, None, length, length, device="cpu")
        attention.flex_attention(q, k, v, score_mod, mask)
        attention.flex_attention(q[:1], k[:1], v[:1], score_mod, mask)
    assert attention.compilations() - before <= 1


def test_a_row_that_sees_nothing():
    q, k, v = inputs()
    mask = attention.create_block_mask(MASK, None, None, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=32)
    y, lse = attention.flex_attention(q, k, v, everything, mask, return_lse=True)
    assert torch.all(y[:, :, 3] == 0)
    assert torch.all(lse[:, :, 3] == -math.inf)
    gradients = torch.autograd.grad(y.sum(), (q, k, v))
    assert torch.all(gradients[0][:, :, 3] == 0)
    assert all(torch.isfinite(each).all() for each in gradients)


LEARNT = {  # by the indices that they are read with
    "h": (HEADS,),
    "h, distance": (HEADS, 9),
    "h, q, kv": (HEADS, LENGTH, LENGTH),
    "b, kv": (BATCH, LENGTH),
    "none": (),
    "q and kv": (5,),
}


def learning(tensors):
    slopes, table, bias, keys, one, mixed = tensors.values()

    def score_mod(score, b, h, q_idx, kv_idx):
        far = torch.clamp(q_idx - kv_idx, -4, 4) + 4
        score = score * keys[b, kv_idx] - slopes[h] * (q_idx - kv_idx).abs() / 9
        score = score + table[h, far] * torch.sigmoid(score) + bias[h, q_idx, kv_idx]
        score = one * torch.tanh(score / (one * one + 1)) + mixed[(q_idx * h + kv_idx) % 5]
        return score + keys[b, q_idx]  # a tensor may be read twice

    return score_mod


@pytest.mark.parametrize("groups", [HEADS, 2])
def test_captured_tensors_have_gradients(groups):
    q, k, v = inputs(LENGTH, LENGTH, groups)
    made = torch.Generator().manual_seed(3)
    tensors = {name: torch.randn(size, generator=made).requires_grad_() for name, size in LEARNT.items()}
    given = (q, *tensors.values())
    mask_mod = attention.and_masks(attention.prefix(7), lambda b, h, q_idx, kv_idx: q_idx != 3)
    mask = attention.create_block_mask(mask_mod, None, None, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=32)
    made = attention.flex_attention(q, k, v, learning(tensors), mask, enable_gqa=True, return_lse=True)
    wanted = exact(q, k, v, learning(tensors), mask_mod)
    dy = torch.linspace(-1, 1, q.numel()).reshape(q.shape)
    dlse = torch.linspace(-1, 2, made[1].numel()).reshape(made[1].shape) * (wanted[1] > -math.inf)
    first, again = (torch.autograd.grad(made, given, (dy, dlse), retain_graph=True) for _ in range(2))
    right = torch.autograd.grad(wanted, given, (dy.double(), dlse.double()))
    for name, gradient, same, expected in zip(("q", *LEARNT), first, again, right, strict=True):
        assert (gradient - expected).abs().max() < 1e-5 * expected.abs().max(), name
        assert torch.equal(gradient, same), name


def test_gradients_of_captured_tensors_come_in_parts(monkeypatch):
    """Queries are taken some at a time, with the keys that a band lets them see."""
    q, k, v = inputs(queries=40)
    table, error = torch.zeros(HEADS, 3 * LENGTH), torch.zeros(HEADS)
    monkeypatch.setattr(gradients, "MOST_PAIRS", 5000)
    for each in (table, error):
        each.requires_grad_()

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + table[h, q_idx - kv_idx + LENGTH] + error[h].to(torch.float32)

    mask_mod = attention.sliding_window(9)
    mask = attention.create_block_mask(mask_mod, None, None, 40, LENGTH, device="cpu")
    y = attention.flex_attention(q, k, v, score_mod, mask)
    wanted, _ = exact(q, k, v, score_mod, mask_mod)
    dy = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
    made = torch.autograd.grad(y, (table, error), dy)
    right = torch.autograd.grad(wanted, (table, error), dy.double())
    torch.testing.assert_close(made, right, rtol=1e-5, atol=1e-5)


def test_a_captured_tensor_of_halves_has_a_gradient_of_halves():
    q, k, v = inputs()
    table = TABLE.bfloat16().requires_grad_()
    y = attention.flex_attention(q, k, v, attention.relative_bias(table))
    y.sum().backward()
    assert table.grad.dtype == torch.bfloat16
    with torch.no_grad():  # nothing is kept for a gradient
        assert attention.flex_attention(q, k, v, attention.relative_bias(table)).grad_fn is None


MASKS = {
    "causal": attention.causal,
    "window": attention.sliding_window(20),
    "dilated": attention.dilated(40, 3),
    "prefix": attention.prefix(13),
    "documents": attention.documents(IDS),
    "documents of a batch": attention.documents(torch.stack([IDS, IDS.flip(0)])),
    "both": MASK,
    "strict": lambda b, h, q, kv: (q > kv) ^ (kv == 3),
    "by head": lambda b, h, q, kv: (q - kv).abs() * SLOPES[h] < 3,
    "far": lambda b, h, q, kv: (q - kv > 10) | ~(kv < 60),
}


@pytest.mark.parametrize("second", MASKS)
def test_pairs_of_masks_compile_nothing_more(second):
    compare(inputs(LENGTH, LENGTH, 2), mask_mod=MASKS["documents"])
    before = attention.compilations()
    for first in list(MASKS)[: list(MASKS).index(second) + 1]:
        pair = MASKS[first], MASKS[second]
        for made, block in ((attention.and_masks(*pair), 64), (attention.or_masks(*pair), 16)):
            compare(inputs(33, LENGTH, 2), mask_mod=made, block=block, outer=(BATCH, HEADS))
    assert attention.compilations() == before


def test_cells_that_lists_cut_otherwise():
    """Lists name blocks of 48 queries and 200 keys; cells have 128 of each."""
    length = 300
    ids = torch.arange(length) // 37

    def mask_mod(b, h, q_idx, kv_idx):
        return ((ids[q_idx] == ids[kv_idx]) | (kv_idx % 7 == h)) & (q_idx + b != 130)

    q, k, v = inputs(length, length, 2)
    mask = attention.create_block_mask(mask_mod, BATCH, HEADS, length, length, "cpu", BLOCK_SIZE=(48, 200))
    y = attention.flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
    wanted, _ = exact(q, k, v, None, mask_mod)
    torch.testing.assert_close(y.double(), wanted, rtol=1e-5, atol=1e-5)
    made, right = (torch.autograd.grad(each.sum(), (q, k, v)) for each in (y, wanted))
    torch.testing.assert_close(made, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("lengths", [(64, 64), (70, 33)])
def test_blocks_are_those_of_torch(name, lengths):
    mask_mod = MASKS[name]
    sizes = (BATCH, HEADS, *lengths)
    ours = attention.create_block_mask(mask_mod, *sizes, device="cpu", BLOCK_SIZE=16)
    theirs = block_mask_of_torch(mask_mod, *sizes, device="cpu", BLOCK_SIZE=16)
    assert torch.equal(ours.to_dense(), theirs.to_dense())
    assert torch.equal(ours.full_kv_num_blocks, theirs.full_kv_num_blocks)
    captured = Captured()
    traced = trace_mask(mask_mod, captured)
    at = dict(zip("bhq", places(*sizes)[:3], strict=True)) | {"kv": places(*sizes)[3]}
    assert torch.equal(
        evaluate(traced, captured, at, "cpu").expand(sizes), mask_mod(*at.values()).expand(sizes)
    )


@pytest.mark.parametrize(
    ("mask_mod", "left", "right"),
    [
        (lambda b, h, q, kv: q >= kv, None, 0),
        (lambda b, h, q, kv: (kv <= q) & (q < kv + 8), 7, 0),
        (lambda b, h, q, kv: (q - kv).abs() <= 5, 5, 5),
        (lambda b, h, q, kv: (kv - q < 4) & (kv - q >= -2), 2, 3),
        (lambda b, h, q, kv: (kv <= q + 9) & (kv > q + 9 - 4), -6, 9),
        (lambda b, h, q, kv: (q > kv) & (q >= 0), None, -1),
    ],
)
def test_bands(mask_mod, left, right):
    band, rest = split_band(trace_mask(mask_mod, Captured()))
    assert (band.left, band.right, rest) == (left, right, TRUE)


@pytest.mark.parametrize("name", ["strict", "far", "dilated"])
def test_masks_that_are_no_band_keep_their_meaning(name):
    _, rest = split_band(trace_mask(MASKS[name], Captured()))
    assert rest != TRUE


def test_a_score_that_stays_is_no_function():
    assert trace_score(lambda score, b, h, q, kv: score + 0, Captured()) == SCORE
    assert trace_score(lambda score, b, h, q, kv: score * 1.0, Captured()) == SCORE


def branches(score, b, h, q_idx, kv_idx):
    if q_idx > kv_idx:
        return score
    return -score


@pytest.mark.parametrize(
    ("score_mod", "line"),
    [
        (branches, "if q_idx > kv_idx"),
        (lambda score, b, h, q, kv: torch.special.erf(score), "erf"),
        (lambda score, b, h, q, kv: score + SLOPES, "an index for each dimension"),
        (lambda score, b, h, q, kv: score + TABLE[h], "indices of a captured tensor"),
        (lambda score, b, h, q, kv: score + SLOPES[:2][score], "no whole number"),
        (lambda score, b, h, q, kv: float(score), "number of Python"),
        (lambda score, b, h, q, kv: "no", "must be numbers"),
    ],
)
def test_what_cannot_be_traced_is_refused_with_its_line(score_mod, line):
    q, k, v = inputs()
    with pytest.raises(heddle.Unsupported, match=r"score_mod at .*test_flex_attention\.py:[0-9]+") as refused:
        attention.flex_attention(q, k, v, score_mod)
    assert line in str(refused.value)


def test_wrong_calls_are_named():
    q, k, v = inputs()
    short = torch.zeros(3)
    with pytest.raises(heddle.InvalidArgument, match="is read at 3; must be from -3 to 2"):
        attention.flex_attention(q, k, v, lambda score, b, h, i, j: score + short[h])
    with pytest.raises(heddle.InvalidArgument, match="enable_gqa"):
        attention.flex_attention(q, k[:, :2], v[:, :2])
    mask = attention.create_block_mask(MASK, None, None, 64, 64, device="cpu")
    with pytest.raises(heddle.InvalidArgument, match="64 queries and 64 keys"):
        attention.flex_attention(q, k, v, None, mask)
    with pytest.raises(heddle.InvalidArgument, match="Q_LEN is 0"):
        attention.create_block_mask(MASK, None, None, 0, 64, device="cpu")
    with pytest.raises(heddle.Unsupported, match="kernel_options"):
        attention.flex_attention(q, k, v, kernel_options={"BLOCK_M": 64})


@pytest.mark.parametrize(
    ("index", "outside"),
    [
        (lambda h, i, j: i - j, -69),
        (lambda h, i, j: (i - j).abs() + 1, 70),
        (lambda h, i, j: torch.clamp(i - j, -70, 90), None),
        (lambda h, i, j: i // 2 + j // 2 + 2, 70),
        (lambda h, i, j: (7 * i + j) % 70, None),
        (lambda h, i, j: i % 3 - 71, -71),
    ],
)
def test_an_index_outside_of_a_captured_tensor(index, outside):
    traced = trace_score(lambda score, b, h, i, j: torch.ones(70)[index(h, i, j)], Captured()).args[0]
    assert index_outside(traced, 68 if outside == -69 else 70, (2, 4, 70, 70), Band()) == outside


def test_a_band_says_how_far_apart_pairs_are():
    traced = trace_score(lambda score, b, h, i, j: torch.ones(9)[i - j], Captured()).args[0]
    sizes = (1, 1, 70, 70)
    assert index_outside(traced, 9, sizes, Band(8, 0)) is None
    assert index_outside(traced, 9, sizes, Band(9, 0)) == 9
    assert index_outside(traced, 9, sizes, Band(8, 10)) == -10


def test_a_block_mask_of_torch_is_taken():
    q, k, v = inputs()
    mask = block_mask_of_torch(MASK, None, None, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=32)
    y = attention.flex_attention(q, k, v, everything, mask)
    torch.testing.assert_close(y.double(), exact(q, k, v, everything, MASK)[0], rtol=1e-5, atol=1e-5)


def test_inside_torch_compile():
    q, k, v = inputs()

    def doubled(q):
        return 2 * attention.flex_attention(q, k, v, everything)

    y = torch.compile(doubled, backend="eager")(q)
    assert torch.equal(y, doubled(q))
    y.sum().backward()
    assert q.grad is not None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_on_a_gpu(dtype):
    q, k, v = (each.detach().to("cuda", dtype).requires_grad_() for each in inputs(300, 300, 2, dim=64))
    slopes = SLOPES.cuda()
    ids = IDS.repeat_interleave(5)[:300].cuda()

    def score_mod(score, b, h, q_idx, kv_idx):
        return 3 * torch.tanh(score / 3) - slopes[h] * (q_idx - kv_idx).abs()

    mask_mod = attention.and_masks(attention.documents(ids), attention.causal)
    mask = attention.create_block_mask(mask_mod, None, None, 300, 300, device="cuda")
    y = attention.flex_attention(q, k, v, score_mod, mask, enable_gqa=True)
    gradients = torch.autograd.grad(y.sum(), (q, k, v))
    slopes, ids = slopes.cpu(), ids.cpu()
    on_cpu = [each.detach().double().cpu().requires_grad_() for each in (q, k, v)]
    wanted, _ = exact(*on_cpu, score_mod, attention.and_masks(attention.documents(ids), attention.causal))
    error = 2e-2 if dtype == torch.bfloat16 else 1e-5
    for made, right in zip(
        (y, *gradients), (wanted, *torch.autograd.grad(wanted.sum(), on_cpu)), strict=True
    ):
        assert (made.cpu().double() - right).norm() < error * right.norm()
