"""Measures a random Llama-3.2-1B in bf16 on CPU threads: heddle and transformers, in interleaved pairs.

    .venv/bin/python bench/llama_1b_cpu.py [--rounds 3] [--checkpoint /tmp/llama-1b]

Makes the checkpoint if missing. Each round runs `heddle bench`, then transformers, each in a separate process
and both warm; a row has the median over the rounds. heddle's first prefill has a row of its own, and so does
the building of its program. The ceiling of decode is one read of the weights at the best bandwidth that a
round measured. Writes bench/results/<device>/llama_1b_cpu.json.

"""

import argparse
import json
import os
from pathlib import Path

import cpu_rounds
import report


def kv_bytes(config, positions):
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return 2 * 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head_dim * positions


def rows_of(arguments, ours, theirs, peer):
    weights = sum(f.stat().st_size for f in arguments.checkpoint.glob("*.safetensors"))
    config = json.loads((arguments.checkpoint / "config.json").read_text())
    held = weights + kv_bytes(config, arguments.prompt + arguments.steps)
    # The best: a machine with other work shows its bandwidth now and then only.
    bandwidth = max(r["bandwidth"] for r in ours)

    def row(work, unit, key, ceiling=None, scale=1.0, peers=False):
        values = [r[key] * scale for r in ours]
        if not peers:
            return cpu_rounds.median_row(work, unit, values, ceiling)
        others = [r[key] * scale for r in theirs]
        return cpu_rounds.row_with_peer(work, unit, values, others, peer, ceiling)

    decode = f"decode at position {arguments.prompt}, bf16, {arguments.threads} threads"
    prefill = f"prefill of {arguments.prompt} tokens, bf16, {arguments.threads} threads"
    memory = "peak resident memory; ceiling: weights and KV"
    return [
        row(decode, "ms/token", "decode_ms", round(1e3 * weights / bandwidth, 3), peers=True),
        row(prefill, "tokens/s", "prefill_tokens_per_s", peers=True),
        row(prefill + ", the first of a process", "tokens/s", "first_tokens_per_s"),
        row(memory, "MB", "resident_bytes", round(held / 1e6, 1), 1e-6, peers=True),
        row("start: weights packed", "s", "load_s"),
        row("program of 512 rows: built and proved", "s", "build_s"),
        row("read bandwidth", "GB/s", "bandwidth", scale=1e-9),
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, default=Path("/tmp/llama-1b"))
    cpu_rounds.add_arguments(parser)
    parser.add_argument(
        "--out", type=Path, help="the JSON file; default: bench/results/<device>/llama_1b_cpu.json"
    )
    arguments = parser.parse_args()
    report.make_checkpoint("llama-3.2-1b", arguments.checkpoint)
    ours, theirs, peer = cpu_rounds.interleaved(arguments, arguments.checkpoint)
    device = ours[0]["device"]
    result = {
        "device": device,
        "date": report.today(),
        "commit": report.commit(),
        "command": f"bench/llama_1b_cpu.py {cpu_rounds.flags_of(arguments)}",
        "load_average": round(os.getloadavg()[1], 2),
        "rows": rows_of(arguments, ours, theirs, peer),
    }
    report.write(result, arguments.out, "llama_1b_cpu")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
