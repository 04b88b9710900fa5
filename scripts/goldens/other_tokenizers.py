# ruff: noqa: RUF001
"""Small tokenizers of kinds besides byte-level and SentencePiece BPE, for make_tokenizers.py and parity.

bert      WordPiece after BertNormalizer and BertPreTokenizer; a template with [CLS] and [SEP]
xlmr      Unigram with a charsmap and Metaspace; RobertaProcessing
t5        Unigram with bytes as fallback, Nmt and StripAccents
words     WordLevel after UnicodeScripts
clip      BPE with a suffix at the end of words, after ByteLevel and a Split of what it spells
ctc       WordLevel of pieces of fixed length, with the decoder CTC
prefixed  BPE with a prefix inside of words
"""

import json
import struct

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

CHARACTERS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;:!?'\"()[]{}+-=_<>#*/é中文日本語한국"
)


class DoubleArray:
    """The double array of a charsmap (Darts-clone): texts, with what each is replaced by."""

    def __init__(self, replaced: dict[str, str]) -> None:
        self.blob = b""
        keys = []
        for text in sorted(replaced, key=lambda text: text.encode()):
            keys.append((text.encode(), len(self.blob)))
            self.blob += replaced[text].encode() + b"\0"
        self.units = [0] * 256
        self.used = {0}
        self.place(0, keys, 0)

    def place(self, at: int, keys: list[tuple[bytes, int]], depth: int) -> None:
        """Puts the children of the unit `at` where they fit."""
        labels = sorted({key[depth] if depth < len(key) else 0 for key, _ in keys})
        offset = next(
            offset
            for offset in range(1, 1 << 21)
            if all((at ^ offset ^ label) not in self.used for label in labels) and (at ^ offset) >= 256
        )
        base = at ^ offset
        top = (base | 255) + 1
        self.units += [0] * (top - len(self.units))
        self.units[at] |= offset << 10
        self.used.update(base ^ label for label in labels)
        for label in labels:
            rest = [item for item in keys if (item[0][depth] if depth < len(item[0]) else 0) == label]
            if label == 0:
                self.units[at] |= 1 << 8
                self.units[base] = rest[0][1] | 1 << 31
            else:
                self.units[base ^ label] |= label
                self.place(base ^ label, rest, depth + 1)

    def bytes(self) -> bytes:
        return struct.pack(f"<{len(self.units) + 1}I", 4 * len(self.units), *self.units) + self.blob


def charsmap() -> bytes:
    """A few changes of NFKC and the like, also of two characters together."""
    replaced = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    replaced |= {
        "ﬁ": "fi",
        "²": "2",
        "½": "1⁄2",
        "\t": " ",
        "\n": " ",
        "\r": " ",
        "\u3000": " ",
        "\u200b": "",
    }
    replaced |= {
        "e\u0301": "é",
        "a\u0308": "ä",
        "™": "TM",
        "…": "...",
        "①": "1",
        "カ\u3099": "ガ",
        "\xad": "",
    }
    return DoubleArray(replaced).bytes()


def unigram(corpus: list[str], vocab_size: int, special: list[str], **model: object) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, show_progress=False, special_tokens=special, unk_token="<unk>"
    )
    tokenizer.train_from_iterator(corpus, trainer)
    file = json.loads(tokenizer.to_str())
    file["model"] |= model
    return Tokenizer.from_str(json.dumps(file))


def bert(corpus: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=500, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_tokens([AddedToken("Loom", normalized=True), AddedToken("[word]", single_word=True)])
    return tokenizer


def xlmr(corpus: list[str]) -> Tokenizer:
    tokenizer = unigram(corpus, 400, ["<s>", "<pad>", "</s>", "<unk>"], unk_id=3)
    tokenizer.normalizer = normalizers.Precompiled(charsmap())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
    return tokenizer


def t5(corpus: list[str]) -> Tokenizer:
    special = ["<pad>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = unigram(corpus, 600, special, unk_id=2, byte_fallback=True)
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = file["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return tokenizer


def words(corpus: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=True, lowercase=False
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.UnicodeScripts(), pre_tokenizers.CharDelimiterSplit("o"), pre_tokenizers.Whitespace()]
    )
    tokenizer.train_from_iterator(
        corpus, trainers.WordLevelTrainer(show_progress=False, special_tokens=["<unk>"])
    )
    return tokenizer


def clip(corpus: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Split("Ġ", "merged_with_previous"),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=900, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>",
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.decoder = decoders.BPEDecoder()
    return tokenizer


def ctc(corpus: list[str]) -> Tokenizer:
    vocab = {"<pad>": 0, "<unk>": 1, "|": 2} | {char: i + 3 for i, char in enumerate(CHARACTERS)}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "|")
    tokenizer.pre_tokenizer = pre_tokenizers.FixedLength(length=1)
    tokenizer.decoder = decoders.CTC()
    return tokenizer


def prefixed(corpus: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(
        vocab_size=500, show_progress=False, special_tokens=["<unk>"], continuing_subword_prefix="##"
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.WordPiece(cleanup=False),
            decoders.Strip("T", 1, 0),
            decoders.Fuse(),
            decoders.Strip(".", 2, 0),
        ]
    )
    return tokenizer


KINDS = (bert, xlmr, t5, words, clip, ctc, prefixed)
