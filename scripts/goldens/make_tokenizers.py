"""Writes tests/goldens/tokenizer: small tokenizers of each kind, and the results of `tokenizers` on texts.

gpt2      ByteLevel with its own pattern, merges as "a b" strings
llama3    Split by Llama 3's pattern, ignore_merges, a template with a begin-of-text token
odd       a prefix space, Digits and Split stages, an alphabet with holes, and added tokens that strip
qwen      NFC and Split by Qwen's pattern
llama2    SentencePiece's BPE: Prepend and Replace, no pre-tokenizer, bytes as fallback
mistral   the same with Metaspace, before the first word only
gemma     Replace, and Split after each space
worded    NFKC, Lowercase and Strip; Whitespace, Punctuation and Metaspace; unknown characters; no bytes

and those of other_tokenizers.py.
"""

import json
import random
from pathlib import Path

from other_tokenizers import KINDS
from random_text import CONTRACTIONS, WORDS, RandomText
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

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/goldens/tokenizer"
CASES = {"gpt2": 300, "llama3": 300, "odd": 300}
OTHER_CASES = 120
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PEOPLE = ["Ann", "Ben", "Carla", "Dev", "Ela", "Farid", "Gita", "Hans"]
THINGS = ["loom", "thread", "heddle", "shuttle", "cloth", "basket", "lantern", "river", "bridge", "window"]
VERBS = ["lifts", "carries", "finds", "paints", "mends", "counts", "follows", "opens"]


def corpus(seed: int) -> list[str]:
    draw = random.Random(seed)
    lines = []
    for _ in range(2000):
        who, what, verb = draw.choice(PEOPLE), draw.choice(THINGS), draw.choice(VERBS)
        a, b = draw.randrange(100), draw.randrange(100)
        lines.append(
            draw.choice(
                [
                    f"{who} {verb} the {what}, and the {draw.choice(THINGS)} isn't {who}'s.",
                    f"What is {a} + {b}? It's {a + b}.\n",
                    f"    for (int i = {a}; i < {a + b}; ++i) {{ {what}[i] = {what[0]}_{b}; }}\n\n",
                    " ".join(draw.sample(WORDS, 6)) + draw.choice(CONTRACTIONS),
                ]
            )
        )
    return lines


def trained(
    pre_tokenizer: pre_tokenizers.PreTokenizer, alphabet: list[str], vocab_size: int, **model: object
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    special = [model["unk_token"]] if "unk_token" in model else []
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False, special_tokens=special
    )
    tokenizer.train_from_iterator(corpus(1), trainer)
    return tokenizer


def gpt2() -> Tokenizer:
    tokenizer = trained(
        pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.ByteLevel.alphabet(), 700
    )
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def llama3() -> Tokenizer:
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    stages = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer = trained(stages, pre_tokenizers.ByteLevel.alphabet(), 900)
    tokenizer.add_special_tokens(
        ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
        + [f"<|reserved_special_token_{i}|>" for i in range(12)]
    )
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    template = processors.TemplateProcessing(
        single="<|begin_of_text|> $A",
        pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
        special_tokens=[("<|begin_of_text|>", begin)],
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def odd() -> Tokenizer:
    stages = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Split("-", "merged_with_next"),
            pre_tokenizers.Split(Regex(r"[aeiou]"), "contiguous"),
            pre_tokenizers.Split(Regex(r"#+"), "removed"),
            pre_tokenizers.Split(Regex(r"[,.;]\s"), "merged_with_previous"),
            pre_tokenizers.ByteLevel(add_prefix_space=True),
        ]
    )
    tokenizer = trained(stages, [], 600, unk_token="<unk>", fuse_unk=True)
    tokenizer.add_tokens(
        [
            AddedToken("<mask>", lstrip=True, normalized=False),
            AddedToken("<end>", rstrip=True, normalized=False, special=True),
            AddedToken("<both>", lstrip=True, rstrip=True),
            AddedToken("word", single_word=True),
            AddedToken("wor", normalized=False),
            AddedToken("né", single_word=True, normalized=True),
            AddedToken("  ", normalized=True),
            AddedToken("the", normalized=False, single_word=True),
        ]
    )
    return tokenizer


