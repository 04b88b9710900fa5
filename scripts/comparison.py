"""Shared by the comparisons with PyTorch: the program, a reference on one checkpoint, and the tally."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "bench/peers"), str(ROOT / "scripts/goldens")]

from checkpoint import Tensors, read_config, read_weights  # noqa: E402
from plain_model import PlainModel  # noqa: E402

try:
    import transformers
    from reference_model import load_reference
except ImportError:
    transformers = None

BF16_FACTOR = 1.2  # heddle's error against fp32 is at most this many times that of bf16
LARGEST_FACTOR = 4  # where one token's bad luck decides
FP32_ERROR = 1e-3  # and where weights are fp32, at most this part of the logits' root mean square


class Program:
    """The heddle program, with flags that every command gets."""

    def __init__(self, path, *flags):
        self.path, self.flags = str(path), [str(flag) for flag in flags]

    def run(self, *arguments):
        command = [self.path, *(str(a) for a in arguments), *self.flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"heddle {' '.join(command[1:3])} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def logits(self, folder, tokens, *flags):
        """f32 [tokens, vocab]"""
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "logits.safetensors"
            self.run("logits", folder, "--tokens", ",".join(map(str, tokens)), "--out", out, *flags)
            logits = load_file(out)["logits"]
        if logits.dtype != torch.float32 or len(logits) != len(tokens) or not torch.isfinite(logits).all():
            raise RuntimeError(f"{folder}: logits are not {len(tokens)} rows of finite f32")
        return logits

    def greedy(self, folder, prompt, count):
        """The prompt's tokens, and the tokens after them."""
        flags = ["--temperature", 0, "--max-tokens", count, "--ignore-eos", "--json"]
        story = json.loads(self.run("generate", folder, "--prompt", prompt, *flags))
        if not 0 < len(story["tokens"]) <= count:
            raise RuntimeError(f"{folder}: {len(story['tokens'])} tokens generated, wanted up to {count}")
        return story["prompt_tokens"], story["tokens"]


def sizes(folder):
    """Limits of the tokens that it knows and of the positions that heddle serves: for longrope, those with
    the short factors."""
    config = read_config(folder)
    limit = config.get("max_position_embeddings") or config["n_positions"]
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rope.get("rope_type") == "longrope":
        limit = min(limit, rope["original_max_position_embeddings"])
    return config["vocab_size"], limit


def reference_name(plain=False):
    return "the plain model" if plain or transformers is None else f"transformers {transformers.__version__}"


class Reference:
    """A checkpoint in fp32 and bf16, computed by transformers or, if that is not installed, by the plain
    model."""

    def __init__(self, folder, device="cpu", plain=False):
        self.folder, self.device = folder, device
        self.plain = plain or transformers is None
        self.vocab, self.limit = sizes(folder)
        tensors = Tensors(folder).found
        self.is_fp32 = all(tensor.dtype == torch.float32 for tensor in tensors.values())
        # Rounding sends some tokens to other experts, and their outputs differ by more than rounding.
        self.may_flip = any(".experts." in name or ".router." in name for name in tensors)
        self.fp32, self.bf16 = self.load(torch.float32), self.load(torch.bfloat16)

    def load(self, dtype):
        if self.plain:
            model = PlainModel(read_weights(self.folder, dtype, self.device))
            return lambda tokens: model.forward(tokens, len(tokens))[0]
        model = load_reference(self.folder, dtype).to(self.device)
        for module in model.modules():  # transformers 5.17 has 7 whatever the config says
            if hasattr(module, "limit"):
                module.limit = model.config.swiglu_limit
        return lambda tokens: model(tokens[None], use_cache=False).logits[0].float()

    @torch.inference_mode()
    def logits(self, tokens):
        """f32 [tokens, vocab] each, computed in fp32 and in bf16."""
        tokens = torch.tensor(tokens, device=self.device)
        with sdpa_kernel(SDPBackend.MATH):  # attention in fp32, computed literally
            fp32 = self.fp32(tokens)
        return fp32, self.bf16(tokens)


class Tally:
    def __init__(self):
        self.failures = 0

    def report(self, what, ok, numbers):
        self.failures += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {what:44} {numbers}", flush=True)


def quiet_quarter(errors):
    """The first quartile of the tokens' root mean square errors. In a mixture it shows rounding where no
    token took another expert yet, which moves all tokens after it."""
    return float(errors.square().mean(dim=1).sqrt().quantile(0.25))


def greedy_behind(reference, prompt, chosen):
    """By how much each chosen token is less likely than the reference's best there, in logits."""
    after = reference.logits([*prompt, *chosen])[0][len(prompt) - 1 : -1]
    picked = after.gather(1, torch.tensor(chosen, device=after.device)[:, None])[:, 0]
    return after.max(-1).values - picked


def clear_and_same(ours, reference, noise):
    """Positions where the reference's best two are further apart than twice the noise, and those where ours
    has the same best."""
    best = reference.topk(2).values
    return best[:, 0] - best[:, 1] > 2 * noise, ours.argmax(-1) == reference.argmax(-1)
