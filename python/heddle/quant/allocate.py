"""A format for each layer, so that a model of a given size loses least (docs/quantised.md).

The loss's rise is predicted for each layer and format from a text: `fisher` is half the sum over weights of
the squared error times the squared gradient;
`output` the squared error of the layer's outputs, over the outputs' squares. A
knapsack over bytes chooses, and a text that the scores did not see decides.

Two formats differ by less than the loss of a short text tells. So the divergence of the model's distributions
from the original's decides: the mean of the rise over texts that the original would write.
"""

import collections
from dataclasses import dataclass

import torch

from heddle.errors import InvalidArgument, named
from heddle.progress import teller
from heddle.quant import gptq
from heddle.quant.formats import format_named
from heddle.quant.knapsack import choose
from heddle.quant.linear import encode_unit
from heddle.quant.select import SKIP, linear_names, units

CANDIDATES = ("int4", "int4/64", "int4/32", "int4/16", "mxfp4", "nvfp4", "fp8", "int8")
SCORES = ("fisher", "output")
HELD = 4  # one window in so many decides
SHAPE_BYTES = 16  # a matrix's shape, which a budget in bits a weight does not count


@dataclass
class Allocation:
    """Formats by the names of layers, and their effect on the held-out text.

    `bytes`: of these layers, within `budget`; `weights`: their number. `divergences` and `losses`, in nats a
    token, are of `mixed`, and of each format that alone is within the budget; `losses` also of `original`.
    `uniform` names the best of those formats. `is_uniform`: the mixture was not better, so `formats` is that
    one's."""

    formats: dict
    bytes: int
    budget: int
    weights: int
    divergences: dict
    losses: dict
    uniform: str
    is_uniform: bool

    def __str__(self):
        bits, mixed = f"{self.bytes * 8 / self.weights:.2f} bits a weight", self.divergences["mixed"]
        other = self.divergences.get(self.uniform)
        if self.is_uniform:
            return (
                f"uniform {self.uniform}, {bits}: no mixture was better on the held-out text; its divergence"
                f" is {other:.6f}, the mixture's {mixed:.6f}"
            )
        counts = collections.Counter(str(format) for format in self.formats.values())
        kinds = ", ".join(f"{count} layers in {name}" for name, count in sorted(counts.items()))
        text = f"{kinds}, {bits}: divergence {mixed:.6f} on the held-out text"
        return text + (f", in {self.uniform} alone {other:.6f}" if self.uniform else "")


class _Statistics:
    """The scores' statistics of layers on a text: squares of gradients, or inputs and squares of outputs."""

    def __init__(self, model, names, score):
        self.score, self.layers = score, {name: model.get_submodule(name) for name in names}
        self.squares = dict.fromkeys(names, 0.0)
        self.inputs = {}

    def run(self, model, windows):
        (self._run_backward if self.score == "fisher" else self._run_forward)(model, windows)

    def _run_forward(self, model, windows):
        self.inputs = {name: gptq.Hessian(layer.in_features) for name, layer in self.layers.items()}
        hooks = [layer.register_forward_hook(self._seen(name)) for name, layer in self.layers.items()]
        with torch.no_grad():
            for window in windows:
                model(input_ids=window)
        for hook in hooks:
            hook.remove()

    def _run_backward(self, model, windows):
        weights = {name: layer.weight for name, layer in self.layers.items()}
        before = {name: weight.requires_grad for name, weight in weights.items()}
        for weight in weights.values():
            weight.requires_grad_(True)
        for window in windows:
            loss = model(input_ids=window, labels=window).loss * (window.shape[1] - 1)
            gradients = torch.autograd.grad(loss, list(weights.values()))
            for name, gradient in zip(weights, gradients, strict=True):
                self.squares[name] = self.squares[name] + gradient.float().square()
        for name, weight in weights.items():
            weight.requires_grad_(before[name])

    def _seen(self, name):
        def hook(_, inputs, output):
            self.inputs[name].add(inputs[0])
            self.squares[name] += float(output.float().square().sum())

        return hook

    def cost(self, name, error):
        """The score of an error [rows, columns] of a layer's weight."""
        if self.score == "fisher":
            return float((self.squares[name] * error.square()).sum()) / 2
        return float(((error @ self.inputs[name].matrix) * error).sum()) / (self.squares[name] or 1.0)


