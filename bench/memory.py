#!/usr/bin/env python3
"""A step of training by plans of heddle.memory, next to transformers' checkpointing with and without offload.

    PYTHONPATH=build/release/python .venv/bin/python bench/memory.py [--device cuda] [--tokens 32768]

The model is a Llama with the layers of an 8B (--device cuda), or small ones, in bf16. A row has the time of
a step, forward and backward, and the peak of torch's allocator above the weights; for plans also what they
predict. On a CPU torch counts no memory, and the peak is that of the plan.
"""

import argparse
import json
import time
from pathlib import Path

import torch
import transformers

from heddle import memory
from heddle.memory.plan import Goal, make_plan

LAYER_OF_8B = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
LAYER_OF_SMALL = {
    "hidden_size": 128,
    "intermediate_size": 448,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
}
OWN = {"checkpointing": {}, "checkpointing with offload": {"offload": True}}  # transformers' arms


class Bench:
    def __init__(self, arguments):
        self.is_cuda = arguments.device == "cuda"
        layer = LAYER_OF_8B if self.is_cuda else LAYER_OF_SMALL
        config = transformers.LlamaConfig(
            vocab_size=32000 if self.is_cuda else 512,
            num_hidden_layers=arguments.layers,
            max_position_embeddings=2 * arguments.tokens,
            **layer,
        )
        torch.manual_seed(0)
        with torch.device(arguments.device):
            self.model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).train()
        self.ids = torch.randint(0, config.vocab_size, (1, arguments.tokens), device=arguments.device)
        self.rounds, self.out, self.rows = arguments.rounds, arguments.out, []

    def step(self):
        self.model.zero_grad(set_to_none=True)
        hidden = self.model.model(input_ids=self.ids, use_cache=False).last_hidden_state
        hidden.float().square().mean().backward()

    def synchronize(self):
        if self.is_cuda:
            torch.cuda.synchronize()

    def measure(self, arm, plan=None):
        self.step()
        self.model.zero_grad(set_to_none=True)
        self.synchronize()
        weights = torch.cuda.memory_allocated() if self.is_cuda else 0
        if self.is_cuda:
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        for _ in range(self.rounds):
            self.step()
        self.synchronize()
        row = {"arm": arm, "ms": (time.perf_counter() - begin) / self.rounds * 1e3}
        if self.is_cuda:
            row["gb_above_weights"] = (torch.cuda.max_memory_allocated() - weights) / 1e9
        if plan is not None:
            row["predicted_ms"], row["gb_on_the_host"] = plan.ms, plan.host_bytes / 1e9
            row["predicted_gb_above_weights"] = (plan.peak - weights) / 1e9
        self.rows.append({key: value if key == "arm" else round(value, 2) for key, value in row.items()})
        print(self.rows[-1], flush=True)
        if self.out:
            self.out.write_text(json.dumps(self.rows, indent=1) + "\n")
        return weights + int(row.get("gb_above_weights", 0) * 1e9)

    def peers(self):
        """The peak of checkpointing."""
        self.measure("none")
        for arm, more in OWN.items():
            self.model.gradient_checkpointing_enable({"use_reentrant": False, **more})
            peak = self.measure(arm)
            self.model.gradient_checkpointing_disable()
        return peak

    def plans(self, peak, budgets):
        first = memory.plan(self.model, self.step, budget=0.0)
        goals = {"peak of checkpointing": Goal(peak=peak)} if peak >= first.least else {}
        goals["slowdown 0.03"] = Goal(slowdown=0.03)
        for number in range(budgets):
            budget = number / max(budgets - 1, 1)
            goals[f"budget {budget:.2f}"] = Goal(budget=budget)
        for arm, goal in goals.items():
            plan = make_plan(first.chain, first.names, goal, first.measured)
            with memory.checkpoint(self.model, plan=plan):
                self.measure(arm, plan)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--tokens", type=int, help="default: 32768 on a GPU, 512 on a CPU")
    parser.add_argument("--budgets", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2, help="steps that are timed together")
    parser.add_argument("--out", type=Path, help="JSON file for the rows")
    arguments = parser.parse_args()
    arguments.tokens = arguments.tokens or (32768 if arguments.device == "cuda" else 512)
    bench = Bench(arguments)
    bench.plans(bench.peers(), arguments.budgets)


if __name__ == "__main__":
    main()
