"""The best choice of each block of a chain under a budget of memory.

The forward runs block after block, the backward in the other order. What a block offloads leaves the device
while the next block runs forward, and comes back in the later half of its backward: what takes longer is
waited for. So the time and the peak of a chain follow from each block's option and that of its neighbour, and
dynamic programming over (memory kept so far, bytes that the block before offloads) finds the optimum.
"""

from dataclasses import dataclass

import numpy

# A copy slows the device's own use of memory by so much of its time: no plan copies for nothing.
COPY_COST = 0.01
STATES = 192  # for one number of offloaded bytes; more are rounded, to a thousandth of the budget


@dataclass
class Block:
    options: list  # Option
    forward_ms: float
    backward_ms: float


@dataclass
class Chain:
    blocks: list  # in the order of the forward
    head_ms: float = 0.0  # from the end of the last forward to the begin of the first backward
    head_peak: int = 0  # bytes that this part takes at most, besides what blocks hold
    rate: float = 1e6  # bytes that a copy moves in a millisecond
    base: int = 0  # bytes on the device before the first block

    def evaluate(self, choice):
        """(bytes at the peak, milliseconds) where block i has its option choice[i]."""
        kept = away = peak = 0
        ms = self.head_ms
        for block, number in zip(self.blocks, choice, strict=True):
            option = block.options[number]
            peak = max(peak, kept + away + max(option.forward_peak, option.late_peak))
            peak = max(peak, kept + option.backward_peak)
            ms += block.forward_ms + block.backward_ms + option.again_ms + self._waits(away, block, option)
            kept += option.kept
            away = option.offloaded
        return self.base + max(peak, kept + away + self.head_peak), ms

    def _waits(self, away, block, option):
        """Milliseconds for which copies of the block before are waited for."""
        took = away / self.rate
        waits = max(0.0, took - block.forward_ms) + max(0.0, took - block.backward_ms * option.late_share)
        return waits + COPY_COST * took


@dataclass
class _States:
    """Beginnings of a chain: memory kept, bytes that the last block offloads, milliseconds, and how they were
    made."""

    kept: numpy.ndarray
    away: numpy.ndarray
    ms: numpy.ndarray
    before: numpy.ndarray  # the state of the block before
    option: numpy.ndarray


def best(chain, budget):
    """The options of the blocks with which the chain takes the least time within `budget` bytes; None if none
    fits."""
    room = budget - chain.base
    state = _States(*(numpy.zeros(1) for _ in range(3)), numpy.zeros(1, int), numpy.zeros(1, int))
    path = []
    for block in chain.blocks:
        state = _step(chain, state, block, room)
        if state is None:
            return None
        path.append(state)
    fits = state.kept + state.away + chain.head_peak <= room
    if not fits.any():
        return None
    at = int(numpy.argmin(numpy.where(fits, state.ms, numpy.inf)))
    choice = []
    for state in reversed(path):
        choice.append(int(state.option[at]))
        at = int(state.before[at])
    return choice[::-1]


def _step(chain, states, block, room):
    """All beginnings with one more block that are not worse than another."""
    parts = []
    for number, option in enumerate(block.options):
        peak = states.kept + states.away + max(option.forward_peak, option.late_peak)
        peak = numpy.maximum(peak, states.kept + option.backward_peak)
        fits = numpy.flatnonzero(peak <= room)
        if not len(fits):
            continue
        took = states.away[fits] / chain.rate
        waits = numpy.maximum(0, took - block.forward_ms)
        waits += numpy.maximum(0, took - block.backward_ms * option.late_share) + COPY_COST * took
        ms = states.ms[fits] + option.again_ms + waits
        parts.append(
            (
                states.kept[fits] + option.kept,
                numpy.full(len(fits), float(option.offloaded)),
                ms,
                fits,
                numpy.full(len(fits), number),
            )
        )
    if not parts:
        return None
    kept, away, ms, before, option = (numpy.concatenate(each) for each in zip(*parts, strict=True))
    chosen = []
    for each in numpy.unique(away):
        of_this = numpy.flatnonzero(away == each)
        chosen.append(of_this[_front(kept[of_this], ms[of_this])])
        if len(chosen[-1]) > STATES:
            rounded = numpy.ceil(kept[chosen[-1]] / (room / 1000))
            _, first = numpy.unique(rounded[::-1], return_index=True)  # the fastest has the most memory
            chosen[-1] = chosen[-1][::-1][first]
    at = numpy.concatenate(chosen)
    return _States(kept[at], away[at], ms[at], before[at], option[at])


def _front(kept, ms):
    """Finds those that no other beats in memory and in time, from the fewest bytes on."""
    order = numpy.lexsort((ms, kept))
    least = numpy.minimum.accumulate(ms[order])
    first = numpy.concatenate(([True], least[1:] < least[:-1]))
    return order[first]


def least_peak(chain):
    """The fewest bytes within which the chain runs."""
    low, high = chain.base, chain.evaluate([_smallest(block) for block in chain.blocks])[0]
    while high - low > max(1, high // 4000):
        middle = (low + high) // 2
        if best(chain, middle) is None:
            low = middle
        else:
            high = middle
    return high


def fastest(chain):
    """The options with which the chain takes the least time, and of these the least memory."""
    return best(chain, float("inf"))


def _smallest(block):
    return min(
        range(len(block.options)),
        key=lambda each: block.options[each].kept + block.options[each].offloaded,
    )


def within_time(chain, ms):
    """The options with the lowest peak that take at most so many milliseconds; None if none does."""
    choice = fastest(chain)
    if chain.evaluate(choice)[1] > ms:
        return None
    low, high = least_peak(chain), chain.evaluate(choice)[0]
    while high - low > max(1, high // 2000):
        middle = (low + high) // 2
        found = best(chain, middle)
        if found is not None and chain.evaluate(found)[1] <= ms:
            choice, high = found, min(middle, chain.evaluate(found)[0])
        else:
            low = middle
    return choice