class _Trial:
    """A model whose weights are replaced by values of formats, and put back."""

    def __init__(self, model, parts):
        self.model, self.parts, self.coded = model, parts, {}
        self.original = {n: model.get_submodule(n).weight.data for unit in parts for n in unit}

    def values(self, unit, format):
        """{name: values} of a unit, which are kept; None: as it is."""
        key = (unit[0], format)
        if key not in self.coded:
            layers = {name: self.original[name] for name in unit}
            coded = encode_unit(format, layers)[0] if format else {}
            self.coded[key] = {name: codes.values for name, codes in coded.items()} or layers
        return self.coded[key]

    def bytes(self, unit, format):
        weights = [self.original[name] for name in unit]
        if format is None:
            return sum(weight.numel() * weight.element_size() for weight in weights)
        return sum(format.bytes(weight.shape, weight.dtype) for weight in weights)

    def put(self, formats):
        """Gives the layers the values of a format for each unit."""
        for unit, format in zip(self.parts, formats, strict=True):
            for name, values in self.values(unit, format).items():
                self.model.get_submodule(name).weight.data = values

    def compare(self, formats, windows):
        """(divergence from the original, loss, the original's loss) in nats a token."""
        sums, tokens, original = torch.zeros(3, dtype=torch.float64), 0, [None] * len(self.parts)
        try:
            for window in windows:
                self.put(original)
                wanted = self._log_probabilities(window)
                self.put(formats)
                got, next_ids = self._log_probabilities(window), window[:, 1:, None].to(wanted.device)
                divergence = (wanted.exp() * (wanted - got)).sum()
                losses = [-each.gather(-1, next_ids).sum() for each in (got, wanted)]
                sums += torch.stack([divergence, *losses]).double().cpu()
                tokens += next_ids.numel()
        finally:
            self.put(original)
        return (sums / tokens).tolist()

    def _log_probabilities(self, window):
        with torch.no_grad():
            return self.model(input_ids=window).logits[:, :-1].float().log_softmax(-1)


def _rows(data):
    return [row[None] for batch in ([data] if isinstance(data, torch.Tensor) else data) for row in batch]


def _fits(format, layers):
    try:
        for name, weight in layers.items():
            format.check(name, weight.shape)
    except InvalidArgument:
        return False
    return True


@named
def allocate_bits(
    model, budget, data, *, formats=CANDIDATES, score="fisher", skip=SKIP, held_out=None, progress=None
):
    """Chooses a format for each nn.Linear of a model of transformers, so that all of them together take at
    most `budget` bits a weight, with their scales; returns an Allocation, whose `formats` quantize_ takes.

    `data`: token ids, [windows, tokens] or a list of such tensors; a quarter of them decides, or `held_out`.
    `formats`: names of those that a layer may have, besides staying as it is. `score`: fisher, which needs a
    backward pass for each window, or output. Projections that engines multiply as one get one format. The
    model stays as it is. Memory: the model, its squared gradients or inputs, and its values in each format.

    If the mixture is not better on the held-out text than the best of the formats alone, the answer is that
    format for all, and says so. Raises InvalidArgument where no format is within the budget."""
    if score not in SCORES:
        raise InvalidArgument(f"[allocate_bits] score is {score!r}; must be {' or '.join(SCORES)}")
    names, windows = linear_names(model, skip), _rows(data)
    if held_out is None and len(windows) < 2:
        raise InvalidArgument(
            "[allocate_bits] the text is one window; must be several, of which a quarter decides"
        )
    held = windows[::HELD] if held_out is None else _rows(held_out)
    scored = windows if held_out is not None else [row for n, row in enumerate(windows) if n % HELD]
    parts, tell = units(names), teller(progress)
    trial, statistics = _Trial(model, parts), _Statistics(model, names, score)
    weights = sum(weight.numel() for weight in trial.original.values())
    limit = int(budget * weights / 8) + SHAPE_BYTES * len(names)
    every = [*(format_named(name) for name in dict.fromkeys(formats)), None]
    was_training = model.training
    model.eval()
    try:
        statistics.run(model, scored)
        options = []
        for number, unit in enumerate(parts, 1):
            options.append(_options(trial, statistics, unit, every))
            if tell:
                tell("scoring", "units", number, len(parts), f"scored {number} of {len(parts)} units")
        return _decide(trial, options, limit, weights, held)
    finally:
        model.train(was_training)


def _options(trial, statistics, unit, every):
    """{format: (bytes, cost)} of a unit."""
    found, layers = {}, {name: trial.original[name] for name in unit}
    for format in every:
        if format and not _fits(format, layers):
            continue
        values = trial.values(unit, format)
        cost = sum(statistics.cost(n, values[n].float() - each.float()) for n, each in layers.items())
        found[format] = (trial.bytes(unit, format), cost)
    return found


def _decide(trial, options, limit, weights, held):
    chosen = choose([list(each.values()) for each in options], limit)
    if chosen is None:
        least = sum(min(size for size, _ in each.values()) for each in options) * 8 / weights
        raise InvalidArgument(
            f"[allocate_bits] the budget is {limit * 8 / weights:.2f} bits a weight; the smallest formats"
            f" take {least:.2f}"
        )
    mixed = [list(each)[index] for each, index in zip(options, chosen, strict=True)]
    common = [format for format in options[0] if all(format in each for each in options)]
    alone = [format for format in common if sum(each[format][0] for each in options) <= limit]
    divergences, losses = {}, {}
    divergences["mixed"], losses["mixed"], losses["original"] = trial.compare(mixed, held)
    for format in alone:
        divergences[str(format)], losses[str(format)], _ = trial.compare([format] * len(options), held)
    uniform = min(alone, key=lambda format: divergences[str(format)], default=None)
    is_uniform = bool(alone) and divergences[str(uniform)] <= divergences["mixed"]
    taken = [uniform] * len(options) if is_uniform else mixed
    return Allocation(
        formats={n: f for unit, f in zip(trial.parts, taken, strict=True) for n in unit if f},
        bytes=sum(each[format][0] for each, format in zip(options, taken, strict=True)),
        budget=limit,
        weights=weights,
        divergences=divergences,
        losses=losses,
        uniform=str(uniform) if alone else "",
        is_uniform=is_uniform,
    )
