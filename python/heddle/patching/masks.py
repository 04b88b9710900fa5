"""Masks of attention as what heddle's flash_attention has: a window, lengths of sequences, or a bias.

A mask is read as it is, wherever it came from. Padding, windows, packed sequences and static caches leave
each query one range of keys, and the kernel skips the others. Any other mask is added to the scores.
"""

from dataclasses import dataclass, field

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from heddle.patching import content

_SEEN = WeakTensorKeyDictionary()  # a mask, which layers share, to what was read


@dataclass
class Plan:
    """A mask as flash_attention takes it. `share`: the part of all pairs (query, key) that it visits."""

    attributes: dict = field(default_factory=dict)
    share: float = 1.0
    starts: tuple | None = None  # sequences' first queries and keys, where the batch is laid end to end
    mask: torch.Tensor | None = None  # what is added to the scores, as a mask
    biases: dict = field(default_factory=dict)  # `mask` as numbers, by dtype

    @property
    def form(self):
        """The argument that stands for the mask."""
        return "bias" if self.mask is not None else "sequences" if self.starts else "window"

    def bias(self, dtype):
        """The mask as numbers to add to the scores."""
        if self.mask.dtype != torch.bool:
            return self.mask
        if dtype not in self.biases:
            zeros = torch.zeros((), dtype=dtype, device=self.mask.device)
            self.biases[dtype] = zeros.where(self.mask, float("-inf"))
        return self.biases[dtype]

    def tensors(self, query, key, value):
        """Positional arguments of flash_attention; q, k and v are [batch, length, heads, width]."""
        if self.starts:
            laid = (each.reshape(1, -1, *each.shape[2:]) for each in (query, key, value))
            return (*laid, None, None, None, *self.starts)
        return (query, key, value, *(() if self.mask is None else (self.bias(query.dtype),)))


@dataclass
class _Seen:
    """A plan, and what it was made of."""

    plan: Plan
    facts: tuple  # the mask's version, and the batch
    digest: object  # the mask's contents
    layer: int | None = None  # the last one that asked

    def is_of(self, mask, facts, layer):
        """True if the plan is of what the mask holds. That is compared where a pass over the layers may have
        begun anew, since not every write raises a version."""
        if facts != self.facts:
            return False
        ascends = layer is not None and self.layer is not None and layer > self.layer
        return ascends or _digest(mask) == self.digest


def _digest(mask):
    """Digests a mask, without repeats over batch and heads."""
    return content.digest([mask[: 1 if mask.stride(0) == 0 else None, : 1 if mask.stride(1) == 0 else None]])


def plan_of(mask, batch, keys, layer=None):
    """The plan of a mask [batch or 1, heads or 1, queries, keys]: bool, or numbers to add. Layers of a pass
    ask in the order of their numbers; one without a number may be the first of a pass."""
    queries = mask.shape[2]
    if mask.dtype != torch.bool or queries == 1 or _is_capturing(mask):
        return Plan(mask=mask)
    facts = None if mask.is_inference() else mask._version, batch
    seen = _SEEN.get(mask)
    if seen is None or not seen.is_of(mask, facts, layer):
        plan = _read(mask, batch, queries, keys)
        # The dictionary lets go of a mask that nothing else holds: the plan must not hold it.
        if plan.mask is not None:
            plan.mask = mask.detach()
        seen = _SEEN[mask] = _Seen(plan, facts, _digest(mask))
    seen.layer = layer
    return seen.plan


def _is_capturing(mask):
    """Reading values would wait for the device."""
    return mask.is_cuda and torch.cuda.is_current_stream_capturing()


def _ranges(mask):
    """(first key of each row of [batch, queries, keys], the key after its last one, whether all rows have
    every key between them)"""
    keys = mask.shape[-1]
    bits = mask.view(torch.uint8)
    begin = bits.argmax(-1, keepdim=True)
    some = bits.gather(-1, begin).bool()
    falls = (bits[..., :-1] > bits[..., 1:]).view(torch.uint8)
    end = torch.full_like(begin, keys)
    if keys > 1:
        first = falls.argmax(-1, keepdim=True)
        end = torch.where(falls.gather(-1, first).bool(), first + 1, keys)
    end = torch.where(some, end, 0)
    at = torch.arange(keys, dtype=torch.int32, device=mask.device)
    whole = torch.equal((at >= begin.int()) & (at < end.int()), mask)
    if not whole:
        end = torch.where(some, keys - bits.flip(-1).argmax(-1, keepdim=True), 0)
    begin, end = torch.stack((begin, end)).squeeze(-1).cpu()
    return begin, end, whole


