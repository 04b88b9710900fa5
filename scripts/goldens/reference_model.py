"""The reference of goldens and comparisons: transformers on a checkpoint."""

import json
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def load_reference(folder, dtype):
    """The model of a folder in `dtype`. Where Gemma scales embeddings, by the scale that the checkpoint's own
    type has: it is a part of the model that was trained, as the rounded weights are. Experts are computed one
    by one: PyTorch's grouped product wants rows of whole 16 bytes."""
    config = AutoConfig.from_pretrained(folder)
    config._experts_implementation = "eager"
    model = AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=dtype).eval()
    embedding = model.get_input_embeddings()
    if hasattr(embedding, "embed_scale"):
        config = json.loads((Path(folder) / "config.json").read_text())
        own = getattr(torch, config.get("dtype") or config["torch_dtype"])
        embedding.embed_scale = embedding.embed_scale.to(own).float()
    return model
