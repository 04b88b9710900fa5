"""Compares heddle's logits and greedy tokens with transformers, live.

    .venv/bin/python scripts/parity_model.py [--heddle build/release/heddle] [--seed N] [MODEL...]

Without MODEL: the checkpoints in tests/goldens/models, the shipped model, and random ones made on the spot.
The reference is transformers in fp32 on the checkpoint as it is loaded. What must hold:

1. For each checkpoint, over all texts: heddle's error, root mean square and largest of 99.9 % of the
   logits, is at most 1.2 times that of transformers in bf16; the largest of all, which may be one token's bad
   luck, at most 4 times. Where the weights are fp32 it is also at most 1e-3 of the rms of the logits.
   In a mixture tokens may take other experts: there the first quartile of a text's tokens counts, at most 1.2
   times in the median text, and 4 times in each.
2. For each text: the likeliest token is the same after each position where the reference's best two are
   further apart than twice heddle's error.
3. Each token of a greedy text that heddle generates is the reference's own choice there, or as close to it.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

import torch
from comparison import (
    BF16_FACTOR,
    FP32_ERROR,
    LARGEST_FACTOR,
    ROOT,
    Program,
    Reference,
    Tally,
    clear_and_same,
    greedy_behind,
    quiet_quarter,
)
from tokenizers import Tokenizer
from transformers.utils import logging

sys.path.append(str(ROOT / "scripts/goldens"))

from random_models import NAMES, make_random

LENGTHS = (1, 2, 17, 64, 129, 300)
PROMPT = "Once upon a time, 12 + 30 ="


def tail(errors):
    """The 99.9th percentile of the errors."""
    return float(errors.abs().kthvalue(max(1, int(0.999 * len(errors)))).values)


class Parity(Tally):
    def __init__(self, heddle):
        super().__init__()
        self.program = Program(heddle)

    def compare_logits(self, reference, tokens):
        """Checks one text; returns the errors of heddle and of bf16, and the reference."""
        fp32, bf16 = reference.logits(tokens)
        ours = self.program.logits(reference.folder, tokens)
        largest = float((ours - fp32).abs().max())
        clear, same = clear_and_same(ours, fp32, largest)
        self.report(
            f"{reference.folder.name}: {len(tokens)} tokens",
            bool(same[clear].all()),
            f"error {largest:.2e}; best equal at {int(same.sum())} of {len(same)}, {int(clear.sum())} clear",
        )
        return ours - fp32, bf16 - fp32, fp32

    def compare_errors(self, reference, texts):
        """Holds the errors of all texts against those of bf16; returns heddle's largest."""
        error, peer, logits = (torch.cat(parts).flatten() for parts in zip(*texts, strict=True))
        largest, rms = float(error.abs().max()), float(error.square().mean().sqrt())
        of_largest = largest / float(peer.abs().max())
        of_tail = tail(error) / tail(peer)
        of_rms = rms / float(peer.square().mean().sqrt())
        ok = max(of_tail, of_rms) <= BF16_FACTOR and of_largest <= LARGEST_FACTOR
        most = largest
        if reference.may_flip:
            of_texts = sorted(quiet_quarter(ours) / quiet_quarter(theirs) for ours, theirs, _ in texts)
            most = quiet_quarter(torch.cat([ours for ours, _, _ in texts]))
            ok = of_texts[len(of_texts) // 2] <= BF16_FACTOR and of_texts[-1] <= LARGEST_FACTOR
        if reference.is_fp32:
            ok = ok and most <= FP32_ERROR * float(logits.square().mean().sqrt())
        ratios = f"{of_largest:.4f} and {of_rms:.4f} of bf16's, {of_tail:.4f} in the tail"
        numbers = f"largest {largest:.2e}, rms {rms:.2e}: {ratios}"
        self.report(f"{reference.folder.name}: error", ok, numbers)
        return largest

    def compare_greedy(self, reference, count, noise):
        text, chosen = self.program.greedy(reference.folder, PROMPT, count)
        encoded = Tokenizer.from_file(str(reference.folder / "tokenizer.json")).encode(PROMPT).ids
        if text != encoded:
            raise RuntimeError(f"{reference.folder}: the prompt became {text}; tokenizers makes {encoded}")
        behind = greedy_behind(reference, text, chosen)
        numbers = f"{int((behind == 0).sum())} equal; behind the best by at most {float(behind.max()):.2e}"
        ok = bool((behind <= 2 * noise).all())
        self.report(f"{reference.folder.name}: greedy text of {len(chosen)}", ok, numbers)

    def compare(self, folder, generator):
        reference = Reference(folder)
        texts = []
        for count in LENGTHS:
            if count <= reference.limit:
                tokens = [generator.randrange(reference.vocab) for _ in range(count)]
                texts.append(self.compare_logits(reference, tokens))
        noise = self.compare_errors(reference, texts)
        if (folder / "tokenizer.json").exists():
            self.compare_greedy(reference, 24, noise)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=6, help="how many random Llamas and GPT-2s")
    parser.add_argument("--families", nargs="+", choices=NAMES, help="only random ones of these")
    arguments = parser.parse_args()
    logging.disable_progress_bar()
    print(f"seed {arguments.seed}")
    generator = random.Random(arguments.seed)
    parity = Parity(arguments.heddle)
    shipped = [folder.parent for folder in sorted((ROOT / "models").glob("*/config.json"))]
    goldens = sorted((ROOT / "tests/goldens/models").iterdir())
    given = [] if arguments.families else [*goldens, *shipped]
    for folder in arguments.models or given:
        parity.compare(folder, generator)
    if not arguments.models:
        with tempfile.TemporaryDirectory() as scratch:
            for number, family in enumerate([None] * arguments.random + list(NAMES)):
                if arguments.families and family not in arguments.families:
                    continue
                folder = Path(scratch) / f"{family or 'random'}-{arguments.seed + number}"
                make_random(folder, arguments.seed + number, family)
                parity.compare(folder, generator)
    if parity.failures:
        raise SystemExit(f"{parity.failures} comparisons failed; repeat with --seed {arguments.seed}")


if __name__ == "__main__":
    main()
