"""Writes heddle/text/unicode_additions.h: the characters that `tokenizers` knows and Unicode 14 lacks.

It runs a Split of `tokenizers` on one general category at a time, over all characters, and compares with
Python 3.11's own tables, which are those of Unicode 14, like those of PCRE2 10.42.

"""

import sys
import unicodedata
from pathlib import Path

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

ROOT = Path(__file__).resolve().parents[2]
CATEGORIES = """
Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co
""".split()  # noqa: SIM905

HEAD = """\
// Characters that Unicode 15 to 16 added, as ranges of one general category. Oniguruma 6.9.10, the pattern
// matcher of `tokenizers`, knows them; PCRE2 10.42 has the tables of Unicode 14.
// Written by scripts/goldens/make_unicode_additions.py.
#pragma once

#include <cstdint>

namespace heddle {

struct CategoryRange {
  uint32_t first, last;
  char category[3];
};

inline constexpr CategoryRange kUnicodeAdditions[] = {
"""


def characters_of(category: str, every: str) -> set[str]:
    kept = Split(Regex(rf"\p{{{category}}}"), "removed").pre_tokenize_str(every)
    return set(every) - set("".join(piece for piece, _ in kept))


def additions() -> list[tuple[int, int, str]]:
    every = "".join(chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)
    added = {}
    for category in CATEGORIES:
        for char in characters_of(category, every):
            if unicodedata.category(char) != category:
                added[ord(char)] = category
    ranges: list[tuple[int, int, str]] = []
    for code in sorted(added):
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == added[code]:
            ranges[-1] = (ranges[-1][0], code, added[code])
        else:
            ranges.append((code, code, added[code]))
    return ranges


def main() -> None:
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"this Python has Unicode {unicodedata.unidata_version}; 14.0.0 (Python 3.11) is needed")
    cells = [f'{{0x{first:X}, 0x{last:X}, "{category}"}},' for first, last, category in additions()]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + 1 + len(cell) > 110:
            lines.append(line)
            line = "   "
        line += " " + cell
    text = HEAD + "\n".join([*lines, line]) + "\n};\n\n}  // namespace heddle\n"
    (ROOT / "heddle/text/unicode_additions.h").write_text(text)


if __name__ == "__main__":
    main()
