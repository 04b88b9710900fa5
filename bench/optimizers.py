#!/usr/bin/env python3
"""Steps of AdamW on a CPU: torch's fused one and heddle's, in turn, in time of one thread.

    PYTHONPATH=build/release/python .venv/bin/python bench/optimizers.py [--parameters 16777216]

It takes time of the thread, not of the clock, so that others on the machine disturb less. Parameters in bf16
have a master in f32: with torch a copy, and two passes more, of gradients and of parameters.
"""

import argparse
import statistics
import time

import torch

from heddle.optim import AdamW, AdamW8bit, OffloadAdamW

TENSORS = 16


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
    "heddle, states in bf16": (
        torch.bfloat16,
        lambda params: OffloadAdamW(params, lr=1e-4, state_dtype="bf16"),
    ),
    "heddle, states in 8 bits": (torch.bfloat16, lambda params: AdamW8bit(params, lr=1e-4)),
}


def made(dtype, make, count):
    params = [torch.nn.Parameter(torch.randn(count // TENSORS).to(dtype)) for _ in range(TENSORS)]
    for param in params:
        param.grad = (torch.randn(param.shape) * 1e-2).to(dtype)
    return make(params)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=int, default=1 << 24)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    optimizers = {name: made(*arm, options.parameters) for name, arm in ARMS.items()}
    times = {name: [] for name in ARMS}
    for number in range(options.rounds + 1):
        for name, optimizer in optimizers.items():
            began = time.thread_time()
            optimizer.step()
            if number:  # the first one makes the states
                times[name].append(time.thread_time() - began)
    for name, each in times.items():
        print(f"{name:30} {statistics.median(each) * 1e3:8.2f} ms")
    for peer, ours in (("torch, f32", "heddle, f32"), tuple(ARMS)[2:4]):
        ratio = statistics.median(a / b for a, b in zip(times[peer], times[ours], strict=True))
        print(f"{peer} / {ours}: {ratio:.2f}")


if __name__ == "__main__":
    main()
