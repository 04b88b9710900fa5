"""Demos of attention: functions of scores, blocks that matter, streams, several processes."""

import math
import os
import tempfile

import torch

from heddle import attention, ops
from heddle.demos.claim import holds
from heddle.flex import compilations


def _inputs(heads, length, dim=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, heads, length, dim, generator=generator) for _ in range(3)]


def _exact(q, k, v, score=None, seen=None):
    scores = q.double() @ k.double().transpose(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores if score is None else score(scores)
    return (scores if seen is None else scores.masked_fill(~seen, -math.inf)).softmax(-1) @ v.double()


def flex(quick):
    """A function of scores and a mask are compiled once for all lengths, and are exact."""
    slopes, lengths = torch.tensor([0.5, 0.25]), (70, 129, 300) if quick else range(100, 2000, 100)
    before, worst = compilations(), 0.0
    for length in lengths:
        q, k, v = _inputs(2, length)
        mask = attention.create_block_mask(
            attention.sliding_window(50), None, None, length, length, device="cpu"
        )
        y = attention.flex_attention(q, k, v, attention.alibi(slopes), mask)
        apart = torch.arange(length)[:, None] - torch.arange(length)
        wanted = _exact(
            q,
            k,
            v,
            lambda s, apart=apart: s - slopes[:, None, None] * apart.abs(),
            (apart >= 0) & (apart <= 50),
        )
        worst = max(worst, float((y - wanted).abs().max()))
    made = compilations() - before
    text = f"ALiBi in a window, {len(lengths)} lengths: {made} compiled, error {worst:.1e} beside float64"
    holds(made <= 1 and worst < 1e-5, text)
    return text


def sparse(quick):
    """Blocks that matter are found, and the share of the attention in them is said."""
    length = 2048 if quick else 16384
    q, k, v = _inputs(2, length)
    q = q + 4 * k  # a query attends to its own neighbourhood
    y, report = attention.sparse_prefill(q, k, v, "per_head", 0.9, window=256, least_length=0, report=True)
    dense, _ = ops.flash_attention(*(each.transpose(1, 2) for each in (q, k, v)), causal=True)
    error = float((y - dense.transpose(1, 2)).norm() / dense.norm())
    text = f"{length:,} positions: {report.density:.0%} of the blocks hold {report.mass:.1%} of the attention"
    holds(report.path == "sparse" and report.least_mass >= 0.9 and error < 0.3, f"{text}; error {error:.2f}")
    return f"{text}, error {error:.2f}"


def streams(quick):
    """The memory of a stream does not grow, and its rows do not depend on where segments end."""
    length, segment = (200_000 if quick else 1_000_000), 2000
    layer = attention.SegmentedAttentionMemory(32, 2, segment, 64)
    x = torch.randn(1, segment, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = layer(x)
        layer.reset()
        parts = torch.cat([layer(each) for each in x.split(333, 1)], 1)
        layer.reset()
        sizes = set()
        for _ in range(length // segment):
            layer(x)
            sizes.add(layer.state.nbytes)
    text = f"{length:,} positions: a memory of {max(sizes) / 1e3:.1f} kB"
    holds(max(sizes) <= 2 * (64 + 63) * 32 * 4 and torch.equal(whole, parts), text)
    return f"{text}; other cuts, the same bits"


def _ring_rank(rank, folder, length, ranks):
    os.environ["MASTER_ADDR"], os.environ["GLOO_SOCKET_IFNAME"] = "127.0.0.1", "lo"
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=ranks
    )
    shards = attention.deal(length, ranks, "zigzag")
    inputs = [shards.shard(each, 2, rank) for each in _inputs(2, length)]
    y = attention.ring_attention(*inputs, causal=True)
    torch.save(y, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def ring(quick):
    """Processes that share a sequence compute its attention, each with a part of the positions."""
    length, ranks = (500 if quick else 5000), (2 if quick else 4)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_ring_rank, (folder, length, ranks), ranks)
        shards, y = attention.deal(length, ranks, "zigzag"), torch.empty(1, 2, length, 32)
        for rank in range(ranks):
            y[:, :, shards.positions(rank)] = torch.load(f"{folder}/{rank}.pt")
    seen = torch.arange(length)[:, None] >= torch.arange(length)
    error = float((y - _exact(*_inputs(2, length), seen=seen)).abs().max())
    text = f"{ranks} processes of {-(-length // ranks)} positions each: error {error:.1e} beside float64"
    holds(error < 1e-5, text)
    return text
