"""Which path each module of a model takes, and why: the table of heddle.explain."""

import itertools
import re
from dataclasses import dataclass

import torch

from heddle.display import fitted, table
from heddle.errors import named
from heddle.float8.convert import float8_paths
from heddle.memory import choice_of
from heddle.moe.experts import expert_paths
from heddle.patching.module_paths import module_paths
from heddle.quant.qat import few_bits_paths
from heddle.quant.sparse_linear import sparse_paths

_HEADS = ("modules", "class", "path", "calls", "reason, or from which sizes it pays")


@dataclass(frozen=True)
class Explained:
    """Modules of a model that are alike.

    name: theirs, with * for the numbers in which they differ; path: `heddle ...`, or what runs instead;
    reason: why that, for a path of torch's; pays: from which sizes calls run in heddle, as benches measured;
    calls: those that took this path since the model was patched, None where nothing counts them.
    """

    name: str
    modules: int
    cls: str
    path: str
    reason: str
    pays: str
    calls: "int | None"

    @property
    def is_heddle(self) -> bool:
        return self.path.startswith("heddle")


class Explanation(tuple):
    """The rows. `print` shows them as a table."""

    def _cells(self):
        for row in self:
            modules = row.name if row.modules == 1 else f"{row.name} ({row.modules})"
            calls = "-" if row.calls is None else str(row.calls)
            pays = f"; it pays {row.pays}" if row.pays and row.reason else row.pays
            yield modules, row.cls, row.path, calls, row.reason + pays

    def _repr_html_(self):
        return table(list(self._cells()), _HEADS, "heddle.explain")

    def __repr__(self):
        if not self:
            return "heddle has nothing for the modules of this model"
        lines = [_HEADS, *self._cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        text = []
        for *cells, reason in lines:
            *words, calls = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            text.append(fitted("  ".join([*words, calls.strip().rjust(widths[3])]), reason))
        return "\n".join(text)


def _blocks(model):
    """(name, class, path, reason, pays, calls) of blocks with a plan of heddle.memory."""
    for name, module in model.named_modules():
        said = choice_of(module)
        if said is not None:
            yield name, type(module).__qualname__, f"heddle.memory: {said}", "", "", None


@named
def explain(model: torch.nn.Module) -> Explanation:
    """Says which path each module of a model takes that heddle has something for, and why: its norms, MLPs,
    attention and loss, patched or not, its generate, its blocks where heddle.memory plans them, its
    linear layers where they were converted to FP8, pruned, quantised or prepared for QAT, and its experts.

    Nothing of the model changes. Modules that are alike share a row.
    """
    experts = list(expert_paths(model))
    of_experts = {name for name, *_ in experts}
    modules = (row for row in module_paths(model) if row[0] not in of_experts)
    found = {}
    others = (each(model) for each in (_blocks, float8_paths, sparse_paths, few_bits_paths))
    for name, *rest in itertools.chain(modules, *others, experts):
        pattern = re.sub(r"(?<![^.])\d+(?![^.])", "*", name)
        found.setdefault((pattern, *rest[:-1]), []).append((name, rest[-1]))
    rows = []
    for (pattern, cls, path, reason, pays), each in found.items():
        calls = [count for _, count in each]
        rows.append(
            Explained(
                each[0][0] if len(each) == 1 else pattern,
                len(each),
                cls,
                path,
                reason,
                pays,
                None if None in calls else sum(calls),
            )
        )
    return Explanation(rows)
