"""Writes heddle/text/unicode/stage_sets.txt: what the stages of `tokenizers` take characters for.

It runs each stage on every character, so the tables hold whatever version of Unicode the stage has.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from make_normal_form_exceptions import spans
from tokenizers import normalizers, pre_tokenizers

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "heddle/text/unicode/stage_sets.txt"


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


def line(kind: str, names: list[str], ranges: Iterable[tuple[int, int]]) -> str:
    """A line of the tables that heddle/text/unicode/sets.cpp reads."""
    texts = (f"{first:x}" if first == last else f"{first:x}-{last:x}" for first, last in ranges)
    return f"{kind} {','.join(names)} {' '.join(texts)}\n"


def main() -> None:
    clean, strip, nmt = bert(clean_text=True), bert(strip_accents=True), normalizers.Nmt()
    sets = {
        "cleaned": having(clean, removed),
        "clean_spaces": having(clean, spaced),
        "ideographs": having(bert(handle_chinese_chars=True), lambda char, made: made == f" {char} "),
        "nonspacing_marks": having(strip, removed),
        "marks": having(normalizers.StripAccents(), removed),
        "nmt_removed": having(nmt, removed),
        "nmt_spaces": having(nmt, spaced),
    }
    text = "".join(line("stage", [name], spans(codes)) for name, codes in sets.items())
    runs: dict[int, list[tuple[int, int]]] = {}
    for first, last, script in script_runs():
        runs.setdefault(script, []).append((first, last))
    text += "".join(line("run", [str(script)], runs[script]) for script in sorted(runs))
    OUT.write_text(text)


if __name__ == "__main__":
    main()
