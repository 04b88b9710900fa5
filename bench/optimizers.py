#!/usr/bin/env python3
"""Steps of AdamW: torch's fused one and heddle's, in turn.

    PYTHONPATH=build/release/python .venv/bin/python bench/optimizers.py [--device cuda]

On a CPU it takes time of one thread, not of the clock, so that others on the machine disturb less; on a GPU
the clock's, from call to end. Parameters in bf16 have a master in f32: with torch a copy, and two more
passes, of gradients and of parameters. 16 tensors have the elements; there are 64 small ones besides.
"""

import argparse
import json
import statistics
import time

import torch

from heddle.optim import AdamW, AdamW8bit, OffloadAdamW

TENSORS, SMALL, SMALL_SIZE = 16, 64, 4096


class WithMaster:
    """torch's fused AdamW on copies in f32 of parameters in bf16."""

    def __init__(self, params):
        self.params = params
        self.masters = [torch.nn.Parameter(param.detach().float()) for param in params]
        for master in self.masters:
            master.grad = torch.empty_like(master)
        self.optimizer = torch.optim.AdamW(self.masters, lr=1e-4, fused=True)

    @torch.no_grad()
    def step(self):
        torch._foreach_copy_([master.grad for master in self.masters], [param.grad for param in self.params])
        self.optimizer.step()
        torch._foreach_copy_([param.data for param in self.params], [master.data for master in self.masters])


ARMS = {
    "torch, f32": (torch.float32, lambda params: torch.optim.AdamW(params, lr=1e-4, fused=True)),
    "heddle, f32": (torch.float32, lambda params: AdamW(params, lr=1e-4)),
    "torch, bf16 with a master": (torch.bfloat16, WithMaster),
    "heddle, bf16 with a residual": (torch.bfloat16, lambda params: AdamW(params, lr=1e-4)),
    "torch, all in bf16": (torch.bfloat16, lambda params: torch.optim.AdamW(params, lr=1e-4, fused=True)),
    "heddle, states in 8 bits": (torch.bfloat16, lambda params: AdamW8bit(params, lr=1e-4)),
} | {
    f"heddle, states in {name} on the host": (
        torch.bfloat16,
        lambda params, dtype=dtype: OffloadAdamW(params, lr=1e-4, state_dtype=dtype),
    )
    for name, dtype in (("f32", "fp32"), ("bf16", "bf16"), ("8 bits", "int8"))
}


def made(dtype, make, count, device):
    sizes = [count // TENSORS] * TENSORS + [SMALL_SIZE] * SMALL
    params = [torch.nn.Parameter(torch.randn(size, device=device).to(dtype)) for size in sizes]
    for param in params:
        param.grad = (torch.randn(param.shape, device=device) * 1e-2).to(dtype)
    return make(params)


def now(device):
    if device == "cpu":
        return time.thread_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--parameters", type=int, default=1 << 24)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="arms whose names contain this text")
    parser.add_argument("--json", help="the file that times go to, in milliseconds")
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
    arms = {name: arm for name, arm in ARMS.items() if options.only in name}
    optimizers = {name: made(*arm, options.parameters, options.device) for name, arm in arms.items()}
    times = {name: [] for name in arms}
    for number in range(options.rounds + 2):
        for name, optimizer in optimizers.items():
            began = now(options.device)
            optimizer.step()
            if number > 1:  # the first one makes the states, the second may measure
                times[name].append((now(options.device) - began) * 1e3)
    for name, each in times.items():
        print(f"{name:38} {statistics.median(each):8.3f} ms, {min(each):8.3f} the fastest")
    pairs = (("torch, f32", "heddle, f32"), ("torch, bf16 with a master", "heddle, bf16 with a residual"))
    for peer, ours in pairs:
        if peer in times and ours in times:
            ratio = statistics.median(a / b for a, b in zip(times[peer], times[ours], strict=True))
            print(f"{peer} / {ours}: {ratio:.2f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"parameters": options.parameters, "device": options.device, "ms": times}, file)


if __name__ == "__main__":
    main()
