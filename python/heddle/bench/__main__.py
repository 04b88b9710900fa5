"""python -m heddle.bench: times ops next to their peers.

Ceilings come first: the rate of a copy and of torch's product. Each work is compared with its definition in
float32 before it is timed, next to its peers, in turn in a random order. Every visit has tensors of its own.
A time is the median over the visits, with half of the distance between their quartiles.

  python -m heddle.bench --suite smoke
  python -m heddle.bench my_file.py:MyOp --size M=4096,D=1024   # next to its tile body and its peers
  python -m heddle.bench --suite rows --out rows.json --page rows.html
  python -m heddle.bench --suite rows --compare rows.json   # exit code 1 if a row has become slower by 5 %
  python -m heddle.bench --suite shapes --seed 7 --gate     # exit code 1 if a bar does not hold

HEDDLE_BENCH_PEERS names a folder with further packages, such as liger_kernel.
"""

import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import heddle
import heddle.ops
from heddle.bench import compare, measure, page, report, suites
from heddle.bench.peers import KNOWN, Peers
from heddle.bench.suites import bars, own, shapes
from heddle.bench.timing import is_gpu
from heddle.bench.work import FORWARD
from heddle.commands.command_line import Parser, add_device, default_device, did_you_mean, run_command
from heddle.commands.named import ops_named
from heddle.commands.sized import attributes_of, sizes_of
from heddle.own.op import registered
from heddle.torch import node


def parse(words):
    parser = Parser("bench", __doc__)
    parser.add_argument("ops", nargs="*", metavar="OP", help="ops of your own: my_file.py:MyOp")
    parser.add_argument("--suite", choices=suites.NAMES, help="what is measured")
    parser.add_argument("--size", help="with OP: NAME=NUMBER,... by dimension; default: its largest case")
    parser.add_argument("--dtype", default="float32", help="with OP and --size: of tensors that may have it")
    parser.add_argument("--attribute", help="with OP and --size: eps=1e-6,kind=max")
    parser.add_argument(
        "--backend", choices=("kernel", "reference", "ref"), default="kernel", help="of heddle's calls"
    )
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    parser.add_argument("--page", type=Path, help="HTML file with plots; needs no network")
    parser.add_argument("--compare", type=Path, help="JSON file of another run of this suite")
    add_device(parser)
    parser.add_argument(
        "--scale", choices=("full", "tiny"), default="full", help="tiny: to test the suite itself"
    )
    parser.add_argument("--only", default="", help="works whose names contain this; several with |")
    parser.add_argument("--peers", default=",".join(KNOWN), help="those that may run; none: heddle alone")
    parser.add_argument(
        "--visits",
        type=int,
        help=f"of each work, with tensors of its own; default: 8, shapes: {shapes.VISITS}",
    )
    parser.add_argument("--rounds", type=int, default=3, help="samples of a visit")
    parser.add_argument("--seconds", type=float, default=0.5, help="of calls without a pause; 0: none")
    parser.add_argument(
        "--time-limit",
        type=float,
        help=f"seconds after which nothing new begins; default: none, shapes: {shapes.TIME_LIMIT:.0f}",
    )
    parser.add_argument("--seed", type=int, help="of --suite shapes; default: a new one, which is printed")
    parser.add_argument(
        "--count", type=int, help=f"of --suite shapes: draws of each kind; default: {shapes.COUNT}"
    )
    parser.add_argument(
        "--gate", action="store_true", help="with --suite shapes: exit code 1 if a bar does not hold"
    )
    parser.add_argument("--commit", help="for the file; default: what git says")
    words = sys.argv[1:] if words is None else words
    arguments = parser.parse_args(words)
    arguments.words = words
    if bool(arguments.ops) == bool(arguments.suite):
        parser.error("give --suite, or ops of your own as my_file.py:MyOp")
    if arguments.backend != "kernel" and arguments.device not in (None, "cpu"):
        parser.error(f"--backend {arguments.backend} runs on a CPU; give --device cpu")
    fill_defaults(parser, arguments)
    if arguments.visits < 1 or arguments.rounds < 1:
        parser.error(f"--visits {arguments.visits}, --rounds {arguments.rounds}: must be positive")
    unknown = {name for name in arguments.peers.split(",") if name} - {*KNOWN, "none"}
    if unknown:
        meant = did_you_mean(min(unknown), (*KNOWN, "none"))
        parser.error(f"--peers has {', '.join(sorted(unknown))}; there are {', '.join(KNOWN)}, none{meant}")
    usual = default_device() if arguments.backend == "kernel" else "cpu"
    arguments.device = arguments.device or usual
    if arguments.gate and not is_gpu(arguments.device):
        parser.error("--gate: bars are for a GPU; this would run on the CPU")
    arguments.names = ops_named("bench", arguments.ops)
    arguments.suite = arguments.suite or " ".join(arguments.names)
    return arguments


