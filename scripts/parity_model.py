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
    ROOT,
    Program,
    Reference,
    Tally,
    clear_and_same,
    greedy_behind,
)
from make_checkpoint import write_tokenizer
from tokenizers import Tokenizer
from transformers.utils import logging

sys.path.append(str(ROOT / "scripts/goldens"))

from family_cases import FAMILIES, model_of, random_config
from make_models import (
    LLAMA3_ROPE,
    Case,
    deepseek_v2,
    deepseek_v3,
    gemma2,
    gemma3,
    gpt2,
    llama,
    longrope,
    mistral,
    mixtral,
    qwen2,
    qwen3,
    qwen3_moe,
    rope,
    write_checkpoint,
    yarn,
)

LENGTHS = (1, 2, 17, 64, 129, 300)
DESCENDANTS = (mistral, qwen2, qwen3, gemma2, gemma3, deepseek_v2, deepseek_v3, mixtral, qwen3_moe)
LARGEST_FACTOR = 4
PROMPT = "Once upon a time, 12 + 30 ="


def tail(errors):
    """The 99.9th percentile of the errors."""
    return float(errors.abs().kthvalue(max(1, int(0.999 * len(errors)))).values)


def quiet_quarter(errors):
    """The first quartile of the tokens' root mean square errors."""
    return float(errors.square().mean(dim=1).sqrt().quantile(0.25))


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
            # Rounding shows where no token took another expert yet, which moves all tokens after it.
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


def random_rope(generator, head_dim):
    turns = {"beta_fast": generator.choice([8.0, 32]), "beta_slow": generator.choice([1, 2.5])}
    choices = [
        LLAMA3_ROPE,
        {"rope_type": "default", "rope_theta": 5000.0},
        rope("linear", factor=generator.choice([2.5, 8.0])),
        rope("dynamic", factor=4.0),
        yarn(truncate=generator.random() < 0.5, **turns),
        yarn(mscale=0.7, mscale_all_dim=generator.choice([0.4, 1.0])),
        longrope(head_dim // 2, original=310),
    ]
    return generator.choice(choices)


def random_windows(generator, layers):
    """Keys of Qwen and Gemma."""
    kinds = ["sliding_attention", "full_attention"]
    return {
        "layer_types": [generator.choice(kinds) for _ in range(layers)],
        "sliding_window": generator.randrange(1, 200),
    }


def random_experts(generator):
    """Keys of DeepSeek."""
    groups, size = generator.choice([(1, 9), (3, 4), (4, 7)])
    kept = generator.randrange(1, groups + 1)
    return {
        "n_routed_experts": groups * size,
        "n_group": groups,
        "topk_group": kept,
        "num_experts_per_tok": generator.randrange(1, min(6, kept * size) + 1),
        "n_shared_experts": generator.randrange(1, 3),
        "moe_intermediate_size": generator.randrange(5, 50),
        "routed_scaling_factor": generator.choice([1.0, 2.5]),
    }


def latent_options(make, generator, layers):
    """Keys of DeepSeek; transformers' V2 wants even sizes around rotated parts."""
    options = random_experts(generator) | {
        "first_k_dense_replace": generator.choice([0, 1, layers]),
        "q_lora_rank": generator.choice([None, generator.randrange(5, 60)]),
        "kv_lora_rank": 2 * generator.randrange(4, 40),
        "qk_nope_head_dim": 2 * generator.randrange(2, 20),
        "v_head_dim": generator.randrange(3, 40),
        "attention_bias": generator.random() < 0.3,
    }
    if make is deepseek_v2:
        options["topk_method"] = generator.choice(["greedy", "group_limited_greedy"])
        return options | {"mlp_bias": generator.random() < 0.3}
    return options | {"rope_interleave": generator.random() < 0.5}


def family_options(make, generator, layers):
    chance = generator.random
    if make is llama:
        return {"attention_bias": chance() < 0.3, "mlp_bias": chance() < 0.3}
    if make in (mistral, mixtral):
        return {"sliding_window": generator.choice([None, generator.randrange(1, 200)])}
    if make in (deepseek_v2, deepseek_v3):
        return latent_options(make, generator, layers)
    if make is qwen3_moe:
        return {"norm_topk_prob": chance() < 0.5, "attention_bias": chance() < 0.3}
    options = random_windows(generator, layers)
    if make in (qwen2, qwen3):
        options["use_sliding_window"] = True
    if make is not qwen2:
        options["attention_bias"] = chance() < 0.3
    if make in (gemma2, gemma3):
        options["query_pre_attn_scalar"] = generator.randrange(4, 40)
        options["final_logit_softcapping"] = generator.choice([None, 7.0])
    if make is gemma2:
        options["attn_logit_softcapping"] = generator.choice([None, 1.7])
    return options


def random_case(generator, make=None):
    """A checkpoint with a random shape, for Llama or GPT-2 if no family is given."""
    dtype = generator.choice([torch.float32, torch.float16, torch.bfloat16])
    vocab = generator.randrange(257, 400)
    heads = generator.choice([1, 2, 3, 4, 6, 9])
    layers = generator.randrange(1, 4)
    if make is None and generator.random() < 0.3:
        inner = generator.choice([None, 77, 130])
        hidden = heads * generator.randrange(3, 20)
        case = gpt2(dtype, vocab_size=vocab, n_embd=hidden, n_head=heads, n_layer=layers, n_inner=inner)
        case.config["n_positions"] = 320
        return case
    make = make or llama
    head_dim = 2 * generator.randrange(3, 33)
    ropes = {"rope_parameters": random_rope(generator, head_dim)}
    if make is gemma3:
        # heddle refuses truncate = false for ropes by layer.
        full = {key: value for key, value in ropes["rope_parameters"].items() if key != "truncate"}
        ropes = {"full_rope": full}
    kv_heads = generator.choice([k for k in range(1, heads + 1) if heads % k == 0])
    of_head = {"num_key_value_heads": kv_heads, "head_dim": head_dim}
    if make in (deepseek_v2, deepseek_v3):
        of_head = {"num_key_value_heads": heads, "qk_rope_head_dim": head_dim}
    return make(
        dtype,
        vocab_size=vocab,
        hidden_size=heads * generator.randrange(5, 20),
        intermediate_size=generator.randrange(20, 200),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        **of_head,
        max_position_embeddings=320,
        tie_word_embeddings=generator.random() < 0.5,
        **family_options(make, generator, layers),
        **ropes,
    )


def make_random(folder, seed, make=None):
    generator = random.Random(seed)
    if make in FAMILIES:
        config, dtype = random_config(make, generator)
        case = Case(model_of(make), config, dtype)
    else:
        case = random_case(generator, make)
    case.seed = seed
    case.config["eos_token_id"] = None  # a greedy text shall not end early
    write_checkpoint(case, folder)
    write_tokenizer(folder, case.config["vocab_size"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=6, help="how many random Llamas and GPT-2s")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, help="only random ones of these")
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
            makers = [None] * arguments.random + list(DESCENDANTS) + list(FAMILIES)
            for number, make in enumerate(makers):
                if arguments.families and make not in arguments.families:
                    continue
                name = make if make in FAMILIES else make.__name__ if make else "random"
                folder = Path(scratch) / f"{name}-{arguments.seed + number}"
                make_random(folder, arguments.seed + number, make)
                parity.compare(folder, generator)
    if parity.failures:
        raise SystemExit(f"{parity.failures} comparisons failed; repeat with --seed {arguments.seed}")


if __name__ == "__main__":
    main()
