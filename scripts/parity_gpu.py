"""Compares what heddle computes on a GPU with PyTorch on the same GPU, in fp32 and in bf16.

    python3 scripts/parity_gpu.py [--heddle build/release/heddle] [--executors launches,megakernel]
        [--positions 1,17,512] [--chunks 1,64] [--greedy 512] [--plain] [MODEL...]
    python3 scripts/parity_gpu.py --mixtures 20 [--families NAME...]

Exercises: heddle apps/heddle bench/peers

Without MODEL: the checkpoints in tests/goldens/models and the shipped ones; with --mixtures, random ones of
each family that has experts. The reference is transformers, or
the plain model of bench/peers where it is not installed. Without a GPU nothing is compared, and that is said,
unless --device cpu compares an executor of the CPU.

For each model, executor and chunk (rows of a step: 1 decodes, more prefill), one random text. What must hold:

1. From the position before up to each of --positions, heddle's error against fp32, largest and mean, is at
   most 1.2 times that of bf16. In a mixture tokens may take other experts: there the first quartile of the
   positions' errors counts, at most 1.2 times in the median of a family's texts, and 4 times in each.
2. The likeliest token is fp32's after each position where its best two are further apart than twice heddle's
   largest error.
3. Each token of a greedy text that heddle generates is fp32's choice there, or as close to it. Only for a
   model with a tokenizer.

heddle runs first, the reference after it: both need not fit the GPU together.
"""

import argparse
import random
import statistics
import sys
import tempfile
from collections import defaultdict
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
    reference_name,
    sizes,
)

ENOUGH = 5000  # logits: with fewer, the errors of two right programs can differ by more than the bound
PROMPT = "Once upon a time, 12 + 30 ="


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def ranges_of(positions, limit, vocab):
    """(begin, end) up to each position that the model has, joined where they hold too few logits to judge."""
    ends, ranges, begin = sorted({min(p, limit) for p in positions}), [], 0
    for end in ends:
        if (end - begin) * vocab >= ENOUGH or end == ends[-1]:
            ranges.append((begin, end))
            begin = end
    return ranges


def run_heddle(arguments, folder, tokens):
    """Results of each executor: logits by executor and chunk, greedy texts by executor."""
    logits, stories = {}, {}
    for executor in arguments.executors:
        flags = ["--generic"] if arguments.generic else []
        program = Program(arguments.heddle, "--executor", executor, *flags)
        for chunk in arguments.chunks:
            logits[executor, chunk] = program.logits(folder, tokens, "--chunk", chunk)
        if arguments.greedy and (folder / "tokenizer.json").exists():
            stories[executor] = program.greedy(folder, PROMPT, arguments.greedy)
    return logits, stories


