"""Draws tokenizers: a model trained on a corpus, with stages in any order that `tokenizers` takes."""

import json
import random

from make_tokenizers import corpus
from other_tokenizers import charsmap
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

PATTERNS = [
    r"\p{Han}|\p{L}+",
    r"[\p{L}&&[^a-m]]+",
    r"\d",
    r"\s+",
    r"[[:punct:]]+",
    r"\p{Latin}+|\p{Cyrillic}+",
    r"[^\P{L}\p{Lu}]",
]
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def normalizer(draw: random.Random) -> normalizers.Normalizer:
    def flag() -> bool:
        return draw.random() < 0.5

    return draw.choice(
        [
            lambda: normalizers.BertNormalizer(flag(), flag(), draw.choice([None, True, False]), flag()),
            lambda: normalizers.Precompiled(charsmap()),
            lambda: normalizers.Replace(Regex(draw.choice(PATTERNS)), draw.choice(["", "a", " b"])),
            lambda: normalizers.Replace(draw.choice(["a", " ", "the"]), draw.choice(["", "▁", "xy"])),
            lambda: normalizers.Strip(flag(), flag()),
            lambda: normalizers.Prepend(draw.choice(["▁", "ab"])),
            *(normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD),
            *(normalizers.StripAccents, normalizers.Lowercase, normalizers.Nmt, normalizers.ByteLevel),
        ]
    )()


def pre_tokenizer(draw: random.Random) -> pre_tokenizers.PreTokenizer:
    def flag() -> bool:
        return draw.random() < 0.5

    scheme = draw.choice(["always", "first", "never"])
    return draw.choice(
        [
            lambda: pre_tokenizers.ByteLevel(add_prefix_space=flag(), use_regex=flag()),
            lambda: pre_tokenizers.CharDelimiterSplit(draw.choice("ae ▁")),
            lambda: pre_tokenizers.Metaspace(prepend_scheme=scheme, split=flag()),
            lambda: pre_tokenizers.Split(Regex(draw.choice(PATTERNS)), draw.choice(BEHAVIORS), flag()),
            lambda: pre_tokenizers.Punctuation(draw.choice(BEHAVIORS)),
            lambda: pre_tokenizers.Digits(flag()),
            lambda: pre_tokenizers.FixedLength(draw.randint(1, 9)),
            *(pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit),
            pre_tokenizers.UnicodeScripts,
        ]
    )()


def decoder(draw: random.Random) -> decoders.Decoder:
    def flag() -> bool:
        return draw.random() < 0.5

    return draw.choice(
        [
            lambda: decoders.BPEDecoder(draw.choice(["</w>", "e"])),
            lambda: decoders.WordPiece(draw.choice(["##", "▁", "t"]), flag()),
            lambda: decoders.Metaspace(prepend_scheme=draw.choice(["always", "first", "never"])),
            lambda: decoders.CTC(draw.choice(["<pad>", "a"]), "|", flag()),
            lambda: decoders.Replace(draw.choice(["▁", "e"]), draw.choice([" ", ""])),
            lambda: decoders.Strip(draw.choice(" ▁t"), draw.randint(0, 3), 0),
            *(decoders.ByteLevel, decoders.Fuse, decoders.ByteFallback),
        ]
    )()


def model(draw: random.Random, stage: pre_tokenizers.PreTokenizer) -> Tokenizer:
    kind = draw.choice(["BPE", "BPE", "Unigram", "WordPiece", "WordLevel"])
    prefix, suffix = draw.choice([(None, None), (None, None), ("##", None), (None, "</w>"), ("##", "</w>")])
    fallback = draw.random() < 0.5
    special = SPECIAL + (BYTES if fallback else [])
    common = {"special_tokens": special, "show_progress": False}
    options = {"unk_token": "<unk>"}
    if kind == "BPE":
        extra = {"continuing_subword_prefix": prefix, "end_of_word_suffix": suffix}
        extra = {name: value for name, value in extra.items() if value}
        options |= {"fuse_unk": draw.random() < 0.5, "byte_fallback": fallback} | extra
        trainer = trainers.BpeTrainer(vocab_size=700, limit_alphabet=60, **common, **extra)
    elif kind == "Unigram":
        options = {}
        trainer = trainers.UnigramTrainer(vocab_size=600, unk_token="<unk>", **common)
    elif kind == "WordPiece":
        trainer = trainers.WordPieceTrainer(vocab_size=600, limit_alphabet=60, **common)
    else:
        trainer = trainers.WordLevelTrainer(vocab_size=600, **common)
    tokenizer = Tokenizer(getattr(models, kind)(**options))
    tokenizer.pre_tokenizer = stage
    tokenizer.train_from_iterator(corpus(draw.randrange(99)), trainer)
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = file["added_tokens"][: len(SPECIAL)]
    if kind == "Unigram":
        file["model"]["byte_fallback"] = fallback
    if kind == "BPE" and draw.random() < 0.3:
        file["model"]["ignore_merges"] = True
    return Tokenizer.from_str(json.dumps(file))


def draw_tokenizer(seed: int) -> Tokenizer:
    draw = random.Random(seed)
    stages = [pre_tokenizer(draw) for _ in range(draw.randint(1, 3))]
    tokenizer = model(draw, pre_tokenizers.Sequence(stages))
    made = [normalizer(draw) for _ in range(draw.randint(0, 3))]
    if any(isinstance(stage, normalizers.ByteLevel) for stage in made) and "=first" in str(
        tokenizer.pre_tokenizer
    ):
        made = []  # a known difference: see heddle/text/tokenizer.h
    if made:
        tokenizer.normalizer = normalizers.Sequence(made)
    if draw.random() < 0.8:
        tokenizer.decoder = decoders.Sequence([decoder(draw) for _ in range(draw.randint(1, 4))])
    template = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    around = [
        template,
        processors.BertProcessing(("</s>", 2), ("<s>", 1)),
        processors.RobertaProcessing(("</s>", 2), ("<s>", 1)),
    ]
    tokenizer.post_processor = draw.choice(around)
    if not made:  # a token that the normalizer empties is refused
        tokenizer.add_tokens(
            [AddedToken("word", single_word=True), AddedToken("<m>", lstrip=True, rstrip=True)]
        )
    return tokenizer
