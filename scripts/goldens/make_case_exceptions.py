"""Writes heddle/text/unicode/case_exceptions.h: characters whose upper or title case is several characters.

The data are Python 3.11's own tables, which are those of Unicode 14.

"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAD = """\
// Characters whose upper or title case is several characters, by code point; the rest of the case mappings is
// utf8proc's.
// Written by scripts/goldens/make_case_exceptions.py.
#pragma once

namespace heddle {

struct CaseException {
  char32_t character;
  char32_t upper[4], title[4];  // 0 after the last
};

inline constexpr CaseException kCaseExceptions[] = {
"""


def main() -> None:
    rows = []
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if max(len(char.upper()), len(char.title())) > 1:
            upper, title = (
                "{" + ", ".join(f"0x{ord(c):X}" for c in s) + "}" for s in (char.upper(), char.title())
            )
            rows.append(f"    {{0x{code:X}, {upper}, {title}}},\n")
    (ROOT / "heddle/text/unicode/case_exceptions.h").write_text(
        HEAD + "".join(rows) + "};\n\n}  // namespace heddle\n"
    )


if __name__ == "__main__":
    main()
