"""python -m heddle.check: runs the cases of ops, and compares them with their references in float64.

Each case runs twice, and the largest one of each set of dtypes RUNS times. An output lies between canaries,
and is filled with other bits before each run: elements that an op misses are found, and so are writes outside
of its output. All runs give the same bits. The reference runs on the CPU; the bound of an error is the case's
own.

An op of one's own runs its cases in programs too, and each access of its body is compared with what the class
declares.

python -m heddle.check softmax rms_norm
python -m heddle.check my_file.py:MyOp
python -m heddle.check all --device cpu --runs 10
python -m heddle.check my_file.py:MyOp --arch sm_80,sm_90a    compiles for these; no GPU is needed
"""

import collections
import math

import torch

import heddle
import heddle.ops
from heddle import _heddle
from heddle.commands.cases import by_reference, call, distance, rounding, small_cases, tensors_of
from heddle.commands.command_line import (
    Parser,
    Said,
    add_device,
    add_json,
    default_device,
    did_you_mean,
    run_command,
    tell,
)
from heddle.commands.named import ops_named
from heddle.errors import compile_error
from heddle.own.op import own_of

GUARD = 256  # bytes before and after an output
CANARY = 0xA5
FILLS = (0xFF, 0x5A)  # in turn: an element that is not written differs from run to run


class Guarded:
    """Room for a result, between two stretches of canaries."""

    def __init__(self, like, device):
        self.count = like.numel() * like.element_size()
        self.bytes = torch.full((self.count + 2 * GUARD,), CANARY, dtype=torch.uint8, device=device)
        self.room = self.bytes[GUARD : GUARD + self.count]
        self.tensor = self.room.view(like.dtype).view(like.shape)

    def fault(self):
        """Returns what was written next to it, or ""."""
        for name, guard in (("before", self.bytes[:GUARD]), ("after", self.bytes[GUARD + self.count :])):
            wrong = (guard != CANARY).nonzero()
            if len(wrong):
                return f"{len(wrong)} bytes {name} it were written"
        return ""


class CaseError(Exception):
    """A case that does not hold, in words."""


def text_of(case):
    """Describes a case: "x float32 [5, 37], eps=1e-05"."""
    tensors = [f"{name} {dtype} {list(sizes)}" for name, (dtype, sizes, _) in case["tensors"].items()]
    return ", ".join([*tensors, *(f"{name}={value}" for name, value in case["attributes"].items())])


def check_case(name, number, case, device, runs):
    """The largest error as a part of its bound, and the body that ran. Raises CaseError."""
    inputs = tensors_of(name, number, case)
    wanted = by_reference(name, inputs, case)
    inputs = {key: value.to(device) for key, value in inputs.items()}
    rooms = [Guarded(each, device) for each in wanted]
    first = None
    for run in range(runs):
        for room in rooms:
            room.room.fill_(FILLS[run % 2])
        call(name, inputs, case, out=tuple(room.tensor for room in rooms))
        if first is None:
            first = [room.room.clone() for room in rooms]
        for at, (room, bits) in enumerate(zip(rooms, first, strict=True)):
            if not torch.equal(room.room, bits):
                different = int((room.room != bits).sum())
                raise CaseError(
                    f"result {at}: {different} bytes of run {run + 1} differ from those of the first run"
                )
    worst = 0.0
    for at, (room, other) in enumerate(zip(rooms, wanted, strict=True)):
        if fault := room.fault():
            raise CaseError(f"result {at}: {fault}")
        bound = case["bound"] + rounding(other.dtype)
        error = distance(room.tensor.cpu(), other)
        if not error <= bound:
            raise CaseError(f"result {at}: error {error:.3g}, above its bound of {bound:.3g}")
        worst = max(worst, error / bound if bound else 0.0)
    return worst, heddle.last_path().body


def runs_of(cases, runs):
    """The number of runs of each case: the largest of each set of dtypes `runs` times, others twice."""
    largest = {}
    for number, case in cases:
        dtypes = tuple(dtype for dtype, _, _ in case["tensors"].values())
        size = sum(math.prod(sizes) for _, sizes, _ in case["tensors"].values())
        largest[dtypes] = max(largest.get(dtypes, (-1, -1)), (size, number))
    often = {number for _, number in largest.values()}
    return {number: max(2, runs) if number in often else 2 for number, _ in cases}


