"""Small sums in words and digits, and the pairs that are held out of training.

    27 + 45 = 72.       0 to 999 each
    72 - 45 = 27.       never below zero
    7 x 8 = 56.         tables up to 12, none held out
    Question: Mila has 27 pears and finds 45 more. How many pears does Mila have now? Answer: 27 + 45 = 72.

A word problem's numbers are 2 to 99. Its answer shows the sum that it is: the numbers are copied first and
then computed side by side.

A pair of numbers is held out for "+" or "-" in every form, so that right answers on held-out pairs show that
the model computes. Pairs below ten are never held out.
"""

import random
import zlib
from dataclasses import dataclass

SIGNS = "+-x"
TABLES = 13  # 0 to 12
HELD_OUT_ONE_IN = 20
QUESTIONS = {
    "+": (
        "{n} has {a} {t} and finds {b} more. How many {t} does {n} have now?",
        "{n} picks {a} {t} in the morning and {b} {t} in the evening. How many {t} is that?",
        "There are {a} {t} in one basket and {b} {t} in another. How many {t} are there?",
        "{n} had {a} {t}. A friend gave {n} {b} more. How many {t} are there now?",
    ),
    "-": (
        "{n} has {a} {t} and gives away {b}. How many {t} are left?",
        "{n} had {a} {t} and lost {b} of them. How many {t} does {n} have now?",
        "There were {a} {t} in a basket. {n} took {b}. How many {t} are left?",
        "{n} needs {a} {t} and has {b}. How many {t} are missing?",
    ),
}


@dataclass(frozen=True)
class Sum:
    a: int
    sign: str
    b: int

    @property
    def answer(self) -> int:
        return {"+": self.a + self.b, "-": self.a - self.b, "x": self.a * self.b}[self.sign]

    @property
    def held_out(self) -> bool:
        if self.sign == "x" or max(self.a, self.b) < 10:
            return False
        return zlib.crc32(f"{self.a}{self.sign}{self.b}".encode()) % HELD_OUT_ONE_IN == 0

    @property
    def prompt(self) -> str:
        return f"{self.a} {self.sign} {self.b} ="


def ending(prompt: str, value: Sum) -> str:
    """The text that completes a prompt; a word problem shows its sum."""
    shown = f" {value.prompt}" if prompt.endswith(":") else ""
    return f"{shown} {value.answer}."


def draw_sum(rng: random.Random, limit: int = 1000) -> Sum:
    """Draws numbers of one, two or three digits; one in five has a carry or borrow that runs on."""
    sign = SIGNS[int(rng.random() * (3 if limit == 1000 else 2))]
    if sign == "x":
        return Sum(int(rng.random() * TABLES), sign, int(rng.random() * TABLES))
    a, b = (int(rng.random() * _limit(rng, limit)) for _ in range(2))
    if rng.random() < 0.2:
        tens = a // 10 % 10
        b += 10 * ((9 - tens if sign == "+" else tens) - b // 10 % 10)
    if sign == "-" and a < b:
        a, b = b, a
    return Sum(a, sign, b)


def _limit(rng: random.Random, limit: int) -> int:
    draw = rng.random()
    return limit if draw < 0.5 else min(limit, 100) if draw < 0.9 else 10


class SumMaker:
    """Makes prompts with their sums; `held_out` chooses the side of the split."""

    def __init__(self, lexicon):
        self.lexicon = lexicon
        self.names = lexicon.lists["girls"] + lexicon.lists["boys"]
        counted = [entry.split(",")[1] for entry in lexicon.lists["countables"]]
        self.things = counted + lexicon.lists["questions"]

    def make(self, rng: random.Random, held_out: bool = False, words: bool = False) -> tuple[str, Sum]:
        while True:
            value = draw_sum(rng, 100 if words else 1000)
            countable = not words or min(value.a, value.b) >= 2  # "has 1 pears" would be wrong
            if value.held_out == held_out and countable:
                break
        return (self._question(rng, value) if words else value.prompt), value

    def _question(self, rng: random.Random, value: Sum) -> str:
        """A word problem for a sum, up to "Answer:"."""

        def pick(options):
            return options[int(rng.random() * len(options))]

        name = self.lexicon.invent(pick) if pick(range(4)) == 0 else pick(self.names)
        text = pick(QUESTIONS[value.sign]).format(a=value.a, b=value.b, n=name, t=pick(self.things))
        return f"Question: {text} Answer:"

    def document(self, seed: int) -> str:
        """A finished training text; every third is a word problem."""
        rng = random.Random(seed)
        prompt, value = self.make(rng, words=rng.random() < 1 / 3)
        return prompt + ending(prompt, value)
