#!/usr/bin/env python3
"""What a call from Python costs besides the op's own work, next to torch: medians, on one thread of a CPU.

    PYTHONPATH=build/release/python .venv/bin/python bench/python.py [--commit COMMIT]

Calls are of rms_norm on f32 [4, 64], and their times hold the kernel's: about 0.1 us.
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

CALLS = 2000
X, W = torch.randn(4, 64), torch.ones(64)
OUT = torch.empty(4, 64)
XN, WN, ON = X.numpy(), W.numpy(), OUT.numpy()
XG, WG = X.clone().requires_grad_(), W.clone().requires_grad_()
DY = torch.randn(4, 64)


def forward_and_backward(function):
    def run():
        XG.grad = WG.grad = None
        function(XG, WG).backward(DY)

    return run


def torch_norm(x, weight):
    return torch.nn.functional.rms_norm(x, (64,), weight, 1e-5)


def wrong():
    with contextlib.suppress(heddle.Error):
        heddle.ops.rms_norm(X, 3)


# name: (call, bar in microseconds or None, torch's call or None)
ROWS = {
    "out given": (lambda: heddle.ops.rms_norm(X, W, out=OUT), 1.0, lambda: torch.add(X, X, out=OUT)),
    "out allocated": (lambda: heddle.ops.rms_norm(X, W), 2.0, lambda: torch_norm(X, W)),
    "NumPy, out given": (lambda: heddle.ops.rms_norm(XN, WN, out=ON), None, None),
    "NumPy, out allocated": (lambda: heddle.ops.rms_norm(XN, WN), None, None),
    "torch.ops.heddle": (lambda: torch.ops.heddle.rms_norm(X, W), None, None),
    "forward with gradient": (lambda: heddle.ops.rms_norm(XG, WG), 16.0, lambda: torch_norm(XG, WG)),
    "forward and backward": (
        forward_and_backward(heddle.ops.rms_norm),
        None,
        forward_and_backward(torch_norm),
    ),
    "wrong argument to exception": (wrong, 50.0, None),
}


def microseconds(call):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def measure(rounds):
    """Rounds of all rows, so that a slow moment of the machine meets all of them."""
    times = {name: [] for name in ROWS}
    peers = {name: [] for name, row in ROWS.items() if row[2]}
    empty = []
    for _ in range(rounds):
        empty.append(microseconds(lambda: None))
        for name, (call, _bar, peer) in ROWS.items():
            times[name].append(microseconds(call) - empty[-1])
            if peer:
                peers[name].append(microseconds(peer) - empty[-1])
    return times, peers


def import_ms():
    code = "import time; t = time.perf_counter(); import heddle.ops; print((time.perf_counter() - t) * 1e3)"
    return [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(7)]


def recompiles():
    """Compilations beyond the first, of a function over five lengths."""
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")
    function = torch.compile(
        lambda x: heddle.ops.rms_norm(x, W), fullgraph=True, dynamic=True, backend=counter
    )
    for length in (4, 7, 9, 100, 33):
        function(torch.randn(2, length, 64))
    return counter.frame_count - 1


STORYTELLER = Path(__file__).parents[1] / "models" / "storyteller"


def stream_us(rounds):
    """Microseconds a token: of a stream above an answer that only the C++ loop makes, and of that answer."""
    settings = {"max_tokens": 600, "temperature": 1.0, "seed": 1, "eos_token_id": 0, "reuse": True}
    above, alone = [], []
    with heddle.load(STORYTELLER, device="cpu") as model:
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
    made["peers"] = {f"torch {torch.__version__}": round(statistics.median(peers), 3)} if peers else {}
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--commit", help="writes the results, as those of this commit")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    times, peers = measure(arguments.rounds)
    rows = [row(name, times[name], "us", ROWS[name][1], peers.get(name)) for name in ROWS]
    above, alone = stream_us(arguments.rounds)
    rows.append(row("Model.stream above the C++ loop", above, "us a token", 30.0))
    rows.append(row("the C++ loop of the storyteller", alone, "us a token", None))
    rows.append(row("import heddle.ops", import_ms(), "ms", 30.0))
    rows.append(row("recompiles over 5 lengths", [recompiles()], "", 0))
    for each in rows:
        peer = "; ".join(f"{name} {value}" for name, value in each["peers"].items())
        bar = "" if each["bar"] is None else f"bar {each['bar']}"
        print(f"{each['work']:<30} {each['value']:>9} {each['unit']:<3} {bar:<10} {peer}")
    if arguments.commit:
        device = heddle.env.device()
        result = {"device": device, "date": report.today(), "commit": arguments.commit}
        result |= {
            "command": f"bench/python.py --rounds {arguments.rounds}",
            "load_average": load,
            "rows": rows,
        }
        print("wrote", report.write(result, arguments.out, "python"))


if __name__ == "__main__":
    main()
