"""One of two processes that train with compressed gradients: `compressed_training.py RANK FOLDER`. It writes
what it saw to FOLDER/RANK.json."""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import heddle
from heddle.distributed import compress

RANK, FOLDER = int(sys.argv[1]), Path(sys.argv[2])


def ddp(module, **options):
    return torch.nn.parallel.DistributedDataParallel(module, bucket_cap_mb=0.01, **options)


def trained(method, steps=80):
    """(loss at the end, bits of the weights, state) of a small network; ranks have other data."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh()]
    model = ddp(torch.nn.Sequential(*layers, torch.nn.Linear(64, 4)))
    x = torch.randn(256, 20)
    y = (x @ torch.randn(20, 4) * 0.3).tanh()
    state = compress(model, method, start_iter=3, min_bytes=0, ratio=0.2) if method else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
    for step in range(steps):
        rows = slice(RANK * 32 + step % 4 * 64, RANK * 32 + step % 4 * 64 + 32)
        optimizer.zero_grad()
        (model(x[rows]) - y[rows]).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        loss = float((model.module(x) - y).square().mean())
    return loss, torch.cat([each.detach().flatten() for each in model.parameters()]), state


class Constant(torch.nn.Module):
    """Its gradients are the factors, whatever its weights; `unused` has none."""

    def __init__(self, factors):
        super().__init__()
        self.first = torch.nn.Parameter(torch.zeros(3000))
        self.second = torch.nn.Parameter(torch.zeros(40, 50))
        self.unused = torch.nn.Parameter(torch.zeros(300))
        self.factors = factors

    def forward(self, scale):
        flat = torch.cat([self.first, self.second.flatten()])
        return (flat * self.factors * scale).sum()


def drift(method, steps, **options):
    """The largest difference from steps with exact means, in units of the largest gradient."""
    factors = torch.randn(2, 5000, generator=torch.Generator().manual_seed(7))
    model = ddp(Constant(factors[RANK]), find_unused_parameters=True)
    state = compress(model, method, start_iter=0, min_bytes=0, ratio=0.2, **options)
    module, made = model.module, torch.zeros(5000)
    for _ in range(steps):
        model.zero_grad()
        model(1.0).backward()
        made += torch.cat([module.first.grad, module.second.grad.flatten()])
    wanted = factors.mean(0) * steps
    return float((made - wanted).abs().max() / factors.abs().max()), state


def main():
    torch.set_num_threads(1)
    store = dist.FileStore(str(FOLDER / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=2)
    seen = {"plain": trained(None)[0]}
    for method in heddle.distributed.METHODS:
        loss, weights, state = trained(method)
        both = [torch.empty_like(weights) for _ in range(2)]
        dist.all_gather(both, weights)
        seen[method] = {
            "loss": loss,
            "same": torch.equal(*both),
            "times fewer bytes": state.plain_bytes / state.sent_bytes,
            "with": [drift(method, steps)[0] for steps in (10, 60)],
            "without": drift(method, 60, error_feedback=False)[0],
        }
    _, state = drift("int8", 3)
    saved = state.state_dict()
    again = heddle.distributed.CompressState(Constant(None), "int8")
    again.load_state_dict(saved)
    seen["saved"] = sorted(saved["errors"])
    seen["kept"] = all(torch.equal(again.state_dict()["errors"][k], v) for k, v in saved["errors"].items())
    model = ddp(Constant(torch.ones(5000)), find_unused_parameters=True)
    state = compress(model, start_iter=0, min_bytes=0)
    seen["finite"] = []
    for step in range(3):
        model.zero_grad()
        model(float("inf") if step == 1 and RANK == 1 else 1.0).backward()
        seen["finite"].append(bool(model.module.first.grad.isfinite().all()))
    seen["nonfinite"] = state.nonfinite
    (FOLDER / f"{RANK}.json").write_text(json.dumps(seen))
    dist.barrier()
    os._exit(0)  # at its end torch may wait for a thread of gloo that waits for the interpreter


main()
