#!/usr/bin/env python3
"""Ops as a user of PyTorch calls them, on a GPU, next to torch: first right, then timed.

    PYTHONPATH=build/release/python python3 bench/ops.py [--sizes large|small] [--commit COMMIT] [--out FILE]

Large: GPU time of calls that wait in the queue until a kernel that sleeps ends, in microseconds. Small
(tensors of at most 1 MB): the time from call to call as the host makes them, with Python. A row says which
path the last call took. A result that is further from torch's in fp32 than 1.5 times torch's in bf16 ends
the run.
"""

import argparse
import itertools
import shlex
import sys
import time
from pathlib import Path

import device_kernel
import report
import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import heddle
import heddle.ops as ops

BF16 = torch.bfloat16


def randn(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def attend(q, k, v, causal):
    heads = [t.transpose(1, 2) for t in (q, k, v)]
    return F.scaled_dot_product_attention(*heads, is_causal=causal).transpose(1, 2)


def attention(q, k, v, causal):
    return ops.flash_attention(q, k, v, causal=causal)[0]


def rows_of(rows, columns):
    """name: (heddle, torch, tensors that want a gradient)"""
    x, w, gate = randn(rows, columns), randn(columns), randn(rows, columns)
    bias = randn(columns)
    return {
        "softmax": (ops.softmax, lambda x: F.softmax(x, -1), [x]),
        "rms_norm": (
            lambda x, w: ops.rms_norm(x, w, eps=1e-5),
            lambda x, w: F.rms_norm(x, (columns,), w, 1e-5),
            [x, w],
        ),
        "layer_norm": (
            lambda x, w, b: ops.layer_norm(x, w, b, eps=1e-5),
            lambda x, w, b: F.layer_norm(x, (columns,), w, b, 1e-5),
            [x, w, bias],
        ),
        "gated_product": (
            lambda g, u: ops.gated_product(g, u, kind="silu"),
            lambda g, u: F.silu(g) * u,
            [gate, x],
        ),
        "transpose": (ops.transpose, lambda x: x.t().contiguous(), [x]),
        "copy": (ops.copy, lambda x: x.clone(), [x]),
    }


def large():
    for name, (ours, theirs, tensors) in rows_of(32768, 4096).items():
        yield f"{name} 32768 x 4096", ours, theirs, tensors, name not in ("copy", "transpose")
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (16, 4096, 4096), (512, 14336, 4096)):
        a, b = randn(m, k), randn(n, k)
        yield f"mm {m} x {n} x {k}", lambda a, b: ops.mm(a, b.t()), lambda a, b: a @ b.t(), [a, b], m > 1000
    for (batch, length, heads, width), causal in itertools.product(
        ((2, 8192, 16, 128), (1, 8192, 32, 64)), (False, True)
    ):
        qkv = [randn(batch, length, heads, width) for _ in range(3)]
        name = f"flash_attention {batch} x {length} x {heads} x {width}{' causal' if causal else ''}"
        yield (
            name,
            lambda q, k, v, c=causal: attention(q, k, v, c),
            lambda q, k, v, c=causal: attend(q, k, v, c),
            qkv,
            True,
        )
    logits, target = randn(8192, 32768), torch.randint(32768, (8192,), device="cuda")
    yield (
        "cross_entropy 8192 x 32768",
        lambda x: ops.cross_entropy(x, target)[0],
        lambda x: F.cross_entropy(x.float(), target, reduction="none"),
        [logits],
        True,
    )


def small():
    for rows, columns in ((4, 4096), (128, 2048)):
        for name, (ours, theirs, tensors) in rows_of(rows, columns).items():
            yield f"{name} {rows} x {columns}", ours, theirs, tensors, False
    a, b = randn(128, 512), randn(512, 512)
    yield "mm 128 x 512 x 512", lambda a, b: ops.mm(a, b.t()), lambda a, b: a @ b.t(), [a, b], False


def error(got, want):
    return ((got.double() - want).abs().max() / (1 + want.abs().max())).item()


def check(name, ours, theirs, tensors):
    """Compares with torch in fp32, and torch in bf16 with it."""
    wide = [t.float() for t in tensors]
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        want = theirs(*wide).double()
    mine, peer = error(ours(*tensors), want), error(theirs(*tensors), want)
    if not mine <= 1.5 * peer + 1e-6:
        raise SystemExit(f"{name}: error {mine:.2e}, torch's {peer:.2e}")
    return mine, peer


def host_time(function, calls=300):
    for _ in range(20):
        function()
    torch.cuda.synchronize()
    best = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        torch.cuda.synchronize()
        best.append((time.perf_counter() - begin) / calls * 1e6)
    return sorted(best)[2]


def times(ours, theirs, small_calls):
    if small_calls:
        return host_time(ours), host_time(theirs)
    took = device_kernel.bench({"heddle": ours, "torch": theirs}, rounds=7, inner=3)
    return took["heddle"] * 1e3, took["torch"] * 1e3


def backward_of(function, tensors):
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    dy = torch.randn_like(function(*leaves))

    def run():
        torch.autograd.grad(function(*leaves), leaves, dy)

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", choices=("large", "small"), default="large")
    parser.add_argument("--commit")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    rows, is_small = [], arguments.sizes == "small"
    for name, ours, theirs, tensors, gradient in small() if is_small else large():
        mine, peer = check(name, ours, theirs, tensors)
        path = heddle.last_path()
        with torch.no_grad():
            got = times(lambda o=ours, t=tensors: o(*t), lambda o=theirs, t=tensors: o(*t), is_small)
        parts = [("forward", got)]
        if gradient:
            both = [backward_of(f, tensors) for f in (ours, theirs)]
            parts.append(("forward and backward", times(*both, is_small)))
        for part, (us, torch_us) in parts:
            rows.append(
                {"work": f"{name}, {part}", "value": round(us, 2), "unit": "us", "torch": round(torch_us, 2)}
                | {"ratio": round(torch_us / us, 3), "error": mine, "error of torch": peer}
                | {"body": path.body, "why no kernel": path.why_no_kernel or ""}
            )
            print(
                f"{rows[-1]['work']:58} {us:9.1f} us, torch {torch_us:9.1f}, {torch_us / us:6.3f}  "
                f"{path.body} {path.why_no_kernel or ''}",
                flush=True,
            )
        del tensors
    result = {
        "device": torch.cuda.get_device_name(),
        "date": report.today(),
        "commit": arguments.commit or report.commit(),
        "command": shlex.join(["python3", "bench/ops.py", *sys.argv[1:]]),
        "torch": torch.__version__,
        "rows": rows,
    }
    name = "ops_small" if is_small else "ops"
    print("written to", report.write(result, arguments.out, name))


if __name__ == "__main__":
    main()
