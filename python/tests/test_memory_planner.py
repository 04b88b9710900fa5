"""heddle.memory's planner: dynamic programming finds what trying all choices finds."""

import itertools
import random

import pytest

from heddle.memory import planner
from heddle.memory.options import Option
from heddle.memory.plan import Goal, bytes_of, make_plan


def chain_of(seed, blocks=4, most_options=5):
    rng = random.Random(seed)

    def option():
        kept, away = rng.randrange(0, 40), rng.choice((0, 0, rng.randrange(1, 40)))
        top = kept + away + rng.randrange(0, 30)
        return Option(kept, away, rng.random() * 4, top, top + rng.randrange(0, 30))

    def options():
        return [Option(60, 0, 0.0, 70, 80, is_plain=True)] + [
            option() for _ in range(rng.randrange(1, most_options))
        ]

    return planner.Chain(
        [planner.Block(options(), rng.random() * 5, rng.random() * 9) for _ in range(blocks)],
        head_ms=rng.random() * 3,
        head_peak=rng.randrange(0, 60),
        rate=rng.choice((4.0, 10.0, 100.0)),
        base=rng.randrange(0, 50),
    )


def every(chain):
    return itertools.product(*(range(len(block.options)) for block in chain.blocks))


@pytest.mark.parametrize("seed", range(40))
def test_finds_the_optimum(seed):
    chain = chain_of(seed)
    costs = [chain.evaluate(choice) for choice in every(chain)]
    assert planner.best(chain, min(peak for peak, _ in costs) - 1) is None
    last = float("inf")
    for budget in sorted({peak for peak, _ in costs})[:: max(1, len(costs) // 9)]:
        choice = planner.best(chain, budget)
        peak, ms = chain.evaluate(choice)
        assert peak <= budget
        assert ms == pytest.approx(min(ms for peak, ms in costs if peak <= budget), rel=1e-12)
        assert ms <= last  # more memory is never slower
        last = ms


@pytest.mark.parametrize("seed", range(20))
def test_least_peak_and_time_are_those_of_all_choices(seed):
    chain = chain_of(seed, blocks=3)
    costs = [chain.evaluate(choice) for choice in every(chain)]
    assert planner.least_peak(chain) == pytest.approx(min(peak for peak, _ in costs), abs=1)
    fastest = min(ms for _, ms in costs)
    for slowdown in (0.0, 0.05, 0.5):
        plan = make_plan(chain, ["block"] * 3, Goal(slowdown=slowdown))
        allowed = fastest * (1 + slowdown) + 1e-9
        assert plan.ms <= allowed
        assert plan.peak == pytest.approx(min(peak for peak, ms in costs if ms <= allowed), abs=1)


def test_long_chains_stay_within_the_budget():
    chain = chain_of(7, blocks=1, most_options=9)
    chain.blocks = chain.blocks * 80
    least = planner.least_peak(chain)
    for budget in (least, least * 2, least * 20):
        peak, _ = chain.evaluate(planner.best(chain, budget))
        assert peak <= budget


def test_names_the_least_peak_where_none_fits():
    from heddle import Unsupported

    chain = chain_of(3)
    with pytest.raises(Unsupported, match=r"no plan has a peak of 1 bytes: .* the least peak is \d+ bytes"):
        make_plan(chain, ["block"] * 4, Goal(peak=1))


@pytest.mark.parametrize(
    ("given", "size"), [(5, 5), ("40 GB", 40e9), ("36GiB", 36 * 2**30), ("1.5 MB", 1.5e6), ("7", 7)]
)
def test_sizes(given, size):
    assert bytes_of(given, "peak") == int(size)


@pytest.mark.parametrize("given", ["", "many", "4 XB", -1, 0, True, None])
def test_no_sizes(given):
    from heddle import InvalidArgument

    with pytest.raises(InvalidArgument, match="is no size"):
        bytes_of(given, "peak")


@pytest.mark.parametrize("given", [{}, {"peak": 1, "budget": 0.5}, {"budget": 2}, {"slowdown": "fast"}])
def test_goals_that_are_none(given):
    from heddle import InvalidArgument

    with pytest.raises(InvalidArgument):
        Goal.of(**{"peak": None, "budget": None, "slowdown": None, **given})
