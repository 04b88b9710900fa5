"""An op of one's own with a gradient, trained inside a compiled function.

python examples/own_op_backward.py
"""

# ruff: noqa: RUF012 - a class declares an op by its attributes, which nobody changes

import numpy
import torch

import heddle


class Swish(heddle.Op):
    """y = x * sigmoid(scale * x)"""

    reads = {"x": (None, "M, D")}
    writes = {"y": (None, "M, D")}
    tile = ("M",)
    scale: float = 1.0
    body = """
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), y = block.row(a.y, row);
      block.map(a.x.last(), [&](auto i) { y.store(i, x.load(i) * sigmoid(a.scale * x.load(i))); });
    }
    """

    @staticmethod
    def reference(x, scale):
        return x / (1 + numpy.exp(-scale * x))

    @staticmethod
    def backward(x, dy, scale):
        return {"dx": SwishBackward(x, dy, scale=scale)}


class SwishBackward(heddle.Op):
    """dx = dy * (s + scale * x * s * (1 - s)), where s = sigmoid(scale * x)"""

    reads = {"x": (None, "M, D"), "dy": (None, "M, D")}
    writes = {"dx": (None, "M, D")}
    tile = ("M",)
    scale: float = 1.0
    body = """
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), dy = block.row(a.dy, row), dx = block.row(a.dx, row);
      block.map(a.x.last(), [&](auto i) {
        const auto scaled = a.scale * x.load(i), s = sigmoid(scaled);
        dx.store(i, dy.load(i) * (s + scaled * s * (1.0f - s)));
      });
    }
    """

    @staticmethod
    def reference(x, dy, scale):
        s = 1 / (1 + numpy.exp(-scale * x))
        return dy * (s + scale * x * s * (1 - s))


def main():
    for op in (Swish, SwishBackward):
        print(f"{op.declaration.name} error {max(op.check().values()):.1e}", flush=True)

    torch.manual_seed(1)
    x = torch.randn(40, 64, requires_grad=True)
    torch.testing.assert_close(
        torch.autograd.grad(Swish(x).sum(), x), torch.autograd.grad(torch.nn.functional.silu(x).sum(), x)
    )

    up = torch.randn(64, 32, requires_grad=True)
    down = torch.randn(32, 1, requires_grad=True)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def loss(rows):
        return (Swish(rows @ up, scale=0.5) @ down - rows.sum(-1, keepdim=True)).square().mean()

    optimizer = torch.optim.Adam((up, down), lr=0.02)
    losses = []
    for step in range(60):
        value = loss(torch.randn(20 + step, 64))  # other lengths, one graph
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    print(f"loss {losses[0]:.1f}, after {len(losses)} steps {losses[-1]:.2f}")
    assert losses[-1] < losses[0] / 3


if __name__ == "__main__":
    main()
