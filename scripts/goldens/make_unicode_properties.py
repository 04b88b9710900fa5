"""Writes heddle/text/unicode/named_sets.txt: sets of characters with names.

It runs a Split of `tokenizers` on all characters for each property, so the tables hold Oniguruma's version of
Unicode. Scripts come from the package regex, without the characters that Oniguruma does not know, and so do
the blocks whose names it knows.
"""

import re
import sys
from pathlib import Path

import regex
from make_character_sets import line
from make_normal_form_exceptions import spans
from regex._regex_core import PROPERTIES
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

OUT = Path(__file__).resolve().parents[2] / "heddle/text/unicode/named_sets.txt"
# named_code_set() makes others of these.
NAMES = [
    "Alphabetic",
    "Lowercase",
    "Uppercase",
    "Emoji",
    "Alpha",
    "Upper",
    "Lower",
    "Cntrl",
    "Blank",
    "Punct",
]
NAMES += ["Space", "XDigit", "Cc", "Cf", "Cn", "Co", "White_Space"]
LETTERS = ["Lu", "Ll", "Lt", "Lm", "Lo"]
CATEGORIES = "Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp".split()  # noqa: SIM905
CODES = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
EVERY = "".join(map(chr, CODES))


def characters(pattern: str) -> list[tuple[int, int]] | None:
    """The ranges of what matches; none where `tokenizers` refuses the pattern."""
    try:
        stage = Split(Regex(f"{pattern}+"), "removed")
    except Exception:
        return None
    matched: list[int] = []
    end = 0
    for _, (begin, last) in [*stage.pre_tokenize_str(EVERY), ("", (len(CODES), 0))]:
        matched += CODES[end:begin]
        end = last
    return spans(set(matched))


def blocks() -> dict[str, list[tuple[int, int]]]:
    """Blocks that Oniguruma knows, without the ones of surrogates."""
    result = {}
    for name in PROPERTIES["BLOCK"][1]:
        found = regex.search(rf"\p{{Block={name}}}+", EVERY)
        try:
            Regex(rf"\p{{In_{name}}}")
        except Exception:
            continue
        if found and name != "NO_BLOCK":
            result[name] = [(CODES[found.start()], CODES[found.end() - 1])]
    return result


def plain(name: str) -> str:
    return re.sub(r"[ _-]", "", name).lower()


def lines(kind: str, sets: dict[str, list[tuple[int, int]]]) -> str:
    """A line for each set, with all of its names."""
    names: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for name in sorted(sets):
        names.setdefault(tuple(sets[name]), []).append(plain(name))
    return "".join(line(kind, alike, ranges) for ranges, alike in names.items())


def main() -> None:
    properties = {name: characters(rf"\p{{{name}}}") for name in NAMES}
    unknown = {code for first, last in properties["Cn"] for code in range(first, last + 1)}
    scripts = {}
    for name in PROPERTIES["SCRIPT"][1]:
        found = regex.finditer(rf"\p{{Script={name}}}+", EVERY)
        codes = {code for match in found for code in CODES[match.start() : match.end()]} - unknown
        if codes:
            scripts[name] = spans(codes)
    text = lines("block", blocks())
    text += lines("letter", {name: characters(rf"\p{{{name}}}") for name in LETTERS})
    text += lines("category", {name: characters(rf"\p{{{name}}}") for name in CATEGORIES})
    OUT.write_text(text + lines("property", properties) + lines("script", scripts))


if __name__ == "__main__":
    main()
