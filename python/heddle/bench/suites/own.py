"""An op of one's own: its largest case, or given sizes, next to its tile body and what the class names as
peers."""

import torch

import heddle
from heddle.bench.timing import is_gpu
from heddle.bench.work import FORWARD, Amount, Work
from heddle.commands.cases import function_of, random_tensor, results_of
from heddle.commands.sized import largest_case, sized_case
from heddle.own.op import own_of, own_peers
from heddle.own.reference import call_reference

ROWS, COLUMNS = {False: 2048, True: 32768}, {False: 1024, True: 4096}  # by whether it is a GPU
TINY = 64
MOST_SETS, CACHE_BYTES = 8, 64 << 20  # bytes of tensors, so that no cache holds them


def sizes_for(cls, device, tiny):
    """Sizes for a class that has no cases: many rows, where tiles cut first."""
    declaration = cls.declaration
    attributes = {each.name for each in declaration.attributes}
    names = {dim.lstrip("0123456789 ") for _, _, dims, *_ in declaration.tensors for dim in dims.split(",")}
    first = declaration.tile[0][0]
    rows, columns = (TINY, TINY) if tiny else (ROWS[is_gpu(device)], COLUMNS[is_gpu(device)])
    return {name: rows if name == first else columns for name in names - attributes}


def exact_of(cls, names, attributes):
    """The reference on tensors of torch. The result has the first output's dtype, or that of the inputs."""
    (name, _, _, dtypes, _) = next(each for each in cls.declaration.tensors if each[1])
    known = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32}

    def exact(*tensors):
        arrays = {each: t.detach().cpu().double().numpy() for each, t in zip(names, tensors, strict=True)}
        made = torch.from_numpy(call_reference(cls, arrays, attributes)[name])
        wide = next((t.dtype for t in tensors if t.is_floating_point()), torch.float32)
        return made.to(known.get(dtypes, wide)).to(tensors[0].device)

    return exact


def first(function):
    """The first of what a function returns, which is what is compared."""
    return lambda *tensors: results_of(function(*tensors))[0]


def works(device, tiny, op, sizes=None, dtype="float32", attributes=()):
    """The work of one op. Raises InvalidArgument for an op that no class declared."""
    cls = own_of(op)
    if cls is None:
        raise heddle.InvalidArgument(
            f"[bench] {op} is an op of heddle; --suite has those, --only {op} this one"
        )
    if cls.reference is None:
        raise heddle.Unsupported(f"[bench] {op} has no reference to be compared with; give the class one")
    if cls.cases and not sizes:
        inputs, case = largest_case(op)
    else:
        inputs, case = sized_case(op, sizes or sizes_for(cls, device, tiny), dtype, attributes)
    values, made = case["attributes"], None

    def bound(function):
        return lambda *tensors: function(*tensors, **values)

    def fresh():
        import numpy

        nonlocal made
        made = made or numpy.random.default_rng(1)
        some = {}
        for name, each in inputs.items():
            kind = str(each.dtype).removeprefix("torch.")
            some[name] = each.clone() if kind == "int32" else random_tensor(made, kind, each.shape)
        return [each.to(device) for each in some.values()]

    results = results_of(bound(function_of(op))(*(each.to(device) for each in inputs.values())))
    moved = sum(each.numel() * each.element_size() for each in (*inputs.values(), *results))
    shapes = " ".join("x".join(map(str, each.shape)) for each in inputs.values())
    return [
        Work(
            name=f"{op} {shapes}",
            ours=first(bound(function_of(op))),
            exact=exact_of(cls, list(inputs), values),
            peers={name: first(bound(each)) for name, each in own_peers(cls).items()},
            inputs=fresh,
            shape=(),
            amounts={FORWARD: Amount(bytes=moved)},
            sets=max(1, min(MOST_SETS, CACHE_BYTES // max(moved, 1))),
        )
    ]
