"""The choices of a block: which tensors it holds until its backward, which of those on the host, and what
making the others again costs.

For a price of memory, in milliseconds a byte, the cheapest set of tensors is a minimum cut of the graph of
calls: a tensor that is needed is held, at the price of its bytes, or its call is made again, at the price of
its time and of all that it reads. The prices from nothing to all give the block's choices; each is split
between device and host.
"""

from dataclasses import dataclass, field

PRICES = 14  # prices of memory that are tried
HALF = 0.5  # as a share of a backward's time: in the rest it fetches what the block before offloaded
LEAST_BYTES = 1 << 16  # smaller tensors stay on the device
LEAST_PRICE = 1.0  # milliseconds a byte: more than any call takes
NEVER = 1e18  # the price, in milliseconds, of what cannot be


@dataclass(frozen=True)
class Option:
    """A block's choice, with what it costs: bytes kept on the device and on the host, milliseconds of calls
    made again, and the memory that the block takes at most, in its forward and in its backward, above what
    others hold."""

    kept: int
    offloaded: int
    again_ms: float
    forward_peak: int
    backward_peak: int
    late_peak: int = 0  # in the backward, from when the block before fetches what it offloaded
    late_share: float = 1.0  # the share of the backward's time that is left then
    fetch_at: int = 0  # number of the saved tensor with whose taking that begins
    held: frozenset = frozenset()
    on_host: frozenset = frozenset()
    is_plain: bool = False  # as torch does it: nothing is noted


@dataclass
class Profile:
    """Memory that a run of the block takes besides what the block holds, as one of its steps showed."""

    forward: list = field(default_factory=list)  # (call, bytes besides, values that live anyhow)
    # (saved tensor that is taken, or its complement that goes; bytes besides since the event before, and now)
    backward: list = field(default_factory=list)
    shares: list = field(default_factory=list)  # the share of the time that had passed at each event


def held_at(structure, price):
    """The values that are held where a byte costs so many milliseconds."""
    import networkx  # torch depends on it

    graph = networkx.DiGraph()
    graph.add_nodes_from(("source", "sink"))
    for value in set(structure.saved):
        graph.add_edge("source", ("value", value))  # no capacity: infinite
    for value, tensor in enumerate(structure.tensors):
        cost = price * tensor.bytes if tensor.can_hold and (tensor.bytes or tensor.call is None) else NEVER
        source = "sink" if tensor.call is None else ("call", tensor.call)
        graph.add_edge(("value", value), source, capacity=cost)
    for call, inputs in enumerate(structure.inputs):
        cost = structure.ms[call] if structure.again[call] else NEVER
        graph.add_edge(("call", call), "sink", capacity=cost)
        for each in inputs:
            graph.add_edge(("call", call), ("value", each))
    _, (needed, _) = networkx.minimum_cut(graph, "source", "sink")
    return frozenset(
        value
        for value, tensor in enumerate(structure.tensors)
        if ("value", value) in needed
        and tensor.bytes
        and (tensor.call is None or ("call", tensor.call) not in needed)
    )


def least_held(structure):
    """The values that are held where all is made again that can be."""
    if structure.least is None:
        structure.least = held_at(structure, LEAST_PRICE)
    return structure.least


def sets_of(structure):
    """Sets of values to hold, from the most bytes to the fewest."""
    if structure.sets:
        return structure.sets
    everything = frozenset(
        base for base in map(structure.base, structure.saved) if structure.tensors[base].bytes
    )
    sizes = [tensor.bytes for tensor in structure.tensors if tensor.bytes]
    times = [ms for ms in structure.ms if ms > 0]
    found = [everything]
    if sizes and times:
        low, high = min(times) / max(sizes) / 8, sum(times) / min(sizes) * 8
        for step in range(PRICES):
            held = held_at(structure, low * (high / low) ** (step / (PRICES - 1)))
            found += [*_between(structure, found[-1], held), held] if held not in found else []
    structure.sets = list(dict.fromkeys(_needed(structure, held) for held in found))
    return structure.sets


def _needed(structure, held):
    """The values of a set that something is made of, with those from outside, which nothing makes."""
    values = set().union(*structure.made_of(held))
    tensors = structure.tensors
    return frozenset(
        each for each in values if tensors[each].bytes and (each in held or tensors[each].call is None)
    )


def _between(structure, more, fewer):
    """Sets between two that follow one another, where tensors of one price are given up together. They go one
    by one, the largest first; those that replace them come at once."""
    going = sorted(more - fewer, key=lambda each: -structure.tensors[each].bytes)
    for count in range(1, len(going)):
        yield more - frozenset(going[:count])
        yield (more | fewer) - frozenset(going[:count])


