"""Compares the PyTorch models of bench/peers with transformers' results, on the CPU.

    .venv/bin/python scripts/parity_peers.py

For each checkpoint in tests/goldens/models that the peers support: the plain model gives the golden logits in
fp32, its error in bf16 is about that of transformers in bf16, and each form of the fast step, uncompiled,
agrees with it.

Exercises: bench/peers
"""

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench/peers"))

from checkpoint import UnsupportedError, read_file, read_weights  # noqa: E402
from harness import relative_error  # noqa: E402
from plain_model import PlainModel  # noqa: E402
from torch_gpu import VARIANTS, Peer  # noqa: E402

FP32_ERROR = 1e-5  # relative to the logits' rms
BF16_FACTOR = 1.5  # either way
POSITIONS = [0, 33]


def compare_plain(folder):
    """Errors of the plain model in fp32, and in bf16 as a factor of transformers' own."""
    golden = read_file(folder / "golden.safetensors")
    tokens, logits = golden["tokens"].long(), golden["logits"]

    def error(dtype):
        made, _ = PlainModel(read_weights(folder, dtype, "cpu")).forward(tokens, len(tokens))
        return relative_error(made, logits)

    peer = float(golden["bf16_rms"]) / float(logits.square().mean().sqrt())
    return error(torch.float32), error(torch.bfloat16) / peer


def compare_steps(folder):
    """Returns the number of forms checked; raises an error when one computes something else."""
    peer = Peer(SimpleNamespace(device="cpu", model=folder, positions=POSITIONS, steps=4))
    forms = {tuple(v.form.values()): v for v in VARIANTS}
    for variant in forms.values():
        for position in POSITIONS:
            peer.build(position, replace(variant, options=None, captured=False))
    return len(forms)


def main():
    warnings.filterwarnings("ignore", message="flex_attention called without")  # uncompiled on purpose
    failures = compared = 0
    for folder in sorted((ROOT / "tests/goldens/models").iterdir()):
        try:
            error, factor = compare_plain(folder)
        except UnsupportedError as reason:
            print(f"     {folder.name:16} left out: {reason}")
            continue
        compared += 1
        ok = error <= FP32_ERROR and 1 / BF16_FACTOR <= factor <= BF16_FACTOR
        failures += not ok
        forms = compare_steps(folder)
        numbers = (
            f"fp32 error {error:.1e}, bf16's {factor:.2f} of transformers'; {forms} forms of the step agree"
        )
        print(f"{'ok  ' if ok else 'FAIL'} {folder.name:16} {numbers}", flush=True)
    if compared == 0:
        raise SystemExit("no checkpoint was compared")
    if failures:
        raise SystemExit(f"{failures} comparisons failed")


if __name__ == "__main__":
    main()
