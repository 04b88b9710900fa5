"""Ops of a folder: x.h (a struct of arguments with `visit`), x.cuh (a tile body), x.py for what is Python.

They are written as those of heddle/ops are; x_kernel.sm80.cuh and x_kernel.sm90.cuh are whole kernels. What
x.h says is read as text, so that nothing is compiled before the first call; the compiler then compares it
with the struct.
"""

import hashlib
import importlib.util
import re
import sys
from os import PathLike
from pathlib import Path
from typing import Literal

from heddle import ops
from heddle.errors import InvalidArgument, Unsupported, named
from heddle.own.beside import included
from heddle.own.kernel import FILES
from heddle.own.op import Op, _made, tell_torch

VISIT = re.compile(r"\bv\s*\.\s*(\w+)\s*\(([^;]*)\)\s*;")
MEMBER = r"\b(i32|float|bool)\s+%s\s*(?:=\s*([^;]+?)|\{([^}]*)\})?\s*;"
TYPES = {"i32": int, "float": float, "bool": bool}
KINDS = ("read", "write", "optional_read", "optional_write", "matrix", "attribute", "choice")
MATRIX = "f32 | f16 | bf16 | f8e4m3 | f8e5m2 | i8 | i4"  # what its elements may be
# Names that x.py may define; the header says all else.
PARTS = (
    *("reference", "backward", "cases", "tile", "in_place", "scratch", "bound"),
    *("configs", "plan", "peers"),
)


@named
def load_ops(folder: str | PathLike[str]) -> dict[str, type[Op]]:
    """Adds the ops of a folder, {name: class}: x.h and x.cuh in it, or in a folder of it. x.py may have
    `reference`, `backward`, `cases`, `tile`, `in_place`, `scratch`, `bound`, `configs` and `peers`, as a
    class of heddle.Op has them, and `plan` for the whole kernel x_kernel.sm80.cuh or x_kernel.sm90.cuh.
    Each is heddle.ops.<name> then, and has the methods of heddle.Op."""
    folder = Path(folder).resolve()
    bodies = sorted({*folder.glob("*.cuh"), *folder.glob("*/*.cuh")})
    if not bodies:
        raise InvalidArgument(f"[load_ops] {folder} has no x.cuh next to an x.h; must be a folder of ops")
    loaded, parts = {}, included(bodies)
    for body in bodies:
        if body in parts and not body.with_suffix(".h").exists():
            continue
        if re.fullmatch(r"\w+_kernel\.sm\d+", body.stem):
            continue
        if "." in body.stem:
            raise Unsupported(f"[{body.stem}] {body} is a variant for one architecture; must be x.cuh alone")
        loaded[body.stem] = _load(body)
    for name, cls in loaded.items():
        setattr(ops, name, _made(cls).function)
        tell_torch(_made(cls).name)
    return loaded


def _load(body):
    header, python, name = body.with_suffix(".h"), body.with_suffix(".py"), body.stem
    if not header.exists():
        raise InvalidArgument(f"[{name}] {header} is missing; must declare the op's arguments")
    text = header.read_text()
    code = re.sub(r"//[^\n]*", "", text)
    parts = _visits(name, header, code)
    said = _module(name, python) if python.exists() else {}
    said = {
        key: staticmethod(value) if callable(value) else value for key, value in said.items() if key in PARTS
    }
    first = next((dims for _, dims, _ in parts["write"].values()), "M").split(",")[0].strip()
    members = {
        "name": name,
        "header": header,
        "body": body,
        "reads": parts["read"],
        "writes": parts["write"],
        "matrices": parts["matrices"],
        "order": tuple(key for _, key in sorted((at, key) for key, at in parts["order"].items())),
        "tile": (first,),
        "kernel": _kernels(name, body) or None,
        "__annotations__": {key: hint for key, (hint, _) in parts["attributes"].items()},
        "__doc__": _comment(text) or f"{name}, an op of {body.parent}.",
        "__module__": __name__,
        **{key: value for key, (_, value) in parts["attributes"].items()},
        **said,
    }
    return type("".join(word.capitalize() for word in name.split("_")), (Op,), members)


def _kernels(name, body):
    """{"sm80": path} of the whole kernels in the body's folder."""
    found = {
        path: path.stem.removeprefix(f"{name}_kernel.") for path in body.parent.glob(f"{name}_kernel.*.cuh")
    }
    for path, file in found.items():
        if file not in FILES:
            raise Unsupported(f"[{name}] {path} is for {file}; must be {' or '.join(FILES)}")
    return {file: path for path, file in sorted(found.items())}


def _module(name, path):
    """Runs the file and returns what it defines. torch.compile wants to find the module of a function by its
    name."""
    name = f"heddle_op_{name}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return vars(module)


def _comment(text):
    """The lines at the head of the file."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    return "\n".join(lines)


def _visits(name, header, code):
    made = {"read": {}, "write": {}, "attributes": {}, "order": {}, "matrices": {}}
    for at, found in enumerate(VISIT.finditer(code)):
        kind, arguments = found[1], [each.strip() for each in _split(found[2])]
        if kind not in KINDS:
            raise Unsupported(
                f"[{name}] {header} has v.{kind}; must be {', '.join(KINDS[:-1])} or {KINDS[-1]}"
            )
        member, texts = (
            arguments[1].split(".")[-1],
            [each.strip('"') for each in arguments if each[:1] == '"'],
        )
        if texts[0] != member:
            raise InvalidArgument(f"[{name}] {header} calls {member} {texts[0]!r}; must be the member's name")
        made["order"][member] = at
        if kind == "matrix":
            made["read"][member] = (None, texts[1], False)
            made["matrices"][member] = texts[2] if len(texts) > 2 else MATRIX
        elif kind not in ("attribute", "choice"):
            access, optional = kind.removeprefix("optional_"), kind.startswith("optional_")
            made[access][member] = (_dtypes(texts[2] if len(texts) > 2 else "float"), texts[1], optional)
        else:
            made["attributes"][member] = _attribute(name, header, code, member, texts[1:])
    if not made["write"]:
        raise InvalidArgument(f"[{name}] {header} has no v.write(...); an op writes one tensor or more")
    return made


def _split(text):
    """Arguments, with commas inside of quotes kept."""
    return re.findall(r'"[^"]*"|[^,\s][^,]*', text)


def _dtypes(text):
    if text == "float":
        return None
    names = [each.strip() for each in text.split("|")]
    return names[0] if len(names) == 1 else names


def _attribute(name, header, code, member, choices):
    found = re.search(MEMBER % re.escape(member), code)
    if not found:
        raise Unsupported(f"[{name}] {member} of {header} is no i32, float or bool; must be one of them")
    value = (found[2] or found[3] or "0").strip()
    if choices:
        names = tuple(each.strip() for each in choices[0].split(","))
        return Literal[names], names[int(value)]
    if found[1] == "bool":
        return bool, value == "true"
    try:
        return TYPES[found[1]], TYPES[found[1]](value.rstrip("fF") if found[1] == "float" else value)
    except ValueError:
        raise InvalidArgument(
            f"[{name}] {member} of {header} begins as {value}; must be a number, so that Python can read it"
        ) from None