def qwen() -> Tokenizer:
    pattern = LLAMA3.replace("{1,3}", "")
    stages = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer = trained(stages, pre_tokenizers.ByteLevel.alphabet(), 600)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens(
        [AddedToken("<think>", normalized=False), AddedToken("Zu\u0308rich", normalized=True)]
    )
    return tokenizer


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]


def pieces(vocab_size: int, metaspace: pre_tokenizers.PreTokenizer, **model: object) -> Tokenizer:
    """SentencePiece's kind of BPE: words begin with a mark for the space, and the alphabet has holes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, **model))
    tokenizer.pre_tokenizer = metaspace
    special = [*SPECIAL, *(BYTES if model.get("byte_fallback") else [])]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, limit_alphabet=70, show_progress=False, special_tokens=special
    )
    tokenizer.train_from_iterator(corpus(1), trainer)
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] in SPECIAL]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


def llama2() -> Tokenizer:
    tokenizer = pieces(700, pre_tokenizers.Metaspace(), byte_fallback=True)
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def mistral() -> Tokenizer:
    tokenizer = llama2()
    tokenizer.normalizer = None
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.add_special_tokens(["[INST]", "[/INST]"])
    tokenizer.add_tokens([AddedToken(" heddle", normalized=True, lstrip=True)])
    return tokenizer


def gemma() -> Tokenizer:
    tokenizer = pieces(700, pre_tokenizers.Metaspace(prepend_scheme="never"), byte_fallback=True)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(["<start_of_turn>", "<end_of_turn>"])
    tokenizer.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("\n\n\n", normalized=False)])
    return tokenizer


def worded() -> Tokenizer:
    tokenizer = pieces(500, pre_tokenizers.Metaspace())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"\p{N}{4,}"), "0"),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation("merged_with_next"),
            pre_tokenizers.Whitespace(),
            pre_tokenizers.Metaspace(prepend_scheme="always"),
        ]
    )
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_tokens(
        [AddedToken("WORD", single_word=True, normalized=True), AddedToken("Ǆ", normalized=True)]
    )
    return tokenizer


def write(name: str, tokenizer: Tokenizer) -> None:
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    file = json.loads(tokenizer.to_str())
    if name == "gpt2":
        file["model"]["merges"] = [" ".join(pair) for pair in file["model"]["merges"]]
    if name == "llama3":
        file["model"]["ignore_merges"] = True
        # A word that no merge makes; only ignore_merges finds it.
        vocab = file["model"]["vocab"]
        moved = "Ġquizzical"
        last = max(vocab, key=vocab.get)
        del file["model"]["merges"][-1]
        vocab[moved] = vocab.pop(last)
    sections = (f"{json.dumps(key)}: {json.dumps(part, ensure_ascii=False)}" for key, part in file.items())
    text = "{" + ",\n ".join(sections) + "}"
    (folder / "tokenizer.json").write_text(text + "\n", encoding="utf-8")

    loaded = Tokenizer.from_str(text)
    source = RandomText(
        7, [token.content for token in loaded.get_added_tokens_decoder().values()] + [" quizzical"]
    )
    lines = []
    for _ in range(CASES.get(name, OTHER_CASES)):
        drawn = source.draw()
        ids = loaded.encode(drawn).ids
        case = {
            "text": drawn,
            "ids": ids,
            "plain": loaded.encode(drawn, add_special_tokens=False).ids,
            "decoded": loaded.decode(ids, skip_special_tokens=False),
            "skipped": loaded.decode(ids, skip_special_tokens=True),
        }
        lines.append(json.dumps(case))
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
    print(f"{name}: {loaded.get_vocab_size()} tokens")


if __name__ == "__main__":
    for make in (gpt2, llama3, odd, qwen, llama2, mistral, gemma, worded):
        write(make.__name__, make())
    for make in KINDS:
        write(make.__name__, make(corpus(1)))
