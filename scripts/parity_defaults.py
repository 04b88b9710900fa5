"""Compares what the lack of a key in config.json means, in heddle and in transformers.

    .venv/bin/python scripts/parity_defaults.py [--heddle build/release/heddle] [--families NAME...]

Exercises: apps/heddle heddle/model heddle/base

A tiny checkpoint of each family has a config.json with every key. Each key, also of its rope, is taken out
or, where transformers allows it, made null:

1. heddle gives the logits that transformers gives. Where the weights do not fit what the lack means in
   transformers, heddle refuses them.
2. Its logits, or its message, are those of a config.json in which the default of transformers' class is
   written. The bits tell an epsilon from another, which rounding would hide.
"""

import argparse
import copy
import json
import re
import subprocess
import tempfile
from pathlib import Path

import torch
from comparison import FP32_ERROR, ROOT, Tally
from make_models import cases, rename_keys_to_transformers_4, write_checkpoint
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

# Nothing reads these but transformers itself. The default of pad_token_id lies outside of a small vocabulary.
LEFT = {"model_type", "architectures", "dtype", "torch_dtype", "transformers_version", "pad_token_id"}
# Keys without which only one of both computes something, and heddle says so or has no need of the key.
OTHERWISE = {
    "deepseek_v3: num_key_value_heads": "heddle has no need of it",
    "exaone_moe: num_experts_per_tok": "heddle refuses to take experts of groups that are not kept",
    "glm4_moe_lite: num_key_value_heads": "heddle has no need of it",
    "glm4_moe: num_experts_per_tok": "heddle refuses to take experts of groups that are not kept",
    "gpt_neox: num_attention_heads": "heddle refuses heads of one element",
    "gemma4_text: rope_parameters.full_attention.rope_type": "heddle refuses a part of a head",
    "hunyuan_v1_dense: rope_parameters.factor": "no effect next to alpha",
    "hunyuan_v1_dense: rope_scaling.factor": "no effect next to alpha",
    "hunyuan_v1_moe: rope_parameters.factor": "no effect next to alpha",
    "hunyuan_v1_moe: rope_scaling.factor": "no effect next to alpha",
    "mistral4: num_experts_per_tok": "heddle refuses to take experts of groups that are not kept",
    "mistral4: num_key_value_heads": "heddle has no need of it",
    "mistral4: rope_parameters.llama_4_scaling_beta": "queries do not grow",
    "mistral4: rope_parameters.rope_type": "its class in transformers turns whole heads then",
    "mistral4: rope_scaling.llama_4_scaling_beta": "queries do not grow",
    "mistral4: rope_scaling.partial_rotary_factor": "qk_rope_head_dim says it",
    "mistral4: rope_scaling.rope_type": "its class in transformers turns whole heads then",
    "ministral3: rope_parameters.llama_4_scaling_beta": "queries do not grow",
    "ministral3: rope_scaling.llama_4_scaling_beta": "queries do not grow",
}
TOKENS = [5, 9, 3, 77, 11, 2, 98, 6, 41, 41, 8, 120, 30, 3, 5, 64, 101]


def golden_cases():
    """For each family: its golden with all features, in f32."""
    found = {}
    for case in cases().values():
        if case.dtype == torch.float32:
            found.setdefault(case.model.config_class.model_type, case)
    return found


def without(config, path, value=None, null=False):
    """A copy of `config` in which the key at `path` is missing, or has `value`."""
    made = copy.deepcopy(config)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner.pop(path[-1], None)
    if value is not None or null:
        inner[path[-1]] = value
    return made


def paths_of(config, prefix=()):
    """All keys of `config`, and those of the objects in it."""
    for key, value in config.items():
        if key in LEFT:
            continue
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths_of(value, (*prefix, key))


def at(config, path):
    for key in path:
        if not isinstance(config, dict) or key not in config:
            return None
        config = config[key]
    return config


