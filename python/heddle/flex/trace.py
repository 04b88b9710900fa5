"""Traces a score_mod or a mask_mod of the caller: it runs once, on symbols that write down what it
computes."""

import traceback

import torch
from torch.overrides import TorchFunctionMode

from heddle.errors import Unsupported
from heddle.flex.expression import COMPARISONS, PLACE, SCORE, TRUE, as_float, const, make

MOST_DIMS = 4
# Names of torch's functions and methods, and of Python's operators without underscores, as nodes are called.
NAMES = {
    **{name: name for name in ("add", "sub", "mul", "neg", "abs", "exp", "tanh", "sigmoid", "sqrt", "where")},
    **{name: name for name in ("truediv", "floordiv", "mod", *COMPARISONS, "and", "or", "xor")},
    **{"subtract": "sub", "multiply": "mul", "negative": "neg", "absolute": "abs", "div": "truediv"},
    **{"true_divide": "truediv", "divide": "truediv", "floor_divide": "floordiv", "remainder": "mod"},
    **{"minimum": "min", "maximum": "max", "greater": "gt", "greater_equal": "ge", "less": "lt"},
    **{"less_equal": "le", "not_equal": "ne", "logical_and": "and", "logical_or": "or", "logical_xor": "xor"},
    **{"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "logical_not": "not"},
    **{"bitwise_not": "not", "invert": "not", "clamp": "clamp", "clip": "clamp", "square": "square"},
    **{"pow": "pow", "float": "float", "int": "int", "bool": "bool", "to": "to"},
}
KINDS = {torch.bool: "bool", torch.float16: "float", torch.bfloat16: "float", torch.float32: "float"}


class Captured(list):
    """The tensors that functions read, in the order in which they first do."""

    def number(self, tensor):
        for number, known in enumerate(self):
            if known is tensor:
                return number
        self.append(tensor)
        return len(self) - 1


class Symbol:
    """A value that is not known while a function is traced."""

    __slots__ = ("captured", "node")
    __hash__ = None

    def __init__(self, node, captured):
        self.node, self.captured = node, captured

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        captured = next(
            each.captured for each in _flat((*args, *(kwargs or {}).values())) if _is_symbol(each)
        )
        return _apply(captured, function.__name__, args, kwargs or {})

    def __getattr__(self, name):
        if name.startswith("__") or name not in NAMES:
            raise Unsupported(f"a traced value has no {name}")
        return lambda *args, **kwargs: _apply(self.captured, name, (self, *args), kwargs)

    @property
    def shape(self):
        return torch.Size()

    @property
    def dtype(self):
        return {"bool": torch.bool, "int": torch.int32, "float": torch.float32}[self.node.kind]

    @property
    def device(self):
        return torch.device("cpu")  # as numbers are, it is on every device

    def dim(self):
        return 0

    def new_ones(self, size=(), dtype=None, **_):
        return Symbol(const(True if dtype is torch.bool else 1), self.captured)

    def new_zeros(self, size=(), dtype=None, **_):
        return Symbol(const(False if dtype is torch.bool else 0), self.captured)

    def __bool__(self):
        raise Unsupported(
            "it asks whether a traced value is true (if, and, or, not, min, max); use torch.where, &, |, ~,"
            " torch.minimum, torch.maximum"
        )

    def __index__(self):
        raise Unsupported("it wants a traced value as a number of Python")

    __int__ = __float__ = __len__ = __iter__ = __index__


def _operator(name, reflected=False):
    def run(self, *others):
        args = (*others, self) if reflected else (self, *others)
        return _apply(self.captured, name, args, {})

    return run


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    setattr(Symbol, f"__{_name}__", _operator(_name))
    setattr(Symbol, f"__r{_name}__", _operator(_name, reflected=True))
for _name in (*COMPARISONS, "neg", "abs", "invert"):
    setattr(Symbol, f"__{_name}__", _operator(_name))


class Part:
    """A captured tensor of which some indices are known."""

    __slots__ = ("captured", "indices", "tensor")

    def __init__(self, tensor, indices, captured):
        self.tensor, self.indices, self.captured = tensor, indices, captured

    def __getitem__(self, index):
        return _read(self.captured, self.tensor, (*self.indices, *_indices(index)))

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        first = next(each for each in _flat(args) if isinstance(each, Part))
        raise Unsupported(
            f"it computes with {len(first.indices)} of the {first.tensor.dim()} indices of a captured"
            " tensor; must"
            " give all"
        )


class _Mode(TorchFunctionMode):
    """Sees what captured tensors are indexed with."""

    def __init__(self, captured):
        super().__init__()
        self.captured = captured

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(_is_symbol(each) for each in _flat((*args, *kwargs.values()))):
            if function is torch.Tensor.__getitem__:
                return _read(self.captured, args[0], _indices(args[1]))
            return _apply(self.captured, function.__name__, args, kwargs)
        return function(*args, **kwargs)


def _is_symbol(value):
    return isinstance(value, (Symbol, Part))


def _flat(values):
    for each in values:
        if isinstance(each, (tuple, list)):
            yield from _flat(each)
        else:
            yield each


def _indices(index):
    return index if isinstance(index, tuple) else (index,)


def _read(captured, tensor, indices):
    if any(isinstance(each, (slice, type(None), type(Ellipsis), list)) for each in indices):
        raise Unsupported(
            "it indexes a captured tensor with a slice, a list, None or ...; must be one element"
        )
    if len(indices) > tensor.dim() or tensor.dim() > MOST_DIMS:
        raise Unsupported(
            f"it gives {len(indices)} indices to a captured tensor of {tensor.dim()} dimensions; at most"
            f" {MOST_DIMS}, and as many as it has"
        )
    if len(indices) < tensor.dim():
        return Part(tensor, indices, captured)
    nodes = tuple(_node(captured, each) for each in indices)
    if any(each.kind != "int" for each in nodes):
        raise Unsupported("it indexes a captured tensor with what is no whole number")
    return Symbol(_load(captured, tensor, nodes), captured)


def _load(captured, tensor, nodes):
    if tensor.is_complex():
        raise Unsupported(
            f"it reads a captured tensor of {tensor.dtype}; must be floats, whole numbers or bool"
        )
    kind = "float" if tensor.is_floating_point() else KINDS.get(tensor.dtype, "int")
    made = make("load", *nodes) if nodes else make("load", const(0))
    return type(made)("load", made.args, captured.number(tensor), kind)


def _node(captured, value):
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, (bool, int, float)):
        return const(value)
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return _load(captured, value, ())
    if isinstance(value, torch.Tensor):
        raise Unsupported(
            f"it computes with a captured tensor of sizes {list(value.shape)}; must give an index for"
            " each dimension"
        )
    raise Unsupported(f"it computes with {value!r}; must be numbers and traced values")


