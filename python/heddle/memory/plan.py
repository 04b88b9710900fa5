"""A plan: the choice of each block, the memory and the time that follow, and other budgets."""

from dataclasses import dataclass

from heddle.display import bytes_text
from heddle.errors import InvalidArgument, Unsupported
from heddle.memory import planner

UNITS = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def bytes_of(given, name):
    """A number of bytes, as a number or as a text: 40e9, "40 GB", "36 GiB"."""
    if isinstance(given, str):
        text = given.strip().upper()
        number = text.rstrip("BKMGTI ")
        try:
            given = float(number) * UNITS[text[len(number) :].strip() or "B"]
        except (ValueError, KeyError):
            given = None
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not given > 0:
        raise InvalidArgument(f"[heddle.memory] {name} is no size; must be bytes, or a text such as '40 GB'")
    return int(given)


@dataclass
class Goal:
    """A plan is to reach it: a peak in bytes; a budget, from 0 (the least memory) to 1 (all is kept); or
    the lowest peak with which a step takes at most `slowdown` longer."""

    peak: int | None = None
    budget: float | None = None
    slowdown: float | None = None

    @classmethod
    def of(cls, peak, budget, slowdown):
        given = {"peak": peak, "budget": budget, "slowdown": slowdown}
        if sum(each is not None for each in given.values()) != 1:
            raise InvalidArgument(
                "[heddle.memory] give one of peak (bytes, or '40 GB'), budget (0 to 1) and slowdown (0.05 "
                "is 5 %); given: "
                + (", ".join(name for name, each in given.items() if each is not None) or "none")
            )
        if peak is not None:
            return cls(peak=bytes_of(peak, f"peak={peak!r}"))
        name, value = ("budget", budget) if budget is not None else ("slowdown", slowdown)
        if not isinstance(value, (int, float)) or not 0 <= value <= (1 if name == "budget" else 100):
            raise InvalidArgument(f"[heddle.memory] {name} is {value!r}; must be a number from 0 to 1")
        return cls(**{name: float(value)})


class Plan:
    """The choice of each block. `peak` is in bytes of the device's memory, `ms` in milliseconds from the
    first block's forward to the end of its backward: without the optimizer. `peak_of_all` and `ms_of_all`
    are those of a step that keeps everything; `least` is the lowest peak that a plan can have."""

    def __init__(self, chain, names, choice, goal=None, measured=None):
        self.chain, self.names, self.choice = chain, names, choice
        self.goal, self.measured = goal, measured
        self.peak, self.ms = chain.evaluate(choice)

    @property
    def peak_of_all(self):
        return self.chain.evaluate(self._plain())[0]

    @property
    def ms_of_all(self):
        return self.chain.evaluate(self._plain())[1]

    @property
    def least(self):
        return planner.least_peak(self.chain)

    def _plain(self):
        return [
            next(number for number, each in enumerate(block.options) if each.is_plain)
            for block in self.chain.blocks
        ]

    @property
    def options(self):
        return [block.options[number] for block, number in zip(self.chain.blocks, self.choice, strict=True)]

    @property
    def host_bytes(self):
        """Bytes of the host's memory that it fills."""
        return sum(each.offloaded for each in self.options)

    def table(self):
        """The plan as text: what each block keeps, offloads and makes again."""
        lines = [f"{'block':<34}{'keeps':>10}{'offloads':>10}{'again':>10}"]
        rows = list(zip(self.names, self.options, strict=True))
        at = 0
        while at < len(rows):
            end = at
            while end < len(rows) and rows[end][1] == rows[at][1]:
                end += 1
            name = rows[at][0] if end == at + 1 else f"{rows[at][0]} to {rows[end - 1][0].rpartition('.')[2]}"
            option = rows[at][1]
            lines.append(
                f"{name:<34}{bytes_text(option.kept):>10}{bytes_text(option.offloaded):>10}"
                f"{option.again_ms:>7.2f} ms"
            )
            at = end
        slower = self.ms / self.ms_of_all - 1 if self.ms_of_all else 0.0
        lines.append(
            f"predicted: peak {bytes_text(self.peak)} (all kept: {bytes_text(self.peak_of_all)}), "
            f"{self.ms:.1f} ms ({slower:+.1%})"
        )
        return "\n".join(lines)

    def frontier(self, count=10):
        """[(budget in bytes, Plan)] from the lowest peak to that of keeping everything."""
        low, high = self.least, max(self.peak_of_all, self.least)
        budgets = [low + (high - low) * each // max(count - 1, 1) for each in range(count)]
        return [(each, make_plan(self.chain, self.names, Goal(peak=each), self.measured)) for each in budgets]

    def __repr__(self):
        return f"<heddle.memory.Plan of {len(self.names)} blocks: {bytes_text(self.peak)}, {self.ms:.1f} ms>"


def make_plan(chain, names, goal, measured=None):
    """The best plan for a goal. Raises Unsupported, with the lowest peak, where no plan reaches it."""
    if goal.slowdown is not None:
        fastest = chain.evaluate(planner.fastest(chain))[1]
        choice = planner.within_time(chain, fastest * (1 + goal.slowdown))
        return Plan(chain, names, choice, goal, measured)
    least = planner.least_peak(chain)
    peak = goal.peak
    if peak is None:
        everything = Plan(chain, names, [0] * len(names)).peak_of_all
        peak = int(least + goal.budget * max(0, everything - least))
    choice = planner.best(chain, peak)
    if choice is None:
        raise Unsupported(
            f"[heddle.memory] no plan has a peak of {bytes_text(peak)}: "
            f"{bytes_text(chain.base)} are there before the first block, and the least peak is "
            f"{bytes_text(least)}; give that, a smaller batch, or shorter sequences"
        )
    return Plan(chain, names, choice, goal, measured)
