#!/usr/bin/env python3
"""Writes python/heddle/ops/__init__.pyi, which editors and type checkers read, from the fields of the ops.

    PYTHONPATH=build/release/python .venv/bin/python python/tools/make_stubs.py

A test compares the file with what this writes.
"""

import textwrap
from pathlib import Path

import heddle.ops

STUBS = Path(__file__).parents[1] / "heddle" / "ops" / "__init__.pyi"
WIDTH = 110
HEAD = """# Written by python/tools/make_stubs.py from the fields of the ops; do not edit.
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from heddle.ops.info import OpInfo as OpInfo
from heddle.ops.info import info as info

class Tensor(Protocol):
    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any: ...

T = TypeVar("T", bound=Tensor)  # torch.Tensor, numpy.ndarray
NAMES: tuple[str, ...]
"""


def tensor_line(tensor):
    optional = "; optional" if tensor.optional else ""
    return f"{tensor.name}: [{tensor.dims_text}], {' | '.join(tensor.dtypes)}{optional}"


def attribute(info):
    kind = f"Literal[{', '.join(repr(each) for each in info.choices)}]" if info.choices else info.type
    return f"{info.name}: {kind.replace(chr(39), chr(34))} = {repr(info.default).replace(chr(39), chr(34))}"


def parameters(info):
    inputs = [f"{each.name}: T | None = None" if each.optional else f"{each.name}: T" for each in info.inputs]
    one = len(info.results) == 1
    outs = "T | dict[str, T] | None" if one else "tuple[T | None, ...] | dict[str, T] | None"
    return [*inputs, "*", *(attribute(each) for each in info.attributes), f"out: {outs} = None"]


def returns(info):
    if not info.callable:
        return "NoReturn"
    return "T" if len(info.results) == 1 else f"tuple[{', '.join('T' for _ in info.results)}]"


def document(info):
    lines = [info.doc, ""]
    lines += [*map(tensor_line, info.inputs), "returns " + "; ".join(map(tensor_line, info.outputs))]
    if not info.callable:
        lines += ["", f"Raises Unsupported: it {info.why_not}."]
    else:
        gradient = "it has a gradient" if info.gradient else "it has no gradient"
        lines += ["", f"Raises InvalidArgument for other dtypes, sizes, strides or attributes; {gradient}."]
    wrapped = [textwrap.wrap(line, WIDTH - 4, subsequent_indent="  ") or [""] for line in lines]
    return "\n".join("    " + line if line else "" for part in wrapped for line in part)


def stub(info):
    body = parameters(info)
    head = f"def {info.name}({', '.join(body)}) -> {returns(info)}:"
    if len(head) > WIDTH:
        head = f"def {info.name}(\n" + "".join(f"    {each},\n" for each in body) + f") -> {returns(info)}:"
    return f'{head}\n    """{document(info).lstrip()}\n    """\n'


def stubs():
    """The text of the file."""
    return "\n".join([HEAD, *(stub(heddle.ops.info(name)) for name in heddle.ops.NAMES)])


if __name__ == "__main__":
    STUBS.write_text(stubs())
    print(f"wrote {STUBS}")
