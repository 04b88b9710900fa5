"""Runs the cases of ops in this process, for the tools that watch it: python -m heddle.profile.calls OP...

It prints a line of JSON for each op: how many cases ran, and in which bodies.
"""

import argparse
import collections
import json
import time

import torch

import heddle
from heddle.commands.cases import call, small_cases, tensors_of
from heddle.commands.named import ops_named


def some(cases, most):
    """Cases of all dtypes in turn, those with more elements first."""
    by_dtype = collections.defaultdict(list)
    for number, case in cases:
        dtypes = tuple(dtype for dtype, _, _ in case["tensors"].values())
        size = sum(torch.Size(sizes).numel() for _, sizes, _ in case["tensors"].values())
        by_dtype[dtypes].append((size, number, case))
    queues = [sorted(each, key=lambda one: -one[0]) for each in by_dtype.values()]
    chosen = []
    while any(queues) and (not most or len(chosen) < most):
        for queue in queues:
            if queue and (not most or len(chosen) < most):
                chosen.append(queue.pop(0)[1:])
    return chosen


def run_op(op, device, most, end=float("inf")):
    """Calls the op with its cases."""
    bodies, ran, refused = collections.Counter(), 0, collections.Counter()
    for number, case in some(small_cases(op), most):
        if time.monotonic() > end:
            break
        inputs = {name: each.to(device) for name, each in tensors_of(op, number, case).items()}
        try:
            call(op, inputs, case)
        except heddle.Error as error:
            refused[str(error)[:200]] += 1
            continue
        ran += 1
        bodies[heddle.last_path().body] += 1
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return {"op": op, "cases": ran, "bodies": dict(bodies), "refused": dict(refused)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="+")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--most", type=int, default=8, help="cases of an op; 0: all")
    parser.add_argument("--seconds", type=float, default=0, help="after which no case begins")
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds if arguments.seconds else float("inf")
    for op in ops_named("profile", arguments.ops):
        if time.monotonic() < end:
            print(json.dumps(run_op(op, arguments.device, arguments.most, end)), flush=True)


if __name__ == "__main__":
    main()
