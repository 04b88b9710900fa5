"""A model whose blocks run by a plan: the first step compares what can be made again with what was saved, the
second measures, and from the third on the plan holds."""

import logging
import weakref
from dataclasses import replace

import torch

from heddle.display import bytes_text
from heddle.errors import InvalidArgument
from heddle.memory import blocks as blocks_of
from heddle.memory import planner, structure
from heddle.memory.copies import copies_of, rate_of
from heddle.memory.options import least_held, options_of
from heddle.memory.plan import make_plan
from heddle.memory.record import KEEP, OFFLOAD, Policy, Recorder, Run
from heddle.memory.watch import Watch, meter_of
from heddle.progress import LOGGER

STRANGE = 3  # times that it measures again because a block makes other calls
LARGER = 1.02  # times the input, or times the memory before the first block: then it plans anew
EXAMINE, WATCH, PLANNED = "examine", "watch", "planned"


class _Measured:
    """Plans are made of it: the first two steps' measurements of a model."""

    def __init__(self, structures, watch, order, names, input_bytes):
        self.structures, self.watch, self.order = structures, watch, order
        self.names, self.input_bytes = names, input_bytes
        self._options = {}

    def _options_of(self, at, *may):
        """The options of the block at a place of the chain."""
        key = (at, *may)
        if key not in self._options:
            slot = self.order[at]
            options = options_of(self.structures[slot], self.watch.profiles[slot], *may)
            if (
                at == len(self.order) - 1
            ):  # its backward begins at once: nothing would leave the device before
                options = [option for option in options if not option.offloaded] or options
            self._options[key] = options
        return self._options[key]

    def chain(self, device, may_offload, may_recompute, base=None, times=1.0):
        """The chain that a planner takes, for inputs `times` as large."""
        meter, marks = self.watch.meter, [self.watch.marks[each] for each in self.order]
        blocks = []
        for at, each in enumerate(self.order):
            made = self.structures[each]
            begin, end, back, over = marks[at]
            back_ms = meter.ms(back, marks[at - 1][2] if at > 0 else over)
            again = made.ms_again(least_held(made))
            blocks.append(
                planner.Block(
                    [_scaled(option, times) for option in self._options_of(at, may_offload, may_recompute)],
                    meter.ms(begin, end) * times,
                    max(0.0, back_ms - again) * times,
                )
            )
        head_ms = meter.ms(marks[-1][1], marks[-1][2])
        return planner.Chain(
            blocks,
            max(0.0, head_ms) * times,
            int(self.watch.head_peak * times),
            rate_of(device),
            self.watch.base if base is None else base,
        )


def _scaled(option, times):
    if times == 1.0:
        return option
    sizes = ("kept", "offloaded", "forward_peak", "backward_peak", "late_peak")
    larger = {name: int(getattr(option, name) * times) for name in sizes}
    return replace(option, again_ms=option.again_ms * times, **larger)