def options_of(structure, profile, may_offload=True, may_recompute=True):
    """The options of a block, none of which is worse than another in all respects."""
    found = []
    sets = sets_of(structure) if may_recompute else sets_of(structure)[:1]
    for number, held in enumerate(sets):
        again_ms = structure.ms_again(held) if number else 0.0
        fetch = _Backward(structure, held).peaks(profile)
        forward = _forward_peak(structure, held, profile)
        there = sum(structure.tensors[each].bytes for each in held)
        can_go = [
            each
            for each in sorted(held)
            if may_offload
            and structure.tensors[each].can_offload
            and structure.tensors[each].bytes >= LEAST_BYTES
        ]
        for count in range(len(can_go) + 1):
            on_host = frozenset(can_go[:count])
            away = sum(structure.tensors[each].bytes for each in on_host)
            is_plain = number == 0 and count == 0
            late = (fetch.total, 1.0, 0) if is_plain else (fetch.late, fetch.rest, fetch.at)
            costs = (there - away, away, again_ms, forward, fetch.total, *late)
            found.append(Option(*costs, held, on_host, is_plain))
    return _undominated(found)


def _costs(option):
    return (
        *(option.kept, option.offloaded, option.again_ms, option.forward_peak, option.backward_peak),
        *(option.late_peak, -option.late_share),
    )


def _undominated(options):
    kept = []
    for each in sorted(options, key=_costs):
        mine = _costs(each)
        if not any(all(a <= b for a, b in zip(_costs(other), mine, strict=True)) for other in kept):
            kept.append(each)
    return kept


def _forward_peak(structure, held, profile):
    """Bytes that the forward takes: those that live anyhow, and what is held of what has been made."""
    most = sum(structure.tensors[each].bytes for each in held)
    for call, besides, alive in profile.forward:
        mine = 0
        for each in held:
            made = structure.tensors[each].call
            if made is None or (made <= call and each not in alive):
                mine += structure.tensors[each].bytes
        most = max(most, besides + mine)
    return most


class _Backward:
    """Plays the backward of a block: what it holds at each time."""

    def __init__(self, structure, held):
        self.structure, self.held = structure, held
        self.made_of = structure.made_of(held)
        self.needs = [0] * len(structure.tensors)
        for values in self.made_of:
            for each in values:
                self.needs[each] += 1
        self.is_made = [False] * len(structure.saved)
        self.there = {
            each
            for each, tensor in enumerate(structure.tensors)
            if self.needs[each] and (tensor.call is None or each in held)
        }
        self.bytes = sum(structure.tensors[each].bytes for each in self.there)
        self.most = self.total = self.late = self.bytes
        self.rest, self.at = 1.0, 0

    def take(self, place):
        """The most that is there while the saved tensor is made."""
        self.most = self.bytes
        value = self.structure.saved[place]
        passing = self._get(value)  # it changes the bytes
        self.bytes -= passing
        if not self.is_made[place]:
            self.is_made[place] = True
            for each in self.made_of[place]:
                if each != value:
                    self._need_less(each)
        return self.most

    def peaks(self, profile):
        """Plays all: the most bytes in all, and from half of the time on, when the block before may fetch."""
        taken = 0
        for (place, since, now), share in zip(profile.backward, profile.shares, strict=True):
            most = since + self.bytes
            if place >= 0:
                most = max(most, now + self.take(place))
                taken += 1
            else:
                self.release(~place)
            self.total = max(self.total, most)
            if share < HALF:
                self.late, self.rest, self.at = 0, 1 - share, taken
            else:
                self.late = max(self.late, most)
        return self

    def release(self, place):
        value = self.structure.saved[place]
        for each in [value] if self.is_made[place] else self.made_of[place]:
            self._need_less(each)

    def _get(self, value):
        """Makes a value; the bytes of what was made for nothing else, which goes once it is read."""
        if value in self.there:
            return 0
        call = self.structure.tensors[value].call
        passing = sum(self._get(each) for each in self.structure.inputs[call])
        made = 0
        for output in self.structure.outputs[call]:
            if output is not None and output not in self.there:
                size = self.structure.tensors[output].bytes
                self.bytes += size
                if self.needs[output]:
                    self.there.add(output)
                else:
                    made += size
        self.most = max(self.most, self.bytes)
        is_view = self.structure.tensors[value].bytes == 0
        if is_view:
            return made + passing
        self.bytes -= passing
        return made

    def _need_less(self, value):
        self.needs[value] -= 1
        if self.needs[value] == 0 and value in self.there:
            self.there.discard(value)
            self.bytes -= self.structure.tensors[value].bytes
