"""ring_attention, and the same with all keys and values gathered: one attention over several processes."""

from dataclasses import dataclass

import torch

import heddle.ops
from heddle.errors import InvalidArgument, Unsupported, named
from heddle.parallel import pieces
from heddle.parallel.moves import collect, spread
from heddle.parallel.ranks import LIMIT, agree, ranks_of
from heddle.parallel.shards import Shards, borders_of, deal, numbers_of, shown

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NOT_COMPILED = "it sends tensors between processes; torch.compile goes on after it"


@dataclass(frozen=True)
class Plan:
    """One attention over `ranks`. `attributes`: scale and softcap of flash_attention; `method`: "ring" or
    "allgather"."""

    ranks: object
    shards: Shards
    mask: pieces.Mask
    attributes: dict
    name: str
    limit: float = LIMIT
    method: str = "ring"

    def pieces(self, columns, packs):
        return pieces.pieces(self.shards.segments[self.ranks.rank], columns, self.mask, packs)


@torch.compiler.disable(reason=NOT_COMPILED)
@named
def ring_attention(
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
    return_lse: bool = False,
    timeout: float = LIMIT,
) -> "Any":
    """Attention of a sequence whose positions several processes share: keys and values go from rank to rank,
    and each has those of two at a time. Every rank of `group` calls it, with its own part.

    q: [B, Hq, S, E]; k: [B, Hkv, S, E]; v: [B, Hkv, S, Ev], bf16, f16 or f32, S the positions of this rank.
    Result: [B, Hq, S, Ev]; with `return_lse` also the log of the sum of exp(score), float32 [B, Hq, S].

    `group`: a ProcessGroup, a DeviceMesh of one dimension, or None for all processes. `shards`: which
    positions a rank has: heddle.attention.Shards, or what `deal` makes of "zigzag", "contiguous" or
    "documents". `window`: keys before and after its own position that a query sees, -1 for all.
    `cu_seqlens`: begins of documents packed one after another, and the end of the last, in positions of the
    whole sequence; a query sees keys of its own document.

    Partial results are joined in float32, in an order that follows from the rank alone. Wrong arguments on
    one rank raise the same error on all; a rank that waits longer than `timeout` seconds raises
    DeadlineExceeded (tensors on a GPU: the ProcessGroup's own limit).
    """
    plan = plan_of(
        "ring_attention",
        group,
        (q, k, v),
        shards=shards,
        causal=causal,
        window=window,
        cu_seqlens=cu_seqlens,
        attributes={"scale": scale or 0.0, "softcap": softcap},
        limit=timeout,
    )
    out, lse = Attention.apply(plan, q, k, v)
    return (out, lse) if return_lse else out


def plan_of(
    name,
    group,
    given,
    *,
    shards,
    causal,
    window,
    cu_seqlens,
    attributes,
    limit,
    method="ring",
    check=None,
    said="",
):
    """The plan of a call, once all ranks have said that their arguments are right and alike. `check`: raises
    what else is wrong; `said`: what else is alike."""
    ranks = ranks_of(group, name)
    own = {"causal": causal, "window": window, "shards": shards}
    borders = numbers_of(cu_seqlens)
    own |= {**attributes, "cu_seqlens": borders}
    said = ", ".join([shown_forms(given), *(f"{key} {value}" for key, value in own.items()), said])

    def check_all():
        check_inputs(name, *given, window)
        if check:
            check()

    rows = given[0].shape[2] if isinstance(given[0], torch.Tensor) and given[0].dim() == 4 else 0
    device = given[0].device if isinstance(given[0], torch.Tensor) else "cpu"
    sizes = agree(ranks, name, check_all, said, rows, device, limit, once=isinstance(shards, Shards))
    borders = borders_of(borders, sum(sizes), name)
    if isinstance(shards, str):
        shards = deal(sum(sizes), ranks.size, shards, borders)
    if shards.sizes != sizes:
        raise InvalidArgument(
            f"[{name}] ranks have {shown(sizes)} positions; must have {shown(shards.sizes)}, as their"
            " shards do"
        )
    mask = pieces.Mask(borders, window[0], 0 if causal else window[1])
    return Plan(ranks, shards, mask, attributes, name, limit, method)


def shown_forms(given):
    """Says what ranks have alike of q, k and v: all but the number of positions."""
    return ", ".join(
        f"{name} [{each.shape[0]}, {each.shape[1]}, S, {each.shape[3]}] {each.dtype}"
        f"{' with a gradient' if torch.is_grad_enabled() and each.requires_grad else ''}"
        if isinstance(each, torch.Tensor) and each.dim() == 4
        else f"{name} of type {type(each).__name__}"
        for name, each in zip("qkv", given, strict=True)
    )


