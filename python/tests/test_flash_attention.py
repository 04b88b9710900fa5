"""flash_attention against torch's scaled_dot_product_attention on the CPU."""

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import heddle

LOW = float("-inf")


def inputs(batch=2, queries=37, keys=50, heads=4, groups=2, dim=24, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)

    def made(rows, count):
        return torch.randn(batch, rows, count, dim, generator=generator).to(dtype)

    return made(queries, heads), made(keys, groups), made(keys, groups)


def mask_of(queries, keys, left=-1, right=-1, offset=0):
    """Returns what each query sees, as the op says it."""
    position = torch.arange(queries)[:, None] + keys - queries + offset
    key = torch.arange(keys)[None]
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if left >= 0:
        seen &= key >= position - left
    if right >= 0:
        seen &= key <= position + right
    return seen


def by_torch(q, k, v, mask=None, scale=None):
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    y = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
    return y.transpose(1, 2)


def by_hand(q, k, v, mask, bias, softcap, sinks):
    group = q.shape[2] // k.shape[2]
    k, v = (each.repeat_interleave(group, 2) for each in (k, v))
    scores = torch.einsum("bshd,bthd->bhst", q, k) / math.sqrt(q.shape[-1])
    if softcap:
        scores = softcap * (scores / softcap).tanh()
    scores = (scores + bias).masked_fill(~mask, LOW)
    column = sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    weights = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    return torch.einsum("bhst,bthd->bshd", weights, v)


def check(function, wanted, tensors, tolerance=2e-5):
    ours = [each.clone().requires_grad_() for each in tensors]
    others = [each.clone().requires_grad_() for each in tensors]
    y, z = function(*ours), wanted(*others)
    assert (y.shape, y.dtype) == (z.shape, z.dtype)
    torch.testing.assert_close(y, z, atol=tolerance, rtol=tolerance)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(4)).to(y.dtype)
    y.backward(dy)
    z.backward(dy)
    for one, other in zip(ours, others, strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=8 * tolerance, rtol=8 * tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dense(dtype):
    tolerance = 2e-5 if dtype == torch.float32 else 1e-2
    check(lambda q, k, v: heddle.ops.flash_attention(q, k, v)[0], by_torch, inputs(dtype=dtype), tolerance)


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({"causal": True}, {"right": 0}),
        ({"causal": True, "window_left": 7}, {"left": 7, "right": 0}),
        ({"window_left": 5, "window_right": 9}, {"left": 5, "right": 9}),
        ({"causal": True, "q_offset": -3}, {"right": 0, "offset": -3}),
    ],
)
def test_masks(options, bounds):
    q, k, v = inputs()
    mask = mask_of(q.shape[1], k.shape[1], **bounds)
    check(
        lambda q, k, v: heddle.ops.flash_attention(q, k, v, scale=0.3, **options)[0],
        lambda q, k, v: by_torch(q, k, v, mask, scale=0.3),
        (q, k, v),
    )


def test_bias_cap_and_sinks_have_gradients():
    q, k, v = inputs(queries=9, keys=12)
    bias, sinks = torch.randn(1, 4, 9, 12), torch.randn(4)
    mask = mask_of(9, 12, right=0)
    check(
        lambda q, k, v, bias, sinks: heddle.ops.flash_attention(
            q, k, v, bias=bias, sinks=sinks, causal=True, softcap=2.0
        )[0],
        lambda q, k, v, bias, sinks: by_hand(q, k, v, mask, bias, 2.0, sinks),
        (q, k, v, bias, sinks),
    )


def test_a_mask_of_a_batch_may_be_expanded():
    q, k, v = inputs()
    mask = torch.zeros(2, 1, 1, 50).masked_fill_(torch.arange(50) >= 41, LOW).expand(2, 1, 37, 50)
    check(
        lambda q, k, v: heddle.ops.flash_attention(q, k, v, bias=mask)[0],
        lambda q, k, v: by_torch(q, k, v, mask),
        (q, k, v),
    )


def test_alibi():
    q, k, v = inputs(queries=20, keys=20)
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    distance = (torch.arange(20)[:, None] - torch.arange(20)[None]).abs()
    check(
        lambda q, k, v: heddle.ops.flash_attention(q, k, v, alibi_slopes=slopes)[0],
        lambda q, k, v: by_torch(q, k, v, -slopes.view(4, 1, 1) * distance),
        (q, k, v),
    )


def test_sequences_of_different_lengths():
    q, k, v = inputs(batch=1, queries=60, keys=70)
    starts_q, starts_k = [0, 10, 10, 47, 60], [0, 14, 20, 57, 70]

    def ours(q, k, v):
        starts = (torch.tensor(each, dtype=torch.int32) for each in (starts_q, starts_k))
        return heddle.ops.flash_attention(
            q[0], k[0], v[0], cu_seqlens_q=next(starts), cu_seqlens_k=next(starts), causal=True
        )[0][None]

    def wanted(q, k, v):
        parts = []
        for n in range(4):
            a, b, c, d = starts_q[n], starts_q[n + 1], starts_k[n], starts_k[n + 1]
            parts.append(by_torch(q[:, a:b], k[:, c:d], v[:, c:d], mask_of(b - a, d - c, right=0)))
        return torch.cat(parts, 1)

    check(ours, wanted, (q, k, v))


