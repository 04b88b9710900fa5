"""sparse_prefill: causal attention over the blocks of keys that matter, or over all where that is as fast."""

import dataclasses
import math
import time

import torch

from heddle import ops
from heddle.errors import InvalidArgument, named
from heddle.sparse import blocks

_SAMPLES = 64  # queries whose attention is computed exactly for a report


@dataclasses.dataclass(frozen=True)
class SparseReport:
    """The path of a call, and the attention that it kept.

    path: "sparse" or "dense", and the reason of the latter; density: blocks visited, of those that a causal
    mask leaves; gain: by how much the call should be faster than dense attention, from the density and the
    cost of the choice; mass, least_mass: the share of the attention of 64 queries, evenly spaced, that falls
    on the blocks visited, exactly: the mean over heads, and the least; index_ms: the choice's time, in
    milliseconds; methods: of each head, [B][H].
    """

    path: str
    reason: str
    density: float
    gain: float
    mass: float
    least_mass: float
    index_ms: float
    methods: "list[list[str]]"


@named
def sparse_prefill(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    method: str = "antidiagonal",
    threshold: float = 0.95,
    block: int = 128,
    *,
    stride: int = 16,
    sink: int = 128,
    window: int = 1024,
    max_density: float = 1.0,
    scale: "float | None" = None,
    least_length: int = 8192,
    least_gain: float = 1.15,
    report: bool = False,
) -> "torch.Tensor | tuple[torch.Tensor, SparseReport]":
    """Causal attention of a prompt that visits the blocks of keys that matter, as heddle estimates it.

    query: [B, Hq, L, E]; key, value: [B, Hkv, S, E], with S >= L: the last query stands at the last key.
    Result: [B, Hq, L, E]; with `report` also a SparseReport.

    method: how blocks of `block` queries choose blocks of keys. "antidiagonal" adds up every stride-th score
    along antidiagonals; "pooled" takes scores of mean queries and keys; both keep the blocks with the largest
    shares up to `threshold` of the sum, and at most `max_density` of them. "vertical_slash" takes the columns
    and the diagonals that the last 64 queries attend to, "streaming" the last `window` positions. "per_head":
    for each head the sparsest of these that keeps `threshold` of the attention of 64 queries, and all blocks
    where none does. The first `sink` keys and a query's own block are always kept, whatever max_density says.

    Fewer than `least_length` keys, or a gain below `least_gain` as the density and the cost of the choice
    predict it, mean dense attention; the report says so. Attention on blocks left out is lost: it is an
    approximation, of which the report's `mass` is the share kept. No gradient flows through the choice.
    """
    grid = _checked(query, key, value, method, block, stride, threshold, max_density)
    options = blocks.Options(threshold, stride, sink, window, max_density)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    samples = _samples(grid, query.device)
    weights = kept = methods = None
    reason, density, gain, begin = "", 1.0, 1.0, time.perf_counter()
    if grid.keys < least_length:
        reason = f"{grid.keys} keys are fewer than {least_length}"
    else:
        with torch.no_grad():
            if method == "per_head":
                weights = blocks.exact_rows(query, key, grid, scale, samples)
                kept, methods = blocks.choose_per_head(query, key, grid, scale, options, weights, samples)
            else:
                kept = blocks.choose(method, query, key, grid, scale, options)
        seen = grid.seen(query.device).sum() * kept.shape[0] * kept.shape[1]
        density = float(kept.sum() / seen)
        gain = 1 / (density + _cost(method, grid, options))
        if gain < least_gain:
            reason = f"it would be {gain:.2f} times as fast as dense attention, less than {least_gain}"
    index_ms = (time.perf_counter() - begin) * 1e3
    lists = {} if reason else _lists(kept, block)
    made, _ = ops.flash_attention(
        *(each.transpose(1, 2) for each in (query, key, value)), causal=True, scale=scale, **lists
    )
    made = made.transpose(1, 2)
    if not report:
        return made
    mass = torch.ones(query.shape[:2])
    if not reason:
        if weights is None:
            weights = blocks.exact_rows(query, key, grid, scale, samples)
        mass = blocks.masses(kept, weights, grid, samples)
    if methods is None or reason:
        methods = [["dense" if reason else method] * query.shape[1] for _ in range(query.shape[0])]
    path = "dense" if reason else "sparse"
    return made, SparseReport(
        path,
        reason,
        1.0 if reason else density,
        gain,
        float(mass.mean()),
        float(mass.min()),
        index_ms,
        methods,
    )


def _cost(method, grid, options):
    """The cost of the choice, as a share of dense attention."""
    methods = blocks.METHODS if method == "per_head" else (method,)
    return sum(blocks.METHODS[each][1](grid, options) for each in methods)


def _samples(grid, device):
    """Numbers of queries, evenly spaced, with the last."""
    count = min(_SAMPLES, grid.queries)
    return (torch.arange(1, count + 1, device=device) * grid.queries).div(count, rounding_mode="floor") - 1


def _lists(kept, block):
    """Named arguments of flash_attention for the blocks that are kept."""
    counts = kept.sum(-1, dtype=torch.int32)
    order = (~kept).to(torch.uint8).argsort(dim=-1, stable=True)
    most = max(int(counts.max()), 1)
    indices = order[..., :most].to(torch.int32).contiguous()
    return {"kv_num_blocks": counts, "kv_indices": indices, "block_q": block, "block_k": block}


def _checked(query, key, value, method, block, stride, threshold, max_density):
    names = [*blocks.METHODS, "per_head"]
    if method not in names:
        raise InvalidArgument(f"[sparse_prefill] method is {method!r}; must be one of {', '.join(names)}")
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4 or not tensor.numel():
            raise InvalidArgument(
                f"[sparse_prefill] {name} is of type {type(tensor).__name__} and sizes"
                f" {list(getattr(tensor, 'shape', ()))}; must be a tensor [B, H, L, E] with elements"
            )
    if key.shape[:3] != value.shape[:3] or query.shape[0] != key.shape[0] or query.shape[3] != key.shape[3]:
        raise InvalidArgument(
            f"[sparse_prefill] query is {list(query.shape)}, key {list(key.shape)} and value"
            f" {list(value.shape)}; must be [B, Hq, L, E], [B, Hkv, S, E] and [B, Hkv, S, Ev]"
        )
    if query.shape[1] % key.shape[1] or query.shape[2] > key.shape[2]:
        raise InvalidArgument(
            f"[sparse_prefill] query has {query.shape[1]} heads and {query.shape[2]} positions, key"
            f" {key.shape[1]} and {key.shape[2]}; heads must be a multiple, and positions no more"
        )
    if not _whole(stride) or not _whole(block) or block % 128 or block % stride:
        raise InvalidArgument(
            f"[sparse_prefill] block is {block!r} and stride {stride!r}; must be a multiple of 128, and a"
            " divisor of it"
        )
    for name, share in (("threshold", threshold), ("max_density", max_density)):
        if not isinstance(share, (int, float)) or not 0 < share <= 1 or math.isnan(share):
            raise InvalidArgument(f"[sparse_prefill] {name} is {share!r}; must be above 0 and at most 1")
    return blocks.Grid(query.shape[2], key.shape[2], block)


def _whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
