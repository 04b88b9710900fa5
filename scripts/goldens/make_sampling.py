"""Writes tests/goldens/sampling/cases.jsonl: the results of transformers' logits processors on random logits.

    make_sampling.py [--out FILE] [--count N] [--seed N]

A case has settings, the text so far, logits (in 4096ths), and the processed scores of the tokens that are
kept. It is left out if fp32 and fp64, or limits that differ by NUDGE, keep different tokens: rounding would
decide it.

"""

import argparse
import json
import random
from pathlib import Path

import torch
from transformers import GenerationConfig
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)
from transformers.generation.utils import GenerationMixin

OUT = Path(__file__).resolve().parents[2] / "tests/goldens/sampling/cases.jsonl"
UNIT = 4096
NUDGE = 1e-4  # fp32 scores up to a few hundred are off by 1e-5, and so is the logarithm of a probability
# A processor for each setting, in the order of generate.
PROCESSORS = {
    "sequence_bias": SequenceBiasLogitsProcessor,
    "repetition_penalty": RepetitionPenaltyLogitsProcessor,
    "no_repeat_ngram_size": NoRepeatNGramLogitsProcessor,
    "bad_words_ids": NoBadWordsLogitsProcessor,
    "temperature": TemperatureLogitsWarper,
    "top_k": TopKLogitsWarper,
    "top_p": TopPLogitsWarper,
    "min_p": MinPLogitsWarper,
    "typical_p": TypicalLogitsWarper,
}


def check_order():
    """The order above is that of generate itself."""
    config = GenerationConfig(
        do_sample=True,
        sequence_bias=[[[1], 1.0]],
        repetition_penalty=1.5,
        no_repeat_ngram_size=2,
        bad_words_ids=[[3]],
        temperature=0.5,
        top_k=3,
        top_p=0.5,
        min_p=0.1,
        typical_p=0.5,
    )
    config._eos_token_tensor = None
    model = GenerationMixin()
    model.config = type("Config", (), {"is_encoder_decoder": False})()
    made = model._get_logits_processor(config, input_ids_seq_length=1, device="cpu")
    if [type(processor) for processor in made] != list(PROCESSORS.values()):
        raise SystemExit(f"generate has another order: {[type(p).__name__ for p in made]}")


def f32(value):
    return float(torch.tensor(value, dtype=torch.float32))


def some(draw, tokens, vocab, count):
    """Sequences of tokens, most of which the text is about to complete."""
    sequences = []
    for _ in range(count):
        before = draw.randint(0, 3)
        prefix = (
            tokens[len(tokens) - before :] if draw.random() < 0.8 else draw.choices(range(vocab), k=before)
        )
        sequences.append([*prefix, draw.randrange(vocab)])
    return [list(s) for s in dict.fromkeys(map(tuple, sequences))]


def draw_settings(draw, tokens, vocab):
    settings = {}

    def maybe(name, value, chance=0.35):
        if draw.random() < chance:
            settings[name] = value

    biases = [[s, f32(draw.uniform(-4, 4))] for s in some(draw, tokens, vocab, draw.randint(1, 6))]
    maybe("sequence_bias", biases)
    maybe("repetition_penalty", f32(draw.choice([0.7, 1.1, 1.3, 2.0])))
    maybe("no_repeat_ngram_size", draw.randint(1, 4))
    maybe("bad_words_ids", some(draw, tokens, vocab, draw.randint(1, 6)))
    if draw.random() < 0.8:
        settings["temperature"] = f32(draw.uniform(0.2, 2))
        maybe("top_k", draw.randint(1, vocab + 5))
        maybe("top_p", f32(draw.uniform(0.01, 0.999)))
        maybe("min_p", f32(draw.choice([0.01, 0.05, 0.3])))
        maybe("typical_p", f32(draw.uniform(0.05, 0.99)))
    return settings


def process(settings, tokens, logits):
    processors = LogitsProcessorList()
    for name, processor in PROCESSORS.items():
        if name in settings and not (name == "temperature" and settings[name] == 1):
            processors.append(processor(settings[name]))
    return processors(torch.tensor([tokens]), logits[None].clone())[0]


def nudged(settings):
    for factor in (1 - NUDGE, 1 + NUDGE):
        limits = {
            name: settings[name] * factor for name in ("top_p", "min_p", "typical_p") if name in settings
        }
        yield settings | limits


def draw_case(draw):
    vocab = draw.randint(20, 90)
    alphabet = draw.randint(2, vocab)  # a small one repeats itself
    tokens = draw.choices(range(alphabet), k=draw.randint(1, 30))
    spread = draw.choice([1, 3, 8])
    whole = [round(draw.gauss(0, spread) * UNIT) for _ in range(vocab)]
    settings = draw_settings(draw, tokens, vocab)
    exact = torch.tensor(whole, dtype=torch.float64) / UNIT
    scores, exact_scores = process(settings, tokens, exact.float()), process(settings, tokens, exact)
    kept = torch.isfinite(scores)
    others = [exact_scores, *(process(near, tokens, exact) for near in nudged(settings))]
    if not kept.any() or any(not torch.equal(kept, torch.isfinite(other)) for other in others):
        return None
    ids = kept.nonzero()[:, 0].tolist()
    values = [float(f"{value:.8g}") for value in exact_scores[kept].tolist()]
    return {"settings": settings, "tokens": tokens, "logits": whole, "kept": ids, "scores": values}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    check_order()
    draw = random.Random(arguments.seed)
    cases, left_out = [], 0
    while len(cases) < arguments.count:
        case = draw_case(draw)
        cases.append(case) if case else None
        left_out += case is None
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(case, separators=(",", ":")) for case in cases)
    arguments.out.write_text("\n".join(lines) + "\n")
    print(f"{len(cases)} cases; {left_out} were left out")


if __name__ == "__main__":
    main()