class Managed:
    """A model whose blocks run by a plan, until `remove()`; also a context, which removes it. `plan` is None
    until the first two steps have measured."""

    def __init__(
        self, model, goal, blocks=None, may_offload=True, may_recompute=True, plan=None, copies=None
    ):
        _refuse_checkpointing(model)
        self.goal, self.may_offload, self.may_recompute = goal, may_offload, may_recompute
        self.names, self.modules = zip(*blocks_of.find_blocks(model, blocks), strict=True)
        self.plan, self.measured = None, None
        self._given_copies, self._strange, self._measures_again = copies, 0, False
        self._begin_again()
        if plan is not None:
            if list(plan.measured.names) != list(self.names):
                raise InvalidArgument(
                    f"[heddle.memory] a plan of {len(plan.measured.names)} blocks, "
                    f"{plan.measured.names[0]} and so on; this model has {len(self.names)}, {self.names[0]} "
                    "and so on"
                )
            self.measured = plan.measured
            self._take(plan)
        for place, module in enumerate(self.modules):
            blocks_of.around(module, _Caller(self, place))

    def remove(self):
        """The model is again as it was. Backwards of earlier forwards go on."""
        for module in self.modules:
            blocks_of.leave(module)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def __repr__(self):
        return f"<heddle.memory of {len(self.names)} blocks: {self.plan or 'measuring'}>"

    def measure(self, step):
        """Runs `step` as often as a plan needs, and returns it."""
        for _ in range(2):
            step()
        if not self._is_measured():
            raise InvalidArgument(
                "[heddle.memory] step() did not run the blocks' forward and then their backward; "
                "it must do both"
            )
        self._decide(self._watch.meter.device)
        return self.plan

    # ---- each call of a block

    def _begin_again(self):
        self._phase, self._order, self._structures, self._policies = EXAMINE, [], {}, {}
        self._watch, self._last, self._inputs, self._times = None, lambda: None, 0, 1.0
        self._passes, self._began_backward = {}, False

    def _copies(self, device):
        return self._given_copies or copies_of(device)

    def call(self, place, function, args, kwargs):
        if not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return function()
        module = self.modules[place]
        _refuse_checkpointing(module)
        tensors = list(_tensors((args, kwargs)))
        own = [*module.parameters(), *module.buffers()]
        device = next((each.device for each in (*tensors, *own)), torch.device("cpu"))
        if self._began_backward or not self._passes:
            size = sum(each.untyped_storage().nbytes() for each in tensors if each.requires_grad)
            self._begin_step(device, size)
        slot = place, self._passes.get(place, 0)
        self._passes[place] = slot[1] + 1
        if self._phase == PLANNED and slot not in self._structures:
            slot = place, 0  # more calls in this step than in the one that was measured
        policy = self._policies.get(slot)
        if self._phase == PLANNED and policy is None:
            return self._plain(function)
        observer = self._watch if self._phase == WATCH and slot in self._structures else None
        free = [each for each in tensors if not each.requires_grad]
        run = Run(policy, self._copies(device), [*free, *own], self._last(), observer, self._name(slot))
        run.on_backward = self._backward_begins
        if observer:
            observer.begin(run, slot)
        try:
            with torch.autograd.graph.saved_tensors_hooks(run.pack, run.unpack), Recorder(run):
                out = function()
            if self._phase == EXAMINE:
                self._examine(slot, run, device)
        finally:
            run.end()
        if observer:
            observer.end(run)
        if run.is_strange:
            self._is_strange(slot)
        self._last = weakref.ref(run)
        return out

    def _name(self, slot):
        place, number = slot
        return self.names[place] + (f", call {number + 1}" if number else "")

    def _plain(self, function):
        """A block that keeps everything, as torch does it; its backward has the block before fetch."""
        before, out = self._last(), function()
        self._last = lambda: None  # the next block has nothing to fetch of this one
        if before is not None:
            before.leave()
        first = next((each for each in _tensors(out) if each.requires_grad), None)
        if first is not None:
            first.register_hook(_Backward(self, before))
        return out

    def _backward_begins(self):
        self._began_backward = True

    def _examine(self, slot, run, device):
        made = structure.examine(run, device)
        structure.let_go(run, made)
        self._order.append(slot)
        self._structures[slot] = made

    def _is_strange(self, slot):
        """A run made other calls than the one that was measured: it kept what it saved from there on."""
        self._strange += 1
        again = self._strange <= STRANGE
        LOGGER.log(
            logging.INFO if again else logging.DEBUG,
            "[heddle.memory] %s makes other calls than it did when measured; now it keeps what it saves%s",
            self._name(slot),
            ", and the next two measure again" if again else "",
        )
        if again:
            self._measures_again = True

    # ---- from step to step

    def _begin_step(self, device, input_bytes):
        if self._measures_again:
            self._measures_again = False
            self._begin_again()
        self._passes, self._began_backward = {}, False
        if self._phase == EXAMINE and self._order:
            self._structures = _alike(self._structures)
            for slot, made in self._structures.items():
                self._policies[slot] = Policy(dict.fromkeys(least_held(made), KEEP), made.calls)
            self._phase = WATCH
        elif self._phase == WATCH and self._is_measured():
            self._decide(device)
        elif self._phase == PLANNED:
            self._decide_again(device, input_bytes)
        if self._phase == WATCH:
            self._watch = Watch(meter_of(device))
            self._inputs = input_bytes

    def _is_measured(self):
        return self._watch is not None and all(map(self._watch.is_over, self._order))

    def _decide(self, device):
        names = [self._name(each) for each in self._order]
        self._watch.finish()
        self.measured = _Measured(self._structures, self._watch, self._order, self.names, self._inputs)
        chain = self.measured.chain(device, self.may_offload, self.may_recompute)
        plan = self._planned(chain, names)
        self._copies(device).arena.reserve(plan.host_bytes)
        self._take(plan)
        LOGGER.info("[heddle.memory] the plan\n%s", self.plan.table())

    def _planned(self, chain, names):
        return make_plan(chain, names, self.goal, self.measured)

    def _decide_again(self, device, input_bytes):
        """A larger input, or more memory that others hold, such as an optimizer's first states, needs a new
        plan."""
        base = meter_of(device).memory()[0]
        times = max(self._times, input_bytes / max(self.measured.input_bytes, 1))
        if times <= self._times * LARGER and base <= self.plan.chain.base + (LARGER - 1) * self.plan.peak:
            return
        self._times = times
        chain = self.measured.chain(device, self.may_offload, self.may_recompute, base, times)
        self._take(self._planned(chain, self.plan.names))

    def _take(self, plan):
        self.plan, self._phase = plan, PLANNED
        self._order, self._structures = self.measured.order, self.measured.structures
        self._policies = {}
        for slot, option in zip(self._order, plan.options, strict=True):
            if not option.is_plain:
                fates = {each: OFFLOAD if each in option.on_host else KEEP for each in option.held}
                self._policies[slot] = Policy(fates, self._structures[slot].calls, option.fetch_at)


