# ruff: noqa: E501, RUF001
"""Writes tests/goldens/tokenizer/patterns.jsonl and properties.json: the matches of `tokenizers` (Oniguruma).

properties.json   for patterns of one character: how many of Unicode's characters match, and their sum
patterns.jsonl    a pattern, a text, and the pieces that Split makes of it

"""

import json
import sys
from pathlib import Path

from random_text import RandomText
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

OUT = Path(__file__).resolve().parents[2] / "tests/goldens/tokenizer"
CATEGORIES = """
L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp
""".split()  # noqa: SIM905
ONE_CHARACTER = [
    *(rf"\p{{{category}}}" for category in CATEGORIES),
    *(r"\s", r"\S", r"\d", r"\D", r"\w", r"\W", r"\h", r"\H", ".", r"(?m:.)"),
    *(r"\P{L}", r"\p{^N}", r"[^\s\p{L}\p{N}]", r"[^\r\n\p{L}\p{N}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
    *(r"(?i:s)", r"(?i:k)", r"(?i:i)", r"(?i:[a-z])", r"(?i:[^a-z])", r"(?i)[sdmt]", r"(?-i:s)"),
    *(
        "[一-龥\u3040-ゟ゠-ヿ]",
        r"[\x{4e00}-\x{9fff}]",
        r"[\u0041-\u005a]",
        r"[\w-]",
        r"[\d\s]",
        r"[\h.]",
        r"[^\w]",
        r"[\S\n]",
        r"[\b\v\e]",
        *(
            rf"\p{{{name}}}"
            for name in ("Han", "Latin", "greek", "Hani", "Old_Italic", "Common", "Zyyy", "Cherokee")
        ),
        *(
            rf"\p{{{name}}}"
            for name in ("C", "Cn", "Cf", "Any", "ASCII", "Letter", "lu", "Alphabetic", "Emoji", "^Thai")
        ),
        r"[\p{L}&&[^\p{Han}]]",
        r"[^\p{L}&&[^\p{Han}]]",
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
        r"[a-z&&[^aeiou]&&[a-m]]",
        r"[a-d[x-z]&&b-y]",
        r"[\P{L}]",
        r"[\W]",
        r"[\D\n]",
        r"[^\P{Greek}a]",
        *(
            rf"[[:{name}:]]"
            for name in ("alpha", "digit", "lower", "upper", "punct", "space", "xdigit", "blank", "cntrl")
        ),
        r"[[:^alpha:]_]",
        *(rf"[[:{name}:]]" for name in ("alnum", "graph", "print", "word", "ascii", "^graph")),
        *(rf"\p{{{name}}}" for name in ("Alnum", "Graph", "Print", "Word", "PosixPunct", "Digit", "^Word")),
        *(r"[\p{Word}]", r"[^\P{Word}&&[^_]]"),
        *(rf"\p{{{name}}}" for name in ("InBasicLatin", "In_Cyrillic", "in cjk_Unified-Ideographs")),
    ),
]
# Patterns of models in use.
MODELS = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
    r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\p{N}{1,3}(?=(?:\p{N}{3})*\b)",
]  # fmt: skip
MODELS += [
    r"[\p{Han}]+|[\p{L}&&[^\p{Han}]]+|\s+",
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]
# Patterns that Oniguruma and PCRE2 read differently, and edges of the syntax.
SYNTAX = [
    r"a{2}?", r"a{1,2}?", r"a{2,}?", r"a{,2}", r"a{1,2}+", r"a{2}+", r"a**", r"a+*", r"a?{2}", r"a{1,2}{2}", r"(?:ab)+?",
    r"a{", r"a{x}", r"a{}", r"a{,}", "}", "]", r"^a", r"a$", r"\Aa", r"a\z", r"a\Z", r"\bw", r"\B.", r"\G.", r"",
    r"x*", r"a|", r"(?=a)", r"(?<=a)b", r"(?<!a)b", r"(?>a+)b", r"(a|b)+", r"[a-]", r"[-a]", r"[a-c-e]", r"[a^]", r"[.]",
    r"\-\#\!\ \/", r"\é", r"\t|\n|\r|\f|\v|\a|\e", r"\x41", r"\x{e9}", r"\u00e9", r"(?#note)a", r"(?m:a.)", r"(?i)A|b",
    r"(?i:a(?-i:b))", r"(?i:'S)", r"(?i:[k])+", r"\S+\s", r"[^\S\n]+", r"\w+\W", r"\h+", r"#", r"(?:)", r"[\]\[]+", r"[é-ü]+",
    r"[a&&b]", r"[a&&b]b[a]", r"[a&&b]*b", r"[[a]&&]|b", r"[^a&&b]+",
]  # fmt: skip
TEXTS = [
    "aab\naab\n", "aaaaaab{x} a{ a{} a{,} ab]}-[", "(?<a>) é ü \u00c9 'S 's '\u017f K\u212ak Aab", " \t\n\r\f\v\a\x1b#! /",
    "ab cd\u00b2 w\u0301w _w 0aF9 g\u180e\u3000", "a.b\r\n\u2028c\u0085d e=mc\u00b2 …。१२३4567 \U00031350\U0002ebf0", "",
]  # fmt: skip


def pieces(pattern: str, text: str) -> list[str]:
    return [piece for piece, _ in Split(Regex(pattern), "isolated").pre_tokenize_str(text)]


def properties() -> list[dict]:
    codes = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    every = "".join(map(chr, codes))
    rows = []
    for pattern in ONE_CHARACTER:
        kept = Split(Regex(f"(?:{pattern})+"), "removed").pre_tokenize_str(every)
        count, total, end = 0, 0, 0
        for _, (begin, last) in [*kept, ("", (len(codes), 0))]:
            count += begin - end
            total += sum(codes[end:begin])
            end = last
        rows.append({"pattern": pattern, "count": count, "sum": total})
    return rows


def main() -> None:
    (OUT / "properties.json").write_text(json.dumps(properties(), indent=0) + "\n")
    source = RandomText(3, ["<|eot|>"])
    drawn = [source.draw() for _ in range(30)]
    rows = [(pattern, text) for pattern in SYNTAX for text in TEXTS]
    rows += [(pattern, text) for pattern in MODELS for text in TEXTS + drawn]
    lines = [json.dumps({"pattern": p, "text": t, "pieces": pieces(p, t)}) for p, t in rows]
    (OUT / "patterns.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
