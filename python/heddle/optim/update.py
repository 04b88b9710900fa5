"""A step of some elements: on the host, in one pass over all of them, and on the device where they lie, by
the op `adamw`. Both give the same bits."""

from dataclasses import dataclass

import torch

import heddle.ops
from heddle import _heddle
from heddle.optim import states


@dataclass(frozen=True)
class Numbers:
    """The numbers that the elements of a call share."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    grad_scale: float
    step: int


@dataclass
class Part:
    """A run of a parameter's elements, with flat tensors of one device. Its begin is that of a block."""

    param: torch.Tensor
    grad: torch.Tensor
    state: dict  # flat tensors, without the step
    first: int  # the number of the first element in the parameter
    seed: int

    def __len__(self):
        return len(self.param)

    def cut(self, begin, end):
        """Elements begin to end; `begin` is a multiple of a block."""
        blocks = slice(begin // states.BLOCK, -(-end // states.BLOCK))
        state = {
            name: each[blocks] if name.endswith("_scale") else each[begin:end]
            for name, each in self.state.items()
        }
        return Part(self.param[begin:end], self.grad[begin:end], state, self.first + begin, self.seed)

    def kind(self):
        is_narrow = tuple(each.dtype == torch.bfloat16 for each in (self.param, self.grad))
        return (*is_narrow, states.KINDS[self.state["exp_avg"].dtype])


def on_host(parts, numbers, threads=None):
    """Steps parts whose tensors all lie on the host."""
    kinds = {}
    for part in parts:
        kinds.setdefault(part.kind(), []).append(part)
    of_all = numbers.lr, numbers.beta1, numbers.beta2, numbers.eps, numbers.weight_decay, numbers.grad_scale
    for kind, same in kinds.items():
        tensors = [_addresses(part) for part in same]
        _heddle.adamw(tensors, kind, of_all, numbers.step, threads or torch.get_num_threads())


def _addresses(part):
    def at(name):
        return part.state[name].data_ptr() if name in part.state else 0

    names = ("exp_avg", "exp_avg_sq", "exp_avg_scale", "exp_avg_sq_scale")
    return (
        *(part.param.data_ptr(), at("residual"), part.grad.data_ptr(), *map(at, names)),
        *(part.first, len(part), part.seed),
    )


def on_device(part, numbers):
    """Steps a part by ops of its device."""
    param, state = part.param, part.state
    is_narrow = param.dtype == torch.bfloat16
    wide = states.joined(param, state["residual"]) if is_narrow else param
    means = [
        states.widened(state[name], state.get(f"{name}_scale"), signed)
        for name, signed in states.MEANS.items()
    ]
    heddle.ops.adamw(wide, part.grad, *means, out=(wide, *means), **vars(numbers))
    chance = None
    if state["exp_avg"].dtype == torch.bfloat16:
        chance = states.chances(part.seed, part.first, len(part), param.device)
    for (name, signed), mean, shift in zip(states.MEANS.items(), means, (0, 16), strict=True):
        bits = None if chance is None else chance >> shift & 0xFFFF
        if mean is not state[name]:
            states.narrow_(state[name], state.get(f"{name}_scale"), mean, signed, bits)
    if is_narrow:
        states.part_(param, state["residual"], wide)
