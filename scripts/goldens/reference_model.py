"""The reference of goldens and comparisons: transformers on a checkpoint."""

import json
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, Mistral4Config, Mistral4ForCausalLM

# transformers 5.23 knows it for images only.
AutoModelForCausalLM.register(Mistral4Config, Mistral4ForCausalLM, exist_ok=True)


def load_reference(folder, dtype):
    """Loads the model of a folder in `dtype`. Where Gemma scales embeddings, it uses the scale in the
    checkpoint's own type, because that is part of the trained model, like the rounded weights. Experts are
    computed one by one: PyTorch's grouped product needs rows of whole 16 bytes."""
    config = AutoConfig.from_pretrained(folder)
    config._experts_implementation = "eager"
    model = AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=dtype).eval()
    embedding = model.get_input_embeddings()
    if hasattr(embedding, "embed_scale"):
        config = json.loads((Path(folder) / "config.json").read_text())
        own = getattr(torch, config.get("dtype") or config["torch_dtype"])
        embedding.embed_scale = embedding.embed_scale.to(own).float()
    return model
