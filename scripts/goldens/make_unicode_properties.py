"""Writes heddle/text/unicode/scripts.cpp and properties.cpp: sets of characters that Oniguruma has names for.

It runs a Split of `tokenizers` on all characters for each name, so the tables hold Oniguruma's version of Unicode.
"""

import re
import sys
from pathlib import Path

from make_character_sets import table
from make_normal_form_exceptions import spans
from regex._regex_core import PROPERTIES
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

FOLDER = Path(__file__).resolve().parents[2] / "heddle/text/unicode"
# Others are made of general categories.
NAMES = ["Alphabetic", "Lowercase", "Uppercase", "Emoji", "Emoji_Presentation", "Extended_Pictographic", "Alnum",
         "Upper", "Lower", "Alpha", "Graph", "Print", "Cntrl", "Blank", "Punct", "Space", "XDigit", "Word", "Digit",
         "ASCII", "Any", "Assigned", "C", "Cc", "Cf", "Cn", "Co", "White_Space", "Ideographic", "LC"]  # fmt: skip
HEAD = """\
// Written by scripts/goldens/make_unicode_properties.py.
#include "heddle/text/unicode/code_set.h"

namespace heddle {
namespace {

"""
EVERY = "".join(chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)


def characters(pattern: str) -> list[tuple[int, int]] | None:
    """The ranges of what matches; none where `tokenizers` refuses the pattern."""
    try:
        stage = Split(Regex(pattern), "removed")
    except Exception:
        return None
    kept = set("".join(piece for piece, _ in stage.pre_tokenize_str(EVERY)))
    return spans({ord(char) for char in EVERY if char not in kept})


def plain(name: str) -> str:
    return re.sub(r"[ _-]", "", name).lower()


def write(file: str, function: str, names: list[str]) -> None:
    tables: dict[tuple, str] = {}
    entries = {}
    text = HEAD
    for name in names:
        ranges = characters(rf"\p{{{name}}}")
        if ranges is None:
            continue
        if tuple(ranges) not in tables:
            tables[tuple(ranges)] = f"k{len(tables)}"
            text += table(f"k{len(tables) - 1}", "CodeRange", ranges)
        entries[plain(name)] = tables[tuple(ranges)]
    rows = " ".join(f'{{"{name}", {ranges}}},' for name, ranges in sorted(entries.items()))
    text += f"constexpr NamedRanges kNames[] = {{\n{rows}\n}};\n\n}}  // namespace\n\n"
    text += f"std::span<const NamedRanges> {function}() {{\n  return kNames;\n}}\n\n}}  // namespace heddle\n"
    (FOLDER / file).write_text(text)


def main() -> None:
    write("properties.cpp", "property_names", NAMES)
    write("scripts.cpp", "script_names", sorted(PROPERTIES["SCRIPT"][1]))


if __name__ == "__main__":
    main()
