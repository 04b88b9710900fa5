"""Trains the byte-level BPE and writes tokenizer.json in the form that Llama 3 has.

python train_tokenizer.py ..
"""

import argparse
from pathlib import Path

from corpus import documents
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

BEGIN, END = "<|begin_of_text|>", "<|end_of_text|>"

# Llama 3's pattern, except that digits stand alone: a small model adds digit by digit.
PATTERN = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


def train(stories: int, vocabulary: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BEGIN, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((text for chunk in documents(stories) for text in chunk), trainer)
    begin = tokenizer.token_to_id(BEGIN)
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN}:1 $B:1", special_tokens=[(BEGIN, begin)]
            ),
        ]
    )
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the tokenizer of the storyteller.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--stories", type=int, default=20000)
    parser.add_argument("--vocabulary", type=int, default=3072)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer = train(args.stories, args.vocabulary)
    tokenizer.save(str(args.out / "tokenizer.json"))
    print(f"{tokenizer.get_vocab_size()} tokens -> {args.out / 'tokenizer.json'}")


if __name__ == "__main__":
    main()
