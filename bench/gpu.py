"""Measures a model on one GPU: heddle's executors and the peers in rotation, and the limit of the memory.

    bench/gpu.py --heddle build/release/heddle --checkpoint /tmp/llama-1b [--commit 1a2b3c4]
        [--executors launches,megakernel] [--positions 512,0,4096] [--prefill 512,2048]
        [--peers torch,transformers] [--python python3] [--time-limit 540]

Makes the checkpoint if missing. heddle runs first, which shows what there is to measure. Then each peer
starts, compiles and waits. Then come the rounds; in each, every executor and every peer measures everything
once. A value is the median over the rounds. The ceiling of decode is one read of the weights at the best
bandwidth that a round measured. `ratio` is the best peer's time divided by heddle's: above 1 is in heddle's
favour. heddle's other executors are listed among the peers, but do not count for the ratio.

Within the time limit the rounds have priority over variants of peers. `left_out` lists everything that was
skipped, and it is printed; the exit code is 1 if an executor of heddle is among it. Writes
bench/results/<device>/<name>.json, prints a table.

"""

import argparse
import json
import os
import queue
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import report
from report import ROOT

FAILURES = (RuntimeError, OSError, ValueError, subprocess.TimeoutExpired)
PEERS = {"torch": "torch_gpu.py", "transformers": "transformers_gpu.py"}
MEASURING_S = 8  # limit of a peer's part of a round
CLOSING_S = 15  # kept for the end


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def names(text):
    return [part for part in text.split(",") if part]


class Clock:
    def __init__(self, limit):
        self.end = time.monotonic() + limit

    def left(self):
        return self.end - time.monotonic()


class Heddle:
    """One executor; a round is a process for each size of prompt."""

    def __init__(self, executor, arguments):
        self.executor, self.arguments = executor, arguments
        self.name = f"heddle {executor}"
        self.rounds, self.device, self.seconds = [], "", 0.0
        self.ceilings = {}  # by work; the best machine that a round saw
        self.alive = True

    def bench(self, positions, prefill, limits):
        repeats, seconds = limits
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command = [self.arguments.heddle, "bench", self.arguments.checkpoint, "--executor", self.executor]
            command += ["--positions", ",".join(map(str, positions)), "--prefill", prefill]
            command += ["--steps", self.arguments.steps, "--rounds", repeats, "--out", file.name]
            command = [str(part) for part in command]
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, seconds))
            if done.returncode != 0:
                raise RuntimeError(f"ended with {done.returncode}: {done.stderr.strip()[-600:]}")
            return json.loads(Path(file.name).read_text())

    def round(self, repeats, clock):
        """Measures everything once; returns it by work, in ms where it is time."""
        begin, measured = time.monotonic(), {}
        prompts = self.arguments.prefill or [0]
        for i, prompt in enumerate(prompts):
            positions = self.arguments.positions if i == 0 else [0]
            results = self.bench(positions, prompt, (repeats, clock.left()))
            self.device = results["device"]
            for row in results["rows"]:
                work, value = self.value(row)
                # Only the first process measures decode in earnest.
                if work and (i == 0 or not work.startswith("decode")):
                    measured.setdefault(work, value)
                    if row["ceiling"]:
                        self.ceilings[work] = min(row["ceiling"], self.ceilings.get(work, row["ceiling"]))
        self.seconds = time.monotonic() - begin
        return measured

    def value(self, row):
        work, value = row["work"], row["value"]
        if prefill := re.match(r"prefill of (\d+) tokens", work):
            first = ", the first of a process" if work.endswith("the first") else ""
            return prefill[0] + first, 1e3 * int(prefill[1]) / value if row["unit"] == "tokens/s" else value
        if decode := re.match(r"decode at position \d+", work):
            joined = re.search(r", \d+ tokens a call$", work)
            return decode[0] + (joined[0] if joined else ""), value
        if work in ("read bandwidth", "start: weights packed"):
            return work, value
        return "", value


