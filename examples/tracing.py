"""Where the time of a program goes: runs a gated MLP as one program, and writes what its workers did.

python examples/tracing.py [trace.html | trace.perfetto | trace.nanotrace]
"""

import sys

import numpy
import torch

import heddle


def mlp(rows=64, size=256, hidden=512):
    """x += down(silu(gate) * up), of rms_norm(x), as scheduled calls."""
    x, weight = torch.randn(rows, size), torch.ones(size)
    up, down = torch.randn(size, 2 * hidden) / 16, torch.randn(hidden, size) / 16
    h, wide, narrow, out = (torch.empty(rows, n) for n in (size, 2 * hidden, hidden, size))
    return [
        heddle.schedule("rms_norm", x=x, weight=weight, y=h),
        heddle.schedule("matmul", a=h, b=up, y=wide),
        heddle.schedule("gated_activation", x=wide, y=narrow, kind="silu"),
        heddle.schedule("matmul", a=narrow, b=down, y=out),
        heddle.schedule("add", a=x, b=out, y=x),
    ]


def main(path="trace.html"):
    kernel = heddle.Megakernel(mlp(), heddle.MegakernelConfig(tracing=True))
    for _ in range(2):  # the first run meets cold memory
        kernel.run()
    trace = kernel.trace()
    print(f"{kernel}: {trace.done.max() / 1e3:.0f} us")
    for call, node in enumerate(trace.nodes):
        mine = trace.call == call
        took = (trace.computed - trace.ready)[mine].sum() / 1e3
        waited = (trace.ready - trace.fetched)[mine].sum() / 1e3
        print(f"  {node:20} {mine.sum():4} tiles {took:8.0f} us, waits {waited:6.0f} us")
    print(f"  {len(numpy.unique(trace.worker))} workers")
    kernel.write_trace(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
