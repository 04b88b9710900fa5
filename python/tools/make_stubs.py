#!/usr/bin/env python3
"""Writes the stubs that editors and type checkers read: of heddle.ops, from the fields of the ops, and of
heddle.model, from the settings of answers and the options of engines.

    python3 python/tools/make_stubs.py build/release/python    # where the package is; a build does this
"""

import sys
import textwrap
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])

import heddle.ops
from heddle import _heddle

WIDTH = 110
HEAD = """# Written by python/tools/make_stubs.py from the fields of the ops.
from typing import Literal, NoReturn, Protocol, TypeVar

from heddle.ops.info import OpInfo as OpInfo
from heddle.ops.info import info as info
from heddle.ops.reductions import amax as amax
from heddle.ops.reductions import mean as mean
from heddle.ops.reductions import sum as sum

class Tensor(Protocol):
    @property
    def __dlpack__(self) -> object: ...

T = TypeVar("T", bound=Tensor)  # torch.Tensor, numpy.ndarray
NAMES: tuple[str, ...]
"""


def attribute(info):
    kind = f"Literal[{', '.join(repr(each) for each in info.choices)}]" if info.choices else info.type
    default = "" if info.default is None else f" = {info.default!r}"
    return f"{info.name}: {kind}{default}".replace("'", '"')


def parameters(info):
    inputs = [f"{each.name}: T | None = None" if each.optional else f"{each.name}: T" for each in info.inputs]
    one = len(info.results) == 1
    outs = "T | dict[str, T] | None" if one else "tuple[T | None, ...] | dict[str, T] | None"
    dim = ["dim: int = -1"] if info.takes_dim else []
    return [*inputs, *dim, "*", *(attribute(each) for each in info.attributes), f"out: {outs} = None"]


def returns(info):
    if not info.callable:
        return "NoReturn"
    return "T" if len(info.results) == 1 else f"tuple[{', '.join('T' for _ in info.results)}]"


def document(info):
    """The text that `help` shows."""
    wrapped = [
        textwrap.wrap(line, WIDTH - 4, subsequent_indent=" " * (len(line) - len(line.lstrip()) + 2)) or [""]
        for line in getattr(heddle.ops, info.name).__doc__.splitlines()
    ]
    return "\n".join("    " + line if line else "" for part in wrapped for line in part)


def stub(info):
    body = parameters(info)
    head = f"def {info.name}({', '.join(body)}) -> {returns(info)}:"
    if len(head) > WIDTH:
        head = f"def {info.name}(\n" + "".join(f"    {each},\n" for each in body) + f") -> {returns(info)}:"
    return f'{head}\n    """{document(info).lstrip()}\n    """\n'


def ops_stubs():
    return "\n".join([HEAD, *(stub(heddle.ops.info(name)) for name in heddle.ops.NAMES), "mm = matmul\n"])


