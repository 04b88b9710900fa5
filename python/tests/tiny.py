"""Small models of transformers with random weights, made in memory."""

import torch
import transformers

from heddle.patching import kinds, logits, loss

# Two layers, 64 wide; what else a family's report needs is given by the test.
_SIZES = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GPT2 = {
    "vocab_size": 128,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 128,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_CONFIGS = {
    "llama": ("LlamaConfig", _SIZES),
    "mistral": ("MistralConfig", {**_SIZES, "sliding_window": None}),
    "qwen2": ("Qwen2Config", _SIZES),
    "qwen3": ("Qwen3Config", _SIZES),
    "gpt2": ("GPT2Config", _GPT2),
    "gemma2": ("Gemma2Config", {**_SIZES, "query_pre_attn_scalar": 16}),
    "gemma3_text": ("Gemma3TextConfig", {**_SIZES, "query_pre_attn_scalar": 16}),
}
FAMILIES = tuple(_CONFIGS)
WITH_NORM = tuple(name for name in FAMILIES if name != "gpt2")


def tiny(family, dtype=torch.float32, seed=0, **changes):
    """A causal language model in eval mode, whose norms have weights that differ from one."""
    name, sizes = _CONFIGS[family]
    config = getattr(transformers, name)(**{**sizes, **changes})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
                else:
                    parameter.mul_(4)  # so that logits differ by more than rounding
    return model.to(dtype).eval()


def take_every_size(monkeypatch):
    """Heddle takes calls of all sizes, also where torch is as fast."""
    for kind in kinds.ALL:
        monkeypatch.setattr(kind, "least", 0)
        monkeypatch.setattr(kind, "least_training", 0)
        monkeypatch.setattr(kind, "training_dtypes", (torch.float32, torch.bfloat16))
        monkeypatch.setattr(kind, "dtypes", (torch.float32, torch.bfloat16))
    monkeypatch.setattr(kinds.ATTENTION, "slower_unmasked", lambda *_: "")
    monkeypatch.setattr(kinds.ATTENTION, "slower_masked", lambda *_: "")
    monkeypatch.setattr(loss.Loss, "least", 0)
    monkeypatch.setattr(logits.HEAD, "least_training", 0)


def tokens(batch=2, length=12, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, 128, (batch, length), generator=generator)


def gradients(model, ids, labels=None):
    """The loss and the gradients of all parameters, by name, in f32."""
    model.zero_grad(set_to_none=True)
    output = model(ids, labels=ids if labels is None else labels)
    output.loss.backward()
    found = {name: p.grad.float().clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return output.loss.detach().float(), found
