"""Measures small models of every family on CPU threads: heddle and transformers, in interleaved pairs.

    .venv/bin/python bench/families_cpu.py [--rounds 3] [--families llama,mixtral] [--dtypes bfloat16,float32]

The models are random ones with the shapes small-FAMILY of scripts/make_checkpoint.py. They are made below
--folder and removed again, unless --keep is given. Each family and type of weights has three rows: tokens per
second of decode and of prefill, as medians over the rounds, and the error of the logits of a random text
against transformers in fp32 on the same weights. That error is a token's root mean square, relative to that
of all logits. The row has the median over the tokens, because rounding sends some tokens to other experts; in
bf16 its peer is transformers in bf16. A ratio above 1 is in heddle's favour. Writes
bench/results/<device>/families.json after each family.

"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

import cpu_rounds
import report
import torch
from report import ROOT

sys.path.append(str(ROOT / "scripts"))

from comparison import Program, Reference
from make_checkpoint import MODELS, TYPE_NAMES

FAMILIES = [name.removeprefix("small-") for name in MODELS if name.startswith("small-")]
ERROR_TOKENS = 64  # length of the text whose logits are compared


def names(text):
    return [part for part in text.split(",") if part]


def speed_rows(arguments, family, dtype, checkpoint):
    """Rows of decode and prefill, and the device."""
    ours, theirs, peer = cpu_rounds.interleaved(arguments, checkpoint, dtype)
    where = f"{TYPE_NAMES[dtype].lower()}, {arguments.threads} threads"

    def row(work, speed):
        values = [[speed(made) for made in rounds] for rounds in (ours, theirs)]
        return cpu_rounds.row_with_peer(f"{family}: {work}, {where}", "tokens/s", *values, peer)

    rows = [
        row(f"decode at position {arguments.prompt}", lambda made: 1e3 / made["decode_ms"]),
        row(f"prefill of {arguments.prompt} tokens", lambda made: made["prefill_tokens_per_s"]),
    ]
    return rows, ours[0]["device"]


def relative_error(logits, reference):
    error = (logits - reference).square().mean(dim=1).sqrt().median()
    return float(error / reference.square().mean().sqrt())


def error_row(arguments, family, dtype, checkpoint):
    reference = Reference(checkpoint)
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, reference.vocab, (ERROR_TOKENS,), generator=generator).tolist()
    fp32, bf16 = reference.logits(tokens)
    program = Program(arguments.heddle, "--executor", "threads", "--threads", arguments.threads)
    ours = relative_error(program.logits(checkpoint, tokens), fp32)
    row = {
        "work": f"{family}: error of the logits against fp32, {TYPE_NAMES[dtype].lower()}",
        "value": float(f"{ours:.3g}"),
        "unit": "of their root mean square",
        "ceiling": None,
    }
    if dtype != "bfloat16":
        return row
    theirs = relative_error(bf16, fp32)
    return row | {"peers": {"transformers": float(f"{theirs:.3g}")}, "ratio": round(theirs / ours, 3)}


def measure(arguments, family):
    rows, device = [], ""
    for dtype in arguments.dtypes:
        checkpoint = arguments.folder / f"{family}-{dtype}"
        report.make_checkpoint(f"small-{family}", checkpoint, dtype=dtype, layers=arguments.layers)
        speeds, device = speed_rows(arguments, family, dtype, checkpoint)
        rows += [*speeds, error_row(arguments, family, dtype, checkpoint)]
        if not arguments.keep:
            shutil.rmtree(checkpoint)
    return rows, device


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cpu_rounds.add_arguments(parser)
    parser.add_argument("--families", type=names, default=FAMILIES, help=", ".join(FAMILIES))
    parser.add_argument("--dtypes", type=names, default=["bfloat16", "float32"], help=", ".join(TYPE_NAMES))
    parser.add_argument(
        "--folder", type=Path, default=Path("/tmp/heddle-families"), help="of the checkpoints"
    )
    parser.add_argument("--layers", type=int, default=0, help="the first N layers alone; 0: all")
    parser.add_argument("--keep", action="store_true", help="the checkpoints, for a later run")
    parser.add_argument("--out", type=Path, help="default: bench/results/<device>/families.json")
    arguments = parser.parse_args()
    for flag, given, known in (
        ("--families", arguments.families, FAMILIES),
        ("--dtypes", arguments.dtypes, TYPE_NAMES),
    ):
        if unknown := set(given) - set(known):
            parser.error(f"{flag} has {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return arguments


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    begin, rows = time.monotonic(), []
    for family in arguments.families:
        measured, device = measure(arguments, family)
        rows += measured
        result = {
            "device": device,
            "date": report.today(),
            "commit": report.commit(),
            "command": f"bench/families_cpu.py --families {','.join(arguments.families)} "
            f"--dtypes {','.join(arguments.dtypes)} --layers {arguments.layers} "
            f"{cpu_rounds.flags_of(arguments)}",
            "load_average": round(os.getloadavg()[1], 2),
            "rows": rows,
        }
        path = report.write(result, arguments.out, "families")
        print(f"{path}: {family} after {time.monotonic() - begin:.0f} s", file=sys.stderr)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
