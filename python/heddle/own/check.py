"""Runs the cases of an op of one's own."""

import math

import numpy

from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported
from heddle.megakernel import Megakernel, MegakernelConfig
from heddle.own.cases import choices_of, shape_of, variants
from heddle.own.reference import call_reference

ROUNDING = {"float32": 0.0, "float16": 2.0**-10, "bfloat16": 2.0**-7, "int32": 0.0}
WORKERS = 3


def check(cls):
    if cls.reference is None:
        raise Unsupported(f"[{cls.declaration.name}] has no reference to check against; give the class one")
    cls.compile()
    random, errors = numpy.random.default_rng(1), {}
    for variant in variants(cls):
        case = _Case(cls, *variant, random)
        errors[case.name] = case.run()
    return errors


def _as_f64(tensor):
    return tensor.astype("float64") if isinstance(tensor, numpy.ndarray) else tensor.double().numpy()


def _fill(tensor):
    """With what no op writes: an element that is not written shows."""
    lacks_nan = "int" in str(tensor.dtype)
    tensor[...] = -1 if lacks_nan else numpy.nan


def _tensor(values, dtype, in_torch):
    """NumPy lacks bf16: an op with such a tensor has all of them from torch."""
    if not in_torch:
        return values.astype(dtype)
    import torch

    return torch.from_numpy(values).to(getattr(torch, dtype))


class _Case:
    """One set of inputs."""

    def __init__(self, cls, sizes, attributes, which, whole, random):
        self.cls, self.attributes = cls, attributes
        self.inputs, self.outputs, dtypes_of = {}, {}, {}
        for name, _, _, dtypes, optional in cls.declaration.tensors:
            if whole or not optional:
                choice = choices_of(dtypes)
                dtypes_of[name] = choice[min(which, len(choice) - 1)]
        in_torch = "bfloat16" in dtypes_of.values()
        for name, writes, dims, *_ in cls.declaration.tensors:
            if name not in dtypes_of:
                continue
            shape, dtype = shape_of(dims, sizes, attributes), dtypes_of[name]
            if writes:
                self.outputs[name] = _tensor(numpy.zeros(shape), dtype, in_torch)
            elif dtype == "int32":
                self.inputs[name] = _tensor(random.integers(0, 3, shape, dtype), dtype, in_torch)
            else:
                made = _tensor(random.uniform(-1, 1, shape), dtype, in_torch)
                # A matrix is read as it lies: the second time in columns.
                is_turned = which > 0 and name in cls.declaration.matrices
                self.inputs[name] = numpy.asfortranarray(made) if is_turned and not in_torch else made
        rounding = max(ROUNDING[dtypes_of[name]] for name in self.outputs)
        self.bound = cls.bound + rounding
        facts = [f"{k}={v}" for k, v in {**sizes, **attributes}.items()]
        facts.append(next(iter(dtypes_of.values())))
        self.name = ", ".join([*facts, *(() if whole else ("without what is optional",))])

    def run(self):
        arrays = {name: _as_f64(each) for name, each in self.inputs.items()}
        made = call_reference(self.cls, arrays, self.attributes)
        worst = 0.0
        for way in (self._accesses, self._call, self._program("threads"), self._program("reference")):
            for each in self.outputs.values():
                _fill(each)
            way()
            worst = max(worst, *(self._error(name, made[name], way.__name__) for name in self.outputs))
        for each in self.inputs.values():
            if "float" in str(each.dtype) and 0 not in each.shape:
                self._check_nan(each)
        return worst

    def _check_nan(self, tensor):
        """Compares where NaN is, with one in an input. Infinities are left out: equal formulas may differ."""
        place = tuple(int(i) for i in numpy.unravel_index(math.prod(tensor.shape) // 3, tuple(tensor.shape)))
        kept = float(tensor[place])
        tensor[place] = math.nan
        arrays = {name: _as_f64(each) for name, each in self.inputs.items()}
        with numpy.errstate(invalid="ignore"):
            made = call_reference(self.cls, arrays, self.attributes)
        self._call()
        tensor[place] = kept
        for name, output in self.outputs.items():
            got = _as_f64(output)
            lost = numpy.isnan(made[name]) & ~numpy.isnan(got)
            if lost.any():
                at = tuple(int(i) for i in numpy.argwhere(lost)[0])
                raise InvalidArgument(
                    f"[{self.cls.declaration.name}] {name}{list(at)} is {got[at]:.6g} where an input has NaN;"
                    f" the reference has NaN there ({self.name})"
                )

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
        got = _as_f64(self.outputs[name])
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
