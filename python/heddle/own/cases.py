"""The cases of an op of one's own: sizes, dtypes and attributes that it is checked with."""

import itertools

from heddle.errors import InvalidArgument

SIZES = ((1, 1), (5, 37), (33, 64))  # tiled dimension, others
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32"}


def cases_of(cls):
    """(sizes by dimension, attributes)"""
    declaration = cls.declaration
    attributes = {each.name for each in declaration.attributes}
    dims = [dim for _, _, dims, *_ in declaration.tensors for dim, _ in _dims(dims)]
    names = [dim for dim in dict.fromkeys(dims) if dim not in attributes]
    tiled = {dim for dim, *_ in declaration.tile}
    if cls.cases is None:
        return [({name: row if name in tiled else other for name in names}, {}) for row, other in SIZES]
    made = []
    for case in cls.cases:
        if missing := ", ".join(name for name in names if name not in case):
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


def shape_of(dims, sizes, attributes):
    known = {**attributes, **sizes}
    return tuple(known[name] * scale for name, scale in _dims(dims))


def choices_of(text):
    """The dtypes that cases have of those that a declaration allows: "f32 | bf16"."""
    if text == "float":
        return ["float32", "float16"]
    return [DTYPES[each] for each in text.split(" | ") if each in DTYPES] or ["float32"]


def variants(cls):
    """(sizes, attributes, number of the dtype, whether what is optional is there) of all cases."""
    has_optional = any(optional for *_, optional in cls.declaration.tensors)
    defaults = {each.name: each.default for each in cls.declaration.attributes}
    several = any(len(choices_of(dtypes)) > 1 for *_, dtypes, _ in cls.declaration.tensors)
    for (sizes, given), which, whole in itertools.product(
        cases_of(cls), (0, 1) if several else (0,), (True, False) if has_optional else (True,)
    ):
        yield sizes, {**defaults, **given}, which, whole


def described_cases(cls):
    """The cases as those of heddle's own ops are described (heddle.commands.cases)."""
    for sizes, attributes, which, whole in variants(cls):
        tensors = {}
        for name, writes, dims, dtypes, optional in cls.declaration.tensors:
            if optional and (writes or not whole):
                continue
            choice = choices_of(dtypes)
            turned = which > 0 and name in cls.declaration.matrices
            shape = shape_of(dims, sizes, attributes)
            tensors[name] = (choice[min(which, len(choice) - 1)], shape[::-1] if turned else shape, turned)
        facts = ", ".join(f"{key}={value}" for key, value in {**sizes, **attributes}.items())
        yield {"name": facts, "bound": cls.bound, "tensors": tensors, "attributes": attributes}
