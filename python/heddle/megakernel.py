"""Scheduled calls of ops as one program that every worker runs without a launch between calls.

>>> norm = heddle.schedule("rms_norm", x=x, weight=w, y=h)
>>> kernel = heddle.Megakernel([norm, heddle.schedule("softmax", x=h, y=y)])
>>> kernel.run()
"""

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from heddle import _heddle
from heddle.display import code, table
from heddle.errors import InvalidArgument, Unsupported, WrongCall, did_you_mean, named, named_class
from heddle.scheduling import BackwardScheduler as BackwardScheduler
from heddle.scheduling import LevelBatchedScheduler as LevelBatchedScheduler
from heddle.scheduling import check_scheduler

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from heddle.ops import Tensor
    from heddle.scheduling import Work

    Scheduler = str | Callable[[Work], object] | type
    Numbers = NDArray[numpy.int64]

_default_scheduler = "level_batched"


@named
def set_default_scheduler(scheduler: "Scheduler") -> None:
    """Sets the scheduler of Megakernels that are made from now on and have none.

    It is a name of `schedulers()`, or a function of `heddle.Work`.
    """
    global _default_scheduler
    _default_scheduler = check_scheduler(scheduler)


@named
def schedulers() -> tuple[str, ...]:
    return tuple(_heddle.schedulers())


@named_class
@dataclass(frozen=True)
class MegakernelConfig:
    """The way a Megakernel runs.

    `executor`: None is "threads" on a CPU and "megakernel" on a GPU; "reference" and "launches" too.
    `scheduler`: a name, or a function of `heddle.Work`; None is the default one.
    `workers`: 0 is one for each core or multiprocessor.
    `tracing`: each run notes when its instructions ran.
    """

    tracing: bool = False
    scheduler: "Scheduler | None" = None
    executor: str | None = None
    workers: int = 0

    def __post_init__(self):
        if not isinstance(self.workers, int) or self.workers < 0:
            raise InvalidArgument(
                f"[MegakernelConfig] workers = {self.workers!r}; must be a whole number, 0 for all"
            )
        for name, value, choices in (("executor", self.executor, str), ("tracing", self.tracing, bool)):
            if value is not None and not isinstance(value, choices):
                raise InvalidArgument(f"[MegakernelConfig] {name} is {value!r}; must be a {choices.__name__}")
        self.program()

    def program(self):
        """The program of no calls yet. Raises InvalidArgument for an executor or a scheduler that is none."""
        scheduler = _default_scheduler if self.scheduler is None else self.scheduler
        return _heddle.CallProgram(
            self.executor or "", check_scheduler(scheduler), self.workers, self.tracing
        )


@named_class
@dataclass(frozen=True)
class ScheduledOp:
    """A call that a Megakernel runs: the op, its tensors by name (outputs too), its attributes."""

    op: str
    tensors: "dict[str, Tensor]"
    attributes: dict[str, int | float | str] = field(default_factory=dict)

    def on(self, **tensors: "Tensor") -> "ScheduledOp":
        """Calls it on other tensors."""
        _require_known(self.op, tensors)
        return replace(self, tensors={**self.tensors, **tensors})

    def __repr__(self):
        arguments = [*self.tensors, *(f"{name}={value!r}" for name, value in self.attributes.items())]
        return f"ScheduledOp({self.op}: {', '.join(arguments)})"


def _name_of(op):
    """The op's name, also of a function of heddle.ops or torch.ops.heddle, but of no other of that name."""
    if isinstance(op, str):
        return op
    import heddle.ops

    name = getattr(op, "__name__", None)
    is_heddles = isinstance(name, str) and getattr(heddle.ops, name, None) is op
    if not is_heddles and getattr(op, "_qualified_op_name", "") != f"heddle::{name}":
        raise InvalidArgument(f"[schedule] op is {op!r}; must be a name or a function of heddle.ops")
    return name


@named
def schedule(
    op: str | Callable[..., object], **arguments: "Tensor | int | float | str | None"
) -> ScheduledOp:
    """Schedules a call of an op, given by name or as a function of heddle.ops, with all its tensors.

    Outputs are arguments too, by the names that `heddle.ops.info(op)` lists.
    """
    name = _name_of(op)
    attributes = _require_known(name, arguments)
    return ScheduledOp(
        name,
        {key: value for key, value in arguments.items() if key not in attributes},
        {key: value for key, value in arguments.items() if key in attributes},
    )


@functools.cache
def _arguments(op):
    """The names of an op's tensors, and of its attributes."""
    described = _heddle.describe(op)
    return tuple(
        [each["name"] for kind in kinds for each in described[kind]]
        for kinds in (("inputs", "outputs"), ("attributes",))
    )


def _require_known(op, arguments):
    """Raises for an argument that the op does not have; returns the names of its attributes."""
    tensors, attributes = _arguments(op)
    for each in arguments:
        if each not in tensors and each not in attributes:
            raise WrongCall(
                f"[{op}] has no argument {each}{did_you_mean(each, [*tensors, *attributes])}; a call has"
                f" {', '.join([*tensors, *attributes])}"
            )
    return set(attributes)


