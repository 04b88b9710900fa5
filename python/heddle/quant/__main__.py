"""python -m heddle.quant: writes a model with weights of few bits, as compressed-tensors stores them.

`heddle quantize` is the same (docs/quantised.md).

python -m heddle.quant ~/Llama-3.2-1B --out ~/Llama-3.2-1B-int4
python -m heddle.quant ~/Llama-3.2-1B --out ~/Llama-3.2-1B-int4 --method gptq --calibrate text.txt
"""

import collections

from heddle.commands.command_line import Parser, Said, add_json, run_command, tell
from heddle.errors import InvalidArgument
from heddle.quant.allocate import allocate_bits
from heddle.quant.calibrate import feeding_back, windows_of
from heddle.quant.convert import quantize_folder
from heddle.quant.files import Folder
from heddle.quant.formats import FORMATS, format_named
from heddle.quant.select import SKIP

OF_BITS = {4.0: "int4", 8.0: "int8"}
METHODS = ("rtn", "gptq")


def parse(words):
    parser = Parser("quant", __doc__)
    parser.add_argument("model", metavar="MODEL", help="folder of the model, with floats in safetensors")
    parser.add_argument("--out", required=True, help="folder that is written; new or empty")
    parser.add_argument(
        "--bits", type=float, help="bits a weight: 4, 8, or 4.5 to choose a format for each layer"
    )
    parser.add_argument("--format", help=f"the format of all layers: {', '.join(FORMATS)}")
    parser.add_argument("--group", type=int, help="columns of int4 and int8 that share a scale; 0: a row")
    parser.add_argument("--method", default="rtn", choices=METHODS, help="nearest codes, or errors fed back")
    parser.add_argument("--calibrate", help="text, UTF-8, or *.jsonl, that gptq and 4.5 bits measure with")
    parser.add_argument("--skip", action="append", default=[], help="layer that stays; may be repeated")
    add_json(parser)
    return parser.parse_args(words)


def chosen_format(arguments):
    """The format that --format or --bits asks for; None: one for each layer."""
    if arguments.format and arguments.bits is not None:
        raise InvalidArgument("[quantize] give --format or --bits, not both")
    if arguments.bits is None or arguments.bits in OF_BITS:
        return format_named(arguments.format or OF_BITS[arguments.bits or 4.0], arguments.group)
    if arguments.group is not None:
        raise InvalidArgument(
            f"[quantize] --bits {arguments.bits:g} chooses groups itself; leave out --group"
        )
    return None


def allocated(arguments, skip, windows):
    """The Allocation that --bits asks for. The whole model is in memory."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.model, dtype="auto")
    return allocate_bits(model, arguments.bits, windows, skip=skip)


def lines(arguments):
    """Lines about a folder that was written."""
    format, windows, allocation = chosen_format(arguments), None, None
    skip = (*SKIP, *arguments.skip)
    if arguments.method == "gptq" or format is None:
        if not arguments.calibrate:
            flag = f"--bits {arguments.bits:g}" if format is None else "--method gptq"
            raise InvalidArgument(
                f"[quantize] {flag} needs --calibrate FILE, a text like those that the model will see"
            )
        windows = windows_of(Folder(arguments.model).path, arguments.calibrate)
    if format is None:
        allocation = allocated(arguments, skip, windows)
        yield str(allocation)
        format = allocation.formats
    method = feeding_back(windows) if arguments.method == "gptq" else None
    made = quantize_folder(arguments.model, arguments.out, format, skip=skip, method=method)
    counts = collections.Counter(str(format) for format in made["formats"].values())
    kinds = ", ".join(f"{count} layers in {name}" for name, count in counts.items())
    share = made["bytes"] / made["source_bytes"]
    text = f"{arguments.out}: {kinds}; {made['bytes'] / 1e6:.1f} MB, {share:.2f} of the model's"
    record = {
        "out": arguments.out,
        "bytes": made["bytes"],
        "source_bytes": made["source_bytes"],
        "method": arguments.method,
        "formats": {name: str(format) for name, format in made["formats"].items()},
    }
    if allocation:
        record |= {"divergences": allocation.divergences, "losses": allocation.losses}
    yield Said(text, record)


def main(words=None):
    arguments = parse(words)
    tell(lines(arguments), arguments.json)
    return 0


if __name__ == "__main__":
    run_command("quant", main)
