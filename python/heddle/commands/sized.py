"""Tensors for one op, of the sizes and attributes that a command line has, or of the op's largest case."""

import numpy
import torch

from heddle.commands.cases import dtype_of, random_tensor, small_cases, tensors_of
from heddle.errors import InvalidArgument, Unsupported
from heddle.ops.info import info as info_of


def sizes_of(text):
    """ "M=512,K=64" as numbers by name."""
    made = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if not (name and number.isdigit() and int(number) > 0):
            raise InvalidArgument(f"[--size] has {part!r}; must be NAME=NUMBER,...")
        made[name] = int(number)
    return made


def elements_of(case):
    return sum(torch.Size(sizes).numel() for _, sizes, _ in case["tensors"].values())


def largest_case(op):
    """(inputs, case) of the op's case with most elements."""
    cases = list(small_cases(op))
    if not cases:
        raise Unsupported(f"[{op}] has no case of its own; give sizes with --size")
    number, case = max(cases, key=lambda each: elements_of(each[1]))
    return tensors_of(op, number, case), case


def attributes_of(text):
    """ "eps=1e-6,kind=max" as texts by name."""
    made = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise InvalidArgument(f"[--attribute] has {part!r}; must be NAME=VALUE,...")
        made[name] = value
    return made


def attribute_value(op, info, text):
    """The value that a text names, as the attribute has it."""
    if info.type == "bool":
        return text.lower() in ("1", "true", "yes")
    try:
        return {"int": int, "float": float}.get(info.type, str)(text)
    except ValueError:
        raise InvalidArgument(f"[{op}] {info.name} is {text!r}; must be of type {info.type}") from None


def sized_case(op, sizes, dtype, given=()):
    """Tensors of the sizes that are given for the names of dimensions; what is optional is left out. `given`:
    texts of attributes by name."""
    info, generator = info_of(op), numpy.random.default_rng(1)
    if why := info.why_not:
        raise Unsupported(f"[{op}] {why}")
    known = {each.name: each for each in info.attributes}
    if unknown := set(given) - set(known):
        raise InvalidArgument(f"[{op}] has no attribute {min(unknown)}; it has {', '.join(known)}")
    attributes = {each.name: each.default for each in info.attributes}
    attributes |= {name: attribute_value(op, known[name], text) for name, text in dict(given).items()}
    inputs = {}
    for tensor in (each for each in info.inputs if not each.optional):
        shape = []
        for dim in tensor.dims:
            size = attributes.get(dim.name) if dim.is_attribute else sizes.get(dim.name)
            if size is None:
                names = sorted({d.name for t in info.inputs for d in t.dims if d.name and not t.optional})
                raise InvalidArgument(
                    f"[{op}] no size of {dim.name or 'a dimension without a name'} in --size; it has"
                    f" {', '.join(names)}"
                )
            shape.append(size * dim.scale)
        kind = dtype if dtype in tensor.dtypes else tensor.dtypes[0]
        if dtype_of(kind) is None:
            raise Unsupported(f"[{op}] torch has no dtype {kind}")
        inputs[tensor.name] = random_tensor(generator, kind, shape)
    return inputs, {"tensors": {}, "attributes": attributes}


def described(tensors):
    """Their dtypes and sizes by name, for records."""
    return {
        name: {"dtype": str(each.dtype).removeprefix("torch."), "sizes": list(each.shape)}
        for name, each in tensors.items()
    }