class Family:
    """One checkpoint, of which the config.json changes."""

    def __init__(self, heddle, folder):
        self.heddle, self.folder = heddle, folder
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
        self.references = {}

    def write(self, config):
        (self.folder / "config.json").write_text(json.dumps(config))

    def ours(self, config):
        """The logits, or the message."""
        self.write(config)
        out = self.folder.parent / "logits.safetensors"
        tokens = ",".join(map(str, TOKENS))
        command = [
            self.heddle,
            "logits",
            self.folder,
            "--tokens",
            tokens,
            "--out",
            out,
            "--executor",
            "threads",
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return load_file(out)["logits"]
        if done.returncode not in (1, 2):
            raise RuntimeError(f"heddle ended with {done.returncode}: {done.stderr}")
        said = done.stderr.strip().rsplit("] ", 1)[-1]
        return re.sub(r" = (absent: means [^;]*;|[^:]*:)", ":", said)  # however the value came about

    def class_config(self, config):
        """The configuration as transformers reads it; None: it refuses."""
        self.write(config)
        try:
            return AutoConfig.from_pretrained(self.folder)
        except Exception:  # each of its checks raises its own
            return None

    @torch.inference_mode()
    def theirs(self, config):
        """The logits; None: the weights do not fit, or it refuses the configuration."""
        made = self.class_config(config)
        if made is None:
            return None
        made._experts_implementation = "eager"
        made._attn_implementation = "eager"
        key = json.dumps({k: v for k, v in made.to_dict().items() if not k.startswith("_")}, default=str)
        if key not in self.references:
            self.references[key] = self.compute(made)
        return self.references[key]

    def compute(self, config):
        try:
            with torch.device("meta"):  # sizes of a class are large
                shapes = AutoModelForCausalLM.from_config(config, dtype=torch.float32).state_dict()
            if {k: v.shape for k, v in shapes.items()} != {k: v.shape for k, v in self.weights.items()}:
                return None
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
            model.load_state_dict(self.weights)
            return model(torch.tensor([TOKENS]), use_cache=False).logits[0]
        except Exception:  # each of its checks raises its own
            return None


class Defaults(Tally):
    def compare(self, family, name, config, otherwise=False):
        ours, theirs = family.ours(config), family.theirs(config)
        refused = isinstance(ours, str)
        if otherwise and (theirs is None) != refused:
            self.report(name, True, "as expected, only one of both")
        elif theirs is None:
            self.report(name, refused, f"transformers has none, heddle: {ours if refused else 'logits'}")
        elif refused:
            self.report(name, False, ours)
        else:
            error = float((ours - theirs).abs().max() / theirs.square().mean().sqrt())
            self.report(name, error <= FP32_ERROR, f"error {error:.1e}")
        return ours

    def compare_default(self, family, name, path, config, ours):
        """Writes the default of transformers' class."""
        made = family.class_config(config)
        default = at(made.to_dict(), path) if made else None
        if default is None or isinstance(default, dict):
            return
        written = family.ours(without(family.config, path, default))
        if isinstance(written, str) or isinstance(ours, str):
            same = isinstance(written, type(ours)) and written == ours
        else:
            same = torch.equal(written, ours)
        told = f"{written if isinstance(written, str) else 'logits'}"
        self.report(f"{name}, written: {default}", same, told)

    def compare_family(self, family, label, wanted=lambda key: True):
        full = family.config
        self.compare(family, label, full)
        for path in paths_of(full):
            if not wanted(path[0]):
                continue
            name = f"{label}: {'.'.join(path)}"
            config = without(full, path)
            otherwise = name in OTHERWISE
            ours = self.compare(family, f"{name} absent", config, otherwise)
            if not otherwise:
                self.compare_default(family, f"{name} absent", path, config, ours)
            null = without(full, path, None, null=True)
            if family.theirs(null) is not None:
                self.compare(family, f"{name} null", null)


def as_transformers_4(folder):
    """True if this changes names of keys."""
    config = json.loads((folder / "config.json").read_text())
    if "rope_parameters" not in config or config["model_type"] == "gemma4_text":  # which is younger
        return False
    rename_keys_to_transformers_4(folder / "config.json")
    return True


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    known = golden_cases()
    parser.add_argument("--families", nargs="+", choices=sorted(known))
    arguments = parser.parse_args()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    tally = Defaults()
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.families or sorted(known):
            folder = Path(scratch) / name
            write_checkpoint(known[name], folder)
            tally.compare_family(Family(arguments.heddle, folder), name)
            write_checkpoint(known[name], folder)
            if as_transformers_4(folder):
                family = Family(arguments.heddle, folder)
                tally.compare_family(family, name, lambda key: key.startswith("rope_"))
    if tally.failures:
        raise SystemExit(f"{tally.failures} comparisons failed")


if __name__ == "__main__":
    main()
