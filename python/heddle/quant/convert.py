"""From a model's folder to one in codes, a unit of layers at a time."""

from heddle.errors import Unsupported
from heddle.progress import teller
from heddle.quant.files import Folder, Writer
from heddle.quant.formats import format_named
from heddle.quant.linear import encode_unit
from heddle.quant.select import SKIP, is_expert, is_skipped, linear_names, quantization_config, units
from heddle.quant.skeleton import skeleton


def _layers_in(folder, model, skip):
    """(names of layers in codes, names of Linear layers that stay): as the files name them."""
    names = linear_names(model, skip)
    stored = [name for name in names if f"{name}.weight" in folder]
    missing = sorted(set(names) - set(stored))
    if missing:
        raise Unsupported(
            f"[{folder.path}] has no tensor {missing[0]}.weight, which transformers' class has; save the"
            " model again with its save_pretrained"
        )
    experts = [
        name.removesuffix(".weight")
        for name in folder.names
        if name.endswith(".weight")
        and is_expert(name.removesuffix(".weight"))
        and len(folder.shape(name)) == 2
        and not is_skipped(name.removesuffix(".weight"), skip)
    ]
    chosen = list(dict.fromkeys(stored + experts))
    every = [name for name, module in model.named_modules() if type(module).__name__ == "Linear"]
    return chosen, [name for name in every if name not in chosen]


def rounded(folder, formats):
    """Yields {name: Codes} of each unit, each value at the nearest point."""
    for unit in units(formats):
        for format in dict.fromkeys(formats[name] for name in unit):
            layers = {n: folder.tensor(f"{n}.weight") for n in unit if formats[n] == format}
            yield encode_unit(format, layers)[0]


def quantize_folder(source, out, config="int4", *, group=None, skip=SKIP, method=None, progress=None):
    """Writes the model of folder `source` to folder `out` in codes; returns {"bytes", "source_bytes",
    "formats"}: sizes of all tensors, and {layer's name: format}.

    `config`, `group` and `skip` are those of `quantize_`. `method(folder, model, formats)` yields {layer's
    name: Codes}, unit by unit; default: the nearest points. A few layers are in memory at a time. Nothing is
    at `out` until all is.
    """
    folder = Folder(source)
    model = skeleton(folder)
    names, left = _layers_in(folder, model, skip)
    if isinstance(config, dict):
        formats = {name: format_named(config[name]) for name in names if config.get(name) is not None}
        left = left + [name for name in names if name not in formats]
    else:
        formats = dict.fromkeys(names, format_named(config, group))
    for name, format in formats.items():
        format.check(name, folder.shape(f"{name}.weight"))
    tell, done, writer = teller(progress), 0, Writer(out, folder)
    try:
        coded = method(folder, model, formats) if method else rounded(folder, formats)
        for unit in coded:
            for name, codes in unit.items():
                writer.add({f"{name}.{end}": part for end, part in codes.parts.items()})
            done += len(unit)
            if tell:
                tell("quantising", "layers", done, len(formats), f"quantised {done} of {len(formats)} layers")
        kept = [name for name in folder.names if name.removesuffix(".weight") not in formats]
        for name in kept:
            writer.add({name: folder.tensor(name)})
        size = writer.close(quantization_config(formats, left))
    except BaseException:
        writer.abandon()
        raise
    return {"bytes": size, "source_bytes": folder.bytes(), "formats": formats}
