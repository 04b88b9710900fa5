"""Ops of one's own: what they read and write, a body in the tile language, and a reference in NumPy."""

import threading
import weakref
from dataclasses import replace

from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported
from heddle.late_torch import follow_torch
from heddle.megakernel import ScheduledOp
from heddle.own.beside import placeless
from heddle.own.body import compile_body, device_text, tile_values
from heddle.own.cases import described_cases
from heddle.own.declaration import declare
from heddle.own.kernel import call_of, gpu_of, planned
from heddle.own.reference import reference_of

_lock = threading.Lock()
_registered = {}  # {declaration without its place: what the registry has}
_declared = []  # weak references to all classes, in order
_torch = None  # heddle.torch.own, as soon as there is torch (`use_torch`)


TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path
    from typing import TypeVar

    from heddle.ops import Tensor

    T = TypeVar("T", bound=Tensor)
    Declared = Mapping[str, tuple[str | None, str] | tuple[str | None, str, bool]]
    Text = str | PathLike[str]
    Numbers = Mapping[str, int]


class Op:
    """An op of one's own. A class declares it:

    reads, writes   {"x": (heddle.f32, "M, D")}: names, dtypes (None: any float), dimensions. Equal names have
                    equal sizes, and an attribute may be a size. Inputs give outputs their sizes. With True at
                    the end, (None, "D", True), a call may leave it out: a body asks `a.x.exists()`, and a
                    reference and a backward get None. An optional output is made only where `out` has it
    tile            the dimensions that tiles cut, ("M",) or {"M": 4}: a body makes the rows t[0] to t[1], and
                    of a second dimension t[2] to t[3]
    body            text in the tile language, or the pathlib.Path of a file of it; `a` has the arguments
    attributes      annotations: `scale: float = 1.0`, int, bool, Literal["a", "b"]; without a value, a call
                    must give it
    reference       a static method on arrays of f64, by the names of reads and attributes; it returns what
                    is written
    backward        a static method on tensors of torch: its parameters are names of what was read or written,
                    of attributes, and `dy`, the gradient of what is written as y. It returns {"dx": tensor},
                    or gradients in the order of reads
    in_place        True: an output may be the same tensor as an input
    scratch         the floats that a tile takes with block.scratch, which a GPU must know: "D", or, for two
                    pieces, ("D", "2N")
    configs         [{"rows": 16}, {"rows": 4}]: values that PickBest and `heddle tune` choose among, the
                    default first. tile = {"M": "rows"} cuts by one, and a body has them as kRows. One that
                    adds in another order has "reorders": True, and one of the whole kernel "kernel": 1
    kernel, plan    a whole kernel for GPUs and how it is launched (docs/kernels.md); `body` runs elsewhere,
                    and in programs
    peers           {"torch": function of inputs and attributes}: what `bench` and `profile` time next to it
    cases           sizes and attributes that `check` runs, [{"M": 5, "D": 37}]; left out: a few
    bound           the largest |value - reference| / (1 + |reference|) that `check` allows in f32

    Nothing is compiled before the first call: a C++ compiler makes the body for the CPU, NVRTC for a GPU.
    `MyOp(x, scale=2.0)` calls it, `MyOp.schedule(x=x, y=y)` makes it a part of a Megakernel.
    """

    if TYPE_CHECKING:
        reads: Declared
        writes: Declared
        tile: tuple[str, ...] | Mapping[str, int | str]
        body: Text | None
        reference: Callable[..., object] | None
        backward: Callable[..., object] | None
        in_place: bool
        scratch: str | tuple[str, ...]
        cases: Sequence[Mapping[str, int | float | str]] | None
        bound: float
        kernel: Text | Mapping[str, Text] | None
        plan: Callable[..., object] | None
        configs: Sequence[Numbers]
        peers: Mapping[str, Callable[..., object]]

    header, order, matrices = None, (), {}  # set in a class that heddle.load_ops makes
    kernel, plan, configs, peers = None, None, (), {}
    reads = {}
    writes = {}
    tile = ()
    body = None
    reference = None
    backward = None
    in_place = False
    scratch = ()
    cases = None
    bound = 1e-5

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        cls._made = None
        if cls.writes:  # a class without is one to derive from
            cls.declaration = declare(cls)
            _declared.append(weakref.ref(cls))
            follow_torch()  # torch.compile must know of it before it first meets a call

    # A checker takes the result for one tensor; several come as a tuple.
    def __new__(  # type: ignore[misc]
        cls,
        *tensors: "T | None",
        out: "T | tuple[T | None, ...] | dict[str, T] | None" = None,
        backend: str | None = None,
        **arguments: "T | int | float | str | None",
    ) -> "T":
        """Calls the op: inputs by position or name; outputs are made, or given as `out`. `backend`: "kernel",
        "reference" ("ref"), or None for what heddle.set_backend chose."""
        if _torch is not None and _torch.is_compiling():
            return _torch.call(cls, tensors, out, backend, arguments)
        cls._require_declaration()
        made = _made(cls)
        chosen = _heddle.backend(made.name)
        backend = chosen if backend is None else "reference" if backend == "ref" else backend
        cls._prepare(backend)
        cls._require_attributes(arguments)
        if backend == chosen:
            return made.function(*tensors, out=out, **arguments)
        before = _heddle.swap_backend(made.name, backend)  # for this thread
        try:
            return made.function(*tensors, out=out, **arguments)
        finally:
            _heddle.swap_backend(*before)

    @classmethod
    def schedule(cls, **arguments: "Tensor | int | float | str | None") -> ScheduledOp:
        """A call for a Megakernel, with all its tensors by name, and its attributes."""
        name = cls._prepare("kernel")
        cls._require_attributes(arguments)
        attributes = {each.name for each in cls.declaration.attributes}
        return ScheduledOp(
            name,
            {key: value for key, value in arguments.items() if key not in attributes},
            {key: value for key, value in arguments.items() if key in attributes},
        )

    @classmethod
    def compile(cls) -> "Path":
        """Compiles the body for the CPU if that was not done yet; the path of its library."""
        made = _made(cls)
        with _lock:
            if made.library is None:
                cls._require_body()
                made.library = compile_body(cls.declaration, made.layout)
                _heddle.load_body(made.name, str(made.library))
        return made.library

    @classmethod
    def check(cls) -> "dict[str, float]":
        """Runs the cases: the body against the reference, alone and in programs, and each access against what
        is declared. Raises InvalidArgument for the first fault; returns the largest error of each case."""
        from heddle.own.check import check

        return check(cls)

    @classmethod
    def _require_declaration(cls):
        if not hasattr(cls, "declaration"):
            raise InvalidArgument(f"[{cls.__name__}] declares nothing; give it reads, writes, tile and body")

    @classmethod
    def _prepare(cls, backend):
        cls._require_declaration()
        if backend not in ("kernel", "reference"):
            raise InvalidArgument(
                f"[{cls.declaration.name}] backend is {backend!r}; must be 'kernel' or 'reference'"
            )
        if backend == "kernel":
            cls._require_body(or_kernel=True)
        elif cls.reference is None:
            raise Unsupported(f"[{cls.declaration.name}] has no reference; give the class one")
        return _made(cls).name

    @classmethod
    def _require_body(cls, or_kernel=False):
        if not cls.declaration.body and not (or_kernel and cls.declaration.kernels):
            raise Unsupported(
                f'[{cls.declaration.name}] has no body; give one, or call it with backend="reference"'
            )

    @classmethod
    def _require_attributes(cls, arguments):
        for each in cls.declaration.attributes:
            if each.default is None and each.name not in arguments:
                raise InvalidArgument(
                    f"[{cls.declaration.name}] {each.name} is missing; must be given: the class has no value"
                )


