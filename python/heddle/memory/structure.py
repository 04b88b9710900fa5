"""A block as its first run shows it: its calls, the tensors between them, which of these a second call makes
with the same bits, and how long each call takes."""

import time
from dataclasses import dataclass, field

import torch

from heddle.memory.record import facts

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass
class Tensor:
    """A value of the block. `call` is None for one from outside."""

    call: int | None
    bytes: int  # 0: a view, or others hold it anyhow
    can_hold: bool  # nothing writes into it later
    can_offload: bool


@dataclass
class Structure:
    calls: tuple  # the ops, in order
    inputs: list  # the values that each call reads
    outputs: list  # the values that each call makes, None for what is no new one
    tensors: list
    saved: list  # values that the backward reads, in the order in which the forward saved them
    again: list = field(default_factory=list)  # whether each call, made again, has the same bits
    sets: list = field(default_factory=list)  # sets of values to hold, once they were looked for
    least: frozenset | None = None  # the set with the fewest bytes, once it was looked for
    ms: list = field(default_factory=list)  # for each call, to make it again

    def made_of(self, held):
        """For each saved tensor, the values that it is made of where these are held, by which calls."""
        return [self.closure(value, held) for value in self.saved]

    def closure(self, value, held):
        seen, todo = set(), [value]
        while todo:
            each = todo.pop()
            if each not in seen:
                seen.add(each)
                call = self.tensors[each].call
                if call is not None and each not in held:
                    todo += self.inputs[call]
        return seen

    def ms_again(self, held):
        """Milliseconds of all calls that are made again where these values are held."""
        values = set().union(*self.made_of(held)) if self.saved else set()
        calls = {self.tensors[each].call for each in values if each not in held}
        return sum(self.ms[each] for each in calls if each is not None)

    def differs(self, value):
        """A second call gives other bits: the call draws from elsewhere, or a kernel that torch does not see
        writes into the memory later. Then the value is held, and not copied when it is made: it may be
        written after that."""
        owner = self.base(value)
        self.again[self.tensors[value if self.tensors[owner].call is None else owner].call] = False
        self.tensors[owner].can_offload = False

    def base(self, value):
        """The value whose memory this one is."""
        while self.tensors[value].bytes == 0 and self.tensors[value].call is not None:
            value = self.inputs[self.tensors[value].call][0]
        return value


class _Clock:
    """Times of calls on a device, which are known when all have ended."""

    def __init__(self, device):
        self.is_cuda, self.marks = device.type == "cuda", []

    def mark(self):
        if self.is_cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event
        return time.perf_counter()

    def ms(self, begin, end):
        return begin.elapsed_time(end) if self.is_cuda else (end - begin) * 1e3


def _same_bits(one, other):
    if one.stride() != other.stride() or one.size() != other.size() or one.dtype != other.dtype:
        return False
    integer = _INTEGERS.get(one.element_size())
    return torch.equal(one.view(integer), other.view(integer)) if integer else torch.equal(one, other)


def examine(run, device):
    """Describes a run whose forward has just ended, and which holds all that it saved: makes each of them
    again, and compares."""
    values = run.values
    structure = Structure(
        calls=tuple(call.func for call in run.calls),
        inputs=[[each.index for each in call.inputs] for call in run.calls],
        outputs=[[each and each.index for each in call.outputs] for call in run.calls],
        tensors=[
            Tensor(each.call, each.bytes, not each.is_changed, each.is_dense and not each.is_changed)
            for each in values
        ],
        saved=[each.value.index for each in sorted(run.saved, key=lambda saved: saved.place)],
    )
    structure.ms = [0.0] * len(run.calls)
    structure.again = [
        bool(call.inputs) and bool(call.outputs) and not facts(call.func).written
        and not any(each.call is None and each.is_changed for each in call.inputs)
        for call in run.calls
    ]  # fmt: skip
    _make_all(run, structure, _Clock(device))
    return structure


def _make_all(run, structure, clock):
    """Makes all again that the saved tensors are made of, in order; a tensor with other bits marks the call
    of its memory."""
    values = run.values
    needed = sorted(
        {structure.tensors[each].call for made_of in structure.made_of(()) for each in made_of} - {None}
    )
    uses = [0] * len(values)
    for call in needed:
        for each in structure.inputs[call]:
            uses[each] += 1
    made, marks = {}, {}

    def tensor_of(value):
        return value.tensor if value.tensor is not None else made[value.index]

    with torch.no_grad(), torch._C._DisableAutocast():
        for index in needed:
            call = run.calls[index]
            there = all(each.tensor is not None or each.index in made for each in call.inputs)
            if structure.again[index] and there:
                begin = clock.mark()
                outputs = call.again(tensor_of)
                marks[index] = begin, clock.mark()
                for output in call.outputs:
                    if output is None:
                        continue
                    if output.tensor is None:
                        made[output.index] = outputs[output.place]
                    elif not _same_bits(output.tensor, outputs[output.place]):
                        structure.differs(output.index)
            else:
                structure.again[index] = False
            for each in structure.inputs[index]:
                uses[each] -= 1
                if uses[each] == 0:
                    made.pop(each, None)
    if clock.is_cuda:
        torch.cuda.synchronize()
    for index, (begin, end) in marks.items():
        structure.ms[index] = clock.ms(begin, end)


def let_go(run, structure):
    """The run that was examined gives up what can be made again, and makes it in its backward."""
    for value in run.values:
        if value.call is not None and structure.again[value.call]:
            value.tensor = None
    # A value that no call can make was held; all on the way from there to a saved tensor is made again.
    for saved in run.saved:
        for each in saved.closure:
            each.needs -= 1
        saved.closure = run.closure(saved.value)
        for each in saved.closure:
            each.needs += 1
