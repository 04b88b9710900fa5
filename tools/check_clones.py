#!/usr/bin/env python3
"""Checks how much C++ and Python code of the tree is repeated."""

import measure

LIMIT = 0.04


def violations(root):
    wrong, rates = [], []
    for language, suffixes in (("C++", measure.CPP), ("Python", (".py",))):
        rate, runs = measure.clones(root, measure.files(root, suffixes))
        rates.append(f"{language} {rate:.1%}")
        if rate > LIMIT:
            wrong += [f"{language}: {rate:.1%} of lines stand twice; the limit is {LIMIT:.0%}", *runs[:20]]
    return wrong, ", ".join(rates) + f" in runs of {measure.CLONE_WINDOW} lines"


if __name__ == "__main__":
    measure.run("clones", violations)
