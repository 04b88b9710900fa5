#!/usr/bin/env python3
"""Models of transformers with and without heddle.patch: forward, a step of training, and what patching takes.

    PYTHONPATH=build/release/python .venv/bin/python bench/patch.py [--device cuda] [--commit COMMIT]

Models are tiny (2 layers, 64 wide) or have one layer of the 1B of their family. Both forms of a model share
their weights, and rounds of the two alternate. A row's value is the median of the rounds' ratios: the patched
time over the other one.
"""

import argparse
import copy
import os
import statistics
import sys
import time
from pathlib import Path

import report
import torch
import transformers

import heddle
import heddle.env
from heddle.bench import timing

sys.path.append(str(Path(__file__).parents[1] / "python" / "tests"))
from tiny import FAMILIES, tiny, tokens

LAYER_OF_1B = {
    "llama": {"intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64},
    "qwen3": {
        "intermediate_size": 6144,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
    "gemma2": {
        "intermediate_size": 9216,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
    },
    "gpt2": {"n_embd": 1600, "n_layer": 1, "n_head": 25},
}
LLAMA_1B = {
    "vocab_size": 128256,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "tie_word_embeddings": True,
}


def models(device, length):
    """(name, model, ids of a prompt)"""
    for family in FAMILIES:
        yield f"tiny {family}", tiny(family).to(device), tokens(2, 32).to(device)
    for family, sizes in LAYER_OF_1B.items():
        wide = sizes if family == "gpt2" else {"hidden_size": 2048, "num_hidden_layers": 1, **sizes}
        wide |= {"n_positions" if family == "gpt2" else "max_position_embeddings": length}
        ids = tokens(1, length).to(device)
        yield f"layer of {family} 1B, {length} tokens", tiny(family, **wide).to(device), ids


def forward(model, ids, **more):
    with torch.no_grad():
        model(ids, **more)


def decode(model, ids):
    with torch.no_grad():
        model(ids[:1, :1])


def train(model, ids, **more):
    model(ids, labels=ids, **more).loss.backward()
    model.zero_grad(set_to_none=True)


def padded(work):
    """Does that work for two rows, one of which has padding in a quarter of its places."""

    def run(model, ids):
        mask = torch.ones(2, ids.shape[1], dtype=torch.long, device=ids.device)
        mask[0, : ids.shape[1] // 4] = 0
        work(model, ids[:1].expand(2, -1), attention_mask=mask)

    run.__name__ = f"padded {work.__name__}"
    return run


def compare(plain, patched, work, ids, rounds):
    """Milliseconds of the unpatched model and of the patched one, round by round."""
    cases = {which: lambda model=model: work(model, ids) for which, model in enumerate((plain, patched))}
    return timing.from_host(cases, ids.device.type, rounds).values()


def row(name, plain, patched):
    ratios = [b / a for a, b in zip(plain, patched, strict=True)]
    return {
        "work": name,
        "value": round(statistics.median(ratios), 3),
        "unit": "of the unpatched time",
        "bar": 1.0,
        "all": [round(ratio, 3) for ratio in ratios],
        "peers": {f"transformers {transformers.__version__}, ms": round(statistics.median(plain), 3)},
    }


def patch_ms(rounds):
    """Milliseconds to patch a model of 1B, and whether a weight was moved or written."""
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA_1B))
    before = [(id(p), p._version) for p in model.parameters()]
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        heddle.patch(model)
        times.append((time.perf_counter() - start) * 1e3)
        heddle.unpatch(model)
    assert before == [(id(p), p._version) for p in model.parameters()]
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--length", type=int, help="tokens of a prompt of a layer of 1B; 128, or 2048 on a GPU"
    )
    parser.add_argument("--only", default="", help="models whose names contain this text")
    parser.add_argument("--commit", help="writes the results, as those of this commit")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    load = os.getloadavg()[0]
    times = patch_ms(7)
    rows = [{"work": "patch a Llama of 1B, the first time", "value": round(times[0], 3), "bar": 50.0}]
    rows.append({"work": "patch a Llama of 1B", "value": round(statistics.median(times), 3), "bar": 50.0})
    rows = [{**each, "unit": "ms", "all": [each["value"]], "peers": {}} for each in rows]
    length = arguments.length or (2048 if arguments.device == "cuda" else 128)
    for name, plain, ids in models(arguments.device, length):
        if arguments.only not in name:
            continue
        for dtype in (torch.float32, torch.bfloat16):
            plain = plain.to(dtype)
            patched = copy.deepcopy(plain)
            heddle.patch(patched)
            for ours, theirs in zip(patched.parameters(), plain.parameters(), strict=True):
                ours.data = theirs.data
            for work in (decode, forward, train, padded(forward), padded(train)):
                trains = work.__name__.endswith(train.__name__)
                plain.train(trains)
                patched.train(trains)
                made = compare(plain, patched, work, ids, arguments.rounds)
                rows.append(row(f"{name}, {str(dtype)[6:]}, {work.__name__}", *made))
    for each in rows:
        peer = "; ".join(f"{name} {value}" for name, value in each["peers"].items())
        print(f"{each['work']:<44} {each['value']:>8} {each['unit']:<22} bar {each['bar']:<5} {peer}")
    if arguments.commit:
        device = heddle.env.device() if arguments.device == "cpu" else torch.cuda.get_device_name()
        result = {"device": device, "date": report.today(), "commit": arguments.commit}
        options = f"--device {arguments.device} --length {length} --rounds {arguments.rounds}"
        options += f" --threads {arguments.threads}"
        result |= {"command": f"bench/patch.py {options}", "load_average": load, "rows": rows}
        print("wrote", report.write(result, arguments.out, "patch"))


if __name__ == "__main__":
    main()