class _Made:
    """An op as the registry has it. The registry keeps ops for ever: a class that is declared again, as in a
    notebook, is the same op, or, if it changed, another one with a number at the end of its name."""

    def __init__(self, name, declaration):
        self.name = name
        self.library = None
        self.cls = None  # the last class that declared it
        self.layout = _heddle.add_own_op(
            {
                "name": name,
                "doc": declaration.doc,
                "tensors": list(declaration.tensors),
                "matrices": list(declaration.matrices),
                "attributes": [
                    (each.name, each.type, each.choices, each.default) for each in declaration.attributes
                ],
                "tile": list(declaration.tile),
                "in_place": declaration.in_place,
                "scratch": list(declaration.scratch),
                "configs": [(dict(values), reorders) for values, reorders in declaration.configs],
                "plan": _plan(self, declaration) if declaration.kernels else None,
                "needs_kernel": not declaration.body,
                "reference": reference_of(self),
                "cases": lambda: list(described_cases(self.cls)) if self.cls else [],
                "compile": lambda: self.cls.compile(),  # the last one: its file has the body
            }
        )
        self.function = _heddle.function(name)


def _made(cls):
    with _lock:
        if cls._made is None:
            kernels = tuple((file, placeless(text), "") for file, text, _ in cls.declaration.kernels)
            body = placeless(cls.declaration.body)
            declaration = replace(
                cls.declaration, body=body, file="", line=0, header_file="", kernels=kernels
            )
            made = _registered.get(declaration)
            if made is None:
                same = sum(each.name == declaration.name for each in _registered)
                name = f"{declaration.name}_{same + 1}" if same else declaration.name
                made = _registered[declaration] = _Made(name, declaration)
            made.cls, cls._made = cls, made
            if cls.declaration.body or cls.declaration.kernels:
                _heddle.set_own_text(made.name, *device_text(made.name, cls.declaration, made.layout))
        return cls._made


