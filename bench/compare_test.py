"""The gate with made-up samples: it finds losses of 5 and 10 %, and seldom cries out over equal runs."""

import random
import unittest

from report import of_package

gate = of_package("compare")

SPREAD = 0.015  # between processes, as a fraction of their time


def times(seed, factor=1.0, spread=SPREAD):
    """Endless samples around `factor`; one in ten is disturbed and up to 15 % longer."""
    source = random.Random(seed)
    while True:
        value = factor * source.lognormvariate(0, spread)
        yield value * (1 + 0.15 * source.random() if source.random() < 0.1 else 1)


def judged(seed, factor, spread=SPREAD):
    before = times(2 * seed, spread=spread)
    baseline = [next(before) for _ in range(20)]
    after = times(2 * seed + 1, factor, spread)
    return gate.judge(baseline, lambda: next(after))


class Gate(unittest.TestCase):
    def test_equal_runs_seldom_fail(self):
        for spread in (0.005, SPREAD, 0.04):
            alarms = sum(judged(seed, 1.0, spread)[0] == "slower" for seed in range(1000))
            self.assertLess(alarms, 5, f"of 1,000 with a spread of {spread}: one in 200 is too many")

    def test_losses_are_found(self):
        for factor, least in ((1.05, 95), (1.10, 100)):
            found = sum(judged(seed, factor)[0] == "slower" for seed in range(100))
            self.assertGreaterEqual(found, least, f"of 100 that are {factor} times as long")

    def test_gains_do_not_fail_and_take_few_runs(self):
        for seed in range(100):
            found, fresh = judged(seed, 0.9)
            self.assertEqual(found, "fine")
            self.assertLess(len(fresh), 2 * gate.FEW)

    def test_a_row_is_measured_again_before_it_fails(self):
        for seed in range(20):
            found, fresh = judged(seed, 1.5)
            self.assertEqual((found, len(fresh)), ("slower", gate.CONFIRMED))

    def test_it_ends_where_nothing_can_be_known(self):
        _, fresh = judged(1, 1.03, spread=0.3)
        self.assertLessEqual(len(fresh), gate.MOST)


if __name__ == "__main__":
    unittest.main()
