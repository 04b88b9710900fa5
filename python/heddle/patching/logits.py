"""Logits that are made when somebody reads them. In a step of training nobody does: the loss is made of the
head's input and weight, a part of the logits at a time."""

import torch
from torch.utils._pytree import tree_map

from heddle.errors import InvalidArgument, Unsupported
from heddle.patching import classes, fits
from heddle.patching.classes import CALLS
from heddle.patching.kinds import Kind

LEAST = 1 << 20  # logits on a CPU: for fewer, torch is as fast (bench/patch.py)
_T = torch.Tensor
# Read of the stand-in itself: nothing is made for them.
_FACTS = {
    getattr(_T, name).__get__ for name in ("shape", "dtype", "device", "ndim", "layout", "is_cuda", "is_cpu")
} | {_T.size, _T.dim, _T.ndimension, _T.numel, _T.nelement, _T.element_size, _T.__len__, _T.__hash__}
_FACTS |= {_T.is_floating_point, _T.is_complex, _T.get_device, torch.is_floating_point, torch.numel}
_DIVIDES = {_T.div, _T.true_divide, _T.__truediv__, torch.div, torch.true_divide}
_MULTIPLIES = {_T.mul, _T.multiply, _T.__mul__, _T.__rmul__, torch.mul, torch.multiply}
_TANH = {_T.tanh, torch.tanh}


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_step(func, args):
    """The function of logits that a call is, as (name, number); None for a call that needs the logits."""
    if func in _TANH and len(args) == 1:
        return "tanh", 0
    if len(args) == 2 and _is_number(args[1]):
        if func in _DIVIDES:
            return "divide", args[1]
        if func in _MULTIPLIES:
            return "multiply", args[1]
    return None


_STEPS = {
    "divide": lambda logits, number: logits / number,
    "multiply": lambda logits, number: logits * number,
    "tanh": lambda logits, _: logits.tanh(),
    "float": lambda logits, _: logits.float(),
}


class Deferred(torch.Tensor):
    """x [..., K] times weight [V, K], and what the model does with its logits: a soft cap, a factor, float32.
    Every other use makes the logits, as a tensor of torch with its gradient, and goes on with that."""

    @staticmethod
    def __new__(cls, x, weight, dtype, steps=()):
        shape = (*x.shape[:-1], weight.shape[0])
        kept = torch.float32 if ("float", 0) in steps else dtype
        made = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=kept, device=x.device)
        made._heddle = {
            "x": x,
            "weight": weight,
            "dtype": dtype,
            "steps": steps,
            "versions": (x._version, weight._version),
        }
        return made

    @classmethod
    def __torch_function__(cls, func, _, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _FACTS:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        first = args[0] if args else None
        if isinstance(first, Deferred) and not kwargs and not first.is_made:
            if func is _T.contiguous and len(args) == 1:
                return first
            is_float = func is _T.float or (func is _T.to and args[1:] == (torch.float32,))
            step = ("float", 0) if is_float else _as_step(func, args)
            if step == ("float", 0) and first.dtype == torch.float32:
                return first
            if step:
                return first.after(step)
        args, kwargs = tree_map(made, (args, kwargs))
        return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, *_):
        # A function in C++ of others, which has not asked for the logits: their gradient would be lost.
        raise Unsupported(f"[patch] {func} of logits that are not made; patch with cross_entropy=False")

    @property
    def is_made(self):
        """True where somebody has read the logits."""
        return "logits" in self._heddle

    def after(self, step):
        """The logits after one more step."""
        own = self._heddle
        return Deferred(own["x"], own["weight"], own["dtype"], (*own["steps"], step))

    def make(self):
        """The logits. They are made once with a gradient, and once for those who read them without."""
        own = self._heddle
        name = "logits" if torch.is_grad_enabled() or self.is_made else "read"
        if name not in own:
            x, weight = own["x"], own["weight"]
            if (x._version, weight._version) != own["versions"]:
                raise InvalidArgument(
                    "[patch] the logits are read after the head's weights or input changed; read them before"
                    " optimizer.step(), or patch with cross_entropy=False"
                )
            with torch.autocast(x.device.type, enabled=False):
                logits = torch.nn.functional.linear(x.to(own["dtype"]), weight.to(own["dtype"]))
            for step, number in own["steps"]:
                logits = _STEPS[step](logits, number)
            own[name] = logits
        return own[name]

    def operands(self):
        """(x, weight, softcap) of the loss; None where it needs the logits themselves."""
        own = self._heddle
        steps = [step for step in own["steps"] if step[0] != "float"]
        x, weight, softcap = own["x"].to(own["dtype"]), own["weight"].to(own["dtype"]), 0.0
        match steps:
            case []:
                pass
            case [("divide", cap), ("tanh", _), ("multiply", again)] if cap == again and cap > 0:
                softcap = float(cap)
            case [("divide" | "multiply" as name, number)] if _is_power_of_two(number):
                x = _STEPS[name](x, number)  # exact, as it is of the logits
            case _:
                return None
        return x, weight, softcap


def _is_power_of_two(number):
    return number > 0 and float(number).hex().split("p")[0] == "0x1.0000000000000"


def made(value):
    """The logits where `value` is deferred ones; else `value`."""
    return value.make() if isinstance(value, Deferred) else value


class Head(Kind):
    """A Linear whose product nobody needs before the loss."""

    def __init__(self):
        dtypes = (torch.float32, torch.bfloat16)
        sizes = {"least": LEAST, "least_training": LEAST, "training_dtypes": dtypes}
        super().__init__("head", "head", "heddle linear_cross_entropy", **sizes)

    def reason(self, module, x):
        """Returns why the logits are made at once, or ""."""
        weight = module.weight
        if module._forward_hooks or module._forward_pre_hooks or "_hf_hook" in module.__dict__:
            return "the head is watched by hooks"
        if reason := fits.tensors(x) or fits.tensors(weight):
            return reason
        if fits.transformed():
            return fits.IN_TRANSFORM
        if not torch.is_autocast_enabled(x.device.type) and x.dtype != weight.dtype:
            return fits.same_dtype(x, weight)
        if x.is_cpu and x.numel() // x.shape[-1] * weight.shape[0] < self.least_training:
            return "torch is as fast for so few logits"
        return ""

    def members(self, original):
        own, reason = original.forward, self.reason

        def forward(self, input):
            if torch.compiler.is_compiling() or original.forward is not own or CALLS not in self.__dict__:
                return original.forward(self, input)
            if not torch.is_grad_enabled() or reason(self, input):
                return own(self, input)
            autocast = torch.is_autocast_enabled(input.device.type)
            dtype = torch.get_autocast_dtype(input.device.type) if autocast else input.dtype
            return Deferred(input, self.weight, dtype)

        return {"forward": forward}


HEAD = classes.register(Head())


def head_of(root):
    """(head, reason): the module that makes a model's logits, and why it makes them at once, or ""."""
    head = getattr(root, "get_output_embeddings", lambda: None)()
    if head is None:
        return None, f"{type(root).__name__} names no head"
    cls = classes.original_of(head) or type(head)
    if cls is not torch.nn.Linear:
        return head, f"the head is a {classes.class_name(cls)}"
    if head.bias is not None:
        return head, "the head has a bias"
    if owner := classes.foreign(head):
        return head, f"{owner} has replaced the head's forward"
    return head, ""
