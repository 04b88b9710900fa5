"""Compares `heddle eval` with transformers, live: perplexity as documented there, KL divergence, agreement.

    .venv/bin/python scripts/parity_eval.py [--heddle build/release/heddle]

The model is the shipped one. What must hold against transformers in fp32: on a story in the model's own words
the perplexity is within 1e-3; with fp32 weights that is so on a text that it finds odd too, windows of any
size, and the divergence from the same model with rounded weights.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch
from comparison import ROOT, Program, Tally
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from transformers.utils import logging

CLOSE = 1e-3
MODEL = ROOT / "models/storyteller"
WINDOWS = ((768, 512), (256, 64), (100, 100), (33, 7))


@torch.inference_mode()
def perplexity(model, ids, max_length, stride):
    """https://huggingface.co/docs/transformers/perplexity, with its names."""
    nll_sum, n_tokens, prev_end_loc = 0.0, 0, 0
    seq_len = ids.size(1)
    for begin_loc in range(0, seq_len, stride):
        end_loc = min(begin_loc + max_length, seq_len)
        trg_len = end_loc - prev_end_loc
        input_ids = ids[:, begin_loc:end_loc]
        target_ids = input_ids.clone()
        target_ids[:, :-trg_len] = -100
        neg_log_likelihood = model(input_ids, labels=target_ids).loss
        num_valid_tokens = (target_ids != -100).sum().item()
        num_loss_tokens = num_valid_tokens - target_ids.size(0)
        if num_loss_tokens > 0:  # a window of one token has no loss
            nll_sum += float(neg_log_likelihood) * num_loss_tokens
            n_tokens += num_loss_tokens
        prev_end_loc = end_loc
        if end_loc == seq_len:
            break
    return float(torch.tensor(nll_sum / n_tokens).exp())


@torch.inference_mode()
def divergence(model, other, ids):
    """Mean KL divergence of the other model's distribution from the model's, and how often both have the same
    best token."""
    logits, others = (m(ids).logits[0, :-1].double() for m in (model, other))
    ours, theirs = logits.log_softmax(-1), others.log_softmax(-1)
    kl = (ours.exp() * (ours - theirs)).sum(-1).mean()
    return float(kl), float((logits.argmax(-1) == others.argmax(-1)).double().mean())


def texts():
    """A story in the model's own words; and several as one text, longer than its context, with an odd end."""
    stories = json.loads((MODEL / "expected.json").read_text())["stories"]
    stories = [story["prompt"] + story["text"] for story in stories]
    odd = "\n\nThe weaver lifts a heddle, and 12 threads rise. Quite odd!\n"
    return {"story": stories[0], "odd": "\n\n".join(stories) + odd}


def changed(to, change):
    """A copy of the checkpoint in fp32 whose matrices went through `change`."""
    shutil.copytree(MODEL, to)
    tensors = {name: tensor.float() for name, tensor in load_file(to / "model.safetensors").items()}
    tensors = {name: change(tensor) if tensor.dim() == 2 else tensor for name, tensor in tensors.items()}
    save_file(tensors, to / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps(config | {"dtype": "float32"}))
    return to


def rounded(tensor):
    """Keeps two bits after the leading one."""
    scale = torch.exp2(torch.floor(torch.log2(tensor.abs().clamp(min=1e-30))) - 2)
    return torch.round(tensor / scale) * scale


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


class EvalParity(Tally):
    def __init__(self, heddle):
        super().__init__()
        self.program = Program(heddle)
        self.tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))

    def ids(self, path):
        return torch.tensor([self.tokenizer.encode(path.read_text(encoding="utf-8")).ids])

    def eval(self, folder, text, *flags):
        return json.loads(self.program.run("eval", folder, "--text", text, "--json", *flags))

    def compare_perplexity(self, folder, text, windows):
        model = load(folder)
        for window, stride in windows:
            ours = self.eval(folder, text, "--window", window, "--stride", stride)["perplexity"]
            theirs = perplexity(model, self.ids(text), window, stride)
            what = f"{folder.name}, {text.name}: window {window}, stride {stride}"
            numbers = f"heddle {ours:.5f}, transformers {theirs:.5f}: {ours - theirs:+.1e}"
            self.report(what, abs(ours - theirs) <= CLOSE, numbers)

    def compare_models(self, folder, other, text):
        found = self.eval(folder, text, "--compare", other)
        kl, agreement = divergence(load(folder), load(other), self.ids(text))
        numbers = f"heddle {found['kl']:.5f}, transformers {kl:.5f}"
        # The difference is far above the bound, so the test means something.
        self.report(
            "KL divergence of rounded weights", kl > 10 * CLOSE and abs(found["kl"] - kl) <= CLOSE, numbers
        )
        numbers = f"heddle {found['top1_agreement']:.4f}, transformers {agreement:.4f}"
        tie = 1 / (self.ids(text).size(1) - 1)
        self.report("top-1 agreement", abs(found["top1_agreement"] - agreement) <= 1.1 * tie, numbers)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parity = EvalParity(parser.parse_args().heddle)
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as scratch:
        files = {name: Path(scratch) / name for name in texts()}
        for name, content in texts().items():
            files[name].write_text(content, encoding="utf-8")
        fp32 = changed(Path(scratch) / "fp32", lambda tensor: tensor)
        parity.compare_perplexity(MODEL, files["story"], WINDOWS[:2])
        for text in files.values():
            parity.compare_perplexity(fp32, text, WINDOWS)
        some = Path(scratch) / "some"
        some.write_text(
            parity.tokenizer.decode(parity.ids(files["odd"])[0, -700:].tolist()), encoding="utf-8"
        )
        parity.compare_models(fp32, changed(Path(scratch) / "rounded", rounded), some)
    if parity.failures:
        raise SystemExit(f"{parity.failures} comparisons failed")


if __name__ == "__main__":
    main()