def fill_defaults(parser, arguments):
    """Flags whose default depends on the suite, and those that only the suite that draws shapes has."""
    draws = arguments.suite == suites.DRAWN
    if not draws:
        for flag in ("seed", "count", "gate"):
            if getattr(arguments, flag) is not parser.get_default(flag):
                parser.error(f"--{flag} is for --suite {suites.DRAWN}")
    if arguments.visits is None:
        arguments.visits = shapes.VISITS if draws else 8
    if arguments.time_limit is None:
        arguments.time_limit = shapes.TIME_LIMIT if draws else 0.0
    if arguments.seed is not None and arguments.seed < 0:
        parser.error(f"--seed {arguments.seed}: must not be negative")
    if arguments.count is not None and arguments.count < 1:
        parser.error(f"--count {arguments.count}: must be positive")


def settle_draws(arguments, baseline):
    """Shapes are those of the flags, of the file that is compared with, or new ones, in this order."""
    before = {"seed": secrets.randbelow(1 << 31), "count": shapes.COUNT} | (baseline or {})
    for flag in ("seed", "count"):
        if getattr(arguments, flag) is None:
            setattr(arguments, flag, before[flag])
            arguments.words = [
                *arguments.words,
                f"--{flag}",
                str(before[flag]),
            ]  # the file's command repeats them


def draws_of(arguments):
    """Returns --seed and --count by name; empty for suites that draw nothing."""
    return {"seed": arguments.seed, "count": arguments.count} if arguments.suite == suites.DRAWN else {}


def works_of(arguments, peers):
    """The works to measure: the works of a suite, or those of ops of one's own."""
    tiny = arguments.scale == "tiny"
    if not arguments.names:
        return suites.works_of(arguments.suite, peers, arguments.device, tiny, **draws_of(arguments))
    sizes = sizes_of(arguments.size) if arguments.size else None
    given = attributes_of(arguments.attribute)
    return [
        work
        for op in arguments.names
        for work in own.works(arguments.device, tiny, op, sizes, arguments.dtype, given)
    ]


@contextlib.contextmanager
def backend_of(works, backend):
    """Calls of the works' ops run that backend meanwhile."""
    ops = {work.op for work in works} & {*heddle.ops.NAMES, *(made.name for made in registered())}
    ops |= {call for op in ops for call, _ in heddle.ops.info(op).gradient}
    for op in ops:
        heddle.set_backend(op, backend)
    try:
        yield
    finally:
        for op in ops:
            heddle.set_backend(op, "kernel")


def run_suite(arguments):
    """The result of a run in this process, and what could not be measured by work."""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    tiny = arguments.scale == "tiny"
    if tiny:
        torch.set_num_threads(1)  # waking others takes longer than the work
    peers = Peers(arguments.device, [name for name in arguments.peers.split(",") if name])
    works = [
        work
        for work in works_of(arguments, peers)
        if any(text in work.name for text in arguments.only.split("|"))
    ]
    if not works:
        raise heddle.InvalidArgument(
            f"[bench] no work of {arguments.suite} has {arguments.only!r} in its name"
        )
    bench = measure.Bench(arguments.device, tiny, arguments.seconds, arguments.rounds)
    result = report.header(arguments, bench, peers)
    result |= draws_of(arguments)
    print(f"{result['device']}, commit {result['commit']}, torch {torch.__version__}")
    if draws_of(arguments):
        print(f"--seed {arguments.seed} --count {arguments.count}: {len(works)} works")
    for ceiling in bench.ceilings.values():
        print(f"{ceiling['of']}: {ceiling['value']:.4g} {ceiling['unit']}")
    for name, why in peers.missing.items():
        print(f"no {name}: {why}")

    # A long run has its node. It saves the host's time, so what the device's clock times does without.
    by_host = [work for work in works if work.from_host or not is_gpu(arguments.device)]
    if not tiny and any(part != FORWARD for work in by_host for part in work.amounts):
        print(f"gradients: {node.prepare()}")

    def say(found):
        print(found, file=sys.stderr, flush=True)

    with backend_of(works, arguments.backend):
        rows, failures, left_out = measure.run(works, bench, arguments.visits, arguments.time_limit, say)
    for row in rows:
        print("\n".join(report.lines_of(row)))
    return result | {"rows": rows, "failures": failures, "left_out": left_out}


