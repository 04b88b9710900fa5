"""Measures a random Llama-3.2-1B in bf16 on CPU threads: heddle beside transformers, in interleaved pairs.

    .venv/bin/python bench/llama_1b_cpu.py [--rounds 3] [--checkpoint /tmp/llama-1b]

Makes the checkpoint if missing. Each round runs `heddle bench`, then transformers, each in a process of its
own and both warm; a row holds the median over the rounds. What heddle's first prefill takes stands in a row
of its own, as does the building of its program. The ceiling of decode is the weights read once at the best
bandwidth that a round measured. Writes bench/results/<device>/llama_1b_cpu.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import report
from report import ROOT


def run_measured(command):
    """Standard output and peak resident bytes of one process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return out, usage.ru_maxrss * 1024


def value_of(results, start, end=""):
    """The value of the row whose work begins and ends so."""
    (row,) = [r for r in results["rows"] if r["work"].startswith(start) and r["work"].endswith(end)]
    return row["value"]


def heddle_round(arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [str(arguments.heddle), "bench", str(arguments.checkpoint), "--executor", "threads"]
        command += ["--threads", str(arguments.threads), "--positions", str(arguments.prompt)]
        command += ["--prefill", str(arguments.prompt), "--steps", str(arguments.steps)]
        _, resident = run_measured([*command, "--rounds", str(arguments.repeats), "--out", file.name])
        results = json.loads(Path(file.name).read_text())
    threads = f"{arguments.threads} threads"
    return {
        "decode_ms": value_of(results, "decode at position"),
        "prefill_tokens_per_s": value_of(results, "prefill", threads),
        "first_tokens_per_s": value_of(results, "prefill", "the first"),
        "build_s": value_of(results, "program of 512 rows"),
        "load_s": value_of(results, "start"),
        "bandwidth": value_of(results, "read bandwidth") * 1e9,
        "resident_bytes": resident,
        "device": results["device"],
    }


def transformers_round(arguments):
    command = [sys.executable, "bench/peers/transformers_cpu.py", str(arguments.checkpoint)]
    for name in ("threads", "prompt", "steps", "repeats"):
        command += [f"--{name}", str(getattr(arguments, name))]
    out, resident = run_measured([*command, "--position", str(arguments.prompt)])
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


def rows_of(arguments, ours, theirs, peer):
    weights = sum(f.stat().st_size for f in arguments.checkpoint.glob("*.safetensors"))
    config = json.loads((arguments.checkpoint / "config.json").read_text())
    held = weights + kv_bytes(config, arguments.prompt + arguments.steps)
    # The best: a machine with other work shows its bandwidth now and then only.
    bandwidth = max(r["bandwidth"] for r in ours)

    def middle(rounds, key):
        return statistics.median(r[key] for r in rounds)

    def row(work, unit, key, ceiling=None, scale=1.0, peers=False):
        value = middle(ours, key) * scale
        made = {"work": work, "value": round(value, 3), "unit": unit, "ceiling": ceiling}
        made["all"] = [round(r[key] * scale, 3) for r in ours]
        if peers:
            other = middle(theirs, key) * scale
            # A ratio above 1 is in heddle's favour.
            ratio = value / other if unit == "tokens/s" else other / value
            made |= {"peers": {peer: round(other, 3)}, "ratio": round(ratio, 3)}
            made["peer_all"] = [round(r[key] * scale, 3) for r in theirs]
        return made

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
    parser.add_argument("--heddle", type=Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=4, help="of a measurement within a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--out", type=Path, help="the JSON file; default: bench/results/<device>/llama_1b_cpu.json"
    )
    arguments = parser.parse_args()
    report.make_checkpoint("llama-3.2-1b", arguments.checkpoint)
    ours, theirs, peer = measure(arguments)
    device = ours[0]["device"]
    result = {
        "device": device,
        "date": report.today(),
        "commit": report.commit(),
        "command": f"bench/llama_1b_cpu.py --rounds {arguments.rounds} --threads {arguments.threads} "
        f"--prompt {arguments.prompt} --steps {arguments.steps}",
        "load_average": round(os.getloadavg()[1], 2),
        "rows": rows_of(arguments, ours, theirs, peer),
    }
    report.write(result, arguments.out, "llama_1b_cpu")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
