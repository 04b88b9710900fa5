"""A step of some elements: on the host, in one pass over all of them, and on the device where they lie. Both
give the same bits."""

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
    """A run of a parameter's elements, with tensors of one device whose elements lie side by side: all of a
    parameter, in its shape, or a flat part. Its begin is that of a block."""

    param: torch.Tensor
    grad: torch.Tensor
    state: dict  # without the step
    first: int  # the number of the first element in the parameter
    seed: int

    def __len__(self):
        return self.param.numel()

    def flat(self):
        """Returns the same elements in flat tensors."""
        state = {
            name: each if name.endswith("_scale") else states.flat(each) for name, each in self.state.items()
        }
        return Part(states.flat(self.param), states.flat(self.grad), state, self.first, self.seed)

    def cut(self, begin, end):
        """Elements begin to end of a flat part; `begin` is a multiple of a block."""
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
    for kind, same in _by_kind(parts).items():
        tensors = [_addresses(part) for part in same]
        _heddle.adamw(tensors, kind, _of_all(numbers), numbers.step, threads or torch.get_num_threads())


def on_device(parts, numbers):
    """Steps parts where they lie: those of each device and kind in one launch of a GPU; by ops on a CPU."""
    devices = {}
    for part in parts:
        if len(part):
            devices.setdefault(part.param.device, []).append(part)
    for device, those in devices.items():
        if device.type != "cuda":
            for part in those:
                _by_ops(part.flat(), numbers)
            continue
        with torch.cuda.device(device):
            place = device.index, torch.cuda.current_stream().cuda_stream
            for kind, same in _by_kind(those).items():
                _in_one_launch(same, kind, numbers, device, place)


def _in_one_launch(parts, kind, numbers, device, place):
    """Steps parts of one kind on a GPU. `place`: its number and a stream of it."""
    rows, chunks = [], 0
    for part in parts:
        rows.append((*_addresses(part), chunks))
        chunks += -(-len(part) // _heddle.adamw_chunk)
    table = torch.tensor(rows, dtype=torch.int64).to(device)
    codes = states.codes(device).data_ptr() if kind[2] == states.KINDS[torch.uint8] else 0
    tensors = table.data_ptr(), len(rows), chunks, codes
    _heddle.adamw_on_gpu(place, tensors, kind, _of_all(numbers), numbers.step)


def _by_kind(parts):
    kinds = {}
    for part in parts:
        kinds.setdefault(part.kind(), []).append(part)
    return kinds


def _of_all(numbers):
    return numbers.lr, numbers.beta1, numbers.beta2, numbers.eps, numbers.weight_decay, numbers.grad_scale


def _addresses(part):
    def at(name):
        return part.state[name].data_ptr() if name in part.state else 0

    names = ("exp_avg", "exp_avg_sq", "exp_avg_scale", "exp_avg_sq_scale")
    return (
        *(part.param.data_ptr(), at("residual"), part.grad.data_ptr(), *map(at, names)),
        *(part.first, len(part), part.seed),
    )


def _by_ops(part, numbers):
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