def units_again(arguments, works):
    """Units by (work, part) of some works, from a new process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "again.json"
        command = [
            sys.executable,
            "-m",
            "heddle.bench",
            *(arguments.ops or ("--suite", arguments.suite)),
            "--only",
            "|".join(works),
        ]
        command += ["--dtype", arguments.dtype, "--backend", arguments.backend]
        for flag in ("size", "attribute"):
            if value := getattr(arguments, flag):
                command += [f"--{flag}", value]
        command += ["--device", arguments.device, "--scale", arguments.scale, "--out", str(out)]
        command += ["--visits", str(arguments.visits), "--rounds", str(arguments.rounds)]
        for flag, value in draws_of(arguments).items():
            command += [f"--{flag}", str(value)]
        command += ["--peers", "none", "--seconds", "0", "--commit", "again"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise heddle.Error(f"[bench] {', '.join(works)} again: {done.stderr.strip()[-400:]}")
        return {(row["work"], row["part"]): row["units"] for row in json.loads(out.read_text())["rows"]}


def compare_with(arguments, result, baseline, take=units_again):
    """Notes in each row how it compares; returns those that are slower."""
    before = {(row["work"], row["part"]): row["units"] for row in baseline["rows"]}
    rows = {(row["work"], row["part"]): row for row in result["rows"]}
    fresh = {name: row["units"] for name, row in rows.items()}
    found = compare.judge_all(
        before,
        fresh,
        lambda names: take(arguments, list(dict.fromkeys(work for work, _ in names))),
        {name: compare.HOST_BOUNDS for name, row in rows.items() if row["clock"] == "host"},
    )
    for name, row in rows.items():
        row["compared"] = {"verdict": found[name], "samples": len(fresh[name])}
        if name in before:
            row["compared"]["change"] = round(compare.change(before[name], fresh[name]), 4)
            print(f"{found[name]:7} {row['compared']['change']:+6.1%} ({len(fresh[name])} samples)", end="  ")
            print(", ".join(name), flush=True)
    print(compare.verdict_line(found.values()))
    return [", ".join(name) for name, verdict in found.items() if verdict == "slower"]


def judge_bars(arguments, result):
    """Notes bars in the result, prints them, and returns whether all hold."""
    judged = bars.judge(result["rows"], arguments.device, result["device"])
    result["bars"] = [each.record() for each in judged]
    for each in judged:
        if each.found or each.without:
            print(each.line())
    print(bars.verdict(judged, len(result["failures"]) + len(result["left_out"])))
    return bars.all_hold(judged)


def main(words=None):
    arguments = parse(words)
    baseline = report.read_baseline(arguments) if arguments.compare else None
    for path in (arguments.out, arguments.page):
        report.require_writable(path)
    if arguments.suite == suites.DRAWN:
        settle_draws(arguments, baseline)
    result = run_suite(arguments)
    slower = compare_with(arguments, result, baseline) if baseline else []
    if result["left_out"]:
        print(f"left out for lack of time: {', '.join(result['left_out'])}")
    holds = judge_bars(arguments, result) if arguments.suite == suites.DRAWN else True
    if arguments.out:
        report.write(result, arguments.out)
    if arguments.page:
        arguments.page.write_text(page.render(result))
    for name in slower:
        print(f"slower than {arguments.compare}: {name}", file=sys.stderr)
    return 1 if slower or result["failures"] or (arguments.gate and not holds) else 0


if __name__ == "__main__":
    run_command("bench", main)
