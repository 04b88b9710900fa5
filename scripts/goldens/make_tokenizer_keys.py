"""Writes tests/goldens/tokenizer/keys.jsonl: which keys and values `tokenizers` accepts in each section.

The first line is a tokenizer.json. Each other one is [section, value, accepted]: the section of that file has
the value; an empty section is the file itself. REFUSED has what `tokenizers` accepts and heddle refuses.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer

OUT = Path(__file__).resolve().parents[2] / "tests/goldens/tokenizer/keys.jsonl"
BPE = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
    "vocab": {"a": 0, "b": 1, "ab": 2, "_": 3},
    "merges": ["a b"],
}
BASE = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
    "model": BPE,
}
SPACE = {"String": " "}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
METASPACE = {
    "type": "Metaspace",
    "replacement": "_",
    "prepend_scheme": "always",
    "split": True,
    "add_prefix_space": True,
}
SPECIAL, TEXT = {"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
SECTIONS = {
    "normalizer": [
        {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        {"type": "Strip", "strip_left": True, "strip_right": True},
        *(
            {"type": name}
            for name in ("StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "ByteLevel")
        ),
        {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="},
        {"type": "Replace", "pattern": SPACE, "content": "_"},
        {"type": "Prepend", "prepend": "_"},
    ],
    "pre_tokenizer": [
        *({"type": name} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")),
        BYTE_LEVEL,
        METASPACE,
        {"type": "CharDelimiterSplit", "delimiter": "x"},
        {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}]},
        {"type": "Split", "pattern": SPACE, "behavior": "Isolated", "invert": False},
        {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "Digits", "individual_digits": True},
        {"type": "FixedLength", "length": 5},
    ],
    "decoder": [
        *({"type": name} for name in ("Fuse", "ByteFallback")),
        BYTE_LEVEL,
        METASPACE,
        {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {"type": "CTC", "pad_token": "a", "word_delimiter_token": "|", "cleanup": True},
        {"type": "Sequence", "decoders": [{"type": "Fuse"}]},
        {"type": "Sequence", "decoders": []},
        {"type": "Replace", "pattern": SPACE, "content": "_"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
    "post_processor": [
        {
            "type": "RobertaProcessing",
            "sep": ["a", 0],
            "cls": ["b", 1],
            "trim_offsets": True,
            "add_prefix_space": True,
        },
        {"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]},
        BYTE_LEVEL,
        {
            "type": "TemplateProcessing",
            "single": [SPECIAL, TEXT],
            "pair": [TEXT, TEXT],
            "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}},
        },
        {"type": "Sequence", "processors": [BYTE_LEVEL]},
    ],
    "model": [
        BPE,
        {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]], "byte_fallback": False},
        {
            "type": "WordPiece",
            "unk_token": "a",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"a": 0, "b": 1},
        },
        {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"},
    ],
    "truncation": [{"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0}],
    "padding": [
        {
            "strategy": "BatchLongest",
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "a",
        },
        {
            "strategy": {"Fixed": 5},
            "direction": "Left",
            "pad_to_multiple_of": 8,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "a",
        },
    ],
}
ADDED = {
    "id": 4,
    "content": "<x>",
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": False,
    "special": True,
}
PATTERNS = [
    {"String": "a", "Regex": "b"},
    {"String": "a", "x": 1},
    {"x": 1},
    {"Regex": "(a"},
    {"Regex": 7},
    {},
]
# A type that is missing or unknown is inferred, in some sections.
INFERRED = {
    "decoder": [
        {"suffix": "x", "prefix": "##", "cleanup": True},
        {"type": "NFC", "pattern": SPACE, "content": ""},
        {"type": "Replace", "suffix": "x"},
    ],
    "model": [
        {"vocab": {"a": 0}, "unk_token": "a"},
        {"vocab": [["a", 0.0]]},
        {"vocab": [], "unk_id": None},
        {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "unk_token": "a"},
        {"vocab": {"a": 0}},
        {"type": "Unigram", "vocab": [["a", 1]]},
        {"type": "Unigram", "vocab": [["a", "x"]]},
        {"type": "Unigram", "vocab": [["a", 0.0], ["a", -1.0]], "unk_id": 0},
        {"type": "Unigram", "vocab": [{"0": 1}]},
        *(
            BPE | {"merges": merges}
            for merges in (
                ["a b", ["a", "b"]],
                [["a", "b"]],
                ["#version: 0.2", "a b"],
                [["#version", "x"]],
                ["a"],
                ["a  b"],
                ["a b c"],
                [["a", "b", "ab"]],
                ["a b", "a b"],
            )
        ),
    ],
    "post_processor": [
        *(
            {
                "type": "TemplateProcessing",
                "single": single,
                "pair": [],
                "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}},
            }
            for single in (
                ["$A"],
                "$A",
                [TEXT, TEXT],
                [SPECIAL],
                [{"Sequence": {"id": "A"}}],
                [{"Sequence": {"id": "C", "type_id": 0}}],
            )
        ),
        *(
            {
                "type": "TemplateProcessing",
                "single": [SPECIAL, TEXT],
                "pair": [],
                "special_tokens": {"a": token},
            }
            for token in (
                {"ids": [0], "tokens": ["a"]},
                {"id": "a", "ids": [0]},
                {"id": "b", "ids": [0], "tokens": []},
            )
        ),
    ],
}
REFUSED = [
    ("model", "dropout", 0.5),  # encoding would be random
    ("added_tokens", "id", 7),  # it would get another id
    ("post_processor", "special_tokens", {}),  # no text could be encoded
]


def variants(value: dict) -> Iterator[tuple[dict, str, object]]:
    """The value, with a key taken away, or of another kind, or added."""
    yield value, "", None
    for key in value:
        yield {name: old for name, old in value.items() if name != key}, key, None
        for new in (None, 7, "zz", True, [], {}, -1, 0.5):
            if type(new) is not type(value[key]) or new != value[key]:
                yield value | {key: new}, key, new
    yield value | {"zzz": 1}, "zzz", 1


def is_accepted(section: str, value: object) -> bool:
    file = copy.deepcopy(BASE)
    if section:
        file[section] = value
    else:
        file = value
    try:
        Tokenizer.from_str(json.dumps(file))
    except BaseException:  # it also panics
        return False
    return True


def main() -> None:
    rows = []
    for section, values in SECTIONS.items():
        for value in values:
            for varied, key, new in variants(value):
                refused = any(r == (section, key, new) and type(r[2]) is type(new) for r in REFUSED)
                rows.append([section, varied, is_accepted(section, varied) and not refused])
    for section, values in INFERRED.items():
        rows += [[section, value, is_accepted(section, value)] for value in values]
    for varied, key, new in variants(ADDED):
        refused = ("added_tokens", key, new) in REFUSED
        rows.append(["added_tokens", [varied], is_accepted("added_tokens", [varied]) and not refused])
    for pattern in PATTERNS:
        value = {"type": "Replace", "pattern": pattern, "content": ""}
        rows.append(["normalizer", value, is_accepted("normalizer", value)])
    rows += [["", varied, is_accepted("", varied)] for varied, _, _ in variants(BASE)]
    lines = [json.dumps(row, separators=(",", ":")) for row in [BASE, *rows]]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
