"""Where the time of one op goes, on the device that there is: bytes, rates, tiles, and which code ran."""

import statistics

import torch

import heddle
from heddle.bench import timing
from heddle.bench.timing import Yardstick
from heddle.commands.cases import call
from heddle.commands.command_line import Said
from heddle.commands.sized import described, largest_case, sized_case
from heddle.own.op import own_of, own_peers


def program_lines(op, inputs, results, attributes, out, record):
    """The op as a program, whose instructions note when they ran. Lines, and members of the record."""
    names = [each.name for each in heddle.ops.info(op).results]
    outputs = {name: torch.empty_like(each) for name, each in zip(names, results, strict=True)}
    scheduled = heddle.schedule(op, **inputs, **outputs, **attributes)
    kernel = heddle.Megakernel([scheduled], heddle.MegakernelConfig(tracing=True))
    for _ in range(2):  # the first run meets cold memory
        kernel.run()
    trace = kernel.trace()
    took = (trace.computed - trace.ready).tolist()
    program = {
        "executor": kernel.executor,
        "tiles": len(took),
        "workers": len(set(trace.worker.tolist())),
        "us": float(trace.done.max() / 1e3),
        "tile_us": statistics.median(took) / 1e3,
        "slowest_tile_us": max(took) / 1e3,
        "waits_us": float((trace.ready - trace.fetched).sum() / 1e3),
    }
    record["program"] = program
    yield "as a program on {executor}: {tiles} tiles on {workers} workers in {us:.1f} us".format(**program)
    yield (
        "a tile: {tile_us:.2f} us (median), {slowest_tile_us:.2f} us (slowest); all waits: {waits_us:.1f} us"
    ).format(**program)
    if out:
        kernel.write_trace(out)
        record["trace"] = str(out)
        yield f"wrote {out}"


def rate_text(gb):
    """A rate in GB/s; of small tensors in MB/s, as 0.0 says nothing."""
    return f"{gb:.1f} GB/s" if gb >= 1 else f"{gb * 1e3:.1f} MB/s"


def peers_of(op, inputs, attributes):
    """Returns what the class of an op of one's own names to be timed next to it."""
    return {
        name: lambda function=function: function(*inputs.values(), **attributes)
        for name, function in own_peers(own_of(op)).items()
    }


def run(op, device, sizes=None, dtype="float32", out=None, given=()):
    """Lines about the op's largest case, or about tensors of given sizes. The first has the record of all."""
    inputs, case = sized_case(op, sizes, dtype, given) if sizes else largest_case(op)
    inputs = {name: each.to(device) for name, each in inputs.items()}
    results = call(op, inputs, case)
    path = heddle.last_path()
    tensors = described(inputs)
    record = {
        "op": op,
        "tensors": tensors,
        "attributes": case["attributes"],
        "body": path.body or path.backend,
        "device": path.device,
        "reason": path.reason,
        "why_no_kernel": path.why_no_kernel,
        "copies": path.copies,
    }
    texts = [f"{name} {each['dtype']} {each['sizes']}" for name, each in tensors.items()]
    yield Said(f"{op}: {', '.join(texts)}", record)
    yield f"ran in {path.body or path.backend} on {path.device}; {path.reason}"
    if path.why_no_kernel:
        yield f"no whole kernel: {path.why_no_kernel}"
    if path.copies:
        yield f"{path.copies} inputs were copied first, since they do not lie as rows"
    size = sum(each.numel() * each.element_size() for each in (*inputs.values(), *results))
    copy = Yardstick(device, tiny=False).copy(size)
    others = peers_of(op, inputs, case["attributes"])
    times = timing.bursts({"op": lambda: call(op, inputs, case), "copy": copy, **others}, device, rounds=7)
    mine, copied = statistics.median(times["op"]), min(times["copy"])
    record |= {"us": mine * 1e3, "bytes": size, "of_copy": copied / mine, "peers_us": {}}
    yield f"{mine * 1e3:.1f} us for {size / 1e6:.3f} MB: {rate_text(size / mine / 1e6)}"
    yield f"{copied / mine:.2f} of torch's copy of as many bytes, {rate_text(size / copied / 1e6)}"
    for name in others:
        middle = statistics.median(times[name])
        record["peers_us"][name] = middle * 1e3
        yield f"{name}: {middle * 1e3:.1f} us, {middle / mine:.2f} of it"
    try:
        yield from program_lines(op, inputs, results, case["attributes"], out, record)
    except heddle.Error as error:
        record["why_no_program"] = str(error)
        yield f"not as a program: {error}"
