"""python -m heddle.tune: times the configurations of an op, and keeps the fastest for this device.

Calls of the op take it from then on. `heddle tune` does the same for heddle's own ops, and for a model's
programs.

python -m heddle.tune my_file.py:MyOp --size M=4096,D=1024
python -m heddle.tune my_file.py:MyOp --size M=4096,D=1024 --dtype bfloat16 --device cuda --allow-reorder
"""

import heddle
from heddle import _heddle
from heddle.commands.cases import call
from heddle.commands.command_line import Parser, Said, add_device, add_json, default_device, run_command, tell
from heddle.commands.named import ops_named
from heddle.commands.sized import attributes_of, described, largest_case, sized_case, sizes_of


def parse(words):
    parser = Parser("tune", __doc__)
    parser.add_argument("op", metavar="OP", help="my_file.py:MyOp, package.module:MyOp, or an op of heddle")
    parser.add_argument("--size", help="NAME=NUMBER,... by dimension; default: the op's largest case")
    parser.add_argument("--attribute", help="attributes: eps=1e-6,kind=max")
    parser.add_argument("--dtype", default="float32", help="of the tensors, where they may have it")
    add_device(parser)
    add_json(parser)
    parser.add_argument("--workers", type=int, default=1, help="configurations that are compiled at once")
    parser.add_argument("--max-configs", type=int, default=0, help="try at most so many; 0: all")
    parser.add_argument(
        "--allow-reorder", action="store_true", help="those that add in another order may win"
    )
    arguments = parser.parse_args(words)
    arguments.device = arguments.device or default_device()
    return arguments


def tune(op, arguments):
    """Lines about an op."""
    given = attributes_of(arguments.attribute)
    if arguments.size:
        inputs, case = sized_case(op, sizes_of(arguments.size), arguments.dtype, given)
    else:
        inputs, case = largest_case(op)
    inputs = {name: each.to(arguments.device) for name, each in inputs.items()}
    policy = {
        "num_workers": arguments.workers,
        "max_configs": arguments.max_configs,
        "allow_reorder": arguments.allow_reorder,
    }
    with heddle.settings.set(heddle.PickBest, **policy):
        call(op, inputs, case)
    found = _heddle.last_tuned()
    if found is None:
        raise heddle.InvalidArgument(
            f"[tune] {op} has one configuration for such a call: there is nothing to choose"
        )
    summary, nanoseconds, text, tried = found
    if text:
        yield text.rstrip("\n")
    tensors = described(inputs)
    record = {
        "op": op,
        "tensors": tensors,
        "device": arguments.device,
        "config": summary,
        "ns": nanoseconds,
        "known_before": not text,
        "tried": tried,
    }
    texts = ", ".join(f"{name} {each['dtype']} {each['sizes']}" for name, each in tensors.items())
    best = f"{summary}, {nanoseconds / 1e3:.1f} us a call{'' if text else ', known before'}"
    yield Said(f"{op} of {texts} on {arguments.device}: {best}", record)


def main(words=None):
    arguments = parse(words)
    ops = ops_named("tune", [arguments.op])
    tell((line for op in ops for line in tune(op, arguments)), arguments.json)
    return 0


if __name__ == "__main__":
    run_command("tune", main)