def _read(mask, batch, queries, keys):
    heads = mask[:, :1] if mask.stride(1) == 0 else mask
    if heads.shape[1] > 1 or 0 in mask.shape:
        return Plan(mask=mask)
    rows = heads[:1, 0] if mask.stride(0) == 0 else heads[:, 0]
    begin, end, whole = _ranges(rows)
    if not bool((end > begin).any()):
        return Plan(mask=mask)
    if whole:
        share = int((end - begin).sum()) / begin.numel() / keys
        alike = bool((begin == begin[0]).all()) and bool((end == end[0]).all())
        if alike and (attributes := _window(begin[0], end[0], queries, keys)):
            return Plan(attributes, share)
        if found := _sequences(begin.expand(batch, -1), end.expand(batch, -1), keys):
            left, starts = found
            starts = tuple(each.to(mask.device, torch.int32) for each in starts)
            return Plan({"causal": True, "window_left": left}, share, starts)
    return _bounded(mask, begin, end, queries, keys)


def _window(begin, end, queries, keys):
    """The window whose keys are begin[i] to end[i] for query i; None where there is none."""
    rows = torch.arange(queries, device="cpu")
    some = end > begin
    ends_inside = (some & (end < keys)).nonzero()
    causal = len(ends_inside) > 0
    first = int(ends_inside[0]) if causal else 0
    shift = int(end[first]) - 1 - first if causal else keys - queries  # where query 0 stands
    moved = (some & (begin > 0)).nonzero()
    left = shift + int(moved[0]) - int(begin[moved[0]]) if len(moved) else -1
    if len(moved) and left < 0:
        return None
    at = rows + shift
    expected_begin = (at - left).clamp(0, keys) if len(moved) else torch.zeros_like(begin)
    expected_end = (at + 1).clamp(0, keys) if causal else torch.full_like(end, keys)
    same = (expected_begin == begin) & (expected_end == end)
    if not bool(torch.where(some, same, expected_end <= expected_begin).all()):
        return None
    return {"causal": causal, "window_left": left, "q_offset": shift - (keys - queries)}


def _sequences(begin, end, keys):
    """(keys before its own that a query sees or -1, starts of sequences in the batch laid end to end), where
    each query sees the keys of its sequence up to its own; None where that is not so."""
    batch, queries = begin.shape
    some = (end > begin).flatten()
    base = torch.arange(batch, device="cpu")[:, None] * keys
    begin, end = (begin + base).flatten(), (end + base).flatten()
    new = torch.ones_like(some)
    new[1:] = (some[1:] != some[:-1]) | (some[1:] & ((end[1:] != end[:-1] + 1) | (begin[1:] >= end[:-1])))
    new[::queries] = True
    first = new.nonzero().flatten()
    # A kernel takes at least a tile for each.
    if len(first) > 2 * batch + len(some) // 4:
        return None
    after = torch.cat((first[1:], torch.tensor([len(some)], device="cpu")))
    last = after - 1
    taken = some[first]
    key_begin, key_end = begin[first][taken], end[last][taken]
    if bool((key_begin[1:] < key_end[:-1]).any()):
        return None
    reach = (end - 1 - begin)[some]
    moved = (begin > begin[first].repeat_interleave(after - first))[some]
    left = int(reach[moved].max()) if bool(moved.any()) else -1
    if left >= 0 and not bool(torch.where(moved, reach == left, reach <= left).all()):
        return None
    # Keys that no query sees are a sequence without queries, before that of the next keys.
    rows, columns = [0], [0]
    taken_keys = iter(zip(key_begin.tolist(), key_end.tolist(), strict=True))
    for start, stop, is_taken in zip(first.tolist(), after.tolist(), taken.tolist(), strict=True):
        low, high = next(taken_keys) if is_taken else (columns[-1], columns[-1])
        for row, column in ((start, low), (stop, high)):
            if (row, column) != (rows[-1], columns[-1]):
                rows.append(row)
                columns.append(column)
    return left, tuple(torch.tensor(each, device="cpu") for each in (rows, columns))


def _bounded(mask, begin, end, queries, keys):
    """The mask is added, inside the narrowest window that has all of it."""
    rows = torch.arange(queries, device="cpu")
    some = end > begin
    shift = int((end - 1 - rows)[some].max())
    left = int((rows + shift - begin)[some].max())
    at = rows + shift
    visited = (at + 1).clamp(0, keys) - (at - left).clamp(0, keys)
    attributes = {"causal": True, "window_left": left, "q_offset": shift - (keys - queries)}
    return Plan(attributes, int(visited.sum()) / queries / keys, mask=mask)