def use_torch(handler):
    """Has ops go through torch from now on. `handler.is_compiling()` says whether torch.compile looks at a
    call, which is `handler.call(...)` then; `handler.registered(name)` makes an op known to torch."""
    global _torch
    _torch = handler


def tell_torch(name):
    """torch.compile must know of an op before it first meets a call."""
    if _torch is not None:
        _torch.registered(name)


def registered():
    """The ops that classes declared and somebody used."""
    return list(_registered.values())


def made_of(name):
    """The op of that name, which a class declared."""
    return next(made for made in registered() if made.name == name)


def own_peers(cls):
    """{name: function of its inputs and attributes} of what is timed next to the op: the tile body of one
    with a whole kernel, and the class's `peers`."""
    if cls is None:
        return {}
    known = {name: getattr(each, "__func__", each) for name, each in dict(cls.peers).items()}
    if cls.declaration.kernels and cls.declaration.body:
        configs = tuple(each for each in cls.configs or () if not each.get("kernel"))
        tiles = {"kernel": None, "plan": None, "configs": configs, "__module__": cls.__module__}
        tiles["name"] = f"{cls.declaration.name}_tiles"
        known["tile body"] = type(f"{cls.__name__}Tiles", (cls,), tiles)
    return known


def own_of(name):
    """The class that declared the op of that name; None where none did."""
    return next((made.cls for made in registered() if made.name == name), None)


def _plan(of, declaration):
    """The function that heddle asks how a call of the whole kernel is launched."""
    names = [name for name, *_ in declaration.tensors]
    of_kernel = tile_values(declaration, True)

    def run(tensors, attributes, target, config):
        call = call_of(names, tensors, attributes, config or of_kernel)
        made = planned(declaration, of.cls.plan(call, gpu_of(target)), call)
        file = made["file"] if isinstance(made, dict) else ""
        if int(file.removeprefix("sm") or 0) > target["arch"]:
            return f"its kernel is for {file.replace('sm', 'sm_')} and later; the GPU is sm_{target['arch']}"
        return made

    return run
