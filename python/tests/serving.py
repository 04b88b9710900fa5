"""Servers for tests, and a model that says what a test wrote."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

STORYTELLER = Path(__file__).parents[2] / "models" / "storyteller"


@contextmanager
def server(model, *flags):
    """A server of `model` on a free port, and its process."""
    command = [sys.executable, "-m", "heddle.serve", str(model), "--port", "0", "--threads", "1", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if " at http://" in line:
                break
        else:
            pytest.fail("the server did not start")
        yield line.split(" at ")[1].split()[0], process
    finally:
        process.kill()
        process.communicate()


def make_scripted_model(folder, transcripts, chat_template):
    """A Llama that says `transcripts[name]` after the token <say:name>.

    Each token is followed by the next of its transcript: the layers add nothing, embeddings are unit vectors,
    and a row of the head is the embedding of the token before.
    """
    vocab = {"<unk>": 0, "<end>": 1}
    follower = {0: 1, 1: 1}
    starts = []
    for name, text in transcripts.items():
        starts.append(f"<say:{name}>")
        last = vocab[starts[-1]] = len(vocab)
        while text:
            # A token has one follower, so that no two pieces are the same. Long ends of transcripts differ.
            sizes = range(2, len(text)) if len(text) > 24 else [len(text)]
            size = next(size for size in sizes if text[:size] not in vocab)
            follower[last] = vocab[text[:size]] = len(vocab)
            last, text = follower[last], text[size:]
        follower[last] = vocab["<end>"]
    count, width = len(vocab), 512
    assert count <= width
    added = [
        {"id": vocab[start], "content": start, "special": True, "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for start in starts
    ]
    tokenizer = {
        "added_tokens": added,
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab},
        "decoder": {"type": "Fuse"},
    }
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-5,
        "vocab_size": count,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "eos_token_id": vocab["<end>"],
    }
    embedding = torch.eye(count, width)
    head = torch.zeros(count, width)
    for token, after in follower.items():
        head[after, token] = 1
    layer = "model.layers.0."
    weights = {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "model.norm.weight": torch.ones(width),
    }
    for name in ("q", "k", "v", "o"):
        weights[f"{layer}self_attn.{name}_proj.weight"] = torch.zeros(width, width)
    for name in ("gate", "up"):
        weights[f"{layer}mlp.{name}_proj.weight"] = torch.zeros(64, width)
    weights[f"{layer}mlp.down_proj.weight"] = torch.zeros(width, 64)
    for name in ("input", "post_attention"):
        weights[f"{layer}{name}_layernorm.weight"] = torch.ones(width)
    folder.mkdir(exist_ok=True)
    save_file({name: tensor.bfloat16() for name, tensor in weights.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    (folder / "chat_template.jinja").write_text(chat_template)
    return folder
