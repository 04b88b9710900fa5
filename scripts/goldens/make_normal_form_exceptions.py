"""Writes heddle/text/unicode/normal_form_exceptions.h: where `tokenizers` and utf8proc differ on characters.

`tokenizers` normalizes with older tables than utf8proc's and puts text into lower case with newer ones.
"""

import ctypes
import sys
import unicodedata
from pathlib import Path

from tokenizers import Regex, normalizers, pre_tokenizers

ROOT = Path(__file__).resolve().parents[2]
FORMS = [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD()]
LOWEST_CLASS, HIGHEST_CLASS = "\u0334", "\u0345"  # 1 and 240

HEAD = """\
// Where `tokenizers` and utf8proc 2.8 differ on single characters.
// Written by scripts/goldens/make_normal_form_exceptions.py.
#pragma once

namespace heddle {

// Characters that the older tables of `tokenizers` have no property for: nothing moves or joins across them.
struct PlainRange {
  char32_t first, last;
};
"""


def is_reordered(char: str, combining_class: int) -> bool:
    text = "a" + (char + LOWEST_CLASS if combining_class > 1 else HIGHEST_CLASS + char)
    return FORMS[1].normalize_str(text) != text


class Property(ctypes.Structure):
    """The beginning of utf8proc_property_t."""

    _fields_ = [("category", ctypes.c_int16), ("combining_class", ctypes.c_int16)]


def utf8proc() -> ctypes.CDLL:
    library = ctypes.CDLL("libutf8proc.so.2")
    library.utf8proc_get_property.restype = ctypes.POINTER(Property)
    for name in ("NFC", "NFD", "NFKC", "NFKD"):
        getattr(library, f"utf8proc_{name}").restype = ctypes.c_char_p
    return library


def spans(codes: set[int]) -> list[tuple[int, int]]:
    """Ranges, first and last, of consecutive numbers."""
    ranges: list[tuple[int, int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


def punctuation_differences() -> tuple[set[int], set[int]]:
    """Characters that the pattern matcher of `tokenizers` counts as punctuation and its stage Punctuation
    does not, and the reverse."""
    every = "".join(chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)
    patterns = pre_tokenizers.Split(Regex(r"[\p{P}$+<=>^`|~]"), "removed").pre_tokenize_str(every)
    stage = pre_tokenizers.Punctuation("removed").pre_tokenize_str(every)
    by_pattern, by_stage = (
        set(every) - set("".join(piece for piece, _ in pieces)) for pieces in (patterns, stage)
    )
    return {ord(char) for char in by_pattern - by_stage}, {ord(char) for char in by_stage - by_pattern}


def as_class(codes: set[int]) -> str:
    """The inside of a class of a pattern, as a C++ string."""
    return "".join(f"\\\\x{{{first:X}}}-\\\\x{{{last:X}}}" for first, last in spans(codes))


def main() -> None:
    theirs = utf8proc()
    plain: set[int] = set()
    lower: list[tuple[int, int]] = []
    for code in range(1, sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000:
            continue
        char = chr(code)
        forms = [
            getattr(theirs, f"utf8proc_{name}")(char.encode()) for name in ("NFC", "NFD", "NFKC", "NFKD")
        ]
        combining_class = theirs.utf8proc_get_property(code).contents.combining_class
        same = all(form.normalize_str(char).encode() == text for form, text in zip(FORMS, forms, strict=True))
        if not same or (combining_class and not is_reordered(char, combining_class)):
            plain.add(ord(char))
            parts = unicodedata.decomposition(char).split()
            if len(parts) == 2 and not parts[0].startswith("<"):
                plain.add(int(parts[1], 16))
        wanted = normalizers.Lowercase().normalize_str(char)
        if len(wanted) == 1 and ord(wanted) != theirs.utf8proc_tolower(code):
            lower.append((ord(char), ord(wanted)))
    text = HEAD + "inline constexpr PlainRange kPlainRanges[] = {\n"
    text += "".join(f"{{0x{first:X}, 0x{last:X}}}, " for first, last in spans(plain)) + "};\n\n"
    text += "struct LowerException {\n  char32_t character, lower;\n};\n"
    text += "inline constexpr LowerException kLowerExceptions[] = {\n"
    text += "".join(f"{{0x{code:X}, 0x{low:X}}}, " for code, low in lower) + "};\n\n"
    newer, older = punctuation_differences()
    text += (
        "// In a class of a pattern: what the stage Punctuation does not know yet, and what it knows still.\n"
    )
    text += f'inline constexpr const char* kNoPunctuation = "{as_class(newer)}";\n'
    text += (
        f'inline constexpr const char* kOldPunctuation = "{as_class(older)}";\n\n}}  // namespace heddle\n'
    )
    (ROOT / "heddle/text/unicode/normal_form_exceptions.h").write_text(text)


if __name__ == "__main__":
    main()
