"""python -m heddle.profile: looks at single ops, or at any command.

trace -- OP        bytes, rates, tiles, and which code ran; anywhere
ncu -- OP          what Nsight Compute counts: bytes, rates, occupancy, stalls; on a GPU
nsys -- OP...      kernels and ranges of calls that Nsight Systems records, and its report; on a GPU
sanitizer -- OP... memcheck, racecheck and initcheck of compute-sanitizer over the ops' cases; on a GPU

An OP is rms_norm, my_file.py:MyOp or package.module:MyOp. ncu, nsys and sanitizer also run any COMMAND.

python -m heddle.profile trace --size M=4096,D=4096 --dtype bfloat16 -- rms_norm
python -m heddle.profile ncu -- my_file.py:MyOp
python -m heddle.profile nsys -- python train.py --steps 10
python -m heddle.profile sanitizer --check racecheck -- softmax matmul
"""

import shutil

import heddle
import heddle.ops
from heddle.commands.command_line import Parser, add_device, add_json, default_device, run_command, tell
from heddle.commands.named import is_own, ops_named
from heddle.commands.sized import attributes_of, sizes_of
from heddle.profile import ncu, nsys, sanitizer, trace


def parse(words):
    parser = Parser("profile", __doc__)
    parser.add_argument("tool", choices=("trace", "ncu", "nsys", "sanitizer"))
    parser.add_argument(
        "words", nargs="+", metavar="OP", help="names of ops, or a command; all: every op of heddle"
    )
    add_device(parser)
    add_json(parser)
    parser.add_argument("--most", type=int, default=8, help="cases of an op; 0: all")
    parser.add_argument("--seconds", type=float, default=0, help="sanitizer: after which no case begins")
    parser.add_argument(
        "--check", choices=(*sanitizer.CHECKS, "all"), default="all", help="of compute-sanitizer"
    )
    parser.add_argument("--size", help="trace: NAME=NUMBER,... by dimension; default: the op's largest case")
    parser.add_argument("--dtype", default="float32", help="trace: with --size")
    parser.add_argument("--attribute", help="trace: with --size, attributes: eps=1e-6,kind=max")
    parser.add_argument(
        "--out",
        help="trace: also a page (.html), .perfetto, .json or .nanotrace of the program; nsys: its report",
    )
    arguments = parser.parse_args(words)
    arguments.device = arguments.device or default_device()
    arguments.is_command = arguments.tool != "trace" and is_command(arguments.words)
    if not arguments.is_command:
        arguments.ops = ops_named("profile", arguments.words)
    return arguments


def is_command(words):
    """Says whether words are a command: the first is a program, and no op has its name."""
    first = words[0]
    if first == "all" or is_own(first) or first in heddle.ops.NAMES:
        return False
    return shutil.which(first) is not None


def of_command(arguments):
    """Lines about a command, and last whether it is clean."""
    if arguments.tool == "ncu":
        yield from ncu.run_command(arguments.words, arguments.most)
    elif arguments.tool == "nsys":
        yield from nsys.run(arguments.words, report_of(arguments), arguments.most, arguments.json)
    else:
        for check in checks_of(arguments):
            yield from sanitizer.run_command(arguments.words, check)


def of_ops(arguments):
    if arguments.tool == "sanitizer":
        for check in checks_of(arguments):
            given = (arguments.words, check, arguments.most, arguments.seconds, arguments.device)
            yield from sanitizer.run(*given, names=arguments.ops)
        return
    if arguments.tool == "nsys":
        program = nsys.of_ops(arguments.words, arguments.device, arguments.most)
        yield from nsys.run(program, report_of(arguments), arguments.most, arguments.json)
        return
    if arguments.tool == "ncu":
        for word in arguments.words:
            yield from ncu.run(word, arguments.most, arguments.device)
        return
    sizes = sizes_of(arguments.size) if arguments.size else None
    given = attributes_of(arguments.attribute)
    for op in arguments.ops:
        yield from trace.run(op, arguments.device, sizes, arguments.dtype, arguments.out, given)


def report_of(arguments):
    return arguments.out or "heddle.nsys-rep"


def checks_of(arguments):
    return sanitizer.CHECKS if arguments.check == "all" else (arguments.check,)


def main(words=None):
    arguments, clean = parse(words), True

    def lines():
        nonlocal clean
        for line in of_command(arguments) if arguments.is_command else of_ops(arguments):
            if isinstance(line, bool):  # the result of a sanitizer's check
                clean = clean and line
            else:
                yield line

    tell(lines(), arguments.json)
    return 0 if clean else 1


if __name__ == "__main__":
    run_command("profile", main)