def check_inputs(name, q, k, v, window=(-1, -1)):
    for argument, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4:
            raise InvalidArgument(
                f"[{name}] {argument} is of type {type(tensor).__name__} and sizes"
                f" {list(getattr(tensor, 'shape', ()))}; must be a tensor [B, H, S, E]"
            )
    if not q.shape[0] == k.shape[0] == v.shape[0] or not q.shape[2] == k.shape[2] == v.shape[2]:
        raise InvalidArgument(
            f"[{name}] q, k and v are {list(q.shape)}, {list(k.shape)} and {list(v.shape)}; must have as many"
            " batches and positions"
        )
    if k.shape[1] != v.shape[1] or not k.shape[1] or q.shape[1] % k.shape[1] or q.shape[3] != k.shape[3]:
        raise InvalidArgument(
            f"[{name}] q, k and v are {list(q.shape)}, {list(k.shape)} and {list(v.shape)}; heads of q must"
            " be a multiple of those of k and v, and as wide as those of k"
        )
    if not q.dtype == k.dtype == v.dtype or q.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        raise InvalidArgument(
            f"[{name}] q, k and v are {q.dtype}, {k.dtype} and {v.dtype}; must be all bfloat16, float16 or"
            " float32"
        )
    if not q.device == k.device == v.device:
        raise InvalidArgument(f"[{name}] q, k and v are on {q.device}, {k.device} and {v.device}")
    if len(window) != 2 or any(not isinstance(each, int) or each < -1 for each in window):
        raise InvalidArgument(f"[{name}] window is {window!r}; must be two numbers of keys, -1 for all")
    if torch._C._are_functorch_transforms_active():
        raise Unsupported(f"[{name}] torch.func's transforms are not supported")


def packed(k, v):
    """Keys and values as they travel: [S, B, G, D + E]."""
    return torch.cat([k, v], -1).permute(2, 0, 1, 3).contiguous()


def unpacked(kv, dim):
    """[B, G, S, D] and [B, G, S, E]."""
    return kv[..., :dim].permute(1, 2, 0, 3), kv[..., dim:].permute(1, 2, 0, 3)


def whole_sources(plan, kv):
    """Yields the keys and values of all, as (their positions, tensor)."""
    yield ((0, plan.shards.length),), spread(plan, kv, all_heads(plan, kv), "keys")


def travelling_sources(plan, held):
    """Yields those of one rank after another, the own first; the next ones arrive meanwhile."""
    segments, rank = plan.shards.segments, plan.ranks.rank
    for step in range(plan.ranks.size):
        last = step + 1 == plan.ranks.size
        if not last:
            arriving, wait = to_next(plan, held, rank - step, f"keys of step {step + 1}")
        yield segments[rank - step], held
        if not last:
            wait()
            held = arriving


def to_next(plan, tensor, owner, what):
    """Begins to send to the next rank what belongs to the rows of rank `owner`. Returns what arrives, of the
    rows of the owner before, and a function that waits for it."""
    ranks = plan.ranks
    arriving = tensor.new_empty(plan.shards.sizes[(owner - 1) % ranks.size], *tensor.shape[1:])
    sends = [((ranks.rank + 1) % ranks.size, tensor)]
    receives = [((ranks.rank - 1) % ranks.size, arriving)]
    return arriving, ranks.exchange(sends, receives, f"{plan.name}: {what}", plan.limit)


def all_heads(plan, kv):
    return [(0, kv.shape[2])] * plan.ranks.size


SOURCES = {"allgather": whole_sources, "ring": travelling_sources}


class Attention(torch.autograd.Function):
    """y [B, H, S, E] and lse of q, k and v. What is kept for the gradient is of this rank's positions alone:
    keys and values come again. With "allgather" results have the bits of one process."""

    @staticmethod
    def forward(ctx, plan, q, k, v):
        queries, dim, is_ring = q.transpose(1, 2), q.shape[3], plan.method == "ring"
        y = q.new_zeros(*queries.shape[:3], v.shape[3], dtype=torch.float32 if is_ring else q.dtype)
        lse = q.new_full(q.shape[:3], -torch.inf, dtype=torch.float64 if is_ring else torch.float32)
        for columns, kv in SOURCES[plan.method](plan, packed(k, v)):
            for piece in plan.pieces(columns, packs=q.shape[0] == 1):
                rows = slice(*piece.queries)
                out = None if is_ring else (y[:, rows], lse[:, :, rows])
                part = pieces.attend(piece, plan.mask, queries, kv, dim, plan.attributes, out)
                if is_ring:
                    pieces.merge(y, lse, piece, part)
        y, lse = y.to(q.dtype), lse.float()
        ctx.plan = plan
        ctx.save_for_backward(q, k, v, y, lse)
        return y.transpose(1, 2), lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy, dlse):
        plan, (q, k, v, y, lse) = ctx.plan, ctx.saved_tensors
        queries, dim, dy = q.transpose(1, 2), q.shape[3], dy.transpose(1, 2).to(q.dtype)
        given = dy, lse, heddle.ops.flash_attention_delta(y, dy, dlse)
        dq = torch.zeros(queries.shape, dtype=torch.float32, device=q.device)
        owner, arrived, wait = plan.ranks.rank, None, None
        for columns, kv in SOURCES[plan.method](plan, packed(k, v)):
            dkv = torch.zeros(kv.shape, dtype=torch.float32, device=q.device)
            for piece in plan.pieces(columns, packs=q.shape[0] == 1):
                pieces.add_gradients(piece, plan.mask, queries, kv, dim, plan.attributes, given, (dq, dkv))
            if plan.method == "ring":  # the sums follow their keys, and come home after the last step
                if wait:
                    wait()
                    dkv += arrived
                arrived, wait = to_next(plan, dkv, owner, "gradients of keys")
                owner -= 1
        if wait:
            wait()
            dkv = arrived
        else:
            dkv = collect(plan, dkv, all_heads(plan, dkv), "gradients of keys")
        dk, dv = unpacked(dkv, dim)
        return None, dq.transpose(1, 2).to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)
