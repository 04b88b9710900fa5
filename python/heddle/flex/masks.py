"""Block masks: which blocks of queries and keys a mask_mod leaves, found without evaluating every pair."""

import functools
import math

import torch

from heddle.errors import InvalidArgument
from heddle.flex.expression import PLACE, axes_of, in_order, uses
from heddle.flex.trace import Captured, trace_mask

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from torch.nn.attention.flex_attention import BlockMask

MOST_PAIRS = 1 << 24  # that are evaluated at once
OPS = {
    **{name: getattr(torch, name) for name in ("add", "sub", "mul", "abs", "exp", "tanh", "sigmoid", "sqrt")},
    **{name: getattr(torch, name) for name in ("neg", "lt", "le", "gt", "ge", "eq", "ne", "where")},
    **{"and": torch.logical_and, "or": torch.logical_or, "xor": torch.logical_xor, "not": torch.logical_not},
    **{"min": torch.minimum, "max": torch.maximum, "truediv": torch.true_divide, "mod": torch.remainder},
    **{"floordiv": torch.floor_divide, "float": lambda x: x.float()},
}
LEAVES = ("b", "h", "q", "kv", "score")


def evaluate(root, captured, places, device):
    """The value of an expression for tensors of indices (and a score), by name, which are of one shape
    together."""
    known = {}
    for node in in_order(root):
        args = [known[each] for each in node.args]
        if node.op in LEAVES:
            known[node] = places[node.op]
        elif node.op.endswith("_number"):
            known[node] = places[node.op.removesuffix("_number")].float()
        elif node.op == "apart":
            known[node] = (places["q"] - places["kv"]).float()
        elif node.op == "const":
            dtype = {"bool": torch.bool, "int": torch.int64, "float": torch.float32}[node.kind]
            known[node] = torch.full((), node.data, dtype=dtype, device=device)
        elif node.op == "load":
            tensor = captured[node.data]
            tensor = tensor.reshape(1) if tensor.dim() == 0 else tensor
            sizes = zip(args, tensor.shape, strict=True)
            value = tensor[tuple(nearest(index, size) for index, size in sizes)]
            known[node] = value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
        else:
            known[node] = OPS[node.op](*args)
    return known[root]


def nearest(index, size):
    """The index that a kernel reads at: negative ones count from the end, those outside mean the nearest."""
    return torch.where(index < 0, index + size, index).clamp(0, size - 1)


class Interval:
    """The least and greatest value of a node in each block; None: not known."""

    def __init__(self, low, high):
        self.low, self.high = low, high


def _spread(nodes, indices, captured, blocks, device):
    """Intervals of nodes in all blocks."""
    known = {}
    for node in nodes:
        args = [known[each] for each in node.args]
        known[node] = _interval(node, args, indices, captured, blocks, device)
    return known


def _interval(node, args, indices, captured, blocks, device):
    if node.op in indices:
        return indices[node.op]
    if node.op.endswith("_number"):
        index = indices[node.op.removesuffix("_number")]
        return Interval(index.low.float(), index.high.float())
    if node.op == "apart":
        q, kv = indices["q"], indices["kv"]
        return Interval((q.low - kv.high).float(), (q.high - kv.low).float())
    if node.op == "const":
        value = torch.tensor(node.data, device=device)
        return Interval(value, value)
    if node.op == "load":
        return _loaded(node, captured[node.data], indices, blocks)
    if any(each is None for each in args):
        return _partly_known(node.op, args)
    rule = INTERVALS.get(node.op)
    return rule(*args) if rule else None


def _partly_known(op, args):
    """A logical value that one side may decide."""
    if op not in ("and", "or"):
        return None
    side = next((each for each in args if each is not None), None)
    if side is None:
        return None
    if op == "and":
        return Interval(torch.zeros_like(side.low), side.high)
    return Interval(side.low, torch.ones_like(side.high))


