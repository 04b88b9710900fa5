"""Attention of whole sequences against cuDNN; windows, documents, lists and ALiBi against flex_attention."""

import functools
import itertools

import torch
from torch.nn.functional import scaled_dot_product_attention

from heddle import ops
from heddle.bench.peers import compiled
from heddle.bench.suites.tensors import randn, size_of
from heddle.bench.timing import is_gpu
from heddle.bench.work import BACKWARD, FORWARD, Amount, Work

WINDOW = 1024
BLOCK = 128  # queries, and keys, of a block in a list


def inputs_of(device):
    def inputs(batch, length, heads, dim):
        return [randn(device, batch, length, heads, dim) for _ in range(3)]

    return inputs


def amounts(shape, device, pairs):
    """`pairs`: of a query and a key that sees it, in one head of one sequence."""
    batch, length, heads, dim = shape
    flops = 4.0 * batch * heads * pairs * dim
    moved = 4 * batch * length * heads * dim * size_of(device)
    return {FORWARD: Amount(moved, flops), BACKWARD: Amount(2 * moved, 2.5 * flops)}


def heads_first(function):
    """Calls a function of [batch, head, row, element] with tensors [batch, row, head, element]."""

    def call(q, k, v):
        return function(*(each.transpose(1, 2) for each in (q, k, v))).transpose(1, 2)

    return call


def by_scores(change):
    """Attention as it is defined; `change(scores, position, key)` masks and adds."""

    def attend(q, k, v):
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        rows = torch.arange(q.shape[2], device=q.device)
        return change(scores, rows[:, None], rows[None]).softmax(-1) @ v

    return heads_first(attend)


def cudnn(causal):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def attend(q, k, v):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=causal)

    return heads_first(attend)


def plain(peers, device, batch, length, heads, dim, causal=False, goal=None):
    shape = (batch, length, heads, dim)

    def change(scores, position, key):
        return scores.masked_fill(key > position, float("-inf")) if causal else scores

    def theirs(q, k, v):
        return scaled_dot_product_attention(q, k, v, is_causal=causal)

    others = peers.only(cudnn=cudnn(causal), torch=heads_first(theirs))
    if "cudnn" in others and length > 2048:
        del others[
            "torch"
        ]  # its own choice is one of the two below; it has shown nothing else on long sequences
    return Work(
        name=f"flash_attention {batch} x {length} x {heads} x {dim}{' causal' if causal else ''}",
        ours=lambda q, k, v: ops.flash_attention(q, k, v, causal=causal)[0],
        exact=by_scores(change),
        peers=others,
        inputs=inputs_of(device),
        shape=shape,
        check_shape=(1, min(length, 1024), min(heads, 4), dim),
        amounts=amounts(shape, device, length * length / (2 if causal else 1)),
        sustain=is_gpu(device) and length >= 8192,
        goal=goal or {},
    )


def flex(score_mod=None, mask_mod=None):
    """flex_attention, compiled; `mask_mod(length)` and `score_mod` as it wants them."""

    @functools.cache
    def mask(length, device):
        from torch.nn.attention.flex_attention import create_block_mask

        return create_block_mask(mask_mod(length), None, None, length, length, device=device)

    @functools.cache
    def function():
        from torch.nn.attention.flex_attention import flex_attention

        return compiled(flex_attention)

    def attend(q, k, v):
        return function()(q, k, v, score_mod, mask(q.shape[2], str(q.device)))

    return heads_first(attend)


