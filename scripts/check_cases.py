"""Runs cases from reports: each is a folder with what a user had and the right answer.

    python3 scripts/check_cases.py [--heddle build/release/heddle] FOLDER...

A FOLDER is a case, or holds cases. What is in a case decides what is asked:

- want.json: {"text", "ids"}; `heddle tokenize` gives these ids.
- want.txt and input.json: `heddle template` writes this text for the conversation.
- config.json with weights: `heddle logits` is as near to transformers in fp32 as two sums of FP32 are.
- config.json with HOW.txt: the same, with random weights. "without 'model.'" in HOW.txt drops that part of
  their names; "lm_head.weight both there" adds a head that differs from the embedding.
- resume_a.jsonl and resume_b*.jsonl: prompts for the model that heddle ships. `heddle generate` does not
  go on from the results of the first file with the second one's settings, and names a setting that differs.
- anything else is no model: `heddle inspect` refuses it and says what it is.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from comparison import FP32_ERROR, ROOT, Program
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

TOKENS = [5, 6, 7, 20, 9]


def run(heddle, text, *arguments):
    command = [str(heddle), *(str(a) for a in arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def ids_differ(heddle, folder):
    want = json.loads((folder / "want.json").read_text())
    done = run(heddle, json.dumps(want["text"]) + "\n", "tokenize", folder, "--json-lines")
    got = json.loads(done.stdout) if done.returncode == 0 else done.stderr
    return "" if got == want["ids"] else f"ids are {got}, not {want['ids']}"


def text_differs(heddle, folder):
    want = (folder / "want.txt").read_text()
    done = run(heddle, (folder / "input.json").read_text(), "template", folder)
    got = done.stdout if done.returncode == 0 else done.stderr
    return "" if got.rstrip("\n") == want.rstrip("\n") else f"text is {got!r}, not {want!r}"


def with_random_weights(folder, scratch):
    """A copy of the case with weights in it, and the model that has them."""
    how, made = (folder / "HOW.txt").read_text(), scratch / folder.name
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).float().eval()
    model.save_pretrained(made)
    weights = load_file(made / "model.safetensors")
    if "lm_head.weight both there" in how:
        weights["lm_head.weight"] = torch.randn_like(weights["model.embed_tokens.weight"]) / 8
        model.lm_head.weight = torch.nn.Parameter(weights["lm_head.weight"].clone())
    elif "without 'model.'" in how:
        weights = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    save_file(weights, made / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(folder / "config.json", made)
    return made, model


def logits_differ(heddle, folder, scratch):
    if (folder / "HOW.txt").exists():
        folder, model = with_random_weights(folder, scratch)
    else:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        want = model(torch.tensor([TOKENS])).logits[0]
    got = Program(heddle).logits(folder, TOKENS)
    error, scale = float((got - want).abs().max()), float(want.square().mean().sqrt())
    return "" if error <= FP32_ERROR * max(scale, 1e-3) else f"logits are off by {error:.2g} of {scale:.2g}"


def not_refused(heddle, folder):
    done = run(heddle, "", "inspect", folder)
    if done.returncode == 0:
        return "was taken for a model"
    print(f"    {done.stderr.strip()}")
    return "" if done.returncode == 1 and folder.name in done.stderr else f"ended with {done.returncode}"


def resumed(heddle, folder, scratch):
    """Says what is wrong with going on from the results of other settings."""
    out = scratch / "resumed.jsonl"
    out.unlink(missing_ok=True)
    first, *others = sorted(folder.glob("resume_*.jsonl"))

    def generate(prompts):
        return run(heddle, "", "generate", ROOT / "models/storyteller", "--prompts", prompts, "--out", out)

    done = generate(first)
    if done.returncode != 0:
        return done.stderr.strip()
    made = out.read_text()
    if generate(first).returncode != 0 or out.read_text() != made:
        return "the same settings do not go on"
    for other in others:
        done = generate(other)
        print(f"    {done.stderr.strip()}")
        if done.returncode != 1 or "in the file and" not in done.stderr or out.read_text() != made:
            return f"{other.name} goes on from results of other settings"
    return ""


def check(heddle, folder, scratch):
    if (folder / "resume_a.jsonl").exists():
        return resumed(heddle, folder, scratch)
    if (folder / "want.json").exists():
        return ids_differ(heddle, folder)
    if (folder / "want.txt").exists():
        return text_differs(heddle, folder)
    if (folder / "HOW.txt").exists() or any(folder.glob("*.safetensors")):
        return logits_differ(heddle, folder, scratch)
    return not_refused(heddle, folder)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--heddle", type=Path, default=ROOT / "build/release/heddle")
    parser.add_argument("folders", nargs="+", type=Path)
    arguments = parser.parse_args()
    cases = []
    for folder in arguments.folders:
        is_case = any(f.is_file() for f in folder.glob("*.json"))
        cases += [folder] if is_case else sorted(folder.iterdir())
        cases += [folder] if (folder / "resume_a.jsonl").exists() else []
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in cases:
            if not folder.is_dir():
                continue
            problem = check(arguments.heddle, folder, Path(scratch))
            failed += bool(problem)
            print(f"{folder.name:36} {problem or 'ok'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