def _loaded(node, tensor, indices, blocks):
    """A captured tensor that is read by batch, head, and the number of a query or key, as they are."""
    names = [each.op for each in node.args]
    inner = [name for name in names if name in ("q", "kv")]
    if any(name not in PLACE for name in names) or len(inner) > 1 or tensor.dim() != len(names):
        return None
    low = high = tensor if tensor.is_floating_point() else tensor.long()
    ends = {"q": (-1, 1), "kv": (1, -1)}  # batch and head have one element
    if inner:
        size, count, length = blocks[inner[0]]
        low, high = _ends_of_blocks(low, names.index(inner[0]), size, count, length)
    index = [
        torch.arange(blocks[name][1], device=low.device).reshape(ends[name])
        if name in inner
        else nearest(indices[name].low, n)
        for name, n in zip(names, low.shape, strict=True)
    ]
    return Interval(low[tuple(index)], high[tuple(index)])


def _ends_of_blocks(values, dim, size, count, length):
    """The least and the greatest of each block along a dimension."""
    values = values.narrow(dim, 0, min(length, values.shape[dim]))
    short = size * count - values.shape[dim]
    if short:  # the last element again changes neither end
        last = values.narrow(dim, values.shape[dim] - 1, 1)
        shape = list(values.shape)
        shape[dim] = short
        values = torch.cat([values, last.expand(shape)], dim)
    parts = values.unflatten(dim, (count, size))
    return parts.amin(dim + 1), parts.amax(dim + 1)


def _of_products(a, b):
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    low = high = ends[0]
    for each in ends[1:]:
        low, high = torch.minimum(low, each), torch.maximum(high, each)
    return Interval(low, high)


def _less(a, b):
    return Interval(a.high < b.low, a.low < b.high)


def _at_most(a, b):
    return Interval(a.high <= b.low, a.low <= b.high)


def _equal(a, b):
    one = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    return Interval(one, (a.low <= b.high) & (b.low <= a.high))


def _not(a):
    return Interval(~a.high, ~a.low)


def _abs(a):
    least = torch.where(
        (a.low <= 0) & (a.high >= 0), torch.zeros_like(a.low), torch.minimum(a.low.abs(), a.high.abs())
    )
    return Interval(least, torch.maximum(a.low.abs(), a.high.abs()))


INTERVALS = {
    "add": lambda a, b: Interval(a.low + b.low, a.high + b.high),
    "sub": lambda a, b: Interval(a.low - b.high, a.high - b.low),
    "neg": lambda a: Interval(-a.high, -a.low),
    "mul": _of_products,
    "abs": _abs,
    "min": lambda a, b: Interval(torch.minimum(a.low, b.low), torch.minimum(a.high, b.high)),
    "max": lambda a, b: Interval(torch.maximum(a.low, b.low), torch.maximum(a.high, b.high)),
    "float": lambda a: Interval(a.low.float(), a.high.float()),
    "lt": _less,
    "le": _at_most,
    "gt": lambda a, b: _less(b, a),
    "ge": lambda a, b: _at_most(b, a),
    "eq": _equal,
    "ne": lambda a, b: _not(_equal(a, b)),
    "not": _not,
    "and": lambda a, b: Interval(a.low & b.low, a.high & b.high),
    "or": lambda a, b: Interval(a.low | b.low, a.high | b.high),
}


