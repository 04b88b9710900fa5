#!/usr/bin/env python3
"""How long an engine takes to get weights from memory: a Llama of 1B in bf16, loaded and updated.

    PYTHONPATH=build/release/python .venv/bin/python bench/weight_update.py [--device cuda] [--commit COMMIT]

An update brings a whole state dict. Each is one call from the host, and ends when the new weights are packed.
A row's value is the median of the rounds.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import report
import torch
import transformers
from patch import LLAMA_1B

import heddle
import heddle.env


def milliseconds(work):
    start = time.perf_counter()
    made = work()
    return (time.perf_counter() - start) * 1e3, made


def row(name, times, bar):
    return {
        "work": name,
        "value": round(statistics.median(times), 2),
        "unit": "ms",
        "bar": bar,
        "all": [round(each, 2) for each in times],
        "peers": {},
    }


def rows_of(arguments):
    config = transformers.LlamaConfig(**{**LLAMA_1B, "num_hidden_layers": arguments.layers})
    with torch.device(arguments.device):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    state = model.state_dict()
    options = {"max_context": 256, "max_sequences": 1}
    first, engine = milliseconds(lambda: heddle.from_transformers(model, **options))
    rows = [row("from_transformers", [first], None)]
    engine.update_weights(state)  # compiles, where something is compiled
    times = [milliseconds(lambda: engine.update_weights(state))[0] for _ in range(arguments.rounds)]
    rows.append(row("update_weights", times, 20.0 if arguments.device == "cuda" else None))
    engine.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--layers", type=int, default=LLAMA_1B["num_hidden_layers"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--commit", help="writes the results, as those of this commit")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    rows = rows_of(arguments)
    for each in rows:
        print(f"{each['work']:<36} {each['value']:>9} ms, bar {each['bar']}")
    if arguments.commit:
        device = heddle.env.device() if arguments.device == "cpu" else torch.cuda.get_device_name()
        result = {"device": device, "date": report.today(), "commit": arguments.commit}
        options = f"--device {arguments.device} --layers {arguments.layers} --rounds {arguments.rounds}"
        result |= {"command": f"bench/weight_update.py {options}", "load_average": load, "rows": rows}
        print("wrote", report.write(result, arguments.out, "weight_update"))


if __name__ == "__main__":
    main()
