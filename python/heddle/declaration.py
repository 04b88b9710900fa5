"""What the class of an op of one's own says, as the parts that an op is made of."""

import ast
import inspect
import re
import textwrap
import typing
from dataclasses import dataclass
from pathlib import Path

from heddle.errors import InvalidArgument

KINDS = {int: "int", float: "float", bool: "bool"}
ROWS_IN_A_TILE = 16
NAME = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)
# Names of a body that the language has already.
RESERVED = ("block", "a", "t", "out")


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str  # "int", "float", "bool", "str"
    choices: tuple
    default: object  # None: a call must give it


@dataclass(frozen=True)
class Declaration:
    name: str
    doc: str
    tensors: tuple  # (name, writes, dims, dtypes, optional)
    attributes: tuple
    tile: tuple  # (dimension, elements)
    in_place: bool
    body: str  # "": there is none
    file: str
    line: int  # where the body begins
    header: str  # of an op of a folder: the text of x.h, which declares the struct of the arguments; ""
    header_file: str
    scratch: tuple  # floats of each piece, as dimensions
    backward: tuple  # the names of its parameters; (): there is none
    matrices: tuple = ()  # those tensors that are matrices as they lie in memory, or codes with scales

    def names(self, writes):
        return tuple(name for name, is_written, *_ in self.tensors if is_written == writes)


def declare(cls):
    """Reads the class. Raises InvalidArgument with its name, the part, its value, and what would be right."""
    name = cls.__dict__.get("name") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    if not NAME.fullmatch(name):
        raise _wrong(cls, "name", name, "must be a name of C++")
    attributes = tuple(_attributes(cls))
    tensors = (*_tensors(cls, "reads", False), *_tensors(cls, "writes", True))
    tensors = tuple(
        (name, writes, dims, cls.matrices.get(name, dtypes), optional)
        for name, writes, dims, dtypes, optional in tensors
    )
    if cls.header:  # in the order of the struct
        tensors = tuple(sorted(tensors, key=lambda each: cls.order.index(each[0])))
    body, file, line = _body(cls)
    if not any(writes and not optional for _, writes, _, _, optional in tensors):
        raise InvalidArgument(f"[{cls.__name__}] writes is empty; an op writes one tensor or more")
    return Declaration(
        name=name,
        doc=inspect.cleandoc(cls.__dict__.get("__doc__") or f"{cls.__name__}, an op of one's own."),
        tensors=tensors,
        attributes=attributes,
        tile=tuple(_tile(cls)),
        in_place=bool(getattr(cls, "in_place", False)),
        body=body,
        file=file,
        line=line,
        header=cls.header.read_text() if cls.header else "",
        header_file=str(cls.header or ""),
        scratch=_scratch(cls),
        backward=_backward(cls, tensors, attributes),
        matrices=tuple(cls.matrices),
    )


def _wrong(cls, part, value, right):
    return InvalidArgument(f"[{cls.__name__}] {part} is {value!r}; {right}")


def _tensors(cls, part, writes):
    given = getattr(cls, part, ())
    form = 'must be like {"x": (heddle.f32, "M, D")} or [("x", None, "M, D")]; True at the end: optional'
    items = (
        [(k, *v) if isinstance(v, tuple) else (k, v) for k, v in given.items()]
        if isinstance(given, dict)
        else given
    )
    if not isinstance(items, (list, tuple)):
        raise _wrong(cls, part, given, form)
    for item in items:
        if (
            not isinstance(item, tuple)
            or len(item) not in (3, 4)
            or not all(isinstance(each, str) for each in item[:3:2])
            or not isinstance(item[-1], (str, bool))
        ):
            raise _wrong(cls, part, item, form)
        name, dtype, dims, optional = (*item, False)[:4]
        if not NAME.fullmatch(name) or name in RESERVED:
            raise _wrong(cls, part, name, f"a name must be a name of C++, and none of {', '.join(RESERVED)}")
        yield name, writes, dims, _dtypes(cls, name, dtype), optional


def _dtypes(cls, name, dtype):
    """`None` is any float; otherwise heddle.f32, a dtype of torch or NumPy, or several."""
    if dtype is None:
        return "float"
    if isinstance(dtype, (list, tuple)):
        return " | ".join(_dtypes(cls, name, each) for each in dtype)
    text = str(getattr(dtype, "__name__", dtype)).removeprefix("torch.")
    known = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int32": "i32", "half": "f16"}
    text = known.get(text.lower(), text)
    if text not in known.values():
        raise _wrong(
            cls, f"the dtype of {name}", dtype, "must be None (any float), heddle.f32, f16, bf16 or i32"
        )
    return text


def _attributes(cls):
    hints = {}
    for each in reversed(cls.__mro__[:-1]):
        if each.__module__ != __package__ + ".op":
            hints.update(inspect.get_annotations(each, eval_str=True))
    for name, hint in hints.items():
        choices = tuple(typing.get_args(hint)) if typing.get_origin(hint) is typing.Literal else ()
        kind = "str" if choices and all(isinstance(each, str) for each in choices) else KINDS.get(hint)
        if kind is None:
            raise _wrong(cls, f"attribute {name}", hint, 'must be an int, float, bool or Literal["a", "b"]')
        yield Attribute(name, kind, choices, getattr(cls, name, None))


def _scratch(cls):
    given = getattr(cls, "scratch", ())
    pieces = (given,) if isinstance(given, str) else given
    if not isinstance(pieces, (tuple, list)) or not all(isinstance(each, str) and each for each in pieces):
        raise _wrong(
            cls, "scratch", given, 'must be the floats of each block.scratch, like "D" or ("D", "2N")'
        )
    return tuple(pieces)


def _backward(cls, tensors, attributes):
    given = getattr(cls, "backward", None)
    if given is None:
        return ()
    if not callable(given):
        raise _wrong(cls, "backward", given, "must be a static method on tensors of torch")
    names = tuple(inspect.signature(given).parameters)
    known = [name for name, *_ in tensors]
    known += [f"d{name}" for name, writes, _, _, optional in tensors if writes and not optional]
    known += [each.name for each in attributes]
    for name in names:
        if name not in known:
            raise _wrong(cls, "a parameter of backward", name, f"must be one of {', '.join(known)}")
    return names


def _tile(cls):
    given = getattr(cls, "tile", None)
    if not given or not isinstance(given, (tuple, list, dict)):
        raise _wrong(cls, "tile", given, 'must name one or two dimensions, like ("M",) or {"M": 4}')
    if isinstance(given, dict):
        return list(given.items())
    return [(dim, ROWS_IN_A_TILE if at == 0 else 0) for at, dim in enumerate(given)]


def _body(cls):
    """The text, the file that it stands in, and the line of its first character there."""
    body = getattr(cls, "body", None)
    if body is None:
        return "", "", 1
    if isinstance(body, Path):
        path = body if body.is_absolute() else Path(inspect.getfile(cls)).parent / body
        return path.read_text(), str(path), 1
    if not isinstance(body, str):
        raise _wrong(cls, "body", body, "must be text in the tile language, or the pathlib.Path of a file")
    file, line = _place_of(cls)
    return body, file, line


def _place_of(cls):
    """The file and line where the class writes its body; the body itself where no file has the class."""
    owner = next(each for each in cls.__mro__ if "body" in each.__dict__)
    try:
        lines, first = inspect.getsourcelines(owner)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "body" for t in node.targets):
                return inspect.getsourcefile(owner), first + node.value.lineno - 1
    except (OSError, TypeError, SyntaxError):
        pass
    return f"<body of {cls.__name__}>", 1
