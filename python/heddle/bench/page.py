"""The page of a run: plots and a table in one file, light or dark as the reader's system is."""

import html
import math
import statistics
from pathlib import Path

from heddle.bench.report import goal_text, more_lines, time_text

WIDTH = 1120
LABELS, RIGHT = 400, 210  # columns of a plot: names to the left, numbers to the right
LANE, BAR = 30, 12
MOST = 3.0  # on an axis: a row that is far faster than its peers does not squeeze the others
ORDER = ("heddle", "torch", "compile", "cudnn", "flex", "liger", "quack")


def escape(value):
    return html.escape(str(value))


def colour(name):
    return f"var(--{name})" if name in ORDER else "var(--dim)"


def tag(name, content="", **attributes):
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items()
    )
    return f"<{name}{words}>{content}</{name}>"


def at_line(x, y, text, kind=""):
    return tag("text", escape(text), x=round(x, 1), y=round(y, 1), class_=kind)


class Scale:
    """From a value to a place: linear from 0 to `most`, a round number."""

    def __init__(self, values, reference=1.0):
        most = max([reference * 1.1, *values])
        step = 10 ** math.floor(math.log10(most / 4))
        step *= next(f for f in (1, 2, 2.5, 5, 10) if f * step * 5 >= most)
        self.ticks = [step * i for i in range(math.ceil(most / step - 1e-9) + 1)]
        self.begin, self.end = LABELS, WIDTH - RIGHT

    def __call__(self, value):
        return self.begin + (self.end - self.begin) * min(value / self.ticks[-1], 1)


def vertical(x, top, bottom, stroke, **more):
    x = round(x, 1)
    return tag("line", x1=x, x2=x, y1=top, y2=bottom, stroke=f"var(--{stroke})", stroke_width=1, **more)


def bar(begin, end, middle, fill, said=""):
    width = round(max(1.0, end - begin), 1)
    inside = tag("title", escape(said)) if said else ""
    return tag("rect", inside, x=begin, y=middle - BAR / 2, width=width, height=BAR, rx=3, fill=fill)


def dot(x, middle, peer, said):
    inside = tag("title", escape(said))
    look = {"fill": colour(peer), "stroke": "var(--panel)", "stroke_width": 1.5}
    return tag("circle", inside, cx=round(x, 1), cy=middle, r=5.5, **look)


def lane(row, middle, scale, values, said):
    """One row of a plot. `values`: heddle's, its samples, and {peer: value}."""
    mine, samples, peers = values
    name, _, shape = row["work"].partition(" ")
    rest = shape if row["part"] == "forward" else f"{shape}, {row['part']}"
    yield f'<text x="0" y="{middle + 4}">{escape(name)} <tspan class="dim">{escape(rest)}</tspan></text>'
    yield bar(scale.begin, scale.end, middle, "var(--track)")
    label = f"heddle {time_text(row['us'])}, spread {row['spread']:.1%}"
    yield bar(scale.begin, scale(mine), middle, colour("heddle"), label)
    if mine > scale.ticks[-1]:
        yield at_line(scale.end - 4, middle + 4, "\u203a\u203a", "over end")
    else:
        yield from (vertical(scale(each), middle - 4, middle + 4, "panel", opacity=0.8) for each in samples)
    for peer, value in sorted(peers.items()):
        yield dot(scale(value), middle, peer, f"{peer} {time_text(row['peers'][peer]['us'])}")
    yield at_line(WIDTH - 116, middle + 4, time_text(row["us"]), "end")
    yield at_line(WIDTH, middle + 4, said, "end")


def plot(rows, values_of, text_of, axis):
    """A lane for each row: a bar for heddle, its samples, and a dot for each peer. A line goes through 1."""
    found = [(row, values_of(row)) for row in rows]
    scale = Scale([min(values[0], MOST) for _, values in found])
    bottom = len(rows) * LANE + 8
    parts = []
    for tick in scale.ticks:
        parts.append(vertical(scale(tick), 4, bottom, "line"))
        parts.append(at_line(scale(tick), bottom + 14, f"{tick:g}", "dim middle"))
    parts.append(at_line(scale.end, bottom + 28, axis, "dim end"))
    for number, (row, values) in enumerate(found):
        parts += lane(row, number * LANE + 20, scale, values, text_of(row))
    parts.append(vertical(scale(1), 4, bottom, "dim", stroke_dasharray="3 3"))
    return tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {bottom + 34}", role="img", aria_label=axis)