class Peer:
    """A program of bench/peers that compiled and waits; it measures when it is told to."""

    def __init__(self, kind, arguments, seconds):
        """Raises where it is not ready after `seconds`; it begins nothing new after 0.6 of them."""
        self.kind, self.log = kind, arguments.logs / f"{kind}.log"
        command = [
            arguments.python,
            str(ROOT / "bench/peers" / PEERS[kind]),
            str(arguments.checkpoint),
            "--serve",
        ]
        command += ["--positions", ",".join(map(str, arguments.positions)), "--steps", str(arguments.steps)]
        command += ["--time-limit", f"{0.6 * seconds:.0f}", "--device", arguments.device]
        if variants := getattr(arguments, f"{kind}_variants"):
            command += ["--variants", variants]
        if kind == "transformers":
            command += ["--prefill", ",".join(map(str, arguments.prefill))]
        if arguments.compile_cache:
            arguments.compile_cache.mkdir(parents=True, exist_ok=True)
            command += ["--compile-cache", str(arguments.compile_cache / f"{kind}.cache")]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
            start_new_session=True,  # its compilers end with it
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.ready = self.next(seconds)
        self.name = self.ready["peer"]
        self.rounds, self.alive = [], True

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def next(self, seconds):
        try:
            line = self.lines.get(timeout=max(1, seconds))
        except queue.Empty:
            self.end()
            raise TimeoutError(f"not ready after {seconds:.0f} s; see {self.log}") from None
        if not line:
            self.end(grace=10)  # for its exit code
            raise RuntimeError(f"ended with {self.process.returncode}: {self.log.read_text().strip()[-600:]}")
        return json.loads(line)

    def round(self, seconds):
        self.process.stdin.write("round\n")
        self.process.stdin.flush()
        return self.next(seconds)

    def end(self, grace=0):
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def variants(self):
        return {work["work"]: work["variant"] for work in self.ready["works"]}


class Session:
    def __init__(self, arguments):
        self.arguments, self.clock = arguments, Clock(arguments.time_limit)
        self.left_out = []
        self.heddles = [Heddle(executor, arguments) for executor in arguments.executors]
        self.peers = []

    def leave_out(self, what, why):
        self.left_out.append({"what": what, "why": str(why)})
        print(f"LEFT OUT {what}: {why}", flush=True)

    def start(self):
        """Runs each executor once, then starts the peers with the time that rounds leave."""
        for heddle in self.heddles:
            self.attempt(heddle, heddle.name, lambda h=heddle: h.round(1, self.clock))
            if heddle.alive:
                print(f"{heddle.name}: {heddle.device}, {heddle.seconds:.0f} s", flush=True)
        for number, kind in enumerate(self.arguments.peers):
            seconds = (self.clock.left() - self.rounds_seconds()) / (len(self.arguments.peers) - number)
            if seconds < 30:
                self.leave_out(kind, f"{seconds:.0f} s would be left for it to compile")
                continue
            try:
                self.peers.append(Peer(kind, self.arguments, seconds))
            except FAILURES as error:
                self.leave_out(kind, error)
            else:
                self.report_tries(self.peers[-1])

    def rounds_seconds(self):
        of_heddle = 1.5 * sum(heddle.seconds for heddle in self.heddles)
        return self.arguments.rounds * (of_heddle + MEASURING_S * len(self.arguments.peers)) + CLOSING_S

    def attempt(self, program, what, work):
        """Returns the result of the work; a program that fails takes no further part."""
        try:
            return work()
        except FAILURES as error:
            self.leave_out(what, error)
            program.alive = False
            return None

    def report_tries(self, peer):
        print(f"{peer.name}: ready after {peer.ready['setup_s']:.0f} s", flush=True)
        for work in peer.ready["works"]:
            for variant, tried in work["tried"].items():
                if isinstance(tried, str) and not tried.startswith("skipped: not near"):
                    self.leave_out(f"{peer.name}, {work['work']}, {variant}", tried)

    def measure(self):
        for number in range(self.arguments.rounds):
            begin = time.monotonic()
            for heddle in self.heddles:
                self.take_round(heddle, number, lambda h=heddle: h.round(self.arguments.repeats, self.clock))
            for peer in self.peers:
                self.take_round(peer, number, lambda p=peer: p.round(self.clock.left()))
            took = time.monotonic() - begin
            print(f"round {number + 1}: {took:.0f} s, {self.clock.left():.0f} s left", flush=True)
            if number + 1 < self.arguments.rounds and self.clock.left() < 1.2 * took + CLOSING_S:
                self.leave_out(f"rounds after {number + 1} of {self.arguments.rounds}", "out of time")
                break

    def take_round(self, program, number, work):
        if program.alive:
            measured = self.attempt(program, f"{program.name} from round {number + 1} on", work)
            program.rounds += [] if measured is None else [measured]

    def rows(self):
        medians = {h.name: medians_of(h.rounds) for h in self.heddles if h.rounds}
        rows = []
        for heddle in self.heddles:
            for work, value in medians.get(heddle.name, {}).items():
                rows.append(self.row(heddle, work, value, medians))
        return rows

    def row(self, heddle, work, value, medians):
        peers = {}
        plain = re.sub(r", \d+ tokens a call$", "", work)  # the work that the peers measure too
        for peer in self.peers:
            if (other := medians_of(peer.rounds).get(plain)) is not None:
                peers[f"{peer.name}, {peer.variants()[plain]}"] = other
        best = min(peers.values(), default=None)
        units = {"read bandwidth": "GB/s", "start: weights packed": "s"}
        ceiling = heddle.ceilings.get(work)
        rest = {n: m[work] for n, m in medians.items() if n != heddle.name and work in m}
        made = {"work": f"{work}, {heddle.executor}", "value": round(value, 4)}
        made["unit"] = units.get(work, "ms/token" if work.startswith("decode") else "ms")
        made["ceiling"] = None if ceiling is None else round(ceiling, 4)
        made["peers"] = {n: round(v, 4) for n, v in (peers | (rest if work not in units else {})).items()}
        made["ratio"] = None if best is None else round(best / value, 3)
        made["all"] = [round(r[work], 4) for r in heddle.rounds if work in r]
        return made

    def result(self):
        device = next((h.device for h in self.heddles if h.device), "")
        device = device or next((p.ready["device"] for p in self.peers), "nothing measured")
        a = self.arguments
        return {
            "device": device,
            "date": report.today(),
            "commit": a.commit,
            "command": f"bench/gpu.py --model {a.model} --executors {','.join(a.executors)} --positions "
            f"{','.join(map(str, a.positions))} --prefill {','.join(map(str, a.prefill))} "
            f"--peers {','.join(a.peers)} --steps {a.steps} --repeats {a.repeats} --rounds {a.rounds}",
            "left_out": self.left_out,
            "rows": self.rows(),
            "peers": [
                {"peer": p.name, "works": p.ready["works"], "rounds": p.rounds, "setup_s": p.ready["setup_s"]}
                for p in self.peers
            ],
        }


