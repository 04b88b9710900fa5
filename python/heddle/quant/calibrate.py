"""Inputs of a model's layers on a text, with one layer in memory at a time, and codes that fit them."""

import json
from pathlib import Path

import torch

from heddle.errors import FileError, InvalidArgument
from heddle.quant import gptq
from heddle.quant.convert import rounded
from heddle.quant.select import units
from heddle.quant.skeleton import decoder_layers, empty, fill

WINDOW, WINDOWS, AT_ONCE = 512, 128, 8  # tokens in a window, the most windows, and those of a call
LEAST = 2  # tokens of a window, which predict one


def windows_of(folder, path, window=WINDOW, windows=WINDOWS):
    """Token ids of a text, a list of [windows, tokens]: of text, windows that are spread over it; of *.jsonl,
    the beginning of each line's {"text": ...}, with the tokens that the model puts around a text."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"[{path}] cannot be read as UTF-8: {error}") from error
    if Path(path).suffix == ".jsonl":
        ids = [tokenizer(each, verbose=False)["input_ids"][:window] for each in _texts_in(path, text)]
        made = [torch.tensor([each]) for each in ids if len(each) >= LEAST][:windows]
    else:
        ids = tokenizer(text, verbose=False)["input_ids"]
        window = max(min(window, len(ids)), LEAST)
        count = min(len(ids) // window, windows)
        starts = [len(ids) // count * number for number in range(count)]
        made = list(torch.tensor([ids[at : at + window] for at in starts]).split(AT_ONCE)) if count else []
    if not made:
        raise InvalidArgument(f"[{path}] has less than {LEAST} tokens; a text to measure with has thousands")
    return made


def _texts_in(path, text):
    for number, line in enumerate(filter(str.strip, text.split("\n")), 1):
        try:
            yield json.loads(line)["text"]
        except (ValueError, KeyError, TypeError):
            raise FileError(f'[{path}] line {number} is no {{"text": ...}}: {line[:40]}') from None


class _Recorder:
    """Stands for a layer: keeps what the model calls it with, and changes nothing."""

    def __init__(self):
        self.calls = []

    def __call__(self, hidden, *arguments, **keywords):
        self.calls.append((hidden, arguments, keywords))
        return hidden


def _recorded(folder, model, name, layers, batches):
    """The calls of each layer, one a batch, and the inputs of the first."""
    base, path = model, ""
    for part in name.split(".")[:-1]:
        base, path = base.get_submodule(part), f"{path}{part}."
    inside = name.rpartition(".")[2] + "."
    for child, module in base.named_children():
        if not inside.startswith(f"{child}."):
            fill(module, path + child, folder)
    recorders = [_Recorder() for _ in layers]
    for layer, recorder in zip(layers, recorders, strict=True):
        layer.forward = recorder
    with torch.no_grad():
        for batch in batches:
            base(input_ids=batch, use_cache=False)
    for layer in layers:
        del layer.forward
    for child, module in base.named_children():
        if not inside.startswith(f"{child}."):
            empty(module)
    first = [hidden for hidden, _, _ in recorders[0].calls]
    return [[call[1:] for call in recorder.calls] for recorder in recorders], first


def _run(layer, hidden, calls):
    """The layer's outputs for all batches."""
    made = []
    with torch.no_grad():
        for x, (arguments, keywords) in zip(hidden, calls, strict=True):
            y = layer(x, *arguments, **keywords)
            made.append(y[0] if isinstance(y, tuple) else y)
    return made


def feeding_back(ids, damping=gptq.DAMPING):
    """A method of `quantize_folder`: errors are fed back, for the inputs that token ids of windows_of make.

    The inputs of a layer are those that the layers before it, in codes, give."""

    def method(folder, model, formats):
        name, layers = decoder_layers(model)
        calls, hidden = _recorded(folder, model, name, layers, ids)
        outside = {each: f for each, f in formats.items() if not each.startswith(name + ".")}
        yield from rounded(folder, outside)
        for number, layer in enumerate(layers):
            prefix = f"{name}.{number}"
            fill(layer, prefix, folder)
            inside = {n: f for n, f in formats.items() if n.startswith(prefix + ".")}
            yield from _layer(layer, prefix, inside, hidden, calls[number], damping)
            hidden = _run(layer, hidden, calls[number])
            empty(layer)

    return method


def _layer(layer, prefix, formats, hidden, calls, damping):
    """Yields the Codes of a layer's units, and puts their values into it."""
    module_of = {name: layer.get_submodule(name.removeprefix(prefix + ".")) for name in formats}
    parts = units(formats)
    hessians = {
        unit[0]: gptq.Hessian(module_of[unit[0]].in_features) for unit in parts
    }  # a unit has one input
    hooks = [
        module_of[name].register_forward_pre_hook(lambda _, inputs, h=h: h.add(inputs[0]))
        for name, h in hessians.items()
    ]
    _run(layer, hidden, calls)
    for hook in hooks:
        hook.remove()
    for unit in parts:
        for format in dict.fromkeys(formats[name] for name in unit):
            weights = {n: module_of[n].weight.detach() for n in unit if formats[n] == format}
            made = gptq.encode_layers(format, weights, hessians[unit[0]].matrix, damping)
            for name, codes in made.items():
                module_of[name].weight.data = codes.values
            yield made