def block_classes(mask, captured, sizes, block, device):
    """bool [B, H, blocks of queries, blocks of keys], twice: blocks with a pair that is seen, and those in
    which all pairs are. `sizes`: B, H, queries, keys; `block`: queries and keys of a block."""
    batch, heads, queries, keys = sizes
    counts = tuple(-(-length // size) for length, size in zip((queries, keys), block, strict=True))
    blocks = {"q": (block[0], counts[0], queries), "kv": (block[1], counts[1], keys)}
    indices = {"b": _outer(batch, 0, device), "h": _outer(heads, 1, device)}
    for place, name in enumerate(("q", "kv")):
        size, count, length = blocks[name]
        first = torch.arange(count, device=device) * size
        shape = (-1, 1) if place == 0 else (1, -1)
        indices[name] = Interval(
            first.reshape(shape), (first + size - 1).clamp(max=length - 1).reshape(shape)
        )
    found = _spread(in_order(mask), indices, captured, blocks, device)[mask]
    shape = (batch, heads, *counts)
    if found is None:
        some, every = (
            torch.ones(shape, dtype=torch.bool, device=device),
            torch.zeros(shape, dtype=torch.bool, device=device),
        )
    else:
        some, every = (end.to(torch.bool).expand(shape).clone() for end in (found.high, found.low))
    _decide(some, every, mask, captured, blocks, device)
    for dim, name in ((2, "q"), (3, "kv")):  # a block that is not full has pairs that are none, as in torch
        size, count, length = blocks[name]
        if size * count > length:
            every.select(dim, -1).zero_()
    return some, every


@functools.lru_cache(maxsize=1024)
def index_outside(node, size, sizes, band):
    """An index outside of a dimension of `size` elements, at which pairs within a band read; None: there is
    none, or it follows from captured tensors. `sizes`: B, H, queries, keys."""
    axes = axes_of(node)
    if uses(node, "load"):
        return None
    ends = dict(zip(PLACE, ((0, each) for each in sizes), strict=True))
    if "distance" in axes:
        left = sizes[2] - 1 if band.left is None else min(band.left, sizes[2] - 1)
        right = sizes[3] - 1 if band.right is None else min(band.right, sizes[3] - 1)
        ends |= {"q": (-right, left + 1), "kv": (0, 1)}
        axes = axes | {"q"}
    ends = {name: each if name in axes else (0, 1) for name, each in ends.items()}
    found = _spread(in_order(node), {name: _ends(*each) for name, each in ends.items()}, (), {}, "cpu")[node]
    if found is not None and found.low >= -size and found.high < size:
        return None
    step = max(1, MOST_PAIRS // math.prod(end - begin for name, (begin, end) in ends.items() if name != "q"))
    for begin in range(*ends["q"], step):
        part = ends | {"q": (begin, min(begin + step, ends["q"][1]))}
        index = evaluate(node, (), {name: _line(name, *each) for name, each in part.items()}, "cpu")
        for each in (index.min(), index.max()):
            if not -size <= each < size:
                return int(each)
    return None


def _ends(begin, end):
    return Interval(torch.tensor(begin), torch.tensor(end - 1))


def _line(name, begin, end):
    return torch.arange(begin, end).reshape(-1, *(1,) * (3 - list(PLACE).index(name)))


CELL = 128  # queries, and keys


def mask_cells(mask, captured, sizes, device):
    """Cells of 128 queries and 128 keys: i32 [B or 1, H or 1, Q, K], -1 where a mask lets all pairs be seen,
    or the number of the cell's bits; and these bits, i32 [numbers, 2, 128, 4]. Bit 2 n + c of [.., 0,
    i, j] is of query i and key 8 n + 2 j + c, and of [.., 1, i, j] of key i and query 8 n + 2 j + c.
    `sizes`: B, H, queries, keys."""
    axes = axes_of(mask)
    outer = tuple(size if name in axes else 1 for name, size in zip("bh", sizes, strict=False))
    some, every = block_classes(mask, captured, (*outer, *sizes[2:]), (CELL, CELL), device)
    cells = torch.where(every, -1, 0).to(torch.int32)  # number 0 has no bits
    cut = (some & ~every).nonzero()
    cells[tuple(cut.unbind(1))] = torch.arange(1, len(cut) + 1, dtype=torch.int32, device=device)
    bits = torch.zeros(len(cut) + 1, 2, CELL, 4, dtype=torch.int32, device=device)
    for first in range(0, len(cut), MOST_PAIRS // CELL**2):
        seen = _seen_in(cut[first : first + MOST_PAIRS // CELL**2], mask, captured, sizes, device)
        for side, each in enumerate((seen, seen.mT)):
            bits[first + 1 : first + 1 + len(seen), side] = _packed(each)
    return cells, bits


def _seen_in(cells, mask, captured, sizes, device):
    """bool [cells, 128, 128]; `cells`: their places [cells, 4]."""
    b, h, i, j = (each.reshape(-1, 1, 1) for each in cells.unbind(1))
    inner = torch.arange(CELL, device=device)
    q, kv = i * CELL + inner.reshape(-1, 1), j * CELL + inner
    places = {"b": b, "h": h, "q": q.clamp(max=sizes[2] - 1), "kv": kv.clamp(max=sizes[3] - 1)}
    return evaluate(mask, captured, places, device).expand(len(cells), CELL, CELL)


def _packed(seen):
    """i32 [cells, 128, 4] of bool [cells, 128, 128]."""
    bits = seen.unflatten(-1, (16, 4, 2)).transpose(-3, -2).flatten(-2)
    weights = torch.tensor([1 << n for n in range(31)] + [-(1 << 31)], dtype=torch.int32)
    return (bits * weights.to(seen.device)).sum(-1, dtype=torch.int32)


def _outer(count, place, device):
    shape = [1, 1, 1, 1]
    shape[place] = count
    value = torch.arange(count, device=device).reshape(shape)
    return Interval(value, value)


def _decide(some, every, mask, captured, blocks, device):
    """Evaluates each pair of the blocks that intervals leave open."""
    (rows, _, queries), (columns, _, keys) = blocks["q"], blocks["kv"]
    open_blocks = (some & ~every).nonzero()
    for part in open_blocks.split(max(1, MOST_PAIRS // (rows * columns))):
        if not len(part):
            break
        b, h, i, j = (each.reshape(-1, 1, 1) for each in part.unbind(1))
        q = i * rows + torch.arange(rows, device=device).reshape(1, -1, 1)
        kv = j * columns + torch.arange(columns, device=device).reshape(1, 1, -1)
        places = {"b": b, "h": h, "q": q.clamp(max=queries - 1), "kv": kv.clamp(max=keys - 1)}
        seen = evaluate(mask, captured, places, device).expand(len(part), rows, columns)
        place = tuple(part.unbind(1))
        some[place] = seen.flatten(1).any(1)
        every[place] = seen.flatten(1).all(1)


def create_block_mask(
    mask_mod: "Callable[..., Any]",
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: "torch.device | str | None" = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    **others: "Any",
) -> "BlockMask":
    """The BlockMask of a mask_mod(b, h, q_idx, kv_idx), as torch.nn.attention.flex_attention makes it.

    B, H: batches and heads that differ, or None for one that all share. Blocks are classed by the intervals
    of what the mask computes; pairs are evaluated one by one in those blocks alone that this leaves open,
    2^24 at a time. So no [Q_LEN, KV_LEN] is ever in memory. `_compile` and other options of torch's
    function change nothing here.
    """
    from torch.nn.attention.flex_attention import BlockMask

    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    for name, value in (("Q_LEN", Q_LEN), ("KV_LEN", KV_LEN), ("BLOCK_SIZE", min(block))):
        if value < 1:
            raise InvalidArgument(f"[create_block_mask] {name} is {value}; must be positive")
    captured = Captured()
    mask = trace_mask(mask_mod, captured)
    if device is None:
        device = captured[0].device if captured else torch.get_default_device()
    device = torch.device(device)
    for number, tensor in enumerate(captured):
        if tensor.dim() and tensor.device.type != device.type:
            raise InvalidArgument(
                f"[create_block_mask] captured tensor {number}, of sizes {list(tensor.shape)}, is on"
                f" {tensor.device}"
                f" and the mask on {device}; must be on one device"
            )
    some, every = block_classes(mask, captured, (B or 1, H or 1, Q_LEN, KV_LEN), block, device)
    partial_lists, full_lists = _lists(some & ~every), _lists(every)
    made = BlockMask.from_kv_blocks(
        *partial_lists, *full_lists, BLOCK_SIZE=block, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )
    made.heddle_lists_follow_mask = True  # no pair is masked by the lists alone
    return made


def _lists(which):
    """i32 counts [B, H, Q] and indices [B, H, Q, K] of blocks, those of each list first and ascending."""
    order = torch.argsort(which.to(torch.int8), dim=-1, descending=True, stable=True)
    return which.sum(-1, dtype=torch.int32), order.to(torch.int32)
