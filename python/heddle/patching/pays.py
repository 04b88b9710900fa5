"""From which sizes a part pays, in words, before a model runs: a call below them stays with torch."""

from heddle.patching import find, fits, kinds, loss


def _width(kind, module):
    """Values of a token in a call of the part; None where the module does not tell."""
    if kind.part == "norm":
        return module.weight.numel()
    if kind is kinds.GATED_SILU:
        gated = find.gated(module)
        return getattr(getattr(module, gated.down), "in_features", None)
    if kind is kinds.ATTENTION:
        config = module.config
        return config.num_attention_heads * getattr(
            module, "head_dim", config.hidden_size // config.num_attention_heads
        )
    return None


def _from(least, width):
    if least <= (width or 1):
        return "any size"
    if width is None:
        return f"{least:,} values"
    tokens = -(-least // width)
    return f"{tokens:,} token{'s' if tokens > 1 else ''}"


def _in(dtypes):
    return (
        ""
        if set(fits.FLOATS) <= {*dtypes, fits.FLOATS[1]}
        else f" in {' or '.join(map(fits.dtype_text, dtypes))}"
    )


def of_kind(kind, module, device):
    """When calls of a module run in heddle on that device."""
    width = _width(kind, module)
    if device.type == "cpu":
        return (
            f"from {_from(kind.least, width)}{_in(kind.dtypes)};"
            f" in training from {_from(kind.least_training, width)}{_in(kind.training_dtypes)}"
        )
    if kind is kinds.ATTENTION:
        return "on Hopper: under a mask, and heads of 64 or 96 without a gradient, from 128 tokens"
    return f"from any size; in training from {_from(kind.least_gpu_training, width)}"


def of_loss(vocabulary, device):
    return f"from {_from(loss.Loss.least if device.type == 'cpu' else 0, vocabulary)}"
