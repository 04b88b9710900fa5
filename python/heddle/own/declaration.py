"""Reads the class of an op of one's own into the parts that an op is made of."""

import ast
import inspect
import re
import textwrap
import typing
from dataclasses import dataclass
from pathlib import Path

from heddle.errors import InvalidArgument
from heddle.own.beside import joined
from heddle.own.kernel import FILES

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
    tile: tuple  # (dimension, elements, the value of a configuration that says it instead; "": none)
    in_place: bool
    body: str  # "": there is none
    file: str
    line: int  # where the body begins
    header: str  # the text of x.h, which declares the struct of the arguments; "" for an op without a folder
    header_file: str
    scratch: tuple  # floats of each piece, as dimensions
    backward: tuple  # the names of its parameters; (): there is none
    matrices: tuple = ()  # tensors that are matrices as they lie in memory, or codes with scales
    configs: tuple = ()  # (((value, number), ...), whether it reorders sums); the first is the default
    kernels: tuple = ()  # (file, text, place) of whole kernels, "sm80" or "sm90"; place: the text's own file

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
    configs = _configs(cls)
    if not any(writes and not optional for _, writes, _, _, optional in tensors):
        raise InvalidArgument(f"[{cls.__name__}] writes is empty; an op writes one tensor or more")
    return Declaration(
        name=name,
        doc=inspect.cleandoc(cls.__dict__.get("__doc__") or f"{cls.__name__}, an op of one's own."),
        tensors=tensors,
        attributes=attributes,
        tile=tuple(_tile(cls, configs)),
        in_place=bool(getattr(cls, "in_place", False)),
        body=body,
        file=file,
        line=line,
        header=cls.header.read_text() if cls.header else "",
        header_file=str(cls.header or ""),
        scratch=_scratch(cls),
        backward=_backward(cls, tensors, attributes),
        matrices=tuple(cls.matrices),
        configs=configs,
        kernels=_kernels(cls),
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


def _tile(cls, configs):
    given = getattr(cls, "tile", None)
    if not given or not isinstance(given, (tuple, list, dict)):
        raise _wrong(cls, "tile", given, 'must name one or two dimensions, like ("M",) or {"M": 4}')
    if not isinstance(given, dict):
        return [(dim, ROWS_IN_A_TILE if at == 0 else 0, "") for at, dim in enumerate(given)]
    return [_tiled(cls, dim, far, configs) for dim, far in given.items()]


def _tiled(cls, dim, far, configs):
    """The size of tiles along a dimension: a number, or a value of all configurations."""
    if isinstance(far, int) and far >= 0:
        return dim, far, ""
    known = [dict(values) for values, _ in configs if not dict(values).get("kernel")]
    if not isinstance(far, str) or not known or not all(far in values for values in known):
        raise _wrong(cls, f"the tile of {dim}", far, "must be elements, or a value that all configs have")
    return dim, known[0][far], far


def _configs(cls):
    given = getattr(cls, "configs", None) or ()
    form = 'must be like [{"rows": 16}, {"rows": 4, "reorders": True}]: names in lower case, whole numbers'
    if not isinstance(given, (tuple, list)):
        raise _wrong(cls, "configs", given, form)
    made = []
    for each in given:
        values = (
            {key: value for key, value in each.items() if key != "reorders"} if isinstance(each, dict) else {}
        )
        right = all(
            re.fullmatch(r"[a-z][a-z0-9_]*", str(k)) and isinstance(v, int) for k, v in values.items()
        )
        if not values or not right:
            raise _wrong(cls, "a configuration", each, form)
        made.append((tuple(sorted((k, int(v)) for k, v in values.items())), bool(each.get("reorders"))))
    if len(set(made)) < len(made):
        raise _wrong(cls, "configs", given, "must have each configuration once")
    return tuple(made)


def _kernels(cls):
    """(file, text, place) of each whole kernel; its plan is a function of the class."""
    given = getattr(cls, "kernel", None)
    if given is None:
        return ()
    form = 'must be CUDA as text or a pathlib.Path, or {"sm90": either}'
    if isinstance(given, (str, Path)):
        suffix = next((each for each in FILES if f".{each}." in str(given)), FILES[0])
        given = {suffix if isinstance(given, Path) else FILES[0]: given}
    if not isinstance(given, dict) or not set(given) <= set(FILES):
        raise _wrong(cls, "kernel", given, form)
    if not callable(getattr(cls, "plan", None)):
        raise _wrong(
            cls,
            "plan",
            getattr(cls, "plan", None),
            "must be a static method plan(call, gpu): how it is launched",
        )
    made = []
    for name, text in given.items():
        if isinstance(text, Path):
            path = _beside(cls, text)
            made.append((name, joined(path.read_text(), path, 1, bool(cls.header)), f'1 "{path}"'))
        elif isinstance(text, str):
            file, line = _place_of(cls, "kernel")
            made.append((name, joined(text, file, line), f'{line} "{file}"'))
        else:
            raise _wrong(cls, "kernel", text, form)
    return tuple(made)


def _beside(cls, path):
    """A path of a class, relative to the file of the class; in a notebook, in the folder that it runs in."""
    try:
        folder = Path(inspect.getfile(cls)).parent
    except (TypeError, OSError):
        folder = Path()
    return folder / path


def _body(cls):
    """The text, the file that it stands in, and the line of its first character there."""
    body = getattr(cls, "body", None)
    if body is None:
        return "", "", 1
    if isinstance(body, Path):
        path = _beside(cls, body)
        return joined(path.read_text(), path, 1, bool(cls.header)), str(path), 1
    if not isinstance(body, str):
        raise _wrong(cls, "body", body, "must be text in the tile language, or the pathlib.Path of a file")
    file, line = _place_of(cls, "body")
    return joined(body, file, line), file, line


def _place_of(cls, part):
    """The file and line where the class writes its body, or its kernel; "<body of X>": no file has it."""
    owner = next(each for each in cls.__mro__ if part in each.__dict__)
    try:
        lines, first = inspect.getsourcelines(owner)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == part for t in node.targets):
                return inspect.getsourcefile(owner), first + node.value.lineno - 1
    except (OSError, TypeError, SyntaxError):
        pass
    return f"<{part} of {cls.__name__}>", 1
