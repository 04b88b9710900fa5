#!/usr/bin/env python3
"""Linear layers of an 8B in FP8 on a GPU, forward and backward, next to torch in bf16; their casts next to a
copy, and their products next to torch's.

    PYTHONPATH=build/release/python .venv/bin/python bench/float8.py [--tokens 8192 32768] [--out FILE.json]

Times are medians of device events, all arms in turn.
"""

import argparse
import json
import statistics

import torch

from heddle import float8, ops
from heddle.float8 import casts, products

SHAPES = ((4096, 4096), (14336, 4096), (4096, 14336))  # (outputs, inputs)
ROUNDS = 9


def timed(arms):
    """{name: microseconds}."""
    times = {name: [] for name in arms}
    for number in range(ROUNDS + 2):
        for name, run in arms.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            if number > 1:  # the first ones compile
                times[name].append(begin.elapsed_time(end) * 1e3)
    return {name: round(statistics.median(each), 1) for name, each in times.items()}


def layers(tokens, outputs, inputs):
    x = torch.randn(tokens, inputs, device="cuda", dtype=torch.bfloat16)
    dy = torch.randn(tokens, outputs, device="cuda", dtype=torch.bfloat16)

    def arm(recipe):
        layer = torch.nn.Linear(inputs, outputs, bias=False, device="cuda", dtype=torch.bfloat16)
        if recipe:
            config = float8.Float8Config(recipe, always=True)
            float8.convert_to_float8_training(layer, config=config)

        def run():
            layer.weight.grad = None
            layer(x.detach().requires_grad_()).backward(dy)

        return run

    return timed({recipe or "bf16": arm(recipe) for recipe in (None, *float8.RECIPES)})


def of_casts(tokens, inputs):
    x = torch.randn(tokens, inputs, device="cuda", dtype=torch.bfloat16)
    one = torch.ones(1, 1, device="cuda")
    arms = {"copy": x.clone, "quantize_both": lambda: ops.quantize_both(x)}
    arms["quantize_at"] = lambda: ops.quantize_at(x, one, one)
    arms.update({recipe: lambda recipe=recipe: casts.cast(x, recipe) for recipe in float8.RECIPES})
    return timed(arms)


def of_products(tokens, outputs, inputs):
    x, dy = (torch.randn(tokens, n, device="cuda", dtype=torch.bfloat16) for n in (inputs, outputs))
    w = torch.randn(outputs, inputs, device="cuda", dtype=torch.bfloat16)
    arms = {"bf16 forward": lambda: x @ w.t(), "bf16 dweight": lambda: dy.t() @ x}
    for recipe in float8.RECIPES:
        x8, dy8 = casts.cast(x, recipe), casts.cast(dy, recipe)
        w8 = casts.cast(w, "square" if recipe == "block" else recipe)
        fast = recipe != "block"
        for name, a, b in (("forward", x8.rows, w8.rows), ("dweight", dy8.columns, x8.columns)):
            for who, multiply in (("heddle", products.by_heddle), ("torch", products.by_torch)):
                arms[f"{who} {recipe} {name}"] = lambda a=a, b=b, multiply=multiply, fast=fast: multiply(
                    a, b, torch.bfloat16, fast
                )
    return timed(arms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--out")
    options = parser.parse_args()
    rows = []
    for tokens in options.tokens:
        for outputs, inputs in SHAPES:
            shape = {"tokens": tokens, "outputs": outputs, "inputs": inputs}
            for part, us in (
                ("layer", layers(tokens, outputs, inputs)),
                ("casts", of_casts(tokens, inputs)),
                ("products", of_products(tokens, outputs, inputs)),
            ):
                rows.append({**shape, "part": part, "us": us})
                print(f"{part} {tokens} x {outputs} x {inputs}: {us}", flush=True)
    if options.out:
        found = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
        with open(options.out, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
