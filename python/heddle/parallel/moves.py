"""Rows of a sequence on their way between ranks: [S, B, H, E] of one rank's positions and all heads, and
[N, B, h, E] of all positions and some heads."""

import torch


def spread(plan, x, heads, what):
    """All positions, in order, of this rank's heads. x: [S, B, H, E], its positions; `heads`: the range of
    heads that each rank gets."""
    ranks, shards = plan.ranks, plan.shards
    parts = [x[:, :, slice(*each)].contiguous() for each in heads]
    made = x.new_empty(shards.length, x.shape[1], _count(heads[ranks.rank]), x.shape[3])
    sends, receives = [], []
    for peer in range(ranks.size):
        sends += [
            (peer, parts[peer][row : row + end - begin]) for (begin, end), row in shards.placed(ranks.rank)
        ]
        receives += [(peer, made[begin:end]) for begin, end in shards.segments[peer]]
    ranks.exchange(sends, receives, f"{plan.name}: {what}", plan.limit)()
    return made


def collect(plan, x, heads, what):
    """The way back: this rank's positions of all heads, [S, B, H, E], where those that several ranks have
    are added in the order of ranks, in the dtype of x: [N, B, h, E]."""
    ranks, shards = plan.ranks, plan.shards
    rows, x = shards.sizes[ranks.rank], x.contiguous()
    parts = [x.new_empty(rows, x.shape[1], _count(each), x.shape[3]) for each in heads]
    sends, receives = [], []
    for peer in range(ranks.size):
        sends += [(peer, x[begin:end]) for begin, end in shards.segments[peer]]
        receives += [
            (peer, parts[peer][row : row + end - begin]) for (begin, end), row in shards.placed(ranks.rank)
        ]
    ranks.exchange(sends, receives, f"{plan.name}: {what}", plan.limit)()
    made = x.new_zeros(rows, x.shape[1], max(end for _, end in heads), x.shape[3])
    for each, part in zip(heads, parts, strict=True):
        made[:, :, slice(*each)] += part
    return made


def _count(heads):
    return heads[1] - heads[0]


def rows_first(x):
    """[S, B, H, E] of [B, H, S, E]."""
    return x.permute(2, 0, 1, 3)


def heads_first(x):
    return x.permute(1, 2, 0, 3)


class Spread(torch.autograd.Function):
    """[B, h, N, E] of [B, H, S, E], as `spread` has it. Gradients of a head that several ranks have are added
    in f32."""

    @staticmethod
    def forward(ctx, plan, x, heads, what):
        ctx.call = plan, heads, what
        return heads_first(spread(plan, rows_first(x), heads, what))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dx):
        plan, heads, what = ctx.call
        made = collect(plan, rows_first(dx).float(), heads, f"gradients of {what}")
        return None, heads_first(made).to(dx.dtype), None, None


class Collect(torch.autograd.Function):
    """[B, H, S, E] of [B, h, N, E], in which each head is of one rank."""

    @staticmethod
    def forward(ctx, plan, x, heads, what):
        ctx.call = plan, heads, what
        return heads_first(collect(plan, rows_first(x), heads, what))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dx):
        plan, heads, what = ctx.call
        return None, heads_first(spread(plan, rows_first(dx), heads, f"gradients of {what}")), None, None
