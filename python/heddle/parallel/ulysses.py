"""Ulysses: each rank has all positions of some heads (Jacobs et al., 2023: "DeepSpeed Ulysses")."""

import itertools

import torch

import heddle.ops
from heddle.errors import named
from heddle.parallel import pieces
from heddle.parallel.attention import NOT_COMPILED, plan_of
from heddle.parallel.moves import Collect, Spread
from heddle.parallel.ranks import LIMIT

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from heddle.parallel.shards import Shards


@torch.compiler.disable(reason=NOT_COMPILED)
@named
def ulysses_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    group: "Any" = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    cu_seqlens: "torch.Tensor | Sequence[int] | None" = None,
    shards: "Shards | str" = "zigzag",
    timeout: float = LIMIT,
) -> torch.Tensor:
    """Attention of a sequence whose positions several processes share: before it positions are exchanged for
    heads, and after it heads for positions.

    Arguments and result are those of ring_attention. Any number of heads goes with any number of ranks: a
    rank has a head more or less than another, or none, and heads of queries that share keys may be of two
    ranks, which both get these keys. Results have the bits of one process.
    """
    plan = plan_of(
        "ulysses_attention",
        group,
        (q, k, v),
        shards=shards,
        causal=causal,
        window=window,
        cu_seqlens=cu_seqlens,
        attributes={"scale": scale or 0.0, "softcap": softcap},
        limit=timeout,
    )
    return through_heads(plan, q, k, v, lambda *given: whole(plan, *given[:3]))


def through_heads(plan, q, k, v, attend):
    """Calls attend(q, k, v, first head), in which heads of q share keys evenly; tensors are [B, h, N, E]."""
    shared_by = q.shape[1] // k.shape[1]
    own, keys_of = heads_of(q.shape[1], shared_by, plan.ranks.size)
    first, last = own[plan.ranks.rank]
    first_key = keys_of[plan.ranks.rank][0]
    q = Spread.apply(plan, q, own, "queries")
    k, v = (Spread.apply(plan, each, keys_of, name) for each, name in ((k, "keys"), (v, "values")))
    # A rank without heads has a part in the gradients, too.
    parts = [q.new_zeros(q.shape[0], 0, q.shape[2], v.shape[3]) + 0 * (q.sum() + k.sum() + v.sum())]
    for begin, end in even_parts(first, last, shared_by):
        keys = slice(begin // shared_by - first_key, -(-end // shared_by) - first_key)
        parts.append(attend(q[:, begin - first : end - first], k[:, keys], v[:, keys], begin))
    return Collect.apply(plan, torch.cat(parts[1:] or parts, 1), own, "results")


def heads_of(heads, shared_by, ranks):
    """Ranges of queries' heads that ranks have, and of those of keys. `shared_by`: heads of queries that have
    the same keys."""
    own = [(heads * rank // ranks, heads * (rank + 1) // ranks) for rank in range(ranks)]
    return own, [(a // shared_by, -(-b // shared_by)) if a < b else (0, 0) for a, b in own]


def even_parts(first, last, shared_by):
    """Cuts a range of heads so that each part has whole sets that share keys, or heads of one."""
    inner = -(-first // shared_by) * shared_by, last // shared_by * shared_by
    ends = [first, *(each for each in inner if first < each < last), last]
    return [(a, b) for a, b in itertools.pairwise(ends) if a < b]


def whole(plan, q, k, v):
    """Attention [B, H, N, E] of all positions, on this rank."""
    if not q.shape[2]:
        return q.new_zeros(*q.shape[:3], v.shape[3]) + 0 * (q.sum() + k.sum() + v.sum())
    everywhere = ((0, q.shape[2]),)
    made = []
    for piece in pieces.pieces(everywhere, everywhere, plan.mask, q.shape[0] == 1):
        rows, keys = slice(*piece.queries), slice(*piece.keys)
        inputs = (each.transpose(1, 2) for each in (q[:, :, rows], k[:, :, keys], v[:, :, keys]))
        made.append(
            heddle.ops.flash_attention(*inputs, **piece.attributes(plan.mask, q.device), **plan.attributes)[0]
        )
    return torch.cat(made, 1).transpose(1, 2)