def against_peers(row):
    """Speeds in units of the fastest peer's."""
    fastest = row["peers"][row["fastest_peer"]]["us"]
    middle = sorted(row["units"])[len(row["units"]) // 2]
    samples = [row["ratio"] * middle / each for each in row["units"]]
    return row["ratio"], samples, {name: fastest / peer["us"] for name, peer in row["peers"].items()}


def against_ceiling(row):
    share = row["of_ceiling"]
    return share, [], {name: share / peer["ratio"] for name, peer in row["peers"].items()}


def verdict_class(row):
    words = goal_text(row)
    return "" if not words else "good" if words.startswith("ok") else "bad"


def table(result):
    names = [name for name in ORDER[1:] if any(name in row["peers"] for row in result["rows"])]
    compared = any("compared" in row for row in result["rows"])
    head = ["work", "heddle", "rate", "of ceiling", "goal", *names, *(["change"] if compared else [])]
    lines = []
    for row in result["rows"]:
        cells = [
            f"{escape(row['work'])}, {row['part']}",
            f"{time_text(row['us'])} <small>±{row['spread']:.1%}</small>",
            f"{row['rate']:.4g} {row['rate_unit']}" if "rate" in row else "",
            f"{row['of_ceiling']:.2f} <small>{row['ceiling']}</small>" if "of_ceiling" in row else "",
            f'<span class="{verdict_class(row)}">{goal_text(row)}</span>',
        ]
        for name in names:
            peer = row["peers"].get(name)
            cells.append(f"{time_text(peer['us'])} <small>{peer['ratio']:.2f}</small>" if peer else "")
        if compared:
            change = row.get("compared", {})
            kind = "bad" if change.get("verdict") == "slower" else ""
            cells.append(
                f'<span class="{kind}">{change["change"]:+.1%}</span>' if "change" in change else "new"
            )
        more = "".join(f"<br><small>{escape(text.strip())}</small>" for text in more_lines(row))
        lines.append(
            "<tr>"
            + "".join(tag("td", cell + (more if i == 0 else "")) for i, cell in enumerate(cells))
            + "</tr>"
        )
    top = tag("thead", tag("tr", "".join(tag("th", name) for name in head)))
    return tag("div", tag("table", top + tag("tbody", "".join(lines))), class_="scroll")


NOISY = 0.1  # spread of heddle's samples or the peer's, above which a ratio says little


def is_noisy(row):
    return max(row["spread"], row["peers"][row["fastest_peer"]]["spread"]) > NOISY


def tiles(result):
    rows = result["rows"]
    made = [
        (f"{ceiling['value']:.4g} {ceiling['unit']}", f"ceiling: {ceiling['of']}")
        for ceiling in result["ceilings"].values()
    ]
    with_peer = [row for row in rows if "ratio" in row]
    calm = [row["ratio"] for row in with_peer if not is_noisy(row)]
    if calm:
        noisy = f"; {len(with_peer) - len(calm)} noisy ones left out" if len(calm) < len(with_peer) else ""
        text = f"the fastest peer's speed, median of {len(calm)} rows{noisy}"
        made.append((f"{statistics.median(calm):.2f} x", text))
    goals = [verdict_class(row) for row in rows if verdict_class(row)]
    if goals:
        made.append((f"{goals.count('good')} of {len(goals)}", "goals reached"))
    return "".join(
        f'<div class="tile"><b>{escape(value)}</b><small>{escape(text)}</small></div>' for value, text in made
    )


def legend(rows):
    here = [name for name in ORDER if name == "heddle" or any(name in row["peers"] for row in rows)]
    words = "".join(f'<span><i style="background:{colour(name)}"></i>{name}</span>' for name in here)
    return f'<div class="legend">{words}</div>'


def notes(result):
    lines = [f"{name} is missing: {why}" for name, why in result["peers_missing"].items()]
    lines += [f"{name}: {why}" for name, why in result.get("failures", {}).items()]
    lines += [f"left out for lack of time: {name}" for name in result.get("left_out", ())]
    return "".join(tag("p", escape(each)) for each in lines)


def section(title, explained, content):
    return f"<section><h2>{title}</h2><p>{explained}</p>{content}</section>"


def render(result):
    rows = result["rows"]
    with_peers = [row for row in rows if "ratio" in row]
    with_ceiling = [row for row in rows if "of_ceiling" in row]
    title = f"heddle bench: {result['suite']} on {result['device']}"
    parts = [f"<h1>{escape(title)}</h1>"]
    versions = ", ".join(f"{name} {value}" for name, value in result["versions"].items())
    parts.append(tag("p", escape(f"{result['date']}, commit {result['commit']}, {versions}")))
    parts.append(tag("p", tag("code", escape(result["command"]))))
    parts.append(f'<div class="tiles">{tiles(result)}</div>')
    if with_peers:
        drawn = plot(
            with_peers, against_peers, lambda row: f"{row['ratio']:.2f} x", "speed; the fastest peer is 1"
        )
        explained = "Longer is faster. Light marks in a bar are its samples; a dot is a peer."
        parts.append(section("Speed next to peers", explained, legend(with_peers) + drawn))
    if with_ceiling:
        drawn = plot(
            with_ceiling,
            against_ceiling,
            lambda row: f"{row['of_ceiling']:.0%} of {row['ceiling']}",
            "share of the ceiling",
        )
        explained = "A copy of as many bytes, or the rate of torch's product, is 1."
        parts.append(section("Share of what the device can do", explained, legend(with_ceiling) + drawn))
    parts.append(
        section(
            "All numbers",
            "Small numbers next to a peer's time: how many times heddle's it is.",
            table(result),
        )
    )
    if made := notes(result):
        parts.append(section("What is not here", "", made))
    css = (Path(__file__).parent / "page.css").read_text()
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += tag("title", escape(title)) + tag("style", css)
    return f"<!doctype html>{tag('html', tag('head', head) + tag('body', ''.join(parts)), lang='en')}\n"