def accesses_of(cls):
    """Returns what is wrong with the body's accesses, and in programs, on this CPU."""
    if not cls.declaration.body:
        return []
    try:
        cls.check()
    except heddle.Error as error:
        return [str(error)]
    return []


def check_op(name, device, runs):
    """Returns the findings, as a record of --json. An op holds if a case ran, and each one that ran does."""
    cases = list(small_cases(name))
    times = runs_of(cases, runs)
    bodies, refused, worst, faults = collections.Counter(), 0, 0.0, []
    for number, case in cases:
        try:
            error, body = check_case(name, number, case, device, times[number])
        except heddle.Unsupported:
            refused += 1
            continue
        except (CaseError, heddle.Error) as error:
            faults.append(f"{name}: {error} ({text_of(case)})")
            continue
        worst = max(worst, error)
        bodies[body] += 1
    if cls := own_of(name):
        faults += accesses_of(cls)
    return {
        "op": name,
        "device": device,
        "cases": len(cases),
        "bodies": dict(bodies),
        "refused": refused,
        "largest_error": worst,
        "faults": faults,
        "holds": not faults and sum(bodies.values()) > 0,
    }


def lines_of(found):
    """A line for an op, and one for each case that does not hold."""
    ran = ", ".join(f"{count} in {body}" for body, count in found["bodies"].items())
    note = f", {found['refused']} refused" if found["refused"] else ""
    largest = f"largest error {found['largest_error']:.2f} of its bound"
    yield Said(f"{found['op']}: {found['cases']} cases ({ran or 'none ran'}{note}), {largest}", found)
    for fault in found["faults"]:
        yield f"FAIL {fault}"


def archs_of(text):
    """The architectures that a flag names."""
    archs, known = text.split(","), _heddle.archs()
    for arch in archs:
        if arch not in known:
            raise heddle.InvalidArgument(
                f"[check] --arch has {arch}; must be of {', '.join(known)}{did_you_mean(arch, known)}"
            )
    return archs


def compile_op(name, archs):
    """Compiles an op's tile body and whole kernels, as its cases and configurations have them; returns
    records of --json."""
    cls = own_of(name)
    for arch in archs:
        try:
            yield from _heddle.compile_op(name, [arch], cls is not None and not cls.declaration.body)
        except heddle.Unsupported as error:
            yield {"body": name, "arch": arch, "config": "default", "failure": str(error)}


def line_of(made):
    """The line of a record of `compile_op`."""
    config = "" if made["config"] == "default" else f" with {made['config']}"
    body = f"{made['body']}{config} for {made['arch']}: "
    if made["failure"]:
        return Said(f"FAIL {body}{compile_error(made['failure'])}", made)
    return Said(f"{body}{made['registers']} registers, {made['spilled_bytes']} bytes spilled", made)


def main(words=None):
    parser = Parser("check", __doc__)
    parser.add_argument(
        "ops",
        nargs="+",
        metavar="OP",
        help="names of ops, my_file.py:MyOp, my_file.py; all: every one of heddle",
    )
    add_device(parser)
    add_json(parser)
    parser.add_argument("--runs", type=int, default=1000, help="of the largest case of each set of dtypes")
    parser.add_argument("--arch", help="sm_80,sm_90a: compile for these instead, without a GPU")
    arguments = parser.parse_args(words)
    device = arguments.device or default_device()
    held = []

    def lines():
        for name in ops_named("check", arguments.ops):
            found = check_op(name, device, arguments.runs)
            held.append(found["holds"])
            yield from lines_of(found)
        yield f"{sum(held)} of {len(held)} ops hold on {device}"

    def compiled():
        archs = archs_of(arguments.arch)
        for name in ops_named("check", arguments.ops):
            made = list(compile_op(name, archs))
            held.append(not any(each["failure"] for each in made))
            yield from map(line_of, made)
        yield f"{sum(held)} of {len(held)} ops compile for {', '.join(archs)}"

    tell(compiled() if arguments.arch else lines(), arguments.json)
    return 0 if all(held) else 1


if __name__ == "__main__":
    run_command("check", main)
