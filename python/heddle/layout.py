"""python -m heddle.layout: how a call of an op's whole kernel is launched, and where a box's elements lie
on chip.

`heddle layout` also shows the fragments of instructions, and the kernels of heddle's own ops.

python -m heddle.layout my_file.py:MyOp
python -m heddle.layout my_file.py:MyOp --size M=4096,K=64 --dtype bfloat16 --box 1
"""

import heddle
from heddle.commands.command_line import Parser, Said, add_json, run_command, tell
from heddle.commands.named import classes_named, is_own
from heddle.commands.sized import sizes_of
from heddle.own.body import tile_values
from heddle.own.cases import described_cases
from heddle.own.kernel import BYTES, SWIZZLES, call_of, gpu_of, planned

# The GPU that is planned for, as `heddle layout` does: an H100.
TARGET = {
    "arch": 90,
    "multiprocessors": 132,
    "shared_bytes": 227 << 10,
    "tensor_maps": True,
    "fast_memory": False,
}
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int32": "i32"}


def parse(words):
    parser = Parser("layout", __doc__)
    parser.add_argument(
        "op", metavar="OP", help="my_file.py:MyOp or package.module:MyOp, with a whole kernel"
    )
    parser.add_argument(
        "config", nargs="?", default="", help="a configuration of its kernel: kernel=1,rows=64"
    )
    parser.add_argument("--size", help="NAME=NUMBER,... by dimension; default: the first case that it takes")
    add_json(parser)
    parser.add_argument("--box", type=int, default=0, help="the box that is shown as a table")
    parser.add_argument("--rows", type=int, default=16, help="most rows of the table")
    parser.add_argument("--cols", type=int, default=16, help="most columns of the table")
    return parser.parse_args(words)


def dense(case):
    """{name: (dtype, sizes, strides in elements)} of a case whose tensors lie as rows."""
    made = {}
    for name, (dtype, sizes, _) in case["tensors"].items():
        strides, step = [], 1
        for size in reversed(sizes):
            strides.insert(0, step)
            step *= size
        made[name] = (NAMES[dtype], sizes, strides)
    return made


def plan_of(cls, sizes, config):
    """The plan of the first case that the kernel takes, or of given sizes; the case in words."""
    declaration = cls.declaration
    if not declaration.kernels:
        raise heddle.InvalidArgument(f"[layout] {declaration.name} has no whole kernel")
    of_sizes = type(cls.__name__, (cls,), {"cases": [sizes], "name": declaration.name}) if sizes else cls
    why, config = "", config or tile_values(declaration, True)
    for case in described_cases(of_sizes):
        names = [name for name, *_ in declaration.tensors]
        call = call_of(names, dense(case), case["attributes"], config)
        made = planned(declaration, cls.plan(call, gpu_of(TARGET)), call)
        if isinstance(made, dict):
            return made, case["name"]
        why = made
    raise heddle.InvalidArgument(
        f"[layout] {declaration.name}: none of its cases runs as a whole kernel: {why}"
    )


def config_of(text):
    values = dict(part.partition("=")[::2] for part in text.split(",") if part)
    if not all(value.isdigit() for value in values.values()):
        raise heddle.InvalidArgument(f"[layout] the configuration is {text!r}; must be like kernel=1,rows=64")
    return {name: int(value) for name, value in values.items()}


def place(row, byte, line_bytes, span):
    """The byte on chip of a row's byte: words of 16 bytes are permuted inside `span` bytes, by the row of
    128."""
    at = row * line_bytes + byte
    return at ^ (((at >> 7) & (span // 16 - 1)) << 4) if span else at


def table(box, most_rows, most_columns):
    """Lines that say for each element of a box its bank and its byte."""
    size, span, columns = BYTES[box["dtype"]], SWIZZLES[box["swizzle"]], box["box"][0]
    rows = 1
    for each in box["box"][1:]:
        rows *= each
    yield f"{rows} x {columns} of {box['dtype']}, {rows * columns * size} bytes on chip; a cell is bank:byte"
    shown = range(min(columns, most_columns))
    cells = [
        [place(row, col * size, columns * size, span) for col in shown] for row in range(min(rows, most_rows))
    ]
    yield "     " + "".join(f"{col:>9}" for col in shown)
    for row, line in enumerate(cells):
        yield f"{row:>4} " + "".join(f"{f'{at // 4 % 32}:{at}':>9}" for at in line)


def lines(cls, arguments):
    plan, words = plan_of(
        cls, sizes_of(arguments.size) if arguments.size else None, config_of(arguments.config)
    )
    constants = (
        ",".join(f"{name}={value}" for name, value in plan["constants"].items()) or "its own constants"
    )
    file = f"{cls.declaration.name}_kernel.{plan['file']}"
    yield Said(f"{file} with {constants}, for {words}", {"case": words, **plan, "file": file})
    boxes = []
    for launch in plan["launches"]:
        yield (
            f"{launch['name']}: {launch['grid']} CTAs of {launch['threads']} threads, clusters of"
            f" {launch['cluster']}, {launch['shared_bytes']} bytes of shared memory"
        )
        for box in launch["maps"]:
            sizes = " x ".join(map(str, reversed(box["box"])))
            yield f"  box {len(boxes)}: {sizes} of {box['tensor'] or 'the workspace'}, {box['dtype']}"
            boxes.append(box)
    if not boxes:
        return
    if not 0 <= arguments.box < len(boxes):
        raise heddle.InvalidArgument(f"[layout] --box is {arguments.box}; there are {len(boxes)} boxes")
    yield f"box {arguments.box}:"
    yield from table(boxes[arguments.box], arguments.rows, arguments.cols)


def main(words=None):
    arguments = parse(words)
    if not is_own(arguments.op):
        raise heddle.InvalidArgument(
            f"[layout] {arguments.op} is no op of a file; `heddle layout` shows heddle's own"
        )
    classes = classes_named("layout", arguments.op)
    tell((line for cls in classes for line in lines(cls, arguments)), arguments.json)
    return 0


if __name__ == "__main__":
    run_command("layout", main)
