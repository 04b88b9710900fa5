"""Measures works: right first, then timed, in several visits with tensors of their own."""

import random
import statistics
import time

import torch

import heddle
from heddle.bench import timing
from heddle.bench.timing import Yardstick, bursts, from_host, spread, sustained
from heddle.bench.work import BACKWARD, FORWARD, calls_of, gradients

ALLOWED = 1.2  # times the error of torch in the same dtype
ROUNDING = 1e-6  # for float32, where torch makes no error at all
PEERS_AGREE = 0.05  # a peer may differ by so much, as it may round elsewhere


def error_of(made, wanted):
    made, wanted = made.double(), wanted.double()
    return ((made - wanted).norm() / (wanted.norm() + 1e-30)).item()


class WrongResultError(Exception):
    """A result that is too far from the right one."""


def _results(work, function, tensors, dy):
    """The result and, where the work has a backward, the gradients."""
    with torch.no_grad():
        y = function(*tensors)
    found = {"y": y}
    if any(part != FORWARD for part in work.amounts):
        grads = gradients(work, function, tensors, dy)
        found |= {f"gradient {i}": each for i, each in enumerate(grads)}
    return found


def check(work):
    """Compares with the definition in float32. Returns the worst error, and torch's there."""
    tensors = work.inputs(*(work.check_shape or work.shape))
    wide = [each.float() if each.is_floating_point() else each for each in tensors]
    with torch.no_grad():
        y = work.exact(*wide)
        dy = torch.randn(y.shape, device=y.device) if y.dim() else torch.ones_like(y)  # a loss
    right = _results(work, work.exact, wide, dy)
    torchs = _results(work, work.exact, tensors, dy)
    ours = _results(work, work.ours, tensors, dy)
    worst = (0.0, 0.0)
    for name, wanted in right.items():
        mine, theirs = error_of(ours[name], wanted), error_of(torchs[name], wanted)
        if not mine <= ALLOWED * theirs + ROUNDING + work.rounding:
            raise WrongResultError(f"{name}: error {mine:.2e}, torch's is {theirs:.2e}")
        worst = max(worst, (mine, theirs))
    return worst


def in_turn(calls):
    """Calls one after the other, as their tensors are not in a cache then."""
    if len(calls) == 1:
        return calls[0]
    at = [0]

    def run():
        at[0] = (at[0] + 1) % len(calls)
        return calls[at[0]]()

    return run


