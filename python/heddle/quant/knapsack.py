"""The best choice of one option for each of many things under a limit of bytes, exactly."""

import math


def choose(options, limit):
    """Indices, one into each list of `options` [(bytes, cost), ...]: together at most `limit` bytes, at the
    least cost. None: even the smallest take more.

    A dynamic program over sums of bytes. It keeps those that no smaller sum undercuts, at most as many as the
    bytes have different sums."""
    kept = [(0, 0.0, None)]  # (bytes, cost, (index, those before)): bytes rise, costs fall
    for number, each in enumerate(options):
        left = sum(min(size for size, _ in later) for later in options[number + 1 :])
        sums = [
            (had + size, paid + cost, (index, before))
            for had, paid, before in kept
            for index, (size, cost) in enumerate(each)
            if had + size + left <= limit
        ]
        sums.sort(key=lambda found: found[:2])
        kept, least = [], math.inf
        for found in sums:
            if found[1] < least:
                least = found[1]
                kept.append(found)
        if not kept:
            return None
    chosen, before = [], kept[-1][2]
    while before is not None:
        chosen.append(before[0])
        before = before[1]
    return chosen[::-1]
