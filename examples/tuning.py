"""Tunes matrix products for this machine: times the configurations that an op has, and keeps the best ones.

Calls take what was found from then on, in later processes too. It lies
in heddle's cache folder, or in $HEDDLE_TUNED.
"""

import time

import torch

import heddle
import heddle.ops

SHAPES = ((8, 256, 256), (128, 512, 256), (512, 512, 512))


def milliseconds(call, times=20):
    call()
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times * 1e3


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for rows, inner, columns in SHAPES:
        a = torch.randn(rows, inner, device=device)
        b = torch.randn(inner, columns, device=device)

        begin = time.perf_counter()
        with heddle.settings.set(heddle.PickBest, num_workers=4):  # times the candidates if nobody has
            best = heddle.ops.matmul(a, b)
        search = time.perf_counter() - begin

        # PickAny, the default, takes what was found, for any number of rows up to the next power of two.
        again = heddle.ops.matmul(a, b)
        how = heddle.last_path().reason
        assert torch.equal(again, best)
        took = milliseconds(lambda a=a, b=b: heddle.ops.matmul(a, b))
        print(f"{rows} x {inner} x {columns}: {how}; {took:.3f} ms a call, {search:.2f} s to find it")


if __name__ == "__main__":
    main()
