"""Gradients of captured tensors: an element gets the sum over all pairs that read it, in a fixed order."""

import math
from dataclasses import dataclass

import torch

from heddle.flex.expression import ONE, ZERO, Band, Node, axes_of, in_order, slope_of
from heddle.flex.masks import evaluate, nearest

MOST_PAIRS = 1 << 23  # whose scores are in memory at once


@dataclass(frozen=True)
class Scores:
    """The scores of a call. `slopes`: by each read of a captured tensor that learns. `blocks`: bool
    [B or 1, H or 1, Q, K], those of `block` queries and keys that count; None: all do.
    """

    score: Node
    mask: Node
    band: Band
    captured: list
    slopes: dict
    scale: float
    blocks: torch.Tensor | None
    block: tuple

    def seen(self, at):
        """Which pairs count, by places (b, h, q, kv)."""
        seen = evaluate(self.mask, self.captured, at, at["q"].device)
        after = at["q"] - at["kv"]
        if self.band.left is not None:
            seen = seen & (after <= self.band.left)
        if self.band.right is not None:
            seen = seen & (after >= -self.band.right)
        if self.blocks is not None:
            outer = (nearest(at[name], size) for name, size in zip("bh", self.blocks.shape, strict=False))
            seen = seen & self.blocks[(*outer, at["q"] // self.block[0], at["kv"] // self.block[1])]
        return seen


def slopes_of(score, captured):
    """The slope of a score by each read of a captured tensor that learns."""
    if not torch.is_grad_enabled():
        return {}
    reads = (each for each in in_order(score) if each.op == "load" and captured[each.data].requires_grad)
    slopes = {each: slope_of(score, each) for each in reads}
    return {each: slope for each, slope in slopes.items() if slope != ZERO}


def with_gradients(scores, q, k, v, y, lse):
    """y and lse as they are, through which captured tensors get gradients. q, k, v, y: [B, H, L, E]."""
    numbers = sorted({each.data for each in scores.slopes})
    learnt = [scores.captured[number] for number in numbers]
    return _Through.apply(scores, numbers, q.detach(), k.detach(), v.detach(), y, lse, *learnt)


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, numbers, q, k, v, y, lse, *learnt):
        ctx.scores, ctx.numbers = scores, numbers
        ctx.save_for_backward(q, k, v, y, lse, *learnt)
        return y.view_as(y), lse.view_as(lse)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy, dlse):
        q, k, v, y, lse, *learnt = ctx.saved_tensors
        with torch.autocast(q.device.type, enabled=False):
            delta = (y.float() * dy.float()).sum(-1) - dlse
            sums = _sums(ctx.scores, q.float(), k.float(), v.float(), dy.float(), lse, delta)
        pairs = zip(ctx.numbers, learnt, strict=True)
        made = (sums[number].reshape(tensor.shape).to(tensor) for number, tensor in pairs)
        return None, None, None, None, None, dy, dlse, *made


def _sums(scores, q, k, v, dy, lse, delta):
    """Gradients, f64 and flat, by the number of the captured tensor."""
    batch, heads, queries, _ = q.shape
    keys = k.shape[2]
    made = {
        number: torch.zeros(scores.captured[number].numel(), dtype=torch.float64, device=q.device)
        for number in {each.data for each in scores.slopes}
    }
    rows = max(1, MOST_PAIRS // (batch * heads * keys))
    for begin in range(0, queries, rows):
        end = min(begin + rows, queries)
        low, high = scores.band.keys_of(begin, end, keys)
        if low >= high:
            continue
        at = _places((batch, heads), (begin, end), (low, high), q.device)
        at["score"] = _products(q[:, :, begin:end], k[:, :, low:high]) * scores.scale
        value, top = evaluate(scores.score, scores.captured, at, q.device), lse[:, :, begin:end, None]
        counts = scores.seen(at) & (top > -math.inf)
        given = _products(dy[:, :, begin:end], v[:, :, low:high]) - delta[:, :, begin:end, None]
        ds = torch.where(counts, torch.exp(value - top) * given, 0.0)
        for read, slope in scores.slopes.items():
            by = torch.where(counts, ds * evaluate(slope, scores.captured, at, q.device), 0.0)
            _add(made[read.data], read, scores.captured, by if slope != ONE else ds, at)
    return made


def _products(rows, others):
    """[B, H, rows, keys] of [B, H, rows, E] and [B, G, keys, E]; heads of a group share keys."""
    batch, heads, count, dim = rows.shape
    groups, keys = others.shape[1:3]
    lines = rows.reshape(batch * groups, heads // groups * count, dim)
    return (lines @ others.reshape(batch * groups, keys, dim).mT).reshape(batch, heads, count, keys)


def _places(outer, rows, columns, device):
    ranges = ((0, outer[0]), (0, outer[1]), rows, columns)
    names, shapes = ("b", "h", "q", "kv"), ((-1, 1, 1, 1), (-1, 1, 1), (-1, 1), (-1,))
    return {
        name: torch.arange(*ends, device=device).reshape(shape)
        for name, ends, shape in zip(names, ranges, shapes, strict=True)
    }


def _add(sums, read, captured, by, at):
    """Adds what pairs give to the elements that they read. `by`: [B, H, rows, keys]. Pairs that read the same
    element because of their indices are added up before."""
    axes = axes_of(read)
    if "distance" in axes:
        axes = axes | {"q"}
        by, at = _by_distance(by, at)
    at = dict(at)
    for dim, name in enumerate(("b", "h", "q", "kv")):
        if name not in axes:
            by, at[name] = by.sum(dim, keepdim=True), at[name].flatten()[0]
    tensor = captured[read.data]
    place = torch.zeros((), dtype=torch.int64, device=by.device)
    for node, size in zip(read.args, tensor.shape, strict=False):  # one of no dimensions is read at 0
        place = place * size + nearest(evaluate(node, captured, at, by.device), size)
    # In the order of pairs: torch sorts them by place on a GPU, and adds f64 in one thread on a CPU.
    sums.index_put_((place.expand(by.shape).flatten(),), by.double().flatten(), accumulate=True)


def _by_distance(by, at):
    """Sums [B, H, distances, 1] of pairs that are equally far apart, and places of one pair for each."""
    rows, keys = by.shape[2:]
    # Rows that are one element too long for their view move each further one to the right.
    wide = by.new_zeros(*by.shape[:3], rows + keys)
    wide[..., :keys] = by.flip(-1)
    shifted = wide.flatten(2)[..., :-rows].unflatten(2, (rows, rows + keys - 1))
    first = at["q"].flatten()[0] - at["kv"].flatten()[-1]
    apart = first + torch.arange(rows + keys - 1, device=by.device).reshape(-1, 1)
    return shifted.sum(2).unsqueeze(-1), at | {"q": apart, "kv": torch.zeros_like(apart[:1])}
