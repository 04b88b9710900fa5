"""Shows what patching did to a model, as a table."""

from dataclasses import dataclass

from heddle.display import fitted, table


@dataclass(frozen=True)
class Row:
    """A path that a part takes: `heddle ...`, or what runs instead and why.

    `modules` counts the modules that the row is about, `calls` those calls that took this path; None where
    nothing of the model was changed, so that nothing is counted.
    """

    part: str
    path: str
    reason: str
    modules: int
    calls: int | None
    pays: str = ""  # from which sizes calls of the part run in heddle

    @property
    def is_heddle(self):
        return self.path.startswith("heddle")


class Report(tuple):
    """The rows. `print` shows them as a table."""

    def of(self, part):
        """The rows of one part."""
        return tuple(row for row in self if row.part == part)

    def calls(self, part, heddle=True):
        """Counts a part's calls that ran in heddle, or else in the model's own code."""
        return sum(row.calls or 0 for row in self if row.part == part and row.is_heddle == heddle)

    def _repr_html_(self):
        rows = []
        for row in self:
            calls = "-" if row.calls is None else row.calls
            rows.append((row.part, row.path, row.modules, calls, row.reason or row.pays))
        return table(rows, ("part", "path", "modules", "calls", "reason"), "heddle.patch")

    def __repr__(self):
        if not self:
            return "not patched"
        lines = [("part", "path", "modules", "calls", "reason, or from which sizes")]
        for row in self:
            calls = "-" if row.calls is None else str(row.calls)
            lines.append((row.part, row.path, str(row.modules), calls, row.reason or row.pays))
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        text = []
        for part, path, modules, calls, reason in lines:
            cells = (part.ljust(widths[0]), path.ljust(widths[1]))
            cells += (modules.rjust(widths[2]), calls.rjust(widths[3]))
            text.append(fitted("  ".join(cells), reason))
        return "\n".join(text)
