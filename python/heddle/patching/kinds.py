"""The stand-ins: what their forwards do instead, for which classes, and which calls they take.

Each one is tried against the class's own forward before it is used: a class that computes something else
under a known name, in another version of transformers, is left alone.
"""

import types

import torch

import heddle.ops
from heddle.patching import classes, fits

_is_compiling = torch.compiler.is_compiling


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
        """Why torch is as fast for this call; empty: it is not."""
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

    def trial(self, cls):
        """Why the stand-in of a class is not used; empty: it computes what the class does."""
        return self.at_any_size(lambda: _compare(cls, self))

    def at_any_size(self, run):
        """Runs it where no call without a gradient is too small."""
        before = self.least, self.dtypes
        self.least, self.dtypes = 0, fits.FLOATS
        try:
            return run()
        finally:
            self.least, self.dtypes = before

    def __reduce__(self):
        return (_kind, (self.name,))


def _kind(name):
    return classes._KINDS[name]


class RmsNorm(Kind):
    """x / sqrt(mean(x^2) + eps) * weight, or * (1 + weight) in f32 as Gemma has it."""

    def __init__(self, name, eps, plus_one):
        dtypes = (torch.float32, torch.bfloat16)
        sizes = {"least": 0, "least_training": 1 << 17, "training_dtypes": dtypes}
        super().__init__(name, "norm", "heddle rms_norm", **sizes)
        self.eps = eps
        self.plus_one = plus_one
        self.verdicts = {}

    def judge(self, x, weight):
        """Why the call is not for heddle; empty: it is. The answer depends on the key of `forward` alone."""
        return fits.tensors(x, weight) or ("" if self.plus_one else fits.same_dtype(x, weight))

    def members(self, original):
        eps, plus_one, verdicts, judge = self.eps, self.plus_one, self.verdicts, self.judge
        slower = self.slower
        own, rms_norm = original.forward, heddle.ops.rms_norm

        def forward(self, hidden_states):
            # A compiler fuses the module's own operations, and cannot count.
            if _is_compiling():
                return own(self, hidden_states)
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
            calls = self.__dict__[classes.CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            if reason:
                return own(self, x)
            if plus_one:
                weight = 1.0 + weight.float()
            return rms_norm(x, weight, eps=getattr(self, eps))

        return {"forward": forward}

    def example(self, original):
        return original(16, eps=1e-3), torch.linspace(-2, 2, 48).view(3, 16)


class Activation(Kind):
    """A GELU by tanh: one kernel of torch, or many."""

    def __init__(self, name, *, one_kernel, **sizes):
        super().__init__(name, "mlp", "heddle activation", training_dtypes=(torch.float32,), **sizes)
        self.one_kernel = one_kernel
        self.verdicts = {}

    def judge(self, x):
        """Why the call is not for heddle; empty: it is. The answer depends on the key of `forward` alone."""
        if self.one_kernel and not x.is_cpu:
            return "torch's gelu is one kernel too"
        return fits.tensors(x)

    def members(self, original):
        verdicts, judge, slower = self.verdicts, self.judge, self.slower
        own, activation = original.forward, heddle.ops.activation

        def forward(self, input):
            if _is_compiling():
                return own(self, input)
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
            calls = self.__dict__[classes.CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            return own(self, input) if reason else activation(input, kind="gelu_tanh")

        return {"forward": forward}

    def example(self, original):
        return original(), torch.linspace(-6, 6, max(self.least, 64)).view(4, -1)


class LayerNorm(Kind):
    """torch's own, over the last dimension, with a weight."""

    least_gpu_training = 1 << 26  # torch's gradient takes no Python, which smaller kernels do not hide

    def __init__(self):
        sizes = {"least": 0, "least_training": 1 << 22, "training_dtypes": (torch.bfloat16,)}
        super().__init__("layer_norm", "norm", "heddle layer_norm", **sizes)
        self.verdicts = {}

    def judge(self, module, x):
        """Why the call is not for heddle; empty: it is. The answer depends on the key of `forward` alone."""
        weight, bias = module.weight, module.bias
        if weight is None or len(module.normalized_shape) != 1:
            return "it has no weight, or more dimensions than one"
        given = (x, weight) if bias is None else (x, weight, bias)
        return fits.tensors(*given) or next(filter(None, (fits.same_dtype(x, each) for each in given)), "")

    def members(self, original):
        verdicts, judge, slower = self.verdicts, self.judge, self.slower
        own, layer_norm = original.forward, heddle.ops.layer_norm

        def forward(self, input):
            if _is_compiling():
                return own(self, input)
            x = input
            reason = slower(self, x)
            if not reason:
                weight, bias = self.weight, self.bias
                types = [
                    None if each is None else (type(each), each.dtype, each.device)
                    for each in (x, weight, bias)
                ]
                key = (*types, len(self.normalized_shape))
                reason = verdicts.get(key)
                if reason is None:
                    reason = verdicts[key] = judge(self, x)
            reason = reason or fits.watched(x)
            calls = self.__dict__[classes.CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            return own(self, x) if reason else layer_norm(x, self.weight, self.bias, eps=self.eps)

        return {"forward": forward}

    def example(self, original):
        return original(16, eps=1e-3), torch.linspace(-2, 2, 48).view(3, 16)


class GatedSilu(Kind):
    """down_proj(silu(gate_proj(x)) * up_proj(x)), with the projections as the module has them."""

    def __init__(self):
        sizes = {"least": 1 << 22, "least_training": 1 << 22, "training_dtypes": (torch.float32,)}
        super().__init__("gated_silu", "mlp", "heddle gated_product", dtypes=(torch.float32,), **sizes)
        self.verdicts = {}

    def judge(self, gate, up):
        return fits.tensors(gate, up) or ("" if gate.dtype == up.dtype else "gate and up have several dtypes")

    def members(self, original):
        verdicts, judge, slower = self.verdicts, self.judge, self.slower
        own, gated_product = original.forward, heddle.ops.gated_product

        def forward(self, x):
            act = self.act_fn
            if _is_compiling() or not is_plain_silu(act):
                return own(self, x)
            gate, up = self.gate_proj(x), self.up_proj(x)
            reason = slower(self, gate)
            if not reason:
                key = (type(gate), gate.dtype, gate.device, type(up), up.dtype, up.device)
                reason = verdicts.get(key)
                if reason is None:
                    reason = verdicts[key] = judge(gate, up)
            reason = reason or fits.watched(gate)
            calls = self.__dict__[classes.CALLS]
            calls[reason] = calls.get(reason, 0) + 1
            return self.down_proj(act(gate) * up if reason else gated_product(gate, up, kind="silu"))

        return {"forward": forward}

    def example(self, original):
        names = {"hidden_size": 16, "intermediate_size": 24, "hidden_act": "silu", "mlp_bias": False}
        return original(types.SimpleNamespace(**names)), torch.linspace(-0.2, 0.2, 48).view(3, 16)


def is_plain_silu(act):
    """Nobody sees whether the module is called."""
    return class_name(type(act)) in _SILU and not (
        "forward" in act.__dict__ or act._forward_hooks or act._forward_pre_hooks or act._backward_hooks
    )


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
        return {}

    def slower_unmasked(self, module, query, key):
        """Why torch is as fast on a CPU where there is no mask; empty: it is not."""
        if not _trains(module):
            return ""
        if query.dtype != torch.float32 or query.shape[1] != key.shape[1]:
            return "torch is as fast in training with shared keys, or in bfloat16"
        return "" if query.shape[2] <= self.longest_training else "torch is as fast in training of long texts"

    def slower_masked(self, module, query, key, share):
        """Why torch is as fast on a CPU, where heddle visits that share of all pairs; empty: it is not."""
        alone = query.dtype == torch.float32 and query.shape[1] == key.shape[1]
        most = self.shares[0 if not _trains(module) else 2 if alone else 1]
        return "" if share <= most else "its mask hides too few keys: torch is as fast"

    def trial(self, cls):
        from heddle.patching import attention

        return self.at_any_size(lambda: attention.trial(self))


RMS_NORM = classes.register(RmsNorm("rms_norm", "variance_epsilon", plus_one=False))
RMS_NORM_PLUS_ONE = classes.register(RmsNorm("rms_norm_plus_one", "eps", plus_one=True))
# transformers has gelu_new as eight operations of torch, gelu_pytorch_tanh as one.
GELU_NEW = classes.register(Activation("gelu_new", one_kernel=False, least=0, least_training=1 << 17))
GELU_TANH = classes.register(Activation("gelu_tanh", one_kernel=True, least=1 << 12, least_training=1 << 20))

LAYER_NORM = classes.register(LayerNorm())
GATED_SILU = classes.register(GatedSilu())
ATTENTION = classes.register(Attention())

_SILU = ("transformers.activations.SiLUActivation", "torch.nn.modules.activation.SiLU")
_MODELS = "transformers.models"
_LIKE_LLAMA = (("llama", "Llama"), ("mistral", "Mistral"), ("qwen2", "Qwen2"), ("qwen3", "Qwen3"))
_ALL = (*_LIKE_LLAMA, ("gemma2", "Gemma2"), ("gemma3", "Gemma3"), ("gpt2", "GPT2"))
KNOWN = {
    **{f"{_MODELS}.{family}.modeling_{family}.{name}RMSNorm": RMS_NORM for family, name in _LIKE_LLAMA},
    **{f"{_MODELS}.{family}.modeling_{family}.{name}MLP": GATED_SILU for family, name in _LIKE_LLAMA},
    **{f"{_MODELS}.{family}.modeling_{family}.{name}Attention": ATTENTION for family, name in _ALL},
    "torch.nn.modules.normalization.LayerNorm": LAYER_NORM,
    **{f"{_MODELS}.gemma{n}.modeling_gemma{n}.Gemma{n}RMSNorm": RMS_NORM_PLUS_ONE for n in (2, 3)},
    "transformers.activations.NewGELUActivation": GELU_NEW,
    "transformers.activations.GELUTanh": GELU_TANH,
}

_TRIED = {}  # a class to why its stand-in is not used


def class_name(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


def kind_of(cls):
    """The kind of stand-in for a class; None where heddle has none."""
    return KNOWN.get(class_name(cls))


def _compare(cls, kind):
    """Compares the stand-in's numbers with the class's own."""
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
        module, x = kind.example(cls)
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(0.5, 1.5, parameter.numel()).view_as(parameter))
        module.eval()
        copy = cls.__new__(cls)
        copy.__dict__.update(module.__dict__)
        copy.__class__ = classes.stand_in(cls, kind)
        for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
            module.to(dtype)
            calls = copy.__dict__[classes.CALLS] = {}
            expected, got = module(x.to(dtype)), copy(x.to(dtype))
            if calls != {"": 1}:
                return f"heddle does not run here: {next(iter(calls))}"
            if got.dtype != expected.dtype or got.shape != expected.shape:
                return f"{cls.__name__} of this transformers returns {expected.dtype}, heddle {got.dtype}"
            if not torch.allclose(got.float(), expected.float(), rtol=bound, atol=bound):
                return f"{cls.__name__} of this transformers computes something else"
    return ""


def refusal(cls, kind):
    """Why a class is left alone although its name is known; empty: its stand-in computes the same."""
    if cls not in _TRIED:
        try:
            with torch.no_grad():
                _TRIED[cls] = kind.trial(cls)
        except Exception as error:
            _TRIED[cls] = f"{cls.__name__} of this transformers cannot be tried: {error}"
    return _TRIED[cls]
