"""Which rows have become slower than those of a baseline by 5 % or more.

A row's samples are times in units of known work that was timed next to them. Those of one process have more
in common than those of two, so a row that looks slower is measured again in new processes before it fails.
"""

import math
import statistics

TOLERANCE = 0.015  # a loss of so much is no loss: what compilers and neighbours change by themselves
LOSS = 0.05  # that is to be found
# Runs of a suite differ as a whole, by up to 0.6 % (clocks, places in memory), so that a loss of 5 % may look
# like one of 4 %, and none like one of 1 %.
SUITE_BOUNDS = (0.02, 0.035)
HOST_BOUNDS = (0.10, 0.15)  # for times by the host's clock: processes differ by up to 7 %
WIDEST = 0.03  # half the distance of the quartiles, above which a loss of 5 % cannot be told from chance
DISTURBED = 0.2  # the slowest samples that are left out: what disturbs one only makes it longer
FEW, MOST = 5, 30  # samples
CONFIRMED = 10  # samples that a failure takes at least
SURE = 2.6  # standard deviations: one look in 200 is wrong where the loss is just the tolerance


def rank_score(samples, others):
    """By how many standard deviations `samples` tend to be above `others`: Mann and Whitney's U."""
    n, m = len(samples), len(others)
    above = sum((a > b) + 0.5 * (a == b) for a in samples for b in others)
    return (above - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)


def steady(samples):
    return sorted(samples)[: len(samples) - math.ceil(DISTURBED * len(samples))]


def verdict(baseline, fresh, bounds=(TOLERANCE, LOSS)):
    """'slower', 'fine', or '' where more samples are needed. `bounds`: a loss that is none, one that is."""
    tolerance, loss = bounds
    most = len(fresh) >= MOST
    if len(fresh) < FEW:
        return ""
    if rank_score(fresh, [value * (1 + tolerance) for value in baseline]) > SURE and len(fresh) >= CONFIRMED:
        return "slower"
    if rank_score([value * (1 + loss) for value in baseline], fresh) > SURE or most:
        return "fine"
    return ""


def judge(baseline, take):
    """The verdict, and the samples that it took; `take` measures one."""
    fresh = []
    while not (found := verdict(baseline, fresh)):
        fresh.append(take())
    return found, fresh


def half_width(samples):
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2 / middle


def verdict_of_row(baseline, fresh, bounds=SUITE_BOUNDS):
    """The word of `verdict`, or 'unclear' where the samples differ too much among themselves."""
    samples = steady(baseline), steady(fresh)
    found = verdict(*samples, bounds)
    wide = min(map(len, samples)) > 1 and max(map(half_width, samples)) > WIDEST
    return "unclear" if wide and (found == "slower" or len(fresh) >= MOST) else found


def judge_all(baselines, fresh, take, bounds=None):
    """Verdicts by name, "new" where there is no baseline. `take(names)` measures those that are not decided
    again, in a new process; their samples are added to those of `fresh`. `bounds`: by name, where others."""
    bounds = bounds or {}
    found = {name: "" if name in baselines else "new" for name in fresh}
    while True:
        for name, words in found.items():
            if not words:
                found[name] = verdict_of_row(baselines[name], fresh[name], bounds.get(name, SUITE_BOUNDS))
        if not (open_ones := [name for name, words in found.items() if not words]):
            return found
        taken = take(open_ones)
        for name in open_ones:
            if name in taken:
                fresh[name] = fresh[name] + taken[name]
            else:
                found[name] = "unclear"  # it could not be measured again


def verdict_line(verdicts):
    """Sums up the verdicts of all rows in a line."""
    verdicts = list(verdicts)
    counts = {word: verdicts.count(word) for word in ("slower", "unclear", "fine", "new")}
    parts = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    if counts["slower"]:
        return f"verdict: slower than the baseline ({parts})"
    if counts["unclear"] > counts["fine"]:
        return f"verdict: unclear, the machine is too busy ({parts})"
    return f"verdict: no row is slower than the baseline ({parts})"


def change(baseline, fresh):
    return statistics.median(fresh) / statistics.median(baseline) - 1
