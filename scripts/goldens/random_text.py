# ruff: noqa: RUF001
"""Random Unicode strings that are hard on a tokenizer: every plane, runs of white space, digits, combining
marks, contractions, near misses of added tokens, and plain words in several scripts."""

import random

SPACES = (
    " \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u180e"
    "\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
)
CONTRACTIONS = "'s 'S 't 're 'RE 'Ve 'm 'll 'LL 'd '\u017f \u2019s '' 'x '".split()  # noqa: SIM905
DIGITS = (
    "0123456789\u0660\u0669\u0966\u096f\uff10\uff19\xb2\xbd\u2167\u3007\u4e03\U0001d7d8\U0001f101\U00011de0"
)
MARKS = "\u0300\u0301\u0327\u0345\u064b\u0903\u093f\u0e31\U0001171e\u20dd\ufe0f\u200d\U0001e944\U000e0100"
WORDS = """
the The THE and of hello world don't it's you're we'll I'd I'm GPU warp thread tile straße İstanbul ﬁne ﬆ ſ
naïve \u212a café Ελλάδα ὀδυσσεύς Москва їжак שלום مرحبا नमस्ते हिन्दी ภาษาไทย ქართული 日本語 ひらがな カタカナ
中文 한국어 𝒳 🙂 👩\u200d👩\u200d👧 🇫🇷 e=mc² 3.14 x86_64 foo_bar() [i] {} == != <| |> http://a.b/c?d=e#f
1,000,000 12:30 \\n \\\\ $5 50%
""".split()  # noqa: SIM905
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡¿«»…—–‘’“”、。·€£¥§©®™°±×÷"
PLANES = [
    (0x20, 0x7E), (0, 0x7F), (0x80, 0x24F), (0x250, 0x7FF), (0x800, 0x1FFF), (0x2000, 0x2FFF),
    (0x3000, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x33FFF),
    (0xE0000, 0xE01EF), (0xF0000, 0x10FFFF),
]  # fmt: skip


class RandomText:
    """Draws strings; the same seed draws the same ones. `tokens`: added tokens to strew in."""

    def __init__(self, seed: int, tokens: list[str]) -> None:
        self.random = random.Random(seed)
        self.tokens = tokens

    def draw(self) -> str:
        kinds = {
            self.word: 8, self.spaces: 4, self.digits: 2, self.contraction: 2, self.marks: 1, self.token: 2,
            self.punctuation: 2, self.any_plane: 3, self.run: 1,
        }  # fmt: skip
        count = self.random.choice([0, 1, 2, 3, 5, 8, 13, 21])
        return "".join(part() for part in self.random.choices(list(kinds), list(kinds.values()), k=count))

    def some(self, chars: str, most: int) -> str:
        return "".join(self.random.choices(chars, k=self.random.randint(1, most)))

    def word(self) -> str:
        word = self.random.choice(WORDS)
        word = self.random.choice([word, word, word, word.upper(), word.capitalize()])
        return self.random.choice(["", " ", " "]) + word

    def spaces(self) -> str:
        return self.random.choice([" ", "\n", self.some("  \n\r\t", 8), self.some(SPACES, 4)])

    def digits(self) -> str:
        return self.random.choice([self.some("0123456789", 12), self.some(DIGITS, 5)])

    def contraction(self) -> str:
        return self.random.choice(CONTRACTIONS) + self.random.choice(["", " ", "a"])

    def marks(self) -> str:
        return self.random.choice("aeoxका אA ") + self.some(MARKS, 3)

    def token(self) -> str:
        if not self.tokens:
            return ""
        token = self.random.choice(self.tokens)
        cut = self.random.randrange(len(token) + 1)
        return self.random.choice([token, token, f" {token} ", token + token, token[:cut], token[cut:]])

    def punctuation(self) -> str:
        return self.some(PUNCTUATION, 4)

    def any_plane(self) -> str:
        low, high = self.random.choice(PLANES)
        return "".join(chr(self.random.randint(low, high)) for _ in range(self.random.randint(1, 4)))

    def run(self) -> str:
        return self.random.choice("aA 0\n'-é中🙂") * self.random.choice([2, 3, 7, 40])
