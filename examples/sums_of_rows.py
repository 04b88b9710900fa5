"""An op whose GPU code is a whole kernel, that of docs/kernels.md, which says how it is written.

python examples/sums_of_rows.py
"""

from pathlib import Path

import torch

import heddle


class SumsOfRows(heddle.Op):
    """y[m] = sum of left[m, k] * right[n, k] over n and k"""

    reads = {"left": (heddle.bf16, "M, K"), "right": (heddle.bf16, "N, K")}
    writes = {"y": (heddle.f32, "M")}
    tile = {"M": 16}
    kernel = Path("sums_of_rows.cuh")
    body = """
    const auto y = block.row(a.y);
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto left = block.row(a.left, row);
      float sum = 0;
      for (i32 n = 0; n < a.right.size[0]; ++n) {
        const auto right = block.row(a.right, n);
        sum += block.reduce(a.left.last(), Sum(), [&](auto k) { return left.load(k) * right.load(k); });
      }
      y.set(row, sum);
    }
    """
    cases = ({"M": 130, "N": 43, "K": 64}, {"M": 7, "N": 64, "K": 64}, {"M": 65, "N": 3, "K": 40})
    bound = 2e-5  # a sum of 4,096 products

    @staticmethod
    def plan(call, gpu):
        (m, k), n = call.left.shape, call.right.shape[0]
        if k != 64 or n > 64:
            return f"it multiplies rows of 64 elements with at most 64 rows, not of {k} with {n}"
        return heddle.Launch(grid=-(-m // 64), threads=128, shared_bytes=16384)

    @staticmethod
    def reference(left, right):
        return (left @ right.T).sum(-1)

    peers = {"torch": lambda left, right: (left @ right.mT).float().sum(-1)}


def main():
    for case, error in SumsOfRows.check().items():
        print(f"{case:40} error {error:.1e}")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    left = torch.randn(1000, 64, device=device).bfloat16()
    right = torch.randn(50, 64, device=device).bfloat16()
    y = SumsOfRows(left, right)
    torch.testing.assert_close(y, (left.float() @ right.float().mT).sum(-1), atol=1e-3, rtol=1e-3)
    path = heddle.last_path()
    print(f"ran in {path.body} on {path.device}")


if __name__ == "__main__":
    main()
