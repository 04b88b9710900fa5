"""An op of one's own, checked against NumPy, alone and as a part of one program.

python examples/own_op.py
"""

import torch

import heddle


class ScaledRelu(heddle.Op):
    """y = scale * max(x + bias, 0)"""

    reads = {"x": (None, "M, D"), "bias": (None, "D")}  # None: f32, f16 or bf16
    writes = {"y": (None, "M, D")}
    tile = ("M",)
    scale: float = 1.0
    body = """
    const auto bias = block.row(a.bias);
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), y = block.row(a.y, row);
      block.map(a.x.last(), [&](auto i) { y.store(i, a.scale * max(x.load(i) + bias.load(i), 0.0f)); });
    }
    """

    @staticmethod
    def reference(x, bias, scale):
        return scale * (x + bias).clip(0)


def main():
    for case, error in ScaledRelu.check().items():
        print(f"{case:30} error {error:.1e}")

    x, bias, weight = torch.randn(256, 512), torch.randn(512), torch.ones(512)
    torch.testing.assert_close(ScaledRelu(x, bias, scale=2.0), 2 * torch.relu(x + bias))

    h, y = torch.empty_like(x), torch.empty_like(x)
    kernel = heddle.Megakernel(
        [
            heddle.schedule("rms_norm", x=x, weight=weight, y=h),
            ScaledRelu.schedule(x=h, bias=bias, y=y, scale=2.0),
        ]
    )
    kernel.run()
    torch.testing.assert_close(y, 2 * torch.relu(heddle.ops.rms_norm(x, weight) + bias))
    print(kernel.check())


if __name__ == "__main__":
    main()
