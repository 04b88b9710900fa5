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
    EncoderNoRepeatNGramLogitsProcessor,
    EncoderRepetitionPenaltyLogitsProcessor,
    EpsilonLogitsWarper,
    EtaLogitsWarper,
    ExponentialDecayLengthPenalty,
    ForcedBOSTokenLogitsProcessor,
    ForcedEOSTokenLogitsProcessor,
    LogitsProcessorList,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopHLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)
from transformers.generation.utils import GenerationMixin

OUT = Path(__file__).resolve().parents[2] / "tests/goldens/sampling/cases.jsonl"
UNIT = 4096
NUDGE = 1e-4  # fp32 scores up to a few hundred are off by 1e-5, and so is the logarithm of a probability
# The settings of GenerationConfig and their processors, in the order of generate.
PROCESSORS = {
    "sequence_bias": SequenceBiasLogitsProcessor,
    "encoder_repetition_penalty": EncoderRepetitionPenaltyLogitsProcessor,
    "repetition_penalty": RepetitionPenaltyLogitsProcessor,
    "no_repeat_ngram_size": NoRepeatNGramLogitsProcessor,
    "encoder_no_repeat_ngram_size": EncoderNoRepeatNGramLogitsProcessor,
    "bad_words_ids": NoBadWordsLogitsProcessor,
    "min_length": MinLengthLogitsProcessor,
    "min_new_tokens": MinNewTokensLengthLogitsProcessor,
    "forced_bos_token_id": ForcedBOSTokenLogitsProcessor,
    "forced_eos_token_id": ForcedEOSTokenLogitsProcessor,
    "exponential_decay_length_penalty": ExponentialDecayLengthPenalty,
    "suppress_tokens": SuppressTokensLogitsProcessor,
    "begin_suppress_tokens": SuppressTokensAtBeginLogitsProcessor,
    "temperature": TemperatureLogitsWarper,
    "top_h": TopHLogitsWarper,
    "top_k": TopKLogitsWarper,
    "top_p": TopPLogitsWarper,
    "min_p": MinPLogitsWarper,
    "typical_p": TypicalLogitsWarper,
    "epsilon_cutoff": EpsilonLogitsWarper,
    "eta_cutoff": EtaLogitsWarper,
}


def processors_of(settings, text):
    """The processors that generate itself makes."""
    names = dict(settings)
    if "exponential_decay_factor" in names:
        names["exponential_decay_length_penalty"] = (
            names.pop("exponential_decay_start"),
            names.pop("exponential_decay_factor"),
        )
    sampling = "temperature" in names
    config = GenerationConfig(**({"top_k": 0} | names if sampling else names), do_sample=sampling)
    config.max_length = text["most"]
    config._eos_token_tensor = torch.tensor(text["ends"])
    model = GenerationMixin()
    model.config = type("Config", (), {"is_encoder_decoder": False})()
    prompt = torch.tensor([text["tokens"][: text["prompt"]]])
    return model._get_logits_processor(
        config,
        input_ids_seq_length=text["prompt"],
        encoder_input_ids=prompt,
        logits_processor=LogitsProcessorList(),
        device="cpu",
    )


def check_order():
    """The order above is that of generate itself."""
    every = dict.fromkeys(PROCESSORS, 0.5) | {
        "sequence_bias": [[[1], 1.0]],
        "bad_words_ids": [[3]],
        "exponential_decay_length_penalty": (1, 1.5),
        "suppress_tokens": [1],
        "begin_suppress_tokens": [1],
    }
    whole = [name for name in every if name.endswith(("size", "length", "tokens", "token_id", "top_k"))]
    every |= {name: 2 for name in whole if every[name] == 0.5}
    made = processors_of(every, {"tokens": [1, 2], "prompt": 1, "ends": [3], "most": 9})
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