class Bench:
    """Works of a suite on one device. `rows`: what was found, by (work, part)."""

    def __init__(self, device, tiny=False, seconds=0.5, rounds=3):
        self.device, self.seconds, self.rounds = device, seconds, rounds
        self.yardstick = Yardstick(device, tiny)
        self.ceilings = self.yardstick.ceilings()
        self.rows, self.peers_of = {}, {}

    def limit_ms(self, amount):
        """The least time by the ceilings, and which one is the limit."""
        by_copy = amount.bytes / self.ceilings["copy"]["value"] / 1e6
        by_product = amount.flops / self.ceilings["product"]["value"] / 1e9
        return (by_copy, "copy") if by_copy >= by_product else (by_product, "product")

    def first_visit(self, work):
        """Checks; notes rows; returns an error or ""."""
        try:
            self.errors = check(work)
        except WrongResultError as error:
            return f"wrong: {error}"
        self.peers_of[work.name] = dict(work.peers)
        return ""

    def visit(self, work, first=False):
        sets = [work.inputs(*work.shape) for _ in range(work.sets)]
        for part in work.amounts:
            self._visit_part(work, part, sets, first)
        del sets

    def _calls(self, work, part, function, sets):
        return in_turn([calls_of(work, part, function, tensors) for tensors in sets])

    def _visit_part(self, work, part, sets, first):
        cases = {"heddle": self._calls(work, part, work.ours, sets)}
        mine = work.ours(*sets[0]) if first and part == FORWARD else None
        peers = self.peers_of[work.name]
        row = self.rows.setdefault(
            (work.name, part), {"peers": {}, "left_out": {}, "samples": {}, "units": []}
        )
        for name, function in list(peers.items()):
            if name in row["left_out"]:
                continue
            try:
                cases[name] = self._calls(work, part, function, sets)
                cases[name]()
                if mine is not None and not (differs := error_of(function(*sets[0]), mine)) <= PEERS_AGREE:
                    raise WrongResultError(f"differs from heddle's by {differs:.2e}")
            except Exception as error:  # a foreign package may fail in any way
                cases.pop(name, None)
                row["left_out"][name] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        mine = None
        if first:
            self._facts(work, part, cases, row)
        limit = self.limit_ms(work.amounts[part])[1]
        amount = work.amounts[part].bytes or 1 << 16
        cases["yardstick"] = self.yardstick.copy(amount) if limit == "copy" else self.yardstick.product()
        measure = from_host if work.from_host else bursts
        times = measure(cases, self.device, self.rounds)
        # The host is disturbed more often than not: its least time is what repeats.
        middle = min if work.from_host else statistics.median
        for name, samples in times.items():
            row["samples"].setdefault(name, []).append(middle(samples))
        row["units"].append(row["samples"]["heddle"][-1] / row["samples"]["yardstick"][-1])

    def _facts(self, work, part, cases, row):
        """Measures once: the path, the memory, the time without a pause."""
        row["error"], row["error_of_torch"] = self.errors
        cases["heddle"]()
        path = heddle.last_path()
        row["body"], row["why_no_kernel"] = path.body, path.why_no_kernel
        if work.count_memory and timing.is_gpu(self.device):
            row["peak_mb"] = {}
            for name, run in cases.items():
                run()
                with timing.peak_bytes(self.device) as most:
                    run()
                row["peak_mb"][name] = round(most[0] / 1e6, 1)
        if work.sustain and self.seconds and part in (FORWARD, BACKWARD):
            peer = next((name for name in cases if name != "heddle"), None)
            turns = [name for name in ("heddle", peer) if name]
            times = {name: [] for name in turns}
            for _ in range(2):
                for name in turns:
                    times[name].append(sustained(cases[name], self.device, self.seconds / 2))
            row["sustained"] = {name: round(min(each) * 1e3, 2) for name, each in times.items()}

    def result(self, work, part):
        """The row of a file and of a table."""
        row, amount = self.rows[work.name, part], work.amounts[part]
        samples = row["samples"]
        middle = {name: statistics.median(each) for name, each in samples.items()}
        mine = middle["heddle"]
        limit, limit_by = self.limit_ms(amount)
        made = {
            "work": work.name,
            "part": part,
            "clock": "device" if timing.is_gpu(self.device) and not work.from_host else "host",
            "us": round(mine * 1e3, 3),
            "spread": round(spread(samples["heddle"]), 5),
            "peers": {
                name: {
                    "us": round(ms * 1e3, 3),
                    "spread": round(spread(samples[name]), 5),
                    "ratio": round(ms / mine, 4),
                }
                for name, ms in middle.items()
                if name not in ("heddle", "yardstick")
            },
            "units": [round(each, 5) for each in row["units"]],
        }
        if work.kind:
            made["kind"] = work.kind
        if row["left_out"]:
            made["left_out"] = row["left_out"]
        if made["peers"]:
            made["fastest_peer"] = min(made["peers"], key=lambda name: made["peers"][name]["us"])
            made["ratio"] = made["peers"][made["fastest_peer"]]["ratio"]
        if amount.flops:
            made["rate"], made["rate_unit"] = round(amount.flops / mine / 1e9, 3), "TFLOP/s"
        elif amount.bytes and not work.from_host:
            made["rate"], made["rate_unit"] = round(amount.bytes / mine / 1e6, 1), "GB/s"
        if limit and not work.from_host:
            made["ceiling"] = limit_by
            # A copy of as many bytes was timed in the same rounds; the product's rate is that of the run.
            made["of_ceiling"] = round((middle["yardstick"] if limit_by == "copy" else limit) / mine, 4)
        for name in ("sustained", "peak_mb", "error", "error_of_torch", "body", "why_no_kernel"):
            if row.get(name) not in (None, ""):
                made[name] = row[name]
        if part in work.goal and timing.is_gpu(self.device):
            made["goal"], made["goal_of"] = work.goal[part], work.goal_of
        return made


def run(works, bench, visits, time_limit=0.0, say=lambda text: None):
    """Visits all works, each time in another order. Returns rows, failures, and names that lacked time."""
    end = time.monotonic() + time_limit if time_limit else float("inf")
    failures, left_out, alive = {}, [], []
    for work in works:
        if time.monotonic() > end:
            left_out.append(work.name)
            continue
        try:
            why = bench.first_visit(work) or bench.visit(work, first=True)
        except (heddle.Error, RuntimeError) as error:  # out of memory, say
            why = f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"
        if why:
            failures[work.name] = why
            say(f"{work.name}: {why}")
            continue
        alive.append(work)
        first = [bench.result(work, part) for part in work.amounts]
        say(f"{work.name}: " + ", ".join(f"{row['part']} {row['us']:.1f} us" for row in first))
    for _ in range(1, visits):
        for work in random.sample(alive, len(alive)):
            if time.monotonic() < end:
                bench.visit(work)
    rows = [bench.result(work, part) for work in alive for part in work.amounts]
    return rows, failures, left_out
