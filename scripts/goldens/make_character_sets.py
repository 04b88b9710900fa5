"""Writes heddle/text/unicode/character_sets.cpp: what the stages of `tokenizers` take characters for.

It runs each stage on every character, so the tables hold whatever version of Unicode the stage has.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from make_normal_form_exceptions import spans
from tokenizers import normalizers, pre_tokenizers

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "heddle/text/unicode/character_sets.cpp"
HEAD = """\
// Written by scripts/goldens/make_character_sets.py.
#include "heddle/text/unicode/character_sets.h"

namespace heddle {
namespace {

"""


def bert(**on: bool) -> normalizers.Normalizer:
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**(off | on))


def having(stage: normalizers.Normalizer, is_in: Callable[[str, str], bool]) -> set[int]:
    """The characters for which is_in(character, what the stage makes of it)."""
    every = (chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)
    return {ord(char) for char in every if is_in(char, stage.normalize_str(char))}


def removed(char: str, made: str) -> bool:
    return made == ""


def spaced(char: str, made: str) -> bool:
    return made == " " and char != " "


def script_runs() -> list[tuple[int, int, int]]:
    """Ranges of characters of one script, and its number; characters without a script are left out."""
    stage = pre_tokenizers.UnicodeScripts()
    scalars = (chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)
    every = "".join(char for char in scalars if stage.pre_tokenize_str(char))
    known: list[str] = []
    runs = []
    for piece, _ in stage.pre_tokenize_str(every):
        same = (n for n, char in enumerate(known) if len(stage.pre_tokenize_str(char + piece[0])) == 1)
        number = next(same, len(known))
        if number == len(known):
            known.append(piece[0])
        runs += [(first, last, number) for first, last in spans(set(map(ord, piece)))]
    return sorted(runs)


def table(name: str, kind: str, rows: list[tuple[int, ...]]) -> str:
    cells = ["{" + ", ".join(f"0x{cell:X}" for cell in row) + "}" for row in rows]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) + 2 > 110:
            lines.append(line)
            line = "   "
        line += f" {cell},"
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n\n"


def main() -> None:
    clean, strip, nmt = bert(clean_text=True), bert(strip_accents=True), normalizers.Nmt()
    sets = {
        "kCleaned": having(clean, removed),
        "kCleanSpaces": having(clean, spaced),
        "kIdeographs": having(bert(handle_chinese_chars=True), lambda char, made: made == f" {char} "),
        "kNonspacingMarks": having(strip, removed),
        "kMarks": having(normalizers.StripAccents(), removed),
        "kNmtRemoved": having(nmt, removed),
        "kNmtSpaces": having(nmt, spaced),
    }
    text = HEAD
    for name, codes in sets.items():
        text += table(name, "CodeRange", spans(codes))
    text += table("kScripts", "ScriptRange", script_runs())
    text += "}  // namespace\n\n"
    functions = {
        "cleaned": "kCleaned", "clean_spaces": "kCleanSpaces", "ideographs": "kIdeographs",
        "nonspacing_marks": "kNonspacingMarks", "marks": "kMarks", "nmt_removed": "kNmtRemoved",
        "nmt_spaces": "kNmtSpaces",
    }  # fmt: skip
    for function, name in functions.items():
        text += f"std::span<const CodeRange> {function}() {{\n  return {name};\n}}\n"
    text += "std::span<const ScriptRange> scripts() {\n  return kScripts;\n}\n\n}  // namespace heddle\n"
    OUT.write_text(text)


if __name__ == "__main__":
    main()
