"""Counts of what casts lose: elements that became zero, and those that have the largest code."""

import contextlib
import contextvars
from dataclasses import dataclass, field

import torch

from heddle.display import table
from heddle.float8.casts import CODES, LARGEST

_NAMES = {dtype: name for name, dtype in CODES.items()}
_ACTIVE = contextvars.ContextVar("heddle.float8.counts", default=None)
_HEADS = ("layer", "tensor", "elements", "became zero", "at the largest code", "not finite")


@dataclass
class Counts:
    """{(layer, "input", "weight" or "gradient"): (elements, became zero, at the largest code, not finite)}.

    They add up on the device, and reading them waits for it. Scales are those of each call's largest element,
    so that only elements at it have the largest code.
    """

    _sums: dict = field(default_factory=dict)

    def add(self, key, x, coded):
        codes, largest = coded.codes.float(), LARGEST[_NAMES[coded.codes.dtype]]
        found = [
            torch.tensor(x.numel(), device=x.device),
            ((codes == 0) & (x != 0)).sum(),
            (codes.abs() == largest).sum(),
            x.numel() - torch.isfinite(x).sum(),
        ]
        self._sums[key] = self._sums.get(key, 0) + torch.stack(found)

    def __getitem__(self, key):
        return tuple(self._sums[key].tolist())

    def keys(self):
        return self._sums.keys()

    def _cells(self):
        for (layer, tensor), sums in self._sums.items():
            count, zero, top, wrong = sums.tolist()
            yield layer, tensor, f"{count:,}", f"{zero / count:.3%}", f"{top / count:.3%}", f"{wrong:,}"

    def _repr_html_(self):
        return table(list(self._cells()), _HEADS, "heddle.float8.count")

    def __repr__(self):
        lines = [_HEADS, *self._cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADS))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


@contextlib.contextmanager
def count():
    """Counts what casts of layers in FP8 lose while it is entered: `with heddle.float8.count() as counts`,
    around a step, then `print(counts)`. It takes some passes over each tensor."""
    counts = Counts()
    token = _ACTIVE.set(counts)
    try:
        yield counts
    finally:
        _ACTIVE.reset(token)


def active():
    """The Counts of this thread; None where nobody wants to know."""
    return None if torch.compiler.is_compiling() else _ACTIVE.get()


@torch.no_grad()
def note(counts, key, x, coded):
    """Adds one cast to counts, unless they are None."""
    if counts is not None:
        counts.add(key, x, coded)
