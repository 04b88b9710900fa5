"""nn.Linear with two zeros in each four adjacent columns of its weight, which stay zero in training.

Without gradients, a GPU multiplies the compressed weight by torch's kernels where they are faster.
"""

import collections
import weakref

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.weak import WeakIdKeyDictionary

from heddle.errors import InvalidArgument
from heddle.quant import sparse_gain

_LAYERS = WeakIdKeyDictionary()  # {weight: a weak reference to its SparseLinear}
_HOOK = []


def kept(scores):
    """True at the two largest of each four adjacent scores of a row [rows, columns]; of equal ones, at the
    first."""
    groups = scores.unflatten(-1, (-1, 4))
    first = groups.argsort(dim=-1, descending=True, stable=True)[..., :2]
    return torch.zeros_like(groups, dtype=torch.bool).scatter_(-1, first, True).flatten(-2)


def first_beyond(weight):
    """(row, column) of the first group of four columns with more than two that are not zero, or None."""
    wrong = ((weight != 0).unflatten(-1, (-1, 4)).sum(-1) > 2).nonzero()
    return (int(wrong[0][0]), int(wrong[0][1]) * 4) if len(wrong) else None


@torch.no_grad()
def _zero_again(optimizer, *_):
    """After a step: a momentum from before the pruning, or an update that mixes columns, moved zeros."""
    for group in optimizer.param_groups:
        for param in group["params"]:
            layer = _LAYERS[param]() if param in _LAYERS else None
            if layer is not None:
                param.masked_fill_(~layer.mask_2_4, 0)


class _Frozen(torch.autograd.Function):
    """The weight itself; its gradient is zero where the mask is False."""

    @staticmethod
    def forward(ctx, weight, mask):
        ctx.save_for_backward(mask)
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, grad):
        return grad.masked_fill(~ctx.saved_tensors[0], 0), None


class SparseLinear(nn.Linear):
    """nn.Linear whose weight is zero where `mask_2_4` [out_features, in_features] is False, and stays so.

    Gradients are zero there, and a step of any torch.optim.Optimizer leaves zeros. The mask is a buffer that
    state_dict() has not. load_state_dict() takes weights that are 2:4, with the mask that they have.
    """

    @classmethod
    def from_linear(cls, linear, mask):
        """Makes a layer a SparseLinear in place: hooks, names and parameters stay."""
        linear.__class__ = cls
        linear.register_buffer("mask_2_4", mask, persistent=False)
        linear.sparse_calls, linear.compressed = collections.Counter(), None
        linear._watch()
        return linear

    def _watch(self):
        """Has steps of optimizers leave the zeros of the weight that the layer has now."""
        _LAYERS[self.weight] = weakref.ref(self)
        if not _HOOK:
            _HOOK.append(register_optimizer_step_post_hook(_zero_again))

    def why_not(self, x):
        """The reason why a call of x [..., K] multiplies the dense matrix; "" where it does not."""
        if x.device.type != "cuda" or torch.compiler.is_compiling():
            return "torch multiplies compressed weights on a GPU, outside of torch.compile"
        if torch.is_grad_enabled() and (self.weight.requires_grad or x.requires_grad):
            return "with gradients the dense matrix is multiplied"
        dtype = self._dtype_of(x)
        if dtype not in (torch.bfloat16, torch.float16):
            return f"x is {dtype}; must be torch.bfloat16 or torch.float16"
        return sparse_gain.why_slower(x.numel() // max(1, self.in_features), *self.weight.shape)

    def forward(self, x):
        reason = self.why_not(x)
        if not torch.compiler.is_compiling():
            self.sparse_calls[reason] += 1
        if not reason:
            return nn.functional.linear(x, self._compressed(self._dtype_of(x)), self.bias)
        return nn.functional.linear(x, self.trained_weight(), self.bias)

    def trained_weight(self):
        """The weight, whose gradient is zero at its zeros."""
        weight = self.weight
        if not (torch.is_grad_enabled() and weight.requires_grad):
            return weight
        if not torch.compiler.is_compiling():
            self._watch()
        return _Frozen.apply(weight, self.mask_2_4)

    @staticmethod
    def _dtype_of(x):
        kind = x.device.type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype

    def _compressed(self, dtype):
        """The weight in torch's compressed form, made again where it has changed."""
        weight = self.weight.detach()
        key = (weight.data_ptr(), 0 if weight.is_inference() else weight._version, dtype)
        if self.compressed is None or self.compressed[0] != key:
            if (at := first_beyond(weight)) is not None:
                raise InvalidArgument(_beyond("SparseLinear", weight, at))
            self.compressed = key, torch.sparse.to_sparse_semi_structured(weight.to(dtype))
        return self.compressed[1]

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        given = state_dict.get(f"{prefix}weight")
        fits = given is not None and given.shape == self.weight.shape
        if fits and given.device.type != "meta" and (given * ~self.mask_2_4.to(given.device)).any():
            if (at := first_beyond(given)) is not None:
                rest[-1].append(_beyond(f"{prefix}weight", given, at))
                return
            self.mask_2_4.copy_(kept(given.abs()))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __getstate__(self):
        return {**self.__dict__, "compressed": None}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._watch()

    def extra_repr(self):
        return f"{super().extra_repr()}, 2:4"


def _beyond(name, weight, at):
    row, column = at
    values = weight[row, column : column + 4].tolist()
    return (
        f"[{name}] has {values} at row {row}, columns {column} to {column + 3}; at most two of four may be"
        " other than zero: revert_2_4 the model, or prune it again"
    )


def revert_2_4(model):
    """Makes pruned layers nn.Linear again, whose zeros may train; returns the model."""
    for module in model.modules():
        if type(module) is SparseLinear:
            _LAYERS.pop(module.weight, None)
            del module.mask_2_4
            del module.__dict__["sparse_calls"], module.__dict__["compressed"]
            module.__class__ = nn.Linear
    return model


def sparse_paths(model):
    """Yields (name, class, path, reason, from which sizes it pays, calls) of layers, for heddle.explain."""
    for name, module in model.named_modules():
        if type(module) is not SparseLinear:
            continue
        pays = sparse_gain.pays(*module.weight.shape) if module.weight.device.type == "cuda" else ""
        for reason, calls in (module.sparse_calls or collections.Counter({"": 0})).items():
            path = "torch, dense with frozen zeros" if reason else "torch, 2:4 compressed"
            yield name, "SparseLinear", path, reason, pays, calls
