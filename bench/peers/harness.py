"""Shared by the peers on a GPU: variants of a work are compiled, captured and checked; the best is timed.

A peer prints one JSON line at the end. With --serve it prints one when it is ready, then one measurement for
each line that it reads. So a runner can measure several programs in rotation, and each compiles only once.

"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

TRIES = 3  # the median of these measurements counts
NEAR = 1.15  # a variant this close to the best is tried again at other sizes
WARM_UP = 4  # calls before the first that counts


@dataclass(frozen=True)
class Variant:
    """A way to run a work."""

    name: str
    options: dict | None = None  # options of torch.compile; None: eager
    captured: bool = True  # in a CUDA graph made here
    form: dict = field(default_factory=dict)  # how the peer builds what runs

    def unavailable(self):
        """Returns why this torch cannot compile so, or "" if it can."""
        known = set(torch._inductor.list_options()) if self.options else set()
        missing = [name for name in self.options or {} if name not in known]
        return f"torch {torch.__version__} has no {', '.join(missing)}" if missing else ""


@dataclass
class Work:
    name: str
    group: str  # works of one group differ in sizes only
    variants: list[Variant]
    build: Callable[[Variant], Callable[[], float]]  # checks too; what it returns measures once, in ms
    tried: dict = field(default_factory=dict)  # variant's name -> ms, or why there is none
    best: str = ""
    measure: Callable[[], float] | None = None
    all: list[float] = field(default_factory=list)

    def result(self):
        made = {"work": self.name, "unit": "ms", "variant": self.best, "tried": self.tried, "all": self.all}
        if self.all:
            made |= {"value": round(statistics.median(self.all), 4)}
            made |= {"low": min(self.all), "high": max(self.all)}
        return made


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def milliseconds(function):
    synchronize()
    begin = time.perf_counter()
    function()
    synchronize()
    return 1e3 * (time.perf_counter() - begin)


def capture(function):
    """The function as one CUDA graph; what it returns is overwritten by the next call."""
    function()  # compiles, on the stream it knows
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP - 1):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()

    def replay():
        graph.replay()
        return result

    return replay


def prepare(function, variant, fullgraph=True):
    """The function as the variant runs it, warm."""
    if variant.options is not None:
        # Sizes are constants: what runs at one position is the best for it.
        function = torch.compile(function, fullgraph=fullgraph, dynamic=False, options=variant.options)
    if variant.captured:
        return capture(function)
    for _ in range(WARM_UP):
        function()
    return function


def relative_error(x, reference):
    return float(
        (x.float() - reference.float()).square().mean().sqrt() / reference.float().square().mean().sqrt()
    )


class Bench:
    def __init__(self, arguments, peer):
        self.arguments, self.peer = arguments, peer
        self.begin = time.monotonic()
        self.works = []

    def share(self, work, works):
        """The fraction of the time limit by which a work must be done: a work that tries all variants gets
        the most."""
        first = {w.group: w for w in reversed(works)}
        weights = [len(w.variants) if w is first[w.group] else 2 for w in works]
        return sum(weights[: works.index(work) + 1]) / sum(weights)

    def late(self, share):
        limit = self.arguments.time_limit
        return limit > 0 and time.monotonic() - self.begin > limit * share

    def try_variant(self, work, variant, share):
        """ms, or why there are none; keeps the measurement of the best."""
        if why := variant.unavailable():
            return f"not here: {why}"
        # A work without any measurement may use what was meant for others.
        if self.late(share if work.measure else 1):
            return "skipped: out of time"
        try:
            begin = time.monotonic()
            measure = work.build(variant)
            value = round(statistics.median(measure() for _ in range(TRIES)), 4)
        # A variant may fail in any way that a compiler, a driver or a check can; the others still count.
        except Exception as error:
            return f"failed: {type(error).__name__}: {error}"[:600]
        say(f"{work.name}: {variant.name}: {value} ms, after {time.monotonic() - begin:.0f} s")
        if work.measure is None or value < work.tried[work.best]:
            work.best, work.measure = variant.name, measure
        return value

    def candidates(self, work):
        """All variants; if a work of the group was tried with all, only those near its best."""
        before = [w for w in self.works if w.group == work.group and w.measure is not None]
        if not before:
            return work.variants
        values = {name: v for name, v in before[0].tried.items() if isinstance(v, float)}
        near = [v for v in work.variants if values.get(v.name, float("inf")) <= NEAR * min(values.values())]
        work.tried |= {
            v.name: f"skipped: not near the best of {before[0].name}" for v in work.variants if v not in near
        }
        return sorted(near, key=lambda v: values[v.name])

    def choose(self, work, share):
        for variant in self.candidates(work):
            work.tried[variant.name] = self.try_variant(work, variant, share)
            gc.collect()
            torch.cuda.empty_cache()
            if isinstance(work.tried[variant.name], str):
                say(f"{work.name}: {variant.name}: {work.tried[variant.name]}")
        self.works.append(work)

    def round(self):
        measured = {}
        for work in self.works:
            if work.measure is not None:
                work.measure()  # the clocks may have gone down
                measured[work.name] = round(statistics.median(work.measure() for _ in range(TRIES)), 4)
                work.all.append(measured[work.name])
        return measured

    def run(self, works):
        cache = CompileCache(self.arguments.compile_cache)
        for work in works:
            self.choose(work, self.share(work, works))
            cache.save()
        results = {"peer": self.peer, "device": device_name(self.arguments.device)}
        results |= {"model": str(self.arguments.model), "setup_s": round(time.monotonic() - self.begin, 1)}
        if self.arguments.serve:
            emit(results | {"works": [work.result() for work in self.works]})
            for _ in sys.stdin:
                emit(self.round())
        else:
            for _ in range(self.arguments.rounds):
                self.round()
            emit(results | {"works": [work.result() for work in self.works]})


class CompileCache:
    """Keeps the output of torch.compile in a file, for a machine without a lasting disk."""

    def __init__(self, path):
        self.path = path
        if path and path.exists():
            torch.compiler.load_cache_artifacts(path.read_bytes())

    def save(self):
        saved = torch.compiler.save_cache_artifacts() if self.path else None
        if saved is not None:
            self.path.write_bytes(saved[0])


OUTPUT = None


def keep_stdout():
    """Compilers print too: results get stdout for themselves, all else goes to stderr."""
    global OUTPUT
    OUTPUT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


def emit(result):
    print(json.dumps(result), file=OUTPUT, flush=True)


def say(text):
    print(text, file=sys.stderr, flush=True)


def device_name(device):
    return torch.cuda.get_device_name() if device == "cuda" else device


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def argument_parser(description, variants):
    def names(text):
        chosen = [name for name in text.split(",") if name]
        if unknown := set(chosen) - {v.name for v in variants}:
            known = ", ".join(sorted({v.name for v in variants}))
            raise argparse.ArgumentTypeError(f"no variant is called {', '.join(unknown)}; there are {known}")
        return chosen

    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="a checkpoint folder")
    parser.add_argument("--positions", type=numbers, default=[512, 0, 4096], metavar="N,...")
    parser.add_argument("--steps", type=int, default=32, help="tokens of a measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements")
    parser.add_argument("--variants", type=names, default=[], metavar="NAME,...", help="only these")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument(
        "--time-limit", type=float, default=0, metavar="S", help="try no variant after; 0: none"
    )
    parser.add_argument("--compile-cache", type=Path, metavar="FILE", help="read first, and written")
    parser.add_argument("--serve", action="store_true", help="measure once for each line of stdin")
    return parser


def chosen(variants, arguments):
    """The named variants, or all if none is named."""
    variants = [v for v in variants if not arguments.variants or v.name in arguments.variants]
    if arguments.device == "cpu":  # only the forms, uncompiled
        variants = [replace(v, options=None, captured=False) for v in variants]
    return variants


def set_up(arguments):
    """Ends the program with a reason where there is no GPU."""
    keep_stdout()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            f"{Path(sys.argv[0]).name}: torch {torch.__version__} finds no GPU; --device cpu only checks"
        )
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # One function is compiled once for each variant and position.
    torch._dynamo.config.recompile_limit = 256
    torch._dynamo.config.accumulated_recompile_limit = 4096
    torch._dynamo.config.fail_on_recompile_limit_hit = True
