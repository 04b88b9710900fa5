"""2:4 sparsity: of each four adjacent columns of a row of a weight, two are zero (docs/quantised.md).

Magnitude keeps the largest weights; Wanda those whose products with the inputs are the largest (Sun et al.,
2023); SparseGPT (Frantar and Alistarh, 2023) those without which the outputs change least, after the weights
that stay make up for them. Here SparseGPT tries all six pairs of a group, each with its best update, where
the paper compares single weights.
"""

import itertools
import re

import torch
from torch import nn

from heddle.errors import InvalidArgument, named
from heddle.progress import teller
from heddle.quant import gptq
from heddle.quant.formats import require_finite
from heddle.quant.select import SKIP, linear_names
from heddle.quant.sparse_linear import SparseLinear, kept

METHODS = ("magnitude", "wanda", "sparsegpt")
_PAIRS = torch.tensor(list(itertools.combinations(range(4), 2)))  # the columns that become zero
_BLOCK = re.compile(r"(?:.*\.)?\d+(?=\.|$)")


def by_magnitude(weight):
    """(values, mask) of a weight [rows, columns]."""
    mask = kept(weight.abs())
    return weight.masked_fill(~mask, 0), mask


def by_wanda(weight, hessian):
    """(values, mask) for inputs X with that X^T X [columns, columns]: scores are |w| times the norm of X."""
    mask = kept(weight.abs().float() * hessian.diagonal().sqrt())
    return weight.masked_fill(~mask, 0), mask


def by_sparsegpt(weight, hessian, damping=gptq.DAMPING):
    """(values, mask) for inputs X with that X^T X. For each group of four columns in turn, the pair becomes
    zero that costs least in |X (W - V)^T|^2 when the other two and all later columns take their best values.
    """
    feedback, columns = gptq.feedback_of(hessian, damping), weight.shape[1]
    pairs = _PAIRS.to(weight.device)
    left = weight.double().clone()
    mask = torch.ones_like(weight, dtype=torch.bool)
    for begin in range(0, columns, gptq.BLOCK):
        end = min(begin + gptq.BLOCK, columns)
        errors = torch.empty_like(left[:, begin:end])
        for at in range(begin, end, 4):
            group = slice(at, at + 4)
            corner = feedback[group, group]
            inverse = corner.T @ corner  # four rows of the inverse Hessian of these and all later columns
            of_pairs = torch.linalg.inv(inverse[pairs[:, :, None], pairs[:, None, :]])  # [6, 2, 2]
            weights = left[:, group][:, pairs]  # [rows, 6, 2]
            solved = torch.einsum("rpi,pij->rpj", weights, of_pairs)
            best = (weights * solved).sum(-1).argmin(-1)
            chosen = solved[torch.arange(len(best), device=best.device), best]  # [rows, 2]
            zeros = pairs[best]
            error = torch.zeros_like(left[:, group]).scatter_(1, zeros, chosen) @ corner.T
            left[:, at:end] -= error @ feedback[group, at:end]
            left[:, group].scatter_(1, zeros, 0.0)
            mask[:, group].scatter_(1, zeros, False)
            errors[:, at - begin : at - begin + 4] = error
        left[:, end:] -= errors @ feedback[begin:end, end:]
    return left.to(weight.dtype), mask


def _blocks(names):
    """Lists of names that are pruned for the same inputs: of one numbered block of the model."""
    made = {}
    for name in names:
        found = _BLOCK.match(name)
        made.setdefault(found[0] if found else "", []).append(name)
    return list(made.values())


def _hessians(model, names, data):
    """{name: X^T X} of layers on the data, as the model is now."""
    layers = {name: model.get_submodule(name) for name in names}
    found = {n: gptq.Hessian(each.in_features, each.weight.device) for n, each in layers.items()}
    hooks = [
        layer.register_forward_pre_hook(lambda _, inputs, h=found[name]: h.add(inputs[0]))
        for name, layer in layers.items()
    ]
    try:
        for batch in data:
            if isinstance(batch, dict):
                model(**batch)
            else:
                model(batch)
    finally:
        for hook in hooks:
            hook.remove()
    for name, each in found.items():
        if each.rows == 0:
            raise InvalidArgument(
                f"[prune_2_4_] {name} is not called with the data; give other data, or skip it"
            )
    return {name: each.matrix for name, each in found.items()}


