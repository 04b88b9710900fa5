"""Runs the cases of an op of one's own."""

import itertools

import numpy

from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported
from heddle.megakernel import Megakernel, MegakernelConfig
from heddle.op import call_reference

SIZES = ((1, 1), (5, 37), (33, 64))  # of the tiled dimension, and of the others
NUMPY = {"f32": "float32", "f16": "float16", "i32": "int32"}
ROUNDING = {"float32": 0.0, "float16": 2.0**-10, "int32": 0.0}
WORKERS = 3


def cases_of(cls):
    """(sizes by dimension, attributes)"""
    declaration = cls.declaration
    attributes = {each.name for each in declaration.attributes}
    names = {dim for _, _, dims, *_ in declaration.tensors for dim, _ in _dims(dims)} - attributes
    tiled = {dim for dim, _ in declaration.tile}
    if cls.cases is None:
        return [({name: row if name in tiled else other for name in names}, {}) for row, other in SIZES]
    made = []
    for case in cls.cases:
        if names - set(case):
            missing = ", ".join(sorted(names - set(case)))
            raise InvalidArgument(
                f"[{declaration.name}] the case {case} has no {missing}; must give all sizes"
            )
        made.append(
            ({name: case[name] for name in names}, {k: v for k, v in case.items() if k in attributes})
        )
    return made


def _dims(text):
    """ "M, 2N" as [("M", 1), ("N", 2)]."""
    for dim in text.replace(" ", "").split(","):
        name = dim.lstrip("0123456789")
        yield name, int(dim[: len(dim) - len(name)] or 1)


def _shape(dims, sizes, attributes):
    known = {**attributes, **sizes}
    return tuple(known[name] * scale for name, scale in _dims(dims))


def _dtypes(text):
    if text == "float":
        return ["float32", "float16"]
    return [NUMPY[each] for each in text.split(" | ") if each in NUMPY] or ["float32"]


def check(cls):
    if cls.reference is None:
        raise Unsupported(f"[{cls.declaration.name}] has no reference to check against; give the class one")
    cls.compile()
    random, errors = numpy.random.default_rng(1), {}
    has_optional = any(optional for *_, optional in cls.declaration.tensors)
    for (sizes, given), dtype, whole in itertools.product(
        cases_of(cls), (0, 1), (True, False) if has_optional else (True,)
    ):
        defaults = {each.name: each.default for each in cls.declaration.attributes}
        case = _Case(cls, sizes, {**defaults, **given}, dtype, whole, random)
        if dtype == 0 or case.has_other_dtype:
            errors[case.name] = case.run()
    return errors


class _Case:
    """One set of inputs."""

    def __init__(self, cls, sizes, attributes, which, whole, random):
        self.cls, self.attributes = cls, attributes
        self.inputs, self.outputs, self.has_other_dtype = {}, {}, False
        for name, writes, dims, dtypes, optional in cls.declaration.tensors:
            if optional and not whole:
                continue
            choice = _dtypes(dtypes)
            self.has_other_dtype |= len(choice) > 1
            dtype = choice[min(which, len(choice) - 1)]
            shape = _shape(dims, sizes, attributes)
            if writes:
                self.outputs[name] = numpy.full(shape, numpy.nan if dtype != "int32" else -1, dtype)
            elif dtype == "int32":
                self.inputs[name] = random.integers(0, 3, shape, dtype)
            else:
                made = random.uniform(-1, 1, shape).astype(dtype)
                # A matrix is read as it lies: the second time in columns.
                is_turned = which > 0 and name in cls.declaration.matrices
                self.inputs[name] = numpy.asfortranarray(made) if is_turned else made
        rounding = max(ROUNDING[str(each.dtype)] for each in self.outputs.values())
        self.bound = cls.bound + rounding
        dtype = next(iter((*self.inputs.values(), *self.outputs.values()))).dtype
        facts = [f"{k}={v}" for k, v in {**sizes, **attributes}.items()]
        self.name = ", ".join([*facts, str(dtype), *(() if whole else ("without what is optional",))])

    def run(self):
        arrays = {name: each.astype("float64") for name, each in self.inputs.items()}
        made = call_reference(self.cls, arrays, self.attributes)
        worst = 0.0
        for way in (self._accesses, self._call, self._program("threads"), self._program("reference")):
            for each in self.outputs.values():
                each.fill(numpy.nan if each.dtype != "int32" else -1)
            way()
            worst = max(worst, *(self._error(name, made[name], way.__name__) for name in self.outputs))
        return worst

    def _scheduled(self):
        return self.cls.schedule(**self.inputs, **self.outputs, **self.attributes)

    def _call(self):
        self.cls(**self.inputs, **self.attributes, out=dict(self.outputs))

    def _accesses(self):
        call = self._scheduled()
        _heddle.check_accesses((call.op, call.tensors, call.attributes))

    def _program(self, executor):
        def run():
            config = MegakernelConfig(executor=executor, workers=WORKERS)
            Megakernel([self._scheduled()], config).run()

        run.__name__ = executor
        return run

    def _error(self, name, wanted, way):
        got = self.outputs[name].astype("float64")
        if got.shape != wanted.shape:
            raise InvalidArgument(
                f"[{self.cls.declaration.name}] its reference returns {list(wanted.shape)} for {name};"
                f" must have {list(got.shape)}"
            )
        error = numpy.abs(got - wanted) / (1 + numpy.abs(wanted))
        if not got.size or (error <= self.bound).all():
            return float(error.max(initial=0))
        at = numpy.unravel_index(
            int(numpy.argmax(numpy.where(numpy.isnan(error), numpy.inf, error))), got.shape
        )
        raise InvalidArgument(
            f"[{self.cls.declaration.name}] {name}{[int(i) for i in at]} is {got[at]:.6g}; the reference has"
            f" {wanted[at]:.6g}, error {error[at]:.3g} above {self.bound:.3g} ({self.name}; {way.strip('_')})"
        )
