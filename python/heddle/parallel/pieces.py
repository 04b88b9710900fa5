"""Attention between some positions' queries and others' keys, as calls of flash_attention."""

import bisect
import functools
import itertools
from dataclasses import dataclass

import torch

import heddle.ops


@dataclass(frozen=True)
class Mask:
    """`left`, `right`: keys before and after its own that a query sees, -1: all. `borders` of documents: a
    query sees keys of its own alone."""

    borders: tuple
    left: int = -1
    right: int = -1

    @property
    def is_full(self):
        return self.left < 0 and self.right < 0


@dataclass(frozen=True)
class Piece:
    """Rows [begin, end) of queries and of keys, as they lie in memory. `starts`: those of documents in the
    piece, for queries and for keys, where there are several."""

    queries: tuple
    keys: tuple
    q_offset: int
    starts: tuple | None = None

    def attributes(self, mask, device):
        made = {"q_offset": self.q_offset, "window_left": mask.left, "window_right": mask.right}
        if self.starts:
            for name, each in zip(("cu_seqlens_q", "cu_seqlens_k"), self.starts, strict=True):
                made[name] = _numbers(each, device)
        return made


@functools.lru_cache(maxsize=256)
def _numbers(values, device):
    return torch.tensor(values, dtype=torch.int32, device=device)


@functools.lru_cache(maxsize=256)
def pieces(rows, columns, mask, packs):
    """Pieces of queries at positions `rows` and keys at `columns`, ranges [begin, end) as they follow one
    another in memory. A query meets the keys of its document from the first one on, as in a call of all
    positions, so that sums have the same order. `packs`: several documents may be one call."""
    made = []
    for (q, q_row), (k, k_row) in itertools.product(_placed(rows), _placed(columns)):
        first = max(bisect.bisect_right(mask.borders, max(q[0], k[0])) - 1, 0)
        for begin, end in itertools.pairwise(mask.borders[first:]):
            if begin >= min(q[1], k[1]):
                break
            item = _item((q, q_row), (k, k_row), (begin, end), mask)
            if item is None:
                continue
            joined = _join(made[-1], item) if packs and made else None
            if joined:
                made[-1] = joined
            else:
                made.append(item)
    return tuple(made)


def _placed(ranges):
    row = 0
    for begin, end in ranges:
        yield (begin, end), row
        row += end - begin


def _item(queries, keys, document, mask):
    """One document's queries and the keys that they see; None: there are none."""
    (q, q_row), (k, k_row) = queries, keys
    first, last = max(q[0], document[0]), min(q[1], document[1])
    begin, end = max(k[0], document[0]), min(k[1], document[1])
    too_late = mask.right >= 0 and begin >= last + mask.right
    if first >= last or begin >= end or too_late or (mask.left >= 0 and end <= first - mask.left):
        return None
    # flash_attention has the last query at the last key.
    offset = 0 if mask.is_full else last - end
    rows = (first - q[0] + q_row, last - q[0] + q_row)
    return Piece(rows, (begin - k[0] + k_row, end - k[0] + k_row), offset)


def _join(before, item):
    follows = before.queries[1] == item.queries[0] and before.keys[1] == item.keys[0]
    if not follows or before.q_offset != item.q_offset:
        return None
    sides = ((before.queries, item.queries), (before.keys, item.keys))
    starts = before.starts or tuple((0, a[1] - a[0]) for a, _ in sides)
    starts = tuple((*each, b[1] - a[0]) for each, (a, b) in zip(starts, sides, strict=True))
    return Piece(*((a[0], b[1]) for a, b in sides), item.q_offset, starts)


def wide(tensor):
    """The dtype of partial results. Whole kernels on a GPU have results of their inputs' dtype."""
    return tensor.dtype if tensor.is_cuda else torch.float32


def attend(piece, mask, q, kv, dim, attributes, out=None):
    """(y, lse) of a piece. q: [B, S, H, D]; kv: [T, B, G, D + E], `dim` is D."""
    q = q[:, slice(*piece.queries)]
    if out is None:
        size = (q.shape[0], q.shape[1], q.shape[2], kv.shape[3] - dim)
        out = (q.new_empty(size, dtype=wide(q)), q.new_empty(*_statistics(q), dtype=torch.float32))
    heddle.ops.flash_attention(
        q, *_keys(piece, kv, dim), **piece.attributes(mask, q.device), **attributes, out=out
    )
    return out


def _statistics(q):
    return q.shape[0], q.shape[2], q.shape[1]


def _keys(piece, kv, dim):
    rows = kv[slice(*piece.keys)].transpose(0, 1)
    return rows[..., :dim], rows[..., dim:]


def add_gradients(piece, mask, q, kv, dim, attributes, given, sums):
    """Adds a piece's gradients. `given`: dy, lse and delta of all keys; `sums`: dq [B, S, H, D] and dkv
    [T, B, G, D + E], f32."""
    (dy, lse, delta), (dq, dkv) = given, sums
    rows = slice(*piece.queries)
    k, v = _keys(piece, kv, dim)
    inputs = (q[:, rows], k, v, dy[:, rows], lse[:, :, rows], delta[:, :, rows])
    made = heddle.ops.flash_attention_backward(
        *inputs,
        **piece.attributes(mask, q.device),
        **attributes,
        out=tuple(torch.empty(each.shape, dtype=wide(each), device=q.device) for each in inputs[:3]),
    )
    dq[:, rows] += made[0]
    keys = dkv[slice(*piece.keys)].transpose(0, 1)
    keys[..., :dim] += made[1]
    keys[..., dim:] += made[2]


def merge(y, lse, piece, part):
    """Adds what a piece's keys give to the result so far. y: f32 [B, S, H, E]; lse: f64 [B, H, S], so that
    its error is that of the parts, however many they are."""
    rows = slice(*piece.queries)
    y, lse = y[:, rows], lse[:, :, rows]
    added, added_lse = part
    both = torch.logaddexp(lse, added_lse.double())
    # Rows that have seen nothing yet: -inf from -inf is no number.
    shares = (torch.exp(each - both).masked_fill_(both == -torch.inf, 0.0) for each in (lse, added_lse))
    old, new = (each.float().transpose(1, 2).unsqueeze(-1) for each in shares)
    y.mul_(old).add_(added.float() * new)
    lse.copy_(both)
