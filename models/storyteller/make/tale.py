"""Reads the text files of the grammar: records (tables of facts), rules (shared phrases) and plots.

A records file holds `key: value` lines, one record until an empty line. A rules file holds names, each
followed by indented templates. A plot file holds `draw:` lines, then sections, each followed by templates:

    draw: h=hero f=friend o=keepsake t=finds
    title
      {h} and the lost {o}
    * opening               "*" begins a paragraph, "-" goes on in it, "?" goes on half of the time
      {@once} there was ...
      (animal) ...          only in a scene with that flag; "(!animal)" only without it

Lines that start with "#" are comments.
"""

from dataclasses import dataclass, field
from pathlib import Path

from template import Template, parse


@dataclass
class Line:
    guard: str  # "", "flag" or "!flag"
    template: Template

    def fits(self, flags: set[str]) -> bool:
        if not self.guard:
            return True
        if self.guard.startswith("!"):
            return self.guard[1:] not in flags
        return self.guard in flags


@dataclass
class Section:
    mark: str  # "*", "-", "?" or "" for the title
    name: str
    lines: list[Line] = field(default_factory=list)


@dataclass
class Plot:
    name: str
    draws: list[tuple[str, str]]  # (slot, kind), in order
    titles: list[Line]
    sections: list[Section]


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [line.rstrip() for line in text.splitlines() if not line.lstrip().startswith("#")]


def read_records(path: Path) -> list[dict]:
    """Reads a table; every value is a template, so it may hold choices and slots."""
    records: list[dict] = []
    record: dict = {}
    for line in [*_lines(path), ""]:
        if line:
            key, colon, value = line.partition(": ")
            if not colon:
                raise ValueError(f"[{path.name}] not a 'key: value' line: {line!r}")
            record[key] = parse(value.strip())
        elif record:
            records.append(record)
            record = {}
    keys = {tuple(sorted(r)) for r in records}
    if len(keys) != 1:
        raise ValueError(f"[{path.name}] records with different keys: {sorted(keys)}; all must have the same")
    return records


def read_lists(path: Path) -> dict[str, list[str]]:
    """Reads `name: a; b; c` lines; a name that comes again adds to its list."""
    lists: dict[str, list[str]] = {}
    for line in _lines(path):
        if line:
            name, _, values = line.partition(": ")
            lists.setdefault(name, []).extend(v.strip() for v in values.split(";") if v.strip())
    return lists


def read_rules(path: Path) -> dict[str, list[Template]]:
    rules: dict[str, list[Template]] = {}
    name = ""
    for line in _lines(path):
        if line.startswith(" "):
            rules[name].append(parse(line.strip()))
        elif line:
            name = line
            rules[name] = []
    return rules


def read_plot(path: Path) -> Plot:
    plot = Plot(path.stem, [], [], [])
    lines: list[Line] = []
    for line in _lines(path):
        if line.startswith("draw: "):
            plot.draws += [tuple(pair.split("=")) for pair in line[6:].split()]
        elif line.startswith(" "):
            lines.append(_line(line.strip()))
        elif line == "title":
            lines = plot.titles
        elif line:
            mark, _, name = line.partition(" ")
            if mark not in ("*", "-", "?"):
                raise ValueError(f"[{path.name}] unknown section mark in {line!r}; '*', '-' or '?' is right")
            plot.sections.append(Section(mark, name))
            lines = plot.sections[-1].lines
    return plot


def _line(text: str) -> Line:
    guard = ""
    if text.startswith("("):
        guard, _, text = text[1:].partition(") ")
    return Line(guard, parse(text))
