"""Compares heddle's sampling settings with transformers, live.

    .venv/bin/python scripts/parity_sampling.py [--heddle build/release/heddle] [--seed N] [--count N]

1. Random settings and logits: the scores after all processors (scripts/goldens/make_sampling.py), by the test
   of text in the same build.
2. The shipped model in fp32: greedy texts under settings that change them are those of transformers.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from comparison import ROOT, Program, Tally
from parity_eval import changed, load
from transformers.utils import logging

PROMPTS = ("Once upon a time", "Story: The brave fox", "27 + 45 =")
# Two logits that sums in another order can swap in fp32 differ by less.
NOISE = 1e-3
TOKENS = 60


def compare_scores(tally, program, seed, count):
    with tempfile.TemporaryDirectory() as scratch:
        cases = Path(scratch) / "cases.jsonl"
        make = [sys.executable, ROOT / "scripts/goldens/make_sampling.py", "--out", cases]
        subprocess.run([*make, "--seed", str(seed), "--count", str(count)], check=True)
        test = [Path(program).parent / "test_text", "--gtest_filter=LogitsProcessors.GiveTheScores*"]
        environment = os.environ | {"HEDDLE_SAMPLING_CASES": str(cases)}
        done = subprocess.run(test, env=environment, capture_output=True, text=True)
        ok = done.returncode == 0 and "[  PASSED  ] 1 test." in done.stdout
        tally.report("processed scores", ok, f"{count} random cases, seed {seed}")
        if not ok:
            print(done.stdout[-2000:], done.stderr[-2000:])


def settings_of(draw, vocab):
    """Settings of a greedy text, one at a time and all together."""
    bias = [[[draw.randrange(vocab)], draw.uniform(-9, 9)] for _ in range(40)]
    words = [[13], [15, draw.randrange(vocab)], [260], [311, 260]]
    each = {
        "repetition_penalty": draw.choice([1.2, 1.5]),
        "no_repeat_ngram_size": draw.choice([1, 2, 3]),
        "bad_words_ids": words,
        "sequence_bias": bias,
        "encoder_repetition_penalty": draw.choice([0.8, 1.3]),
        "encoder_no_repeat_ngram_size": draw.choice([1, 2]),
        "min_new_tokens": draw.choice([40, TOKENS]),
        "forced_eos_token_id": [draw.randrange(300, vocab)],
        "suppress_tokens": draw.sample(range(20, 300), 40),
        "begin_suppress_tokens": draw.sample(range(20, 300), 40),
    }
    return [*({name: value} for name, value in each.items()), each]


def same_as_far_as_clear(got, wanted, scores):
    """True if both texts are one, or part where two tokens are as good within fp32's noise."""
    for a, b, score in zip(got, wanted, scores, strict=False):
        if a != b:
            return abs(float(score[0, a] - score[0, b])) < NOISE
    return len(got) == len(wanted)


@torch.inference_mode()
def compare_texts(tally, program, folder, draw):
    model = load(folder)
    lines, wanted = [], []
    for prompt in PROMPTS:
        for settings in settings_of(draw, model.config.vocab_size):
            lines.append({"prompt": prompt, "max_tokens": TOKENS} | settings)
    with tempfile.TemporaryDirectory() as scratch:
        prompts, out = Path(scratch) / "prompts", Path(scratch) / "out"
        prompts.write_text("\n".join(map(json.dumps, lines)))
        program.run("generate", folder, "--prompts", prompts, "--out", out)
        results = {r["id"]: r for r in map(json.loads, out.read_text().splitlines())}
    for number, line in enumerate(lines, 1):
        result = results[number]
        ids = torch.tensor([result["prompt_tokens"]])
        settings = {k: v for k, v in line.items() if k not in ("prompt", "max_tokens")}
        made = model.generate(
            ids,
            do_sample=False,
            max_new_tokens=TOKENS,
            pad_token_id=1,
            output_scores=True,
            return_dict_in_generate=True,
            **settings,
        )
        wanted = made.sequences[0, ids.size(1) :].tolist()
        wanted = wanted[:-1] if wanted[-1] == model.config.eos_token_id else wanted
        what = f"{line['prompt']}: {', '.join(settings) if len(settings) == 1 else 'all'}"
        tally.report(
            what, same_as_far_as_clear(result["tokens"], wanted, made.scores), f"{len(wanted)} tokens"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    print(f"seed {arguments.seed}")
    tally = Tally()
    compare_scores(tally, arguments.heddle, arguments.seed, arguments.count)
    with tempfile.TemporaryDirectory() as scratch:
        fp32 = changed(Path(scratch) / "fp32", lambda tensor: tensor)
        compare_texts(tally, Program(arguments.heddle), fp32, random.Random(arguments.seed))
    if tally.failures:
        raise SystemExit(f"{tally.failures} comparisons failed; repeat with --seed {arguments.seed}")


if __name__ == "__main__":
    main()