@dataclass(frozen=True)
class Proof:
    """The proof: no instruction of the program can wait for ever or race with another one."""

    instructions: int
    waits: int
    milliseconds: float


@dataclass(frozen=True, repr=False)
class Trace:
    """The instructions of the last run, by worker and time. All fields but the names are arrays of NumPy, one
    element for each instruction; times are nanoseconds since the run began."""

    worker: "Numbers"
    unit: "Numbers"  # the thread or multiprocessor that the worker ran on
    role: "Numbers"  # 0: it computes; 1: it loads
    call: "Numbers"  # index of `nodes` and `ops`; -1: it only waits and signals
    fetched: "Numbers"
    ready: "Numbers"  # its waits were over
    computed: "Numbers"
    done: "Numbers"  # it was signalled
    bytes: "Numbers"
    tile: "Numbers"  # [instructions, 4]
    nodes: tuple[str, ...]
    ops: tuple[str, ...]

    def _by_op(self):
        """(op, instructions, milliseconds of all workers together), the longest first."""
        busy = {}
        for call, ready, computed in zip(
            self.call.tolist(), self.ready.tolist(), self.computed.tolist(), strict=True
        ):
            name = self.ops[call] if call >= 0 else "waits and signals"
            count, time = busy.get(name, (0, 0))
            busy[name] = count + 1, time + computed - ready
        return [(name, *busy[name]) for name in sorted(busy, key=lambda name: -busy[name][1])]

    def _rows(self):
        return [(name, count, f"{time / 1e6:.3f}") for name, count, time in self._by_op()]

    def __repr__(self):
        parts = ", ".join(f"{name} {count} ({time} ms)" for name, count, time in self._rows())
        return f"<Trace of {len(self.worker)} instructions: {parts}>"

    def _repr_html_(self):
        return table(self._rows(), ("op", "instructions", "ms of all workers"), "heddle.Trace")


class Program(str):
    """The text of a program. `print` shows it."""

    __slots__ = ()

    def __repr__(self):
        return f"<Program of {len(self.splitlines())} lines; print(kernel.program) shows them>"

    def _repr_html_(self):
        return code(self)


@named_class
class Megakernel:
    """Runs scheduled calls as one program. What must wait follows from what the calls read and write."""

    def __init__(self, ops: Iterable[ScheduledOp], config: MegakernelConfig | None = None) -> None:
        self.config = config or MegakernelConfig()
        if not isinstance(self.config, MegakernelConfig):
            raise InvalidArgument(f"[Megakernel] config is {config!r}; must be a MegakernelConfig")
        self._calls = self.config.program()
        self._lock = threading.Lock()  # one run at a time
        self.bind(ops)

    def bind(self, ops: Iterable[ScheduledOp]) -> None:
        """Takes other calls. Calls that differ in their tensors' addresses alone keep the program."""
        ops = list(ops)
        for op in ops:
            if not isinstance(op, ScheduledOp):
                raise InvalidArgument(
                    f"[Megakernel] ops has {op!r}; must be calls, as heddle.schedule makes them"
                )
        with self._lock:
            self._bind(ops)
            self.ops = ops

    def _bind(self, ops):
        self._calls.bind([(op.op, op.tensors, op.attributes) for op in ops])

    def run(self) -> None:
        """Runs all calls once; they are done when it returns. Tensors that moved are found where they are."""
        with self._lock:
            self._bind(self.ops)
            if self._calls.on_gpu():
                _wait_for_torch()
            self._calls.run()

    def check(self) -> Proof:
        """Proves the program again, and returns what was proved."""
        made = self._calls.check()
        return Proof(made["instructions"], made["waits"], round(made["milliseconds"], 3))

    @property
    def program(self) -> Program:
        """The program as text: its calls on buffers, and each worker's instructions."""
        return Program(self._calls.text())

    @property
    def executor(self) -> str:
        return self._calls.executor()

    @property
    def workers(self) -> int:
        return self._calls.workers()

    def trace(self) -> Trace:
        """When and where the last run's instructions ran (MegakernelConfig(tracing=True))."""
        import numpy

        events, nodes, ops = self._calls.trace()
        names = ("worker", "unit", "role", "call", "fetched", "ready", "computed", "done", "bytes")
        rows = numpy.frombuffer(events, "int64").reshape(-1, len(names) + 4)
        columns = {name: rows[:, at] for at, name in enumerate(names)}
        return Trace(**columns, tile=rows[:, len(names) :], nodes=tuple(nodes), ops=tuple(ops))

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the last run's trace: .nanotrace, .perfetto (ui.perfetto.dev), .json (chrome://tracing) or
        .html, by its ending."""
        self._calls.write_trace(os.fspath(path))

    def _repr_html_(self):
        return self.program._repr_html_()

    def __repr__(self):
        return f"<Megakernel of {len(self.ops)} calls on {self.executor}, {self.workers} workers>"


def _wait_for_torch():
    """Waits for what torch's current stream is to do first. A run is launched on a stream of its own."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return
    if torch.cuda.is_current_stream_capturing():
        raise Unsupported(
            "[Megakernel] runs on its own stream, and waits for it; a CUDA graph cannot capture it: run it"
            " between the graphs, or capture calls of heddle.ops"
        )
    torch.cuda.current_stream().synchronize()
