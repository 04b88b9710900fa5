#!/usr/bin/env python3
"""Experts of a Qwen3-MoE layer on a GPU in bf16: experts_implementation="heddle" next to transformers'
"grouped_mm" (torch._grouped_mm), forward, and forward and backward.

    PYTHONPATH=build/release/python .venv/bin/python bench/mixtures.py [--seed 1] [--commit C] [--out F]

The shapes of the table in docs/training.md, and as many drawn by --seed. Times are medians of device events,
the arms in turn; "kept" is what the forward leaves allocated for the backward. A shape is timed if heddle's
errors against float64 are at most 1.2 times those of torch.
"""

import argparse
import random
import statistics
from pathlib import Path

import report
import torch
from transformers import Qwen3MoeConfig
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeExperts

from heddle import moe

ARMS = (moe.NAME, "grouped_mm")
FIXED = (  # experts, inner size, choices, hidden size, tokens, routing
    (128, 768, 8, 2048, 32768, "uniform"),
    (128, 768, 8, 2048, 32768, "zipf"),
    (512, 512, 10, 2048, 32768, "uniform"),
    (512, 512, 10, 2048, 32768, "zipf"),
)
ROUNDS = 9


def drawn(seed):
    rng = random.Random(seed)
    for _ in FIXED:
        experts = rng.randrange(8, 257)
        sizes = rng.randrange(4, 25) * 64, rng.randrange(1, min(8, experts) + 1), rng.randrange(8, 49) * 64
        yield experts, *sizes, rng.randrange(2000, 32769), rng.choice(("uniform", "zipf"))


def routes(experts, choices, tokens, routing):
    scores = torch.rand(tokens, experts, device="cuda")
    if routing == "zipf":  # the k-largest of u^(1/w) are a draw with weights w
        scores = scores.log() * torch.arange(1, experts + 1, device="cuda")
    shares, index = scores.topk(choices)
    return index, shares.float().softmax(-1)


class Layer:
    def __init__(self, experts, inner, choices, hidden, tokens, routing):
        torch.manual_seed(0)
        sizes = {"num_experts": experts, "moe_intermediate_size": inner, "num_experts_per_tok": choices}
        self.module = Qwen3MoeExperts(Qwen3MoeConfig(hidden_size=hidden, **sizes)).cuda().bfloat16()
        for weight in self.module.parameters():
            torch.nn.init.normal_(weight, std=weight.shape[-1] ** -0.5)
        self.x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        self.dy = torch.randn_like(self.x)
        self.index, self.shares = routes(experts, choices, tokens, routing)

    def forward(self, arm):
        self.module.config._experts_implementation = arm
        return self.module(self.x, self.index, self.shares)

    def both(self, arm):
        inputs = (self.x, *self.module.parameters())
        return torch.autograd.grad(self.forward(arm), inputs, self.dy)

    def check(self):
        """The largest ratio of errors against float64, of outputs for the first tokens."""
        some = slice(0, 64)
        gate_up, down = (w.detach() for w in (self.module.gate_up_proj, self.module.down_proj))
        wanted = torch.zeros(64, self.x.shape[1], dtype=torch.float64, device="cuda")
        for t in range(64):
            for e, share in zip(self.index[t], self.shares[t], strict=True):
                gate, up = (gate_up[e].double() @ self.x[t].double()).chunk(2)
                wanted[t] += share.double() * (down[e].double() @ (torch.nn.functional.silu(gate) * up))
        with torch.no_grad():
            errors = [(self.forward(arm)[some].double() - wanted).norm().item() for arm in ARMS]
        return errors[0] / errors[1]


def timed(run):
    times = {arm: [] for arm in ARMS}
    for number in range(ROUNDS + 2):
        for arm in ARMS:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run(arm)
            end.record()
            torch.cuda.synchronize()
            if number > 1:  # the first ones compile
                times[arm].append(begin.elapsed_time(end))
    return {arm: round(statistics.median(each), 3) for arm, each in times.items()}


def memory(layer, arm):
    """(GB kept for the backward, GB at the peak) above what was there."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y = layer.forward(arm)
    kept = torch.cuda.memory_allocated() - before
    torch.autograd.grad(y, (layer.x, *layer.module.parameters()), layer.dy)
    return [round(each / 1e9, 2) for each in (kept, torch.cuda.max_memory_allocated() - before)]


def row(shape):
    layer = Layer(*shape)
    ratio = layer.check()
    if not ratio <= 1.2:
        raise SystemExit(f"{shape}: heddle's error is {ratio:.2f} times torch's")
    with torch.no_grad():
        forward = timed(layer.forward)
    both = timed(layer.both)
    work = "{} experts of {}, {} choices, {} x {} tokens, {}".format(*shape[:3], shape[4], shape[3], shape[5])
    return {
        "work": work,
        "error_ratio": round(ratio, 3),
        "forward_ms": forward,
        "forward_and_backward_ms": both,
        "kept_and_peak_GB": {arm: memory(layer, arm) for arm in ARMS},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for shape in (*FIXED, *drawn(options.seed)):
        rows.append(row(shape))
        print(rows[-1], flush=True)
    result = {
        "device": torch.cuda.get_device_name(),
        "date": report.today(),
        "commit": options.commit or report.commit(),
        "command": f"bench/mixtures.py --seed {options.seed}",
        "rows": rows,
    }
    print("written to", report.write(result, options.out, "mixtures"))


if __name__ == "__main__":
    main()