def draw_settings(draw, text, vocab):
    settings = {}
    tokens = text["tokens"]

    def maybe(name, value, chance=0.35):
        if draw.random() < chance:
            settings[name] = value

    biases = [[s, f32(draw.uniform(-4, 4))] for s in some(draw, tokens, vocab, draw.randint(1, 6))]
    maybe("sequence_bias", biases)
    maybe("encoder_repetition_penalty", f32(draw.choice([0.7, 1.3, 2.0])), 0.2)
    maybe("repetition_penalty", f32(draw.choice([0.7, 1.1, 1.3, 2.0])))
    maybe("no_repeat_ngram_size", draw.randint(1, 4))
    maybe("encoder_no_repeat_ngram_size", draw.randint(1, 4), 0.2)
    maybe(
        "bad_words_ids",
        [w for w in some(draw, tokens, vocab, draw.randint(1, 6)) if w[0] not in text["ends"]],
    )
    maybe("min_length", draw.randint(1, 40), 0.2)
    maybe("min_new_tokens", draw.randint(1, 20), 0.2)
    maybe("forced_bos_token_id", draw.randrange(vocab), 0.2)
    maybe("forced_eos_token_id", draw.sample(range(vocab), draw.randint(1, 3)), 0.2)
    forced = settings.get("forced_eos_token_id", [])
    if draw.random() < 0.2:
        settings["exponential_decay_start"] = draw.randint(0, 10)
        settings["exponential_decay_factor"] = f32(draw.uniform(0.8, 1.3))
    maybe("suppress_tokens", draw.sample(range(vocab), draw.randint(1, 9)), 0.2)
    maybe("begin_suppress_tokens", draw.sample(range(vocab), draw.randint(1, 9)), 0.3)
    # Which of equal scores top_p and top_h keep is an accident of torch's sort, so draws have one such token.
    if draw.random() < 0.8 and len(forced) < 2:
        settings["temperature"] = f32(draw.uniform(0.2, 2))
        maybe("top_h", f32(draw.uniform(0.1, 0.99)), 0.15)
        maybe("top_k", draw.randint(1, vocab + 5))
        maybe("top_p", f32(draw.uniform(0.01, 0.999)))
        maybe("min_p", f32(draw.choice([0.01, 0.05, 0.3])))
        maybe("typical_p", f32(draw.uniform(0.05, 0.99)), 0.25)
        maybe("epsilon_cutoff", f32(draw.choice([3e-4, 0.01, 0.05])), 0.25)
        maybe("eta_cutoff", f32(draw.choice([3e-4, 0.01, 0.2])), 0.25)
    # transformers refuses to suppress what it forces.
    forced = {settings.get("forced_bos_token_id"), *settings.get("forced_eos_token_id", [])}
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        if name in settings:
            settings[name] = [token for token in settings[name] if token not in forced]
    return {name: value for name, value in settings.items() if value != []}


def process(settings, text, logits):
    processors = processors_of(settings, text)
    return processors(torch.tensor([text["tokens"]]), logits[None].clone())[0]


LIMITS = ("top_h", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")


def nudged(settings):
    for factor in (1 - NUDGE, 1 + NUDGE):
        limits = {name: settings[name] * factor for name in LIMITS if name in settings}
        yield settings | limits


def draw_case(draw):
    vocab = draw.randint(20, 90)
    alphabet = draw.randint(2, vocab)  # a small one repeats itself
    tokens = draw.choices(range(alphabet), k=draw.choice([1, draw.randint(1, 30)]))
    prompt = draw.choice([1, len(tokens), draw.randint(1, len(tokens))])
    most = len(tokens) + draw.choice([1, draw.randint(1, 9)])
    text = {"tokens": tokens, "prompt": prompt, "ends": draw.sample(range(vocab), 2), "most": most}
    spread = draw.choice([1, 3, 8])
    whole = [round(draw.gauss(0, spread) * UNIT) for _ in range(vocab)]
    settings = draw_settings(draw, text, vocab)
    exact = torch.tensor(whole, dtype=torch.float64) / UNIT
    scores, exact_scores = process(settings, text, exact.float()), process(settings, text, exact)
    kept = torch.isfinite(scores)
    others = [exact_scores, *(process(near, text, exact) for near in nudged(settings))]
    if not kept.any() or any(not torch.equal(kept, torch.isfinite(other)) for other in others):
        return None
    # Torch's sort keeps whichever of equal logits it has first.
    logits = torch.tensor(whole)
    if "top_p" in settings and torch.isin(logits[~kept], logits[kept]).any():
        return None
    ids = kept.nonzero()[:, 0].tolist()
    values = [float(f"{value:.8g}") for value in exact_scores[kept].tolist()]
    return {"settings": settings, **text, "logits": whole, "kept": ids, "scores": values}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--count", type=int, default=250)
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