def _apply(captured, name, args, kwargs):
    """The symbol of an operation that has torch's or Python's name."""
    plain = name.strip("_")
    plain = plain[1:] if plain.startswith("r") and plain[1:] in NAMES and plain not in NAMES else plain
    op = NAMES.get(plain)
    if op is None:
        raise Unsupported(
            f"{name} cannot be traced; known are {', '.join(sorted(set(filter(None, NAMES.values()))))}"
        )
    if name.startswith("__r") and plain != name.strip("_"):
        args = args[::-1]
    if op == "to":
        return _cast(captured, args, kwargs)
    if op == "clamp":
        return _clamp(captured, args, kwargs)
    if kwargs:
        raise Unsupported(f"{name} with {', '.join(kwargs)} cannot be traced")
    nodes = [_node(captured, each) for each in args]
    return Symbol(_made(op, nodes), captured)


def _made(op, nodes):
    a, b = nodes[0], nodes[-1]
    if op in ("and", "or", "xor", "not"):
        if any(each.kind != "bool" for each in nodes):
            raise Unsupported(f"{op} of numbers cannot be traced; must be of comparisons")
        return make(op, *nodes)
    if op == "square":
        return make("mul", a, a)
    if op == "pow":
        if b.op != "const" or b.data not in (2, 3, 4, 0.5):
            raise Unsupported("a power cannot be traced; must be 2, 3, 4 or 0.5")
        if b.data == 0.5:
            return make("sqrt", as_float(a))
        square = make("mul", a, a)
        return {2: square, 3: make("mul", square, a), 4: make("mul", square, square)}[b.data]
    if op in ("float", "int", "bool"):
        return _as(a, op)
    if op == "truediv" and b.op == "const" and b.data:
        return make("mul", as_float(a), const(1 / b.data))
    if op in ("exp", "tanh", "sigmoid", "sqrt", "truediv"):
        return make(op, *map(as_float, nodes))
    if op == "where":
        if a.kind != "bool":
            raise Unsupported("where has a condition that is no comparison")
        return make("where", a, *_alike(nodes[1:]))
    if op in ("floordiv", "mod") and "float" in (a.kind, b.kind):
        raise Unsupported(f"{op} of floats cannot be traced; must be of whole numbers")
    return make(op, *_alike([_as(each, "int") if each.kind == "bool" else each for each in nodes]))