class _Caller:
    """Runs around a block."""

    def __init__(self, managed, place):
        self.managed, self.place = managed, place

    def __call__(self, function, args, kwargs):
        return self.managed.call(self.place, function, args, kwargs)


def choice_of(module):
    """The plan's choice for a block, in words; None for a module without a plan."""
    caller = blocks_of.around_of(module)
    if caller is None:
        return None
    plan = caller.managed.plan
    if plan is None:
        return "the first two steps measure"
    option = plan.options[caller.place]
    return (
        f"keeps {bytes_text(option.kept)}, offloads {bytes_text(option.offloaded)}, makes again in"
        f" {option.again_ms:.2f} ms"
    )


class _Backward:
    """A hook of a gradient: the backward is at a block that keeps everything, and the one before fetches what
    it needs from the host."""

    def __init__(self, managed, before):
        self.managed = weakref.ref(managed)
        self.before = weakref.ref(before) if before is not None else lambda: None

    def __call__(self, gradient):
        managed, before = self.managed(), self.before()
        if managed is not None:
            managed._backward_begins()
        if before is not None:
            before.fetch()


def _alike(structures):
    """Blocks with the same calls and tensors share one description, with the times of the block in the
    middle."""
    groups = {}
    for place, made in structures.items():
        sizes = tuple((each.bytes, each.can_hold) for each in made.tensors)
        groups.setdefault((made.calls, sizes, tuple(made.saved), tuple(made.again)), []).append(place)
    shared = {}
    for places in groups.values():
        chosen = structures[places[0]]
        every = [structures[each].ms for each in places]
        chosen.ms = [sorted(of_call)[len(places) // 2] for of_call in zip(*every, strict=True)]
        shared.update(dict.fromkeys(places, chosen))
    return shared


def _tensors(given):
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from _tensors(each)
    elif isinstance(given, dict):
        for each in given.values():
            yield from _tensors(each)


def _refuse_checkpointing(model):
    is_on = getattr(model, "is_gradient_checkpointing", False) or (
        getattr(model, "gradient_checkpointing", False) and model.training
    )
    if is_on:
        raise InvalidArgument(
            f"[heddle.memory] {type(model).__name__} makes its blocks again by itself: "
            "gradient_checkpointing is on; switch it off (model.gradient_checkpointing_disable(), "
            "gradient_checkpointing=False in a trainer's arguments): the plan does it"
        )