def test_a_query_without_keys_gets_zeros():
    q, k, v = (each.requires_grad_() for each in inputs(queries=9, keys=5))
    y, lse = heddle.ops.flash_attention(q, k, v, causal=True)
    assert torch.equal(y[:, :4], torch.zeros_like(y[:, :4]))
    assert torch.equal(lse[..., :4], torch.full_like(lse[..., :4], LOW))
    y.sum().backward()
    assert torch.equal(q.grad[:, :4], torch.zeros_like(q.grad[:, :4]))
    assert all(each.grad.isfinite().all() for each in (q, k, v))


def test_lse_and_its_gradient():
    def wanted(q, k, v):
        scores = torch.einsum("bshd,bthd->bhst", q, k) / math.sqrt(q.shape[-1])
        return scores.logsumexp(-1) + 0 * v.sum()

    check(lambda q, k, v: heddle.ops.flash_attention(q, k, v)[1], wanted, inputs(heads=2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_chunks_of_keys_continue_one_another(dtype):
    tolerance = 2e-5 if dtype == torch.float32 else 1e-2

    def in_chunks(q, k, v):
        y = lse = None
        for begin in range(0, k.shape[1], 20):
            keys, values = (each[:, begin : begin + 20] for each in (k, v))
            # The last query stands at the last key of all.
            offset = k.shape[1] - begin - keys.shape[1]
            y, lse = heddle.ops.flash_attention(
                q, keys, values, y_in=y, lse_in=lse, causal=True, q_offset=offset
            )
        return y, lse

    def at_once(q, k, v):
        return heddle.ops.flash_attention(q, k, v, causal=True)

    tensors = inputs(dtype=dtype)
    check(lambda *each: in_chunks(*each)[0], lambda *each: at_once(*each)[0], tensors, tolerance)
    check(lambda *each: in_chunks(*each)[1], lambda *each: at_once(*each)[1], tensors, tolerance)


def test_nothing_is_continued_where_lse_in_is_infinite():
    q, k, v = inputs()
    y, lse = heddle.ops.flash_attention(q, k, v)
    before = torch.full_like(y, float("nan")), torch.full_like(lse, LOW)
    again = heddle.ops.flash_attention(q, k, v, y_in=before[0], lse_in=before[1])
    torch.testing.assert_close(again, (y, lse))
    # No keys at all: what was before remains.
    unseen = heddle.ops.flash_attention(q, k, v, y_in=y, lse_in=lse, causal=True, q_offset=-100)
    torch.testing.assert_close(unseen, (y, lse))


def lists_of(seen, block_q, block_k):
    """The blocks in which `seen` [batch, head, S, T] has pairs, as the op takes them, and all their pairs."""
    batch, heads, queries, keys = seen.shape
    rows, columns = -(-queries // block_q), -(-keys // block_k)
    padded = torch.zeros(batch, heads, rows * block_q, columns * block_k, dtype=torch.bool)
    padded[..., :queries, :keys] = seen
    blocks = padded.view(batch, heads, rows, block_q, columns, block_k).any(5).any(3)
    indices = blocks.int().argsort(dim=-1, descending=True, stable=True).int()
    listed = blocks.repeat_interleave(block_q, 2).repeat_interleave(block_k, 3)[..., :queries, :keys]
    return {
        "kv_num_blocks": blocks.sum(-1, dtype=torch.int32),
        "kv_indices": indices,
        "block_q": block_q,
        "block_k": block_k,
    }, listed


@pytest.mark.parametrize(("batch", "heads"), [(1, 1), (2, 1), (1, 4), (2, 4)])
@pytest.mark.parametrize("causal", [True, False])
def test_block_lists(batch, heads, causal):
    q, k, v = inputs()
    seen = torch.rand(batch, heads, 37, 50, generator=torch.Generator().manual_seed(5)) < 0.01
    lists, listed = lists_of(seen, 8, 6)
    mask = listed & mask_of(37, 50, right=0 if causal else -1)
    check(
        lambda q, k, v: heddle.ops.flash_attention(q, k, v, **lists, causal=causal)[0],
        lambda q, k, v: by_torch(q, k, v, mask),
        (q, k, v),
    )


def test_block_lists_with_a_bias():
    q, k, v = inputs()
    bias = torch.randn(1, 4, 37, 50)
    lists, listed = lists_of(torch.rand(2, 4, 37, 50) < 0.05, 16, 16)
    check(
        lambda q, k, v, bias: heddle.ops.flash_attention(q, k, v, bias=bias, **lists)[0],
        lambda q, k, v, bias: by_torch(q, k, v, bias.masked_fill(~listed, LOW)),
        (q, k, v, bias),
    )


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_a_block_mask_of_torch():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def sees(b, h, query, key):
        return (query >= key) & (query - key <= 40)

    mask = create_block_mask(sees, None, None, 100, 100, device="cpu", BLOCK_SIZE=16)
    lists = heddle.block_lists(mask)
    assert mask.full_kv_num_blocks.sum() > 0
    assert lists["kv_num_blocks"].sum() == (mask.kv_num_blocks + mask.full_kv_num_blocks).sum()
    q, k, v = inputs(queries=100, keys=100, heads=2)

    def ours(q, k, v):
        return heddle.ops.flash_attention(q, k, v, **lists, causal=True, window_left=40)[0]

    by_flex = flex_attention(*(each.transpose(1, 2) for each in (q, k, v)), block_mask=mask)
    torch.testing.assert_close(ours(q, k, v), by_flex.transpose(1, 2), atol=2e-5, rtol=2e-5)
    check(ours, lambda q, k, v: by_torch(q, k, v, mask_of(100, 100, left=40, right=0)), (q, k, v))


def test_a_list_may_be_empty():
    q, k, v = (each.requires_grad_() for each in inputs())
    lists, _ = lists_of(torch.zeros(1, 1, 37, 50, dtype=torch.bool), 16, 16)
    y, lse = heddle.ops.flash_attention(q, k, v, **lists)
    assert torch.equal(y, torch.zeros_like(y))
    assert torch.equal(lse, torch.full_like(lse, LOW))
    y.sum().backward()
    assert all(torch.equal(each.grad, torch.zeros_like(each)) for each in (q, k, v))


def test_layout_of_torch_is_taken_without_a_copy():
    q, k, v = (each.transpose(1, 2).contiguous().transpose(1, 2) for each in inputs())
    y, _ = heddle.ops.flash_attention(q, k, v)
    assert heddle.last_path().copies == 0
    torch.testing.assert_close(y, by_torch(q, k, v), atol=2e-5, rtol=2e-5)


def test_the_same_bits_each_time():
    tensors = [each.requires_grad_() for each in inputs(queries=200, keys=200)]

    def once():
        y, _ = heddle.ops.flash_attention(*tensors, causal=True)
        return torch.autograd.grad(y.sum(), tensors)

    first = once()
    for one, other in zip(first, once(), strict=True):
        assert torch.equal(one, other)


def test_what_does_not_fit_is_named():
    q, k, v = inputs()
    with pytest.raises(heddle.InvalidArgument, match="4 heads, k has 3"):
        heddle.ops.flash_attention(q, k[:, :, :1].expand(-1, -1, 3, -1), v[:, :, :1].expand(-1, -1, 3, -1))
    with pytest.raises(heddle.InvalidArgument, match="only one of cu_seqlens_q and cu_seqlens_k"):
        heddle.ops.flash_attention(q, k, v, cu_seqlens_q=torch.zeros(2, dtype=torch.int32))
    lists, _ = lists_of(torch.ones(2, 4, 37, 50, dtype=torch.bool), 16, 16)
    with pytest.raises(heddle.InvalidArgument, match=r"kv_num_blocks is .*must be \[2 or 1, 4 or 1, 1\]"):
        heddle.ops.flash_attention(q, k, v, **{**lists, "block_q": 64})
    with pytest.raises(heddle.InvalidArgument, match="only one of kv_num_blocks and kv_indices"):
        heddle.ops.flash_attention(q, k, v, kv_num_blocks=lists["kv_num_blocks"])
    starts = torch.tensor([0, 37], dtype=torch.int32), torch.tensor([0, 50], dtype=torch.int32)
    one = {**lists, **{name: lists[name][:1] for name in ("kv_num_blocks", "kv_indices")}}
    with pytest.raises(heddle.InvalidArgument, match="block lists are for one sequence"):
        heddle.ops.flash_attention(q[0], k[0], v[0], cu_seqlens_q=starts[0], cu_seqlens_k=starts[1], **one)
    with pytest.raises(heddle.InvalidArgument, match="only one of y_in and lse_in"):
        heddle.ops.flash_attention(q, k, v, y_in=torch.zeros(2, 37, 4, 24))
    with pytest.raises(heddle.InvalidArgument, match=r"bias is .*must be \[2 or 1, 4 or 1, 37, 50\]"):
        heddle.ops.flash_attention(q, k, v, bias=torch.zeros(2, 3, 37, 50))


def test_compile():
    q, k, v = inputs()
    compiled = torch.compile(
        lambda q, k, v: heddle.ops.flash_attention(q, k, v, causal=True)[0], fullgraph=True
    )
    for tensors in ((q, k, v),):
        made = [each.clone().requires_grad_() for each in tensors]
        compiled(*made).sum().backward()
        other = [each.clone().requires_grad_() for each in tensors]
        heddle.ops.flash_attention(*other, causal=True)[0].sum().backward()
        for one, two in zip(made, other, strict=True):
            torch.testing.assert_close(one.grad, two.grad)