def _alike(nodes):
    """Whole numbers become floats next to floats."""
    return [as_float(each) for each in nodes] if any(each.kind == "float" for each in nodes) else nodes


def _as(node, kind):
    if node.kind == kind:
        return node
    if kind == "float":
        return as_float(make("where", node, const(1.0), const(0.0)) if node.kind == "bool" else node)
    if kind == "int" and node.kind == "bool":
        return make("where", node, const(1), const(0))
    if kind == "bool":
        return make("ne", node, const(0.0 if node.kind == "float" else 0))
    raise Unsupported("a float cannot become a whole number")


def _cast(captured, args, kwargs):
    dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None)
    node = _node(captured, args[0])
    if isinstance(dtype, torch.dtype):
        return Symbol(_as(node, "float" if dtype.is_floating_point else KINDS.get(dtype, "int")), captured)
    return args[0]


def _clamp(captured, args, kwargs):
    low, high = (*args[1:], *(None for _ in range(3 - len(args))))[:2]
    low, high = kwargs.get("min", low), kwargs.get("max", high)
    node = _node(captured, args[0])
    for op, bound in (("max", low), ("min", high)):
        if bound is not None:
            node = make(op, *_alike([node, _node(captured, bound)]))
    return Symbol(node, captured)


def _run(what, function, captured, names):
    symbols = [Symbol(SCORE if name == "score" else PLACE[name], captured) for name in names]
    try:
        with _Mode(captured):
            result = function(*symbols)
        return _node(captured, result)
    except Exception as error:
        raise Unsupported(f"[flex_attention] {_place(what, function, error)}: {error}") from error


def _place(what, function, error):
    """The line of the caller's function that cannot be traced."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/heddle/flex/" not in frame.filename and "/torch/" not in frame.filename
    ]
    if frames:
        return f"{what} at {frames[-1].filename}:{frames[-1].lineno} cannot be traced ({frames[-1].line})"
    code = getattr(function, "__code__", None)
    return f"{what} at {code.co_filename}:{code.co_firstlineno}" if code else what


def trace_score(function, captured):
    """The expression of a score_mod."""
    if function is None:
        return SCORE
    made = _run("score_mod", function, captured, ("score", "b", "h", "q", "kv"))
    return _as(made, "float")


def trace_mask(function, captured):
    """The expression of a mask_mod."""
    if function is None:
        return TRUE
    return _as(_run("mask_mod", function, captured, ("b", "h", "q", "kv")), "bool")