def window(peers, device, shape):
    length = shape[1]
    width = min(WINDOW, length // 4)

    def change(scores, position, key):
        seen = (key <= position) & (key >= position - width)
        return scores.masked_fill(~seen, float("-inf"))

    def mask_mod(_):
        return lambda b, h, position, key: (position >= key) & (position - key <= width)

    return Work(
        name=f"flash_attention {shape_text(shape)} window {width}",
        ours=lambda q, k, v: ops.flash_attention(q, k, v, causal=True, window_left=width)[0],
        exact=by_scores(change),
        peers=special_peers(peers, change, flex(mask_mod=mask_mod)),
        inputs=inputs_of(device),
        shape=shape,
        check_shape=(1, min(length, 4 * WINDOW), 2, shape[3]),
        amounts=amounts(shape, device, length * (width + 1) - width * (width + 1) / 2),
        goal={FORWARD: 1.15, BACKWARD: 1.15},
    )


def cuts_of(length):
    """Where documents of different lengths begin: from a 64th of the whole to a quarter."""
    ends, step = [0], length // 64
    for part in (1, 3, 6, 2, 16, 5, 9, 1, 4, 8):
        ends.append(min(length, ends[-1] + part * step))
    return [*ends, length] if ends[-1] < length else ends


def documents(peers, device, shape):
    @functools.cache
    def starts(length):
        return torch.tensor(cuts_of(length), dtype=torch.int32, device=device)

    @functools.cache
    def numbers(length):
        return torch.searchsorted(starts(length), torch.arange(length, device=device), right=True)

    def ours(q, k, v):
        cuts = starts(q.shape[1])
        return ops.flash_attention(q, k, v, cu_seqlens_q=cuts, cu_seqlens_k=cuts, causal=True)[0]

    def change(scores, position, key):
        number = numbers(scores.shape[-1])
        seen = (key <= position) & (number[:, None] == number[None])
        return scores.masked_fill(~seen, float("-inf"))

    def mask_mod(length):
        number = numbers(length)
        return lambda b, h, position, key: (position >= key) & (number[position] == number[key])

    cuts = cuts_of(shape[1])
    lengths = [b - a for a, b in itertools.pairwise(cuts)]
    return Work(
        name=f"flash_attention {shape_text(shape)} documents {len(lengths)}",
        ours=ours,
        exact=by_scores(change),
        peers=special_peers(peers, change, flex(mask_mod=mask_mod)),
        inputs=inputs_of(device),
        shape=shape,
        check_shape=(1, min(shape[1], 1024), 2, shape[3]),
        amounts=amounts(shape, device, sum(n * n / 2 for n in lengths)),
        goal={FORWARD: 1.15, BACKWARD: 1.15},
    )


def listed(peers, device, shape):
    """Causal, in blocks: a block's own, the two before it, and every eighth."""

    @functools.cache
    def blocks(length):
        number = torch.arange(-(-length // BLOCK), device=device)
        before = number[:, None] - number[None]
        return (before >= 0) & ((before < 3) | (number[None] % 8 == 0))

    @functools.cache
    def lists(length):
        seen = blocks(length)[None, None]
        indices = seen.int().argsort(dim=-1, descending=True, stable=True).int()
        return {"kv_num_blocks": seen.sum(-1, dtype=torch.int32), "kv_indices": indices}

    def ours(q, k, v):
        return ops.flash_attention(q, k, v, **lists(q.shape[1]), block_q=BLOCK, block_k=BLOCK, causal=True)[0]

    def change(scores, position, key):
        seen = (key <= position) & blocks(scores.shape[-1])[position // BLOCK, key // BLOCK]
        return scores.masked_fill(~seen, float("-inf"))

    def mask_mod(length):
        seen = blocks(length)
        return lambda b, h, position, key: (position >= key) & seen[position // BLOCK, key // BLOCK]

    length = shape[1]
    whole = int(blocks(length).sum()) * BLOCK * BLOCK
    return Work(
        name=f"flash_attention {shape_text(shape)} lists",
        ours=ours,
        exact=by_scores(change),
        peers=special_peers(peers, change, flex(mask_mod=mask_mod)),
        inputs=inputs_of(device),
        shape=shape,
        check_shape=(1, min(length, 4096), min(shape[2], 2), shape[3]),
        amounts=amounts(shape, device, whole - length * (BLOCK - 1) / 2),
    )


def alibi(peers, device, shape):
    heads = shape[2]

    @functools.cache
    def slopes(count):
        # Halved from head to head; a check has fewer heads, so that they are those of the first ones.
        return 2.0 ** (-8.0 / heads * torch.arange(1, count + 1, device=device, dtype=torch.float32))

    def ours(q, k, v):
        return ops.flash_attention(q, k, v, alibi_slopes=slopes(q.shape[2]), causal=True)[0]

    def change(scores, position, key):
        scores = scores - slopes(scores.shape[1]).view(-1, 1, 1).to(scores.dtype) * (position - key)
        return scores.masked_fill(key > position, float("-inf"))

    table = slopes(heads)

    def score_mod(score, b, h, position, key):
        return score - table[h] * (position - key)

    def mask_mod(_):
        return lambda b, h, position, key: position >= key

    return Work(
        name=f"flash_attention {shape_text(shape)} ALiBi",
        ours=ours,
        exact=by_scores(change),
        peers=special_peers(peers, change, flex(score_mod, mask_mod)),
        inputs=inputs_of(device),
        shape=shape,
        check_shape=(1, min(shape[1], 1024), min(heads, 4), shape[3]),
        amounts=amounts(shape, device, shape[1] ** 2 / 2),
        goal={FORWARD: 1.15, BACKWARD: 1.15},
    )


def special_peers(peers, change, flexible):
    """flex_attention; where there is none, the definition with all scores in memory."""
    found = peers.only(flex=flexible)
    return found if is_gpu(peers.device) else peers.only(torch=by_scores(change))


def shape_text(shape):
    return " x ".join(map(str, shape))


def works(peers, device, tiny):
    if tiny or not is_gpu(device):
        shape = (1, 64, 2, 64) if tiny else (1, 1024, 4, 64)
        yield plain(peers, device, *shape)
        yield plain(peers, device, *shape, causal=True)
        for special in (window, documents, listed, alibi):
            yield special(peers, device, shape)
        return
    for shape, dense, causal in (
        ((2, 8192, 16, 128), (1.02, 1.0), (1.03, 1.0)),
        ((1, 16384, 16, 128), (1.02, 1.0), (1.03, 1.0)),
        ((8, 2048, 16, 128), (0.98, 1.0), (0.98, 1.0)),
        ((1, 8192, 32, 64), (0.95, 0.95), (0.95, 0.95)),
        ((2, 8192, 8, 256), (0.95, 0.90), (0.95, 0.90)),
    ):
        for is_causal, goal in ((False, dense), (True, causal)):
            goals = dict(zip((FORWARD, BACKWARD), goal, strict=True))
            yield plain(peers, device, *shape, causal=is_causal, goal=goals)
    for special in (window, documents, listed, alibi):
        yield special(peers, device, (1, 32768, 16, 128) if special is not alibi else (1, 8192, 16, 128))
