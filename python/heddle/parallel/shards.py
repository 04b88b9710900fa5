"""Which positions of a sequence each rank has."""

import functools
import heapq
import itertools
from dataclasses import dataclass

import torch

from heddle.errors import InvalidArgument

BALANCES = ("zigzag", "contiguous", "documents")
BLOCKS = 8  # that "documents" deals out to each rank


@dataclass(frozen=True)
class Shards:
    """`segments`: for each rank the ranges [begin, end) of positions that it has, in the order in which they
    lie in its shard. Each position belongs to one rank; a rank may have none."""

    segments: tuple

    @property
    def length(self):
        return sum(self.sizes)

    @functools.cached_property
    def sizes(self):
        return tuple(sum(end - begin for begin, end in each) for each in self.segments)

    def positions(self, rank, device=None):
        """The positions of a rank, int64 [size]."""
        ranges = [torch.arange(*each, device=device) for each in self.segments[rank]]
        return torch.cat([torch.arange(0, device=device), *ranges])

    def shard(self, tensor, dim, rank):
        """The part of a rank: a copy."""
        ranges = [tensor.narrow(dim, begin, end - begin) for begin, end in self.segments[rank]]
        return torch.cat([tensor.narrow(dim, 0, 0), *ranges], dim)

    def placed(self, rank):
        """[((begin, end), first row in the shard)]."""
        made, row = [], 0
        for begin, end in self.segments[rank]:
            made.append(((begin, end), row))
            row += end - begin
        return made


def borders_of(cu_seqlens, length, name):
    """Begins of documents and the end of the last, as numbers; without documents all is one."""
    if cu_seqlens is None:
        return (0, length)
    borders = numbers_of(cu_seqlens)
    rises = all(a <= b for a, b in itertools.pairwise(borders))
    if len(borders) < 2 or borders[0] != 0 or borders[-1] != length or not rises:
        raise InvalidArgument(
            f"[{name}] cu_seqlens is {shown(borders)}; must rise from 0 to {length}, the length of the"
            " sequence on all ranks together"
        )
    return tuple(sorted(set(borders))) if length else (0, 0)


def numbers_of(cu_seqlens):
    """cu_seqlens as numbers: a tensor on a GPU makes the host wait. borders_of refuses what are none."""
    if cu_seqlens is None:
        return None
    try:
        return tuple(map(int, cu_seqlens.tolist() if isinstance(cu_seqlens, torch.Tensor) else cu_seqlens))
    except (TypeError, ValueError):
        return ()


def shown(numbers):
    numbers = list(numbers)
    return str(numbers) if len(numbers) <= 8 else f"{numbers[:6]} ... {numbers[-1]}"


@functools.lru_cache(maxsize=256)
def deal(length, ranks, balance="zigzag", borders=None, multiple=1):
    """The shards of a sequence. "contiguous": equal parts in order. "zigzag": of 2 * ranks parts, rank r has
    the parts r and 2 * ranks - 1 - r, so that all have the same work under a causal mask. "documents": blocks
    are dealt out by the number of pairs that causal attention within documents has, the heaviest first.
    Parts begin at multiples of `multiple`, and else differ by one position at most."""
    if balance not in BALANCES:
        raise InvalidArgument(f"[shards] balance is {balance!r}; must be one of {', '.join(BALANCES)}")
    if multiple < 1:
        raise InvalidArgument(f"[shards] multiple is {multiple}; must be positive")
    if balance == "contiguous":
        parts = _parts(length, ranks, multiple)
        return Shards(tuple(_joined([each]) for each in parts))
    if balance == "zigzag":
        parts = _parts(length, 2 * ranks, multiple)
        return Shards(tuple(_joined([parts[r], parts[-1 - r]]) for r in range(ranks)))
    return _by_work(_parts(length, BLOCKS * ranks, multiple), ranks, borders or (0, length))


def _parts(length, count, multiple):
    blocks = -(-length // multiple)
    ends = [min(length, blocks * n // count * multiple) for n in range(count + 1)]
    return list(itertools.pairwise(ends))


def _joined(ranges):
    """Ranges without empty ones, and neighbours as one."""
    made = []
    for begin, end in sorted(each for each in ranges if each[0] < each[1]):
        if made and made[-1][1] == begin:
            begin = made.pop()[0]
        made.append((begin, end))
    return tuple(made)


def _by_work(blocks, ranks, borders):
    """Each rank gets as many blocks; the heaviest goes to the rank that has least and room for it."""
    works = [_pairs(begin, end, borders) for begin, end in blocks]
    least = [(0, rank) for rank in range(ranks)]
    given = [[] for _ in range(ranks)]
    for n in sorted(range(len(blocks)), key=lambda n: (-works[n], n)):
        work, rank = heapq.heappop(least)
        given[rank].append(blocks[n])
        if len(given[rank]) < BLOCKS:
            heapq.heappush(least, (work + works[n], rank))
    return Shards(tuple(_joined(each) for each in given))


def _pairs(begin, end, borders):
    """Pairs of queries in [begin, end) and keys up to their own, in documents."""
    count = 0
    for first, last in itertools.pairwise(borders):
        a, b = max(begin, first) - first, min(end, last) - first
        if a < b:
            count += (b * (b + 1) - a * (a + 1)) // 2
    return count