def _checked(model, data, method, skip):
    """(names of layers, batches): refuses what cannot be pruned, before anything changes."""
    if not isinstance(model, nn.Module):
        raise InvalidArgument(f"[prune_2_4_] the model is {type(model).__name__}; must be a torch.nn.Module")
    if method not in METHODS:
        raise InvalidArgument(f"[prune_2_4_] method is {method!r}; must be one of {', '.join(METHODS)}")
    batches = [] if data is None else [data] if isinstance(data, torch.Tensor | dict) else list(data)
    if method == "magnitude" and batches:
        raise InvalidArgument("[prune_2_4_] method='magnitude' reads no data; take wanda or sparsegpt")
    if method != "magnitude" and not batches:
        raise InvalidArgument(
            f"[prune_2_4_] method={method!r} needs data: batches that the model is called with"
        )
    names = linear_names(model, skip, (nn.Linear, SparseLinear), "prune_2_4_")
    for name in names:
        weight = model.get_submodule(name).weight
        require_finite(name, weight.detach())
        if weight.shape[1] % 4:
            raise InvalidArgument(
                f"[{name}] has {weight.shape[1]} columns; must be a multiple of 4: name it in skip"
            )
    return names, batches


@named
def prune_2_4_(model, data=None, *, method="magnitude", skip=SKIP, progress=None):
    """Makes two of each four adjacent columns of the weights of a model's nn.Linear layers zero, in place;
    returns the model. The zeros stay in training, and `state_dict()` has the names that it had.

    method: "magnitude"; "wanda" or "sparsegpt", which want `data`: batches that the model is called with, a
    tensor or a dict of arguments each. Blocks are pruned in turn, each for inputs that those before it give
    as they are then; the data are run once a block. sparsegpt keeps columns^2 floats for each layer of a
    block. `skip`: as in quantize_.

    A layer becomes a SparseLinear, which is an nn.Linear: heddle.explain says which calls multiply the
    compressed weight. A model that was pruned and saved is pruned again, by magnitude, after it was loaded:
    no weight changes, and its zeros are frozen again. `revert_2_4(model)` frees them.

    Raises InvalidArgument where 4 does not divide the columns, a weight is not finite or data is missing, and
    Unsupported where there is no nn.Linear; then the model is as it was.
    """
    names, batches = _checked(model, data, method, skip)
    was_training, tell, done = model.training, teller(progress), 0
    model.eval()
    try:
        with torch.no_grad():
            for block in _blocks(names):
                hessians = _hessians(model, block, batches) if batches else {}
                for name in block:
                    layer = model.get_submodule(name)
                    if method == "magnitude":
                        values, mask = by_magnitude(layer.weight)
                    else:
                        prune = by_wanda if method == "wanda" else by_sparsegpt
                        values, mask = prune(layer.weight, hessians[name])
                    layer.weight.copy_(values)
                    SparseLinear.from_linear(layer, mask)
                done += len(block)
                if tell:
                    tell("pruning", "layers", done, len(names), f"pruned {done} of {len(names)} layers")
    finally:
        model.train(was_training)
    return model


class StructuredSparsity24:
    """prune_2_4_ by magnitude, as KernelPyTorch names it. hardware_optimized: accepted; torch's kernels run
    where they are faster."""

    def __init__(self, sparsity_ratio=0.5, block_size=4, magnitude_based=True, hardware_optimized=True):
        if (sparsity_ratio, block_size, magnitude_based) != (0.5, 4, True):
            raise InvalidArgument(
                f"[StructuredSparsity24] sparsity_ratio is {sparsity_ratio}, block_size {block_size} and"
                f" magnitude_based {magnitude_based}; must be 0.5, 4 and True: prune_2_4_ has more"
            )

    def apply_to_model(self, model):
        return prune_2_4_(model)