class Comparison:
    def __init__(self, arguments):
        self.arguments, self.tally = arguments, Tally()
        self.of_bf16 = defaultdict(list)  # errors of mixtures, by family, executor and chunk

    def compare_range(self, what, parts, reference, of_texts):
        """Holds the errors over some positions against their bounds; returns the largest."""
        ours, fp32, bf16 = parts
        error, peer = (ours - fp32).abs(), (bf16 - fp32).abs()
        largest, mean = float(error.max()), float(error.mean())
        of_largest, of_mean = largest / float(peer.max()), mean / float(peer.mean())
        clear, same = clear_and_same(ours, fp32, largest)
        ok, most = of_largest <= BF16_FACTOR and of_mean <= BF16_FACTOR, largest
        numbers = f"max {largest:.2e}, mean {mean:.2e}; of bf16's {of_largest:.3f} and {of_mean:.3f}"
        if reference.may_flip:
            most = quiet_quarter(error)
            of_texts.append(most / quiet_quarter(peer))
            ok = of_texts[-1] <= LARGEST_FACTOR
            numbers += f", {of_texts[-1]:.3f} in the first quartile"
        if reference.is_fp32:
            ok = ok and most <= FP32_ERROR * float(fp32.square().mean().sqrt())
        numbers += f"; best equal at {int(same.sum())} of {len(same)}, {int(clear.sum())} clear"
        self.tally.report(what, ok and bool(same[clear].all()), numbers)
        return largest

    def compare_mixtures(self):
        for (family, executor, chunk), ratios in self.of_bf16.items():
            if ratios:
                median = statistics.median(ratios)
                numbers = f"of bf16's {median:.3f} in the median of {len(ratios)}, {max(ratios):.3f} at most"
                self.tally.report(f"{family}, {executor} by {chunk}", median <= BF16_FACTOR, numbers)

    def compare_story(self, what, reference, story, noise):
        prompt, chosen = story
        behind = greedy_behind(reference, prompt, chosen)
        numbers = f"{int((behind == 0).sum())} equal; behind the best by at most {float(behind.max()):.2e}"
        self.tally.report(f"{what}: greedy text of {len(chosen)}", bool((behind <= 2 * noise).all()), numbers)

    def compare(self, folder, generator, family=None):
        a = self.arguments
        vocab, limit = sizes(folder)
        ranges = ranges_of(a.positions, limit, vocab)
        tokens = [generator.randrange(vocab) for _ in range(ranges[-1][1])]
        logits, stories = run_heddle(a, folder, tokens)
        reference = Reference(folder, a.device, a.plain)
        fp32, bf16 = reference.logits(tokens)
        noise = dict.fromkeys(a.executors, 0.0)
        for (executor, chunk), ours in logits.items():
            ours = ours.to(fp32.device)
            of_texts = self.of_bf16[family or folder.name, executor, chunk]
            for begin, end in ranges:
                parts = [t[begin:end] for t in (ours, fp32, bf16)]
                what = f"{folder.name}, {executor} by {chunk}, {begin + 1} to {end}"
                largest = self.compare_range(what, parts, reference, of_texts)
                noise[executor] = max(largest, noise[executor])
        del logits, fp32, bf16
        for executor, story in stories.items():
            self.compare_story(f"{folder.name}, {executor}", reference, story, noise[executor])
        if a.greedy and not stories:
            print(f"     {folder.name}: no greedy text, since it has no tokenizer.json", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--heddle", type=Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--executors", type=lambda text: text.split(","), default=["launches", "megakernel"])
    parser.add_argument("--positions", type=numbers, default=[1, 17, 512], metavar="N,...")
    parser.add_argument("--chunks", type=numbers, default=[1, 64], metavar="N,...", help="rows of a step")
    parser.add_argument(
        "--greedy", type=int, default=512, metavar="N", help="tokens of a greedy text; 0: none"
    )
    parser.add_argument("--generic", action="store_true", help="kernels that read sizes; less to compile")
    parser.add_argument("--plain", action="store_true", help="the plain model, even if transformers is there")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="of the reference")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--mixtures", type=int, metavar="N", help="random mixtures, N seeds of each family")
    parser.add_argument("--families", nargs="+", help="only random ones of these")
    return parser.parse_args()


def compare_random(comparison, generator):
    """Needs transformers, which describes the random checkpoints."""
    from random_models import MIXTURES, make_random

    arguments = comparison.arguments
    families = arguments.families or MIXTURES
    for seed in range(arguments.seed, arguments.seed + arguments.mixtures):
        for family in families:
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / f"{family}-{seed}"
                try:
                    make_random(folder, seed, family)
                except KeyError as error:  # 5.17 wants a factor of every rope of DeepSeek
                    print(f"none {folder.name}: transformers cannot make it, for want of {error}", flush=True)
                    continue
                comparison.compare(folder, generator, family)


def main():
    arguments = parse_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print(f"nothing compared: torch {torch.__version__} finds no GPU")
        sys.exit(2 if arguments.models else 0)
    torch.set_float32_matmul_precision("highest")
    generator = random.Random(arguments.seed)
    print(f"seed {arguments.seed}; against {reference_name(arguments.plain)} on {arguments.device}")
    comparison = Comparison(arguments)
    if arguments.mixtures:
        compare_random(comparison, generator)
    shipped = [config.parent for config in sorted((ROOT / "models").glob("*/config.json"))]
    goldens = sorted((ROOT / "tests/goldens/models").iterdir())
    given = [] if arguments.mixtures else [*goldens, *shipped]
    for folder in arguments.models or given:
        comparison.compare(folder, generator)
    comparison.compare_mixtures()
    if comparison.tally.failures:
        raise SystemExit(
            f"{comparison.tally.failures} comparisons failed; repeat with --seed {arguments.seed}"
        )


if __name__ == "__main__":
    main()
