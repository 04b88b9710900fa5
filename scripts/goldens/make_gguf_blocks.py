"""Writes blocks of GGUF's types, what gguf-py makes of them, and seeds of fuzzers, into tests.

    .venv/bin/python scripts/goldens/make_gguf_blocks.py [--out FOLDER] [--seeds FOLDER]

All bytes are random, scales too, so that NaN, infinite and subnormal ones are among them.
"""

import argparse
import sys
from pathlib import Path

import gguf
import numpy
import torch
import transformers
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))
import gguf_files  # noqa: E402

BLOCKS = 12
SIZES = {
    "vocab_size": 12, "hidden_size": 8, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 4,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16, "eos_token_id": 2,
}  # fmt: skip
EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32}


def blocks():
    rng = numpy.random.default_rng(0)
    made = {}
    for kind in gguf_files.BLOCKS:
        _, width = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        count = BLOCKS // 4 if kind.startswith(("IQ1", "IQ2", "IQ3")) else BLOCKS
        random = rng.integers(0, 256, (count, width), dtype=numpy.uint8)
        usual = gguf_files.random_blocks(
            kind, count, gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0], rng
        )
        both = numpy.concatenate([random, usual])
        with numpy.errstate(all="ignore"):
            values = gguf_files.dequantised(both, kind)
        made[f"{kind}.blocks"], made[f"{kind}.values"] = both, values.astype(numpy.float32)
    return made


def pieces(writer, vocab):
    """A vocabulary of SentencePiece."""
    tokens = ["<unk>", "<s>", "</s>", "<0x74>", "▁", "t", "h", "e", "th", "the", "▁the", "<x>"][:vocab]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_types([2, 3, 3, 6, *[1] * 7, 4][:vocab])
    writer.add_token_scores([0.0] * 8 + [-1.0, -2.0, -3.0, 0.0])
    for name, number in (("unk", 0), ("bos", 1), ("eos", 2)):
        getattr(writer, f"add_{name}_token_id")(number)


def write_seeds(folder):
    torch.manual_seed(0)
    spelt = gguf_files.add_words
    for name, architecture, config, kind, words in (
        ("bytes", "llama", transformers.LlamaConfig(**SIZES), "Q4_0", spelt),
        ("pieces", "llama", transformers.LlamaConfig(**SIZES), "F16", pieces),
        ("experts", "qwen3moe", transformers.Qwen3MoeConfig(**SIZES, **EXPERTS), "Q8_0", spelt),
        ("gemma", "gemma2", transformers.Gemma2Config(**SIZES), "IQ4_NL", spelt),
    ):  # fmt: skip
        model = transformers.AutoModelForCausalLM.from_config(config).float()
        for place in ("gguf_model", "gguf_vocabulary"):
            (folder / place).mkdir(exist_ok=True)
            gguf_files.write(
                folder / place / f"{name}.gguf", model, architecture, words=words,
                kind_of=lambda name, kind=kind: kind if "ffn_down" in name else "F16",
                norms="gemma2" if architecture == "gemma2" else "llama",
            )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "tests/goldens/gguf")
    parser.add_argument("--seeds", type=Path, default=ROOT / "tests/fuzz")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    save_file(blocks(), arguments.out / "blocks.safetensors")
    write_seeds(arguments.seeds)


if __name__ == "__main__":
    main()
