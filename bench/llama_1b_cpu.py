"""Measures a random Llama-3.2-1B in bf16 on CPU threads: heddle beside transformers, in interleaved pairs.

    .venv/bin/python bench/llama_1b_cpu.py [--rounds 3] [--checkpoint /tmp/llama-1b]

Makes the checkpoint if missing. Each round runs heddle, then transformers, each in a process of its own;
a row holds the median over the rounds. The ceiling of decode is the weights read once at the bandwidth that
`heddle env` measures. Writes bench/results/<device>/llama_1b_cpu.json.
"""

import argparse
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def output(*command):
    return subprocess.run(
        [str(c) for c in command], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout


def run_measured(command, text=""):
    """Standard output, seconds and peak resident bytes of one process."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    process.stdin.write(text)
    process.stdin.close()
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return out, time.perf_counter() - begin, usage.ru_maxrss * 1024


def heddle_round(arguments):
    """One text: a prompt of one letter a token, then tokens one by one from the end of the prompt."""
    generator = random.Random(1)
    prompt = "".join(generator.choice(LETTERS) for _ in range(arguments.prompt))
    command = [
        str(arguments.heddle),
        "generate",
        str(arguments.checkpoint),
        "--threads",
        str(arguments.threads),
    ]
    command += ["--prompt", "-", "--temperature", "0", "--ignore-eos", "--json"]
    # Twice: with one new token, and with many, so that what the first step costs is in neither.
    steps = []
    for tokens in (2, 2 + arguments.steps):
        out, seconds, resident = run_measured([*command, "--max-tokens", str(tokens)], prompt)
        made = json.loads(out)
        assert len(made["prompt_tokens"]) == arguments.prompt
        steps.append((made["seconds"], made["prompt_seconds"], seconds, resident))
    (short, prefill_a, total_a, _), (long, prefill_b, total_b, resident) = steps
    return {
        "decode_ms": 1e3 * (long - short) / arguments.steps,
        "prefill_tokens_per_s": arguments.prompt / min(prefill_a, prefill_b),
        "load_s": min(total_a - short - prefill_a, total_b - long - prefill_b),
        "resident_bytes": resident,
    }


def transformers_round(arguments):
    command = [sys.executable, "bench/peers/transformers_cpu.py", str(arguments.checkpoint)]
    for name in ("threads", "prompt", "steps"):
        command += [f"--{name}", str(getattr(arguments, name))]
    out, _, resident = run_measured([*command, "--position", str(arguments.prompt)])
    return {**json.loads(out), "resident_bytes": resident}


def kv_bytes(config, positions):
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return 2 * 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head_dim * positions


def measure(arguments):
    """Median rows of both programs over interleaved rounds."""
    rounds = {"heddle": [], "transformers": []}
    for number in range(arguments.rounds):
        for name, run in (("heddle", heddle_round), ("transformers", transformers_round)):
            rounds[name].append(run(arguments))
            shown = {k: round(v, 2) for k, v in rounds[name][-1].items() if isinstance(v, float)}
            print(f"round {number + 1} {name}: {shown}", file=sys.stderr)
    versions = rounds["transformers"][0]["versions"]
    peer = " ".join(["transformers", versions["transformers"], "torch", versions["torch"]])
    return rounds["heddle"], rounds["transformers"], peer


def rows_of(arguments, ours, theirs, peer, bandwidth):
    weights = sum(f.stat().st_size for f in arguments.checkpoint.glob("*.safetensors"))
    config = json.loads((arguments.checkpoint / "config.json").read_text())
    held = weights + kv_bytes(config, arguments.prompt + arguments.steps + 2)

    def middle(rounds, key):
        return statistics.median(r[key] for r in rounds)

    def row(work, unit, key, ceiling, scale=1.0, peers=True):
        value = middle(ours, key) * scale
        made = {"work": work, "value": round(value, 3), "unit": unit, "ceiling": ceiling}
        made["all"] = [round(r[key] * scale, 3) for r in ours]
        if peers:
            other = middle(theirs, key) * scale
            # A ratio above 1 is in heddle's favour.
            ratio = value / other if unit == "tokens/s" else other / value
            made |= {"peers": {peer: round(other, 3)}, "ratio": round(ratio, 3)}
        return made

    decode = f"decode at position {arguments.prompt}, bf16, {arguments.threads} threads"
    prefill = f"prefill of {arguments.prompt} tokens, bf16, {arguments.threads} threads"
    return [
        row(decode, "ms/token", "decode_ms", round(1e3 * weights / bandwidth, 3)),
        row(prefill, "tokens/s", "prefill_tokens_per_s", None),
        row(
            "peak resident memory; ceiling: weights and KV",
            "MB",
            "resident_bytes",
            round(held / 1e6, 1),
            1e-6,
        ),
        row("start: process, tokenizer, weights packed", "s", "load_s", None, peers=False),
        {"work": "read bandwidth", "value": round(bandwidth / 1e9, 2), "unit": "GB/s", "ceiling": None},
    ]


def describe_machine(arguments):
    text = output(arguments.heddle, "env")
    lines = dict(re.findall(r"^(\w+) +(.+)$", text, re.MULTILINE))
    bandwidth = float(lines["memory"].split()[0]) * 1e9
    return f"{lines['cpu']}; {lines['simd'].split()[0]}", bandwidth


def folder_name(device):
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"\((R|TM)\)", "", device).lower()).strip("_")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, default=Path("/tmp/llama-1b"))
    parser.add_argument("--heddle", type=Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--out", type=Path, help="the JSON file; default: bench/results/<device>/llama_1b_cpu.json"
    )
    arguments = parser.parse_args()
    if not (arguments.checkpoint / "config.json").exists():
        output(sys.executable, "scripts/make_checkpoint.py", "llama-3.2-1b", arguments.checkpoint)
    ours, theirs, peer = measure(arguments)
    # The best of several: a machine with other work shows its bandwidth now and then only.
    machines = [describe_machine(arguments) for _ in range(3)]
    device, bandwidth = machines[0][0], max(b for _, b in machines)
    result = {
        "device": device,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": output("git", "rev-parse", "--short", "HEAD").strip(),
        "command": f"bench/llama_1b_cpu.py --rounds {arguments.rounds} --threads {arguments.threads} "
        f"--prompt {arguments.prompt} --steps {arguments.steps}",
        "load_average": round(os.getloadavg()[1], 2),
        "rows": rows_of(arguments, ours, theirs, peer, bandwidth),
    }
    out = arguments.out or ROOT / "bench/results" / folder_name(device) / "llama_1b_cpu.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
