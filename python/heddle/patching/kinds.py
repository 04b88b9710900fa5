"""The stand-ins: what their forwards do instead, for which classes, and which calls they take.

Each one is tried against the class's own forward before it is used: a class that computes something else
under a known name, in another version of transformers, is left alone.
"""

import contextlib

import torch

import heddle.ops
from heddle.patching import classes, find, fits
from heddle.patching.classes import CALLS, class_name
from heddle.torch.gated_linear import GATED_LINEAR

# A stand-in is not in question while a compiler fuses the class's own operations and cannot count, where the
# class got another forward since, and in a module that is patched no more, whose forward someone has kept.
_is_compiling = torch.compiler.is_compiling
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _trains(module):
    """In training mode also without a gradient: what a checkpoint computes again is then the same."""
    return module.training or torch.is_grad_enabled()


class Kind:
    """A stand-in: its `part` of a model, the `path` that its calls take, and its members.

    On a CPU a call has at least `least` values, in training `least_training`, in one of `training_dtypes`:
    for fewer, torch is as fast. bench/patch.py compares both.
    """

    method = "forward"
    otherwise = "torch"  # the path of the other calls
    least_gpu_training = 0  # values of a call in training on a GPU

    def __init__(self, name, part, path, *, least, least_training, training_dtypes, dtypes=fits.FLOATS):
        self.name = name
        self.part = part
        self.path = path
        self.least = least
        self.least_training = least_training
        self.training_dtypes = training_dtypes
        self.dtypes = dtypes

    def slower(self, module, x):
        """Returns why torch is as fast for this call, or "" where it is not."""
        if not x.is_cpu:
            if x.numel() >= self.least_gpu_training or not _trains(module):
                return ""
            return "torch is as fast for so few values in training"
        if not _trains(module):
            if x.dtype not in self.dtypes:
                return f"torch is as fast in {fits.dtype_text(x.dtype)}"
            return "" if x.numel() >= self.least else "torch is as fast for so few values"
        if x.dtype not in self.training_dtypes:
            return f"torch is as fast in {fits.dtype_text(x.dtype)} in training"
        return "" if x.numel() >= self.least_training else "torch is as fast for so few values in training"

    def trial(self, module):
        """Returns why the stand-in of a module's class is not used, or "" where it computes what the class
        does."""
        return _compare(module, self.at_any_size())

    def at_any_size(self):
        """The kind for which no call without a gradient is too small."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, least=0, dtypes=fits.FLOATS, verdicts={})
        return made

    def after_put_on(self, module, root):
        """Returns what else a patched module of a model needs."""

    def after_take_off(self, module, root):
        """Returns what else is to be taken back."""

    def __reduce__(self):
        return (_kind, (self.name,))


def _kind(name):
    return classes._KINDS[name]


class RmsNorm(Kind):
    """x / sqrt(mean(x^2) + eps) * weight, or * (1 + weight) in f32 as Gemma has it."""

    def __init__(self, name, plus_one):
        dtypes = (torch.float32, torch.bfloat16)
        sizes = {"least": 0, "least_training": 1 << 17, "training_dtypes": dtypes}
        super().__init__(name, "norm", "heddle rms_norm", **sizes)
        self.plus_one = plus_one
        self.verdicts = fits.verdicts()

    def judge(self, x, weight):
        """Returns why the call is not for heddle, or "". The answer depends on the key of `forward` alone."""
        return fits.tensors(x, weight) or ("" if self.plus_one else fits.same_dtype(x, weight))

    def members(self, original):
        plus_one, verdicts, judge = self.plus_one, self.verdicts, self.judge
        slower = self.slower
        numbers = []  # the name of eps in this class
        own, rms_norm = original.forward, heddle.ops.rms_norm

        def forward(self, hidden_states):
            if _is_compiling() or original.forward is not own or CALLS not in self.__dict__:
                return original.forward(self, hidden_states)
            x = hidden_states
            reason = slower(self, x)  # first, since it is short where the call is
            if not reason:
                weight = self.weight
                key = (type(x), x.dtype, x.device, type(weight), weight.dtype, weight.device)
                reason = verdicts.get(key)
                if reason is None:
                    reason = verdicts[key] = judge(x, weight)
            if not reason and fits.transformed():
                reason = fits.IN_TRANSFORM
            calls = self.__dict__[CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            if reason:
                return own(self, x)
            if plus_one:
                weight = 1.0 + weight.float()
            if not numbers:
                numbers.append(find.number_of(self))
            return rms_norm(x, weight, eps=getattr(self, numbers[0]))

        return {"forward": forward}

    def example(self, module):
        return find.narrow(module, 16), torch.linspace(-2, 2, 48, dtype=torch.float32).view(3, 16)


class Activation(Kind):
    """A GELU by tanh: one kernel of torch, or many."""

    def __init__(self, name, *, one_kernel, **sizes):
        super().__init__(name, "mlp", "heddle activation", training_dtypes=(torch.float32,), **sizes)
        self.one_kernel = one_kernel
        self.verdicts = fits.verdicts()

    def judge(self, x):
        """Returns why the call is not for heddle, or "". The answer depends on the key of `forward` alone."""
        if self.one_kernel and not x.is_cpu:
            return "torch's gelu is one kernel too"
        return fits.tensors(x)

    def members(self, original):
        verdicts, judge, slower = self.verdicts, self.judge, self.slower
        own, activation = original.forward, heddle.ops.activation

        def forward(self, input):
            if _is_compiling() or original.forward is not own or CALLS not in self.__dict__:
                return original.forward(self, input)
            reason = slower(self, input)
            if not reason:
                key = (type(input), input.dtype, input.device)
                reason = verdicts.get(key)
                if reason is None:
                    reason = verdicts[key] = judge(input)
            if not reason:
                if fits.transformed():
                    reason = fits.IN_TRANSFORM
                elif torch.is_autocast_enabled(input.device.type):
                    reason = fits.IN_AUTOCAST
            calls = self.__dict__[CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            return own(self, input) if reason else activation(input, kind="gelu_tanh")

        return {"forward": forward}

    def example(self, module):
        x = torch.linspace(-6, 6, max(self.least, 64), dtype=torch.float32)
        return find.bare(module), x.view(4, -1)


class LayerNorm(Kind):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dimension; the bias may be missing."""

    least_gpu_training = 1 << 26  # torch's gradient takes no Python, which smaller kernels do not hide

    def __init__(self):
        sizes = {"least": 0, "least_training": 1 << 22, "training_dtypes": (torch.bfloat16,)}
        super().__init__("layer_norm", "norm", "heddle layer_norm", **sizes)
        self.verdicts = fits.verdicts()

    def judge(self, module, x):
        """Returns why the call is not for heddle, or "". The answer depends on the key of `forward` alone."""
        weight, bias = module.weight, getattr(module, "bias", None)
        if weight is None or weight.dim() != 1:
            return "it has no weight, or more dimensions than one"
        given = (x, weight) if bias is None else (x, weight, bias)
        return fits.tensors(*given) or next(filter(None, (fits.same_dtype(x, each) for each in given)), "")

    def members(self, original):
        verdicts, judge, slower = self.verdicts, self.judge, self.slower
        own, layer_norm = original.forward, heddle.ops.layer_norm
        numbers = []  # the name of eps in this class

        def forward(self, input):
            if _is_compiling() or original.forward is not own or CALLS not in self.__dict__:
                return original.forward(self, input)
            x = input
            reason = slower(self, x)
            if not reason:
                weight, bias = self.weight, getattr(self, "bias", None)
                types = [
                    None if each is None else (type(each), each.dtype, each.device)
                    for each in (x, weight, bias)
                ]
                key = (*types, 0 if weight is None else weight.dim())
                reason = verdicts.get(key)
                if reason is None:
                    reason = verdicts[key] = judge(self, x)
            reason = reason or fits.watched(x)
            calls = self.__dict__[CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            if reason:
                return own(self, x)
            if not numbers:
                numbers.append(find.number_of(self))
            return layer_norm(x, weight, bias, eps=getattr(self, numbers[0]))

        return {"forward": forward}

    def example(self, module):
        return find.narrow(module, 16), torch.linspace(-2, 2, 48, dtype=torch.float32).view(3, 16)


class GatedSilu(Kind):
    """down(silu(gate(x)) * up(x)), with the projections as the module has them: two or one of both halves."""

    def __init__(self):
        sizes = {"least": 1 << 22, "least_training": 1 << 22, "training_dtypes": (torch.float32,)}
        super().__init__("gated_silu", "mlp", "heddle gated_product", dtypes=(torch.float32,), **sizes)
        self.verdicts = fits.verdicts()

    def judge(self, gate, up):
        return fits.tensors(gate, up) or ("" if gate.dtype == up.dtype else "gate and up have several dtypes")

    def members(self, original):
        verdicts, judge, slower = self.verdicts, self.judge, self.slower
        own, gated_product = original.forward, heddle.ops.gated_product

        found = []  # the names of the children in this class

        def forward(self, x):
            if _is_compiling() or original.forward is not own or CALLS not in self.__dict__:
                return original.forward(self, x)
            if not found:
                found.append(find.gated(self))
            names = found[0]
            act = getattr(self, names.act)
            if not is_plain_silu(act):
                return own(self, x)
            gate = getattr(self, names.gate)(x)
            gate, up = (gate, getattr(self, names.up)(x)) if names.up else gate.chunk(2, dim=-1)
            reason = slower(self, gate)
            if not reason:
                key = (type(gate), gate.dtype, gate.device, type(up), up.dtype, up.device)
                reason = verdicts.get(key)
                if reason is None:
                    reason = verdicts[key] = judge(gate, up)
            reason = reason or fits.watched(gate)
            calls = self.__dict__[CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            down = getattr(self, names.down)
            if not reason and _forgets_product(down, gate):
                return GATED_LINEAR(gate, up, down.weight)
            return down(act(gate) * up if reason else gated_product(gate, up, kind="silu"))

        return {"forward": forward}

    def example(self, module):
        names = find.gated(module)
        sizes = {names.gate: (16, 24 if names.up else 48), names.down: (24, 16), names.up: (16, 24)}
        children = {names.act: torch.nn.SiLU()}
        children |= {name: torch.nn.Linear(*size) for name, size in sizes.items() if name}
        x = torch.linspace(-0.2, 0.2, 48, dtype=torch.float32).view(3, 16)
        return find.bare(module, children, {}), x


# A product of so many values is computed again for the gradient rather than kept where memory is short.
_LEAST_FORGOTTEN = 1 << 22
_FORGETFUL = ("cuda",)


def _forgets_product(down, gate):
    """True where the gradient computes the product of gate and up again: nobody watches the Linear that
    reads it."""
    return (
        gate.device.type in _FORGETFUL
        and gate.numel() >= _LEAST_FORGOTTEN
        and torch.is_grad_enabled()
        and is_plain_linear(down)
        and down.weight.dtype == gate.dtype
        and type(down.weight) in fits.PLAIN
    )


def _is_seen(module):
    """Somebody would miss a call of the module that does not happen."""
    own = module.__dict__
    return "forward" in own or "_hf_hook" in own or any(own[name] for name in _HOOKS)


def is_plain_linear(module):
    """A Linear without a bias whose call nobody sees."""
    return (
        type(module) is torch.nn.Linear
        and module.bias is None
        and not _is_seen(module)
        and "weight" in module._parameters
    )


def is_plain_silu(act):
    """Nobody sees whether the module is called."""
    return class_name(type(act)) in _SILU and not _is_seen(act)


class Attention(Kind):
    """Attention by transformers' interface, whose function counts the calls (heddle.patching.attention)."""

    otherwise = "torch sdpa"
    # On a CPU: the part of all pairs of queries and keys up to which heddle is faster under a mask, for which
    # torch computes all: without a gradient, in training, and in training in f32 where no keys are shared.
    shares = (0.6, 0.25, 0.55)
    longest_training = 512  # without a mask, and without shared keys, in f32

    def __init__(self):
        sizes = {
            "least": 1 << 18,
            "least_training": 1 << 19,
            "training_dtypes": (torch.float32, torch.bfloat16),
        }
        super().__init__("attention", "attention", "heddle flash_attention", **sizes)

    def members(self, original):
        from heddle.patching import attention

        return {"config": attention.CONFIG}

    def after_put_on(self, module, root):
        from heddle.patching import attention

        attention.use(module)
        attention.Batching.put_on(root)

    def after_take_off(self, module, root):
        from heddle.patching import attention

        attention.leave(module)
        attention.Batching.take_off(root)

    def slower_unmasked(self, module, query, key):
        """Returns why torch is as fast on a CPU where there is no mask, or ""."""
        if not _trains(module):
            return ""
        if query.dtype != torch.float32 or query.shape[1] != key.shape[1]:
            return "torch is as fast in training with shared keys, or in bfloat16"
        return "" if query.shape[2] <= self.longest_training else "torch is as fast in training of long texts"

    def slower_masked(self, module, query, key, share):
        """Returns why torch is as fast on a CPU, where heddle visits that share of all pairs, or ""."""
        alone = query.dtype == torch.float32 and query.shape[1] == key.shape[1]
        most = self.shares[0 if not _trains(module) else 2 if alone else 1]
        return "" if share <= most else "its mask hides too few keys: torch is as fast"

    def trial(self, module):
        from heddle.patching import attention

        return attention.trial(self.at_any_size())


RMS_NORM = classes.register(RmsNorm("rms_norm", plus_one=False))
RMS_NORM_PLUS_ONE = classes.register(RmsNorm("rms_norm_plus_one", plus_one=True))
# transformers has gelu_new as eight operations of torch, gelu_pytorch_tanh as one.
GELU_NEW = classes.register(Activation("gelu_new", one_kernel=False, least=0, least_training=1 << 17))
GELU_TANH = classes.register(Activation("gelu_tanh", one_kernel=True, least=1 << 12, least_training=1 << 20))

LAYER_NORM = classes.register(LayerNorm())
GATED_SILU = classes.register(GatedSilu())
ATTENTION = classes.register(Attention())

_SILU = ("transformers.activations.SiLUActivation", "torch.nn.modules.activation.SiLU")
ALL = (RMS_NORM, RMS_NORM_PLUS_ONE, LAYER_NORM, GELU_NEW, GELU_TANH, GATED_SILU, ATTENTION)

_TRIED = fits.verdicts()  # a class and kind to why its stand-in is not used


def _candidates(module):
    """The kinds that a module may be of, by what it has."""
    if find.calls_interface(find.own_class(module)) and hasattr(module, "config"):
        return (ATTENTION,)
    if find.looks_like_norm(module):
        return (RMS_NORM, RMS_NORM_PLUS_ONE, LAYER_NORM)
    if find.looks_like_function(module):
        return (GELU_TANH, GELU_NEW)
    return (GATED_SILU,) if find.gated(module) else ()


def kind_of(module):
    """The kind of stand-in for a module, and why its class is left alone; (None, "") where there is none."""
    candidates = _candidates(module)
    if candidates and not find.is_of_a_library(find.own_class(module)):
        # It may do more than compute.
        why = f"{class_name(find.own_class(module))} is no class of transformers or torch"
        return (None, "") if isinstance(candidates[0], Activation) else (candidates[0], why)
    reasons = [refusal(module, kind) for kind in candidates]
    for kind, reason in zip(candidates, reasons, strict=True):
        if not reason:
            if (
                kind is GELU_TANH
                and find.operations(module, torch.zeros(2, dtype=torch.float32, device="cpu")) > 1
            ):
                return GELU_NEW, ""
            return kind, ""
    if not candidates or isinstance(candidates[0], Activation):
        return None, ""
    return candidates[0], reasons[0]


@contextlib.contextmanager
def _by_itself():
    """Whatever the program has set: tensors are made on the CPU, and nobody watches."""
    alone = torch.autocast("cpu", enabled=False)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad(), alone:
        yield


def _compare(original, kind):
    """Compares the stand-in's numbers with those of the module's own class."""
    cls = find.own_class(original)
    module, x = kind.example(original)
    for parameter in module.parameters():
        parameter.copy_(torch.linspace(0.5, 1.5, parameter.numel()).view_as(parameter))
    module.eval()
    copy = cls.__new__(cls)
    copy.__dict__.update(module.__dict__)
    copy.__class__ = classes.make(cls, kind)
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        module.to(dtype)
        calls = copy.__dict__[CALLS] = {}
        expected, got = module(x.to(dtype)), copy(x.to(dtype))
        if calls != {"": 1}:
            return f"heddle does not run here: {next(iter(calls), 'it was not called')}"
        if got.dtype != expected.dtype or got.shape != expected.shape:
            return f"{cls.__name__} of this transformers returns {expected.dtype}, heddle {got.dtype}"
        if not torch.allclose(got.float(), expected.float(), rtol=bound, atol=bound):
            return f"{cls.__name__} of this transformers computes something else"
    return ""


def refusal(module, kind):
    """Returns why the class of a module is left alone, or "" where its stand-in computes the same."""
    cls = find.own_class(module)
    if (cls, kind) not in _TRIED:
        try:
            with _by_itself():
                _TRIED[cls, kind] = kind.trial(module)
        except Exception as error:
            _TRIED[cls, kind] = f"{cls.__name__} of this transformers cannot be tried: {error}"
    return _TRIED[cls, kind]
