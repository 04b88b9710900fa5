#!/usr/bin/env python3
"""What a call from Python costs besides the op's own work, next to torch: medians, on one thread of a CPU.

    PYTHONPATH=build/release/python .venv/bin/python bench/python.py [--device cuda] [--commit COMMIT]

Calls are of rms_norm on f32 [4, 64]. On a CPU their times hold the kernel's: about 0.1 us. On a GPU a call
ends when its launch returns.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import report
import torch

import heddle
import heddle.env
import heddle.ops
from heddle.bench import timing

LENGTHS = (4, 7, 9, 100, 33)


class Calls:
    """The calls that are timed, on tensors of one device."""

    def __init__(self, device):
        self.device = device
        self.x, self.w = torch.randn(4, 64, device=device), torch.ones(64, device=device)
        self.out, self.dy = torch.empty_like(self.x), torch.randn_like(self.x)
        self.xg, self.wg = self.x.clone().requires_grad_(), self.w.clone().requires_grad_()

    def forward_and_backward(self, function):
        def run():
            self.xg.grad = self.wg.grad = None
            function(self.xg, self.wg).backward(self.dy)

        return run

    def rows(self):
        """name: (call, bar in microseconds or None, {peer: its call})"""
        x, w, out, xg, wg = self.x, self.w, self.out, self.xg, self.wg
        norm, gpu = heddle.ops.rms_norm, self.device != "cpu"
        name = f"torch {torch.__version__}"
        rows = {
            "out given": (
                lambda: norm(x, w, out=out),
                5.0 if gpu else 1.0,
                {name: lambda: torch.add(x, x, out=out)},
            ),
            "out allocated": (lambda: norm(x, w), 5.0 if gpu else 2.0, {name: lambda: torch_norm(x, w)}),
            "torch.ops.heddle": (
                lambda: torch.ops.heddle.rms_norm(x, w),
                10.0 if gpu else 4.0,  # twice the bar of a direct call
                {"heddle.ops": lambda: norm(x, w)},
            ),
            "forward with gradient": (
                lambda: norm(xg, wg),
                16.0,
                {name: lambda: torch_norm(xg, wg), "launches nothing": lambda: Nothing.apply(xg, wg)},
            ),
            "forward and backward": (
                self.forward_and_backward(norm),
                None,
                {
                    name: self.forward_and_backward(torch_norm),
                    "launches nothing": self.forward_and_backward(Nothing.apply),
                },
            ),
            "wrong argument to exception": (lambda: wrong(x), 50.0, {}),
        }
        if gpu:
            rows["out given"][2].update(triton_norm(x, w, out))
        else:
            xn, wn, on = x.numpy(), w.numpy(), out.numpy()
            rows["NumPy, out given"] = (lambda: norm(xn, wn, out=on), None, {})
            rows["NumPy, out allocated"] = (lambda: norm(xn, wn), None, {})
        return rows


class Nothing(torch.autograd.Function):
    """The least that a gradient in Python costs: it launches nothing."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.detach()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        _, weight = ctx.saved_tensors
        return dy, weight


def torch_norm(x, weight):
    return torch.nn.functional.rms_norm(x, (64,), weight, 1e-5)


def triton_norm(x, weight, out):
    """A launch by Triton of a kernel with the same arguments."""
    import triton
    from triton import language

    @triton.jit
    def kernel(x, weight, out, eps, size: language.constexpr):
        at = language.arange(0, size)
        row = language.program_id(0) * size + at
        values = language.load(x + row)
        scale = language.rsqrt(language.sum(values * values) / size + eps)
        language.store(out + row, values * scale * language.load(weight + at))

    return {f"Triton {triton.__version__}": lambda: kernel[(4,)](x, weight, out, 1e-5, 64)}


def wrong(x):
    with contextlib.suppress(heddle.Error):
        heddle.ops.rms_norm(x, 3)


def measure(rows, device, rounds):
    """Microseconds by (row, peer), without those of an empty call; the row's own call is the peer ""."""
    calls = {(name, ""): call for name, (call, _, _) in rows.items()}
    calls |= {(name, peer): other for name, (_, _, others) in rows.items() for peer, other in others.items()}
    times = timing.from_host(calls | {"empty": lambda: None}, device, rounds)
    empty = statistics.median(times.pop("empty"))
    return {key: [(ms - empty) * 1e3 for ms in samples] for key, samples in times.items()}


def import_ms():
    code = "import time; t = time.perf_counter(); import heddle.ops; print((time.perf_counter() - t) * 1e3)"
    return [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(7)]


def recompiles(device):
    """Compilations beyond the first, of a function over five lengths."""
    from torch._dynamo.testing import CompileCounterWithBackend

    counter, weight = CompileCounterWithBackend("aot_eager"), torch.ones(64, device=device)
    function = torch.compile(
        lambda x: heddle.ops.rms_norm(x, weight), fullgraph=True, dynamic=True, backend=counter
    )
    for length in LENGTHS:
        function(torch.randn(2, length, 64, device=device))
    return counter.frame_count - 1


STORYTELLER = Path(__file__).parents[1] / "models" / "storyteller"


def stream_us(device, rounds):
    """Microseconds a token: of a stream above an answer that only the C++ loop makes, and of that answer."""
    settings = {"max_tokens": 600, "temperature": 1.0, "seed": 1, "eos_token_id": 0, "reuse": True}
    above, alone = [], []
    with heddle.load(STORYTELLER, device=device) as model:
        for _ in range(rounds):
            start = time.perf_counter()
            model.generate("Once upon a time", **settings)
            middle = time.perf_counter()
            count = sum(1 for _ in model.stream("Once upon a time", **settings))
            end = time.perf_counter()
            alone.append((middle - start) / count * 1e6)
            above.append((end - middle) / count * 1e6 - alone[-1])
    return above, alone


def row(name, values, unit, bar, peers=None):
    made = {"work": name, "value": round(statistics.median(values), 3), "unit": unit, "bar": bar}
    made["all"] = [round(value, 3) for value in values]
    made["peers"] = {peer: round(statistics.median(each), 3) for peer, each in (peers or {}).items()}
    return made


def all_rows(device, rounds):
    calls = Calls(device).rows()
    times = measure(calls, device, rounds)
    rows = []
    for name, (_, bar, others) in calls.items():
        rows.append(row(name, times[name, ""], "us", bar, {peer: times[name, peer] for peer in others}))
    above, alone = stream_us(device, rounds)
    rows.append(row("Model.stream above the C++ loop", above, "us a token", 30.0))
    rows.append(row("the C++ loop of the storyteller", alone, "us a token", None))
    rows.append(row("import heddle.ops", import_ms(), "ms", 30.0))
    rows.append(row("recompiles over 5 lengths", [recompiles(device)], "", 0))
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--commit", help="writes the results, as those of this commit")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    rows = all_rows(arguments.device, arguments.rounds)
    for each in rows:
        peer = "; ".join(f"{name} {value}" for name, value in each["peers"].items())
        bar = "" if each["bar"] is None else f"bar {each['bar']}"
        print(f"{each['work']:<32} {each['value']:>9} {each['unit']:<10} {bar:<9} {peer}")
    if arguments.commit:
        result = {
            "device": heddle.env.device() if arguments.device == "cpu" else torch.cuda.get_device_name(),
            "date": report.today(),
            "commit": arguments.commit,
            "command": f"bench/python.py --device {arguments.device} --rounds {arguments.rounds}",
            "load_average": load,
            "rows": rows,
        }
        print("wrote", report.write(result, arguments.out, "python"))


if __name__ == "__main__":
    main()
