"""Which rows have become slower than those of a baseline by 5 % or more.

A row's samples are times in units of known work that was timed next to them. Those of one process have more
in common than those of two, so a row that looks slower is measured again in new processes before it fails.
"""

import math
import statistics

TOLERANCE = 0.015  # a loss of so much is no loss: what compilers and neighbours change by themselves
# Of ops, where runs of equal code differ by up to 0.6 % as a whole: clocks, and places in memory.
SUITE_TOLERANCE = 0.025
LOSS = 0.05  # that is to be found
FEW, MOST = 5, 30  # samples
CONFIRMED = 10  # samples that a failure takes at least
SURE = 2.6  # standard deviations: one look in 200 is wrong where the loss is just the tolerance


def rank_score(samples, others):
    """By how many standard deviations `samples` tend to be above `others`: Mann and Whitney's U."""
    n, m = len(samples), len(others)
    above = sum((a > b) + 0.5 * (a == b) for a in samples for b in others)
    return (above - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)


def verdict(baseline, fresh, tolerance=TOLERANCE):
    """'slower', 'fine', or '' where more samples are needed."""
    most = len(fresh) >= MOST
    if len(fresh) < FEW:
        return ""
    if rank_score(fresh, [value * (1 + tolerance) for value in baseline]) > SURE and len(fresh) >= CONFIRMED:
        return "slower"
    if rank_score([value * (1 + LOSS) for value in baseline], fresh) > SURE or most:
        return "fine"
    return ""


def judge(baseline, take, fresh=(), tolerance=TOLERANCE):
    """The verdict, and the samples that it took; `take` measures one or a list of them, `fresh` are there."""
    fresh = list(fresh)
    while not (found := verdict(baseline, fresh, tolerance)):
        taken = take()
        fresh += taken if isinstance(taken, list) else [taken]
    return found, fresh


def change(baseline, fresh):
    return statistics.median(fresh) / statistics.median(baseline) - 1