# SETTINGS and OPTIONS stand for the keywords.
MODEL = """# Written by python/tools/make_stubs.py from the settings of answers and engines.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Literal, TypedDict, overload

import numpy
from numpy.typing import NDArray

from heddle.ops import Tensor
from heddle.progress import Progress

Tensors = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]
Tell = bool | Callable[[Progress], object]

@dataclass(slots=True)
class Token:
    text: str
    id: int
    index: int
    logprob: float | None
    finish_reason: Literal["eos", "stop", "length", "context"] | None
    top: tuple[tuple[int, float], ...] | None
    reasoning: str

class Logits:
    @property
    def shape(self) -> tuple[int, int]: ...
    def __dlpack__(self, **keywords: object) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Stats(TypedDict):
STATS

class Model:
    @overload
    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        reuse: bool | None = None,
        priority: int = 0,
        deadline: float | None = None,
SETTINGS
    ) -> str: ...
    @overload
    def generate(
        self,
        prompt: list[str] | tuple[str, ...] | list[list[int]] | tuple[list[int], ...],
        *,
        reuse: bool | None = None,
        priority: int = 0,
        deadline: float | None = None,
SETTINGS
    ) -> list[str]: ...
    @overload
    def generate_tokens(
        self,
        prompt: str | Sequence[int],
        *,
        reuse: bool | None = None,
        priority: int = 0,
        deadline: float | None = None,
SETTINGS
    ) -> list[Token]: ...
    @overload
    def generate_tokens(
        self,
        prompt: list[str] | tuple[str, ...] | list[list[int]] | tuple[list[int], ...],
        *,
        reuse: bool | None = None,
        priority: int = 0,
        deadline: float | None = None,
SETTINGS
    ) -> list[list[Token]]: ...
    def stream(
        self,
        prompt: str | Sequence[int],
        *,
        reuse: bool = False,
        priority: int = 0,
        deadline: float | None = None,
SETTINGS
    ) -> Iterator[Token]: ...
    @overload
    def chat(
        self,
        messages: str | Sequence[Mapping[str, object]],
        *,
        stream: Literal[False] = False,
        template: str | PathLike[str] | None = None,
        variables: Mapping[str, object] | None = None,
        chat_template_kwargs: Mapping[str, object] | None = None,
        reuse: bool = True,
        priority: int = 0,
        deadline: float | None = None,
SETTINGS
    ) -> str: ...
    @overload
    def chat(
        self,
        messages: str | Sequence[Mapping[str, object]],
        *,
        stream: Literal[True],
        template: str | PathLike[str] | None = None,
        variables: Mapping[str, object] | None = None,
        chat_template_kwargs: Mapping[str, object] | None = None,
        reuse: bool = True,
        priority: int = 0,
        deadline: float | None = None,
SETTINGS
    ) -> Iterator[Token]: ...
    @overload
    def logits(self, tokens: Sequence[int]) -> NDArray[numpy.float32]: ...
    @overload
    def logits(self, tokens: Sequence[Sequence[int]]) -> list[NDArray[numpy.float32]]: ...
    def tokenize(self, text: str, *, special: bool = True) -> list[int]: ...
    def detokenize(self, tokens: Sequence[int], *, skip_special: bool = False) -> str: ...
    def update_weights(self, tensors: Tensors) -> None: ...
    @property
    def stats(self) -> Stats: ...
    def close(self) -> None: ...
    def __enter__(self) -> Model: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None: ...

def load(
    path: str | PathLike[str] | None = None,
    *,
    device: str = "auto",
    tensors: Tensors | None = None,
    model_config: object = None,
    ignore_generation: str | Sequence[str] = (),
    progress: Tell | None = None,
OPTIONS
) -> Model: ...
def from_transformers(
    model: object,
    *,
    tokenizer: object = None,
    device: str | None = None,
    ignore_generation: str | Sequence[str] = (),
    progress: Tell | None = None,
OPTIONS
) -> Model: ...
"""

STATS = "device: str\nnotes: list[str]\n" + "\n".join(
    f"{name}: int"
    for name in (
        *("vocab", "max_context", "max_sequences", "weight_bytes", "kv_bytes", "steps", "launches"),
        *("prompt_tokens", "shared_tokens", "new_tokens", "most_sequences", "put_off", "waiting", "running"),
        "free_pages",
    )
)


def keywords(described, indent):
    return "\n".join(f"{' ' * indent}{name}: {kind} | None = None," for name, kind, _text in described)


def model_stubs():
    made = MODEL.replace("SETTINGS", keywords(_heddle.describe_settings(), 8))
    made = made.replace("STATS", textwrap.indent(STATS, " " * 4))
    return made.replace("OPTIONS", keywords(_heddle.describe_options(), 4))


# A file of the package: the function that makes its text.
FILES = {"ops/__init__.pyi": ops_stubs, "model.pyi": model_stubs}

if __name__ == "__main__":
    for name, text_of in FILES.items():
        file = Path(sys.argv[1], "heddle", name)
        file.unlink(missing_ok=True)  # what a link leads to stays
        file.write_text(text_of())
