"""python -m heddle.profile: looks at single ops.

trace -- OP        bytes, rates, tiles, and which code ran; anywhere
ncu -- OP          what Nsight Compute counts: bytes, rates, occupancy, stalls; on a GPU
sanitizer -- OP... memcheck, racecheck and initcheck of compute-sanitizer over the ops' cases; on a GPU

python -m heddle.profile trace --size M=4096,D=4096 --dtype bfloat16 -- rms_norm
python -m heddle.profile sanitizer --check racecheck -- softmax matmul
"""

import heddle
from heddle.cases import ops_named
from heddle.command_line import Parser, add_device, default_device, run_command
from heddle.profile import ncu, sanitizer, trace


def sizes_of(text):
    """ "M=512,K=64" as numbers by name."""
    made = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if not (name and number.isdigit() and int(number) > 0):
            raise heddle.InvalidArgument(f"[profile] --size has {part!r}; must be NAME=NUMBER,...")
        made[name] = int(number)
    return made


def parse(words):
    parser = Parser("profile", __doc__)
    parser.add_argument("tool", choices=("trace", "ncu", "sanitizer"))
    parser.add_argument("ops", nargs="+", metavar="OP", help="names of ops; all: every one")
    add_device(parser)
    parser.add_argument("--most", type=int, default=8, help="cases of an op; 0: all")
    parser.add_argument("--seconds", type=float, default=0, help="sanitizer: after which no case begins")
    parser.add_argument(
        "--check", choices=(*sanitizer.CHECKS, "all"), default="all", help="of compute-sanitizer"
    )
    parser.add_argument("--size", help="trace: NAME=NUMBER,... by dimension; default: the op's largest case")
    parser.add_argument("--dtype", default="float32", help="trace: with --size")
    parser.add_argument("--out", help="trace: also a page (.html), .perfetto or .nanotrace of the program")
    arguments = parser.parse_args(words)
    arguments.device = arguments.device or default_device()
    arguments.ops = ops_named("profile", arguments.ops)
    return arguments


def main(words=None):
    arguments = parse(words)
    if arguments.tool == "sanitizer":
        clean = True
        for check in sanitizer.CHECKS if arguments.check == "all" else (arguments.check,):
            for line in sanitizer.run(
                arguments.ops, check, arguments.most, arguments.seconds, arguments.device
            ):
                if isinstance(line, bool):
                    clean = clean and line
                else:
                    print(line, flush=True)
        return 0 if clean else 1
    sizes = sizes_of(arguments.size) if arguments.size else None
    for op in arguments.ops:
        if arguments.tool == "ncu":
            found = ncu.run(op, arguments.most)
        else:
            found = trace.run(op, arguments.device, sizes, arguments.dtype, arguments.out)
        for line in found:
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    run_command("profile", main)