def medians_of(rounds):
    keys = dict.fromkeys(key for measured in rounds for key in measured)
    return {key: statistics.median(m[key] for m in rounds if key in m) for key in keys}


def print_table(result):
    print(f"\n{result['device']}, {result['date']}, {result['commit']}")
    print(f"{'work':60} {'value':>9} {'low':>9} {'high':>9} {'ceiling':>9} {'peer':>9} {'ratio':>6}")
    for row in result["rows"]:
        own = [v for n, v in row["peers"].items() if not n.startswith("heddle ")]
        cells = [row["value"], min(row["all"]), max(row["all"]), row["ceiling"], min(own, default=None)]
        text = " ".join(f"{'' if c is None else format(c, '.4f'):>9}" for c in cells)
        print(f"{row['work'][:60]:60} {text} {'' if row['ratio'] is None else row['ratio']:>6} {row['unit']}")
    for peer in result["peers"]:
        for work, value in medians_of(peer["rounds"]).items():
            variant = next(w["variant"] for w in peer["works"] if w["work"] == work)
            print(f"{peer['peer']}: {work}: {value:.4f} ms, {variant}")
    for left in result["left_out"]:
        print(f"LEFT OUT {left['what']}: {left['why'][:160]}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--heddle", type=Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--checkpoint", type=Path, default=Path("/tmp/llama-1b"))
    parser.add_argument(
        "--model", default="llama-3.2-1b", help="shape of the checkpoint, where it is missing"
    )
    parser.add_argument("--name", default="llama_1b_gpu", help="of the file with the results")
    parser.add_argument("--executors", type=names, default=["launches", "megakernel"])
    parser.add_argument("--positions", type=numbers, default=[512, 0, 4096])
    parser.add_argument("--prefill", type=numbers, default=[512, 2048])
    parser.add_argument("--peers", type=names, default=list(PEERS), help=", ".join(PEERS))
    for kind in PEERS:
        parser.add_argument(f"--{kind}-variants", default="", metavar="NAME,...", help="that it tries; all")
    parser.add_argument("--python", default=sys.executable, help="what runs the peers")
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], default="cuda", help="of the peers; cpu: a trial"
    )
    parser.add_argument("--steps", type=int, default=32, help="tokens of a measurement")
    parser.add_argument("--repeats", type=int, default=3, help="of heddle's measurements within a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=540, metavar="S")
    parser.add_argument("--compile-cache", type=Path, metavar="FOLDER", help="keeps what the peers compiled")
    parser.add_argument("--logs", type=Path, help="folder for what the peers say; default: a new one")
    parser.add_argument("--commit", default="", help="what was built, where there is no git")
    parser.add_argument("--out", type=Path, help="default: bench/results/<device>/<name>.json")
    arguments = parser.parse_args()
    if unknown := set(arguments.peers) - set(PEERS):
        parser.error(f"--peers has {', '.join(unknown)}; there are {', '.join(PEERS)}")
    arguments.commit = arguments.commit or report.commit()
    arguments.logs = arguments.logs or Path(tempfile.mkdtemp(prefix="peers-"))
    arguments.logs.mkdir(parents=True, exist_ok=True)
    return arguments


def main():
    arguments = parse_arguments()
    report.make_checkpoint(arguments.model, arguments.checkpoint, arguments.python)
    session = Session(arguments)
    try:
        session.start()
        session.measure()
    finally:
        for peer in session.peers:
            peer.end()
    result = session.result()
    print(f"written to {report.write(result, arguments.out, arguments.name)}")
    print_table(result)
    sys.exit(any(left["what"].startswith("heddle ") for left in session.left_out))


if __name__ == "__main__":
    main()
