"""From which sizes torch's product with a compressed 2:4 weight takes less time than the dense one."""

UNIT = 64  # rows and columns of a compressed weight are multiples of it


def why_slower(tokens, outputs, inputs):
    """The reason why a weight [outputs, inputs] is not compressed for so many tokens, or ""."""
    if outputs % UNIT or inputs % UNIT:
        return f"the weight is {outputs} x {inputs}; both must be multiples of {UNIT} to be compressed"
    least = least_tokens(outputs, inputs)
    return "" if least is not None and tokens >= least else f"slower with few tokens: {pays(outputs, inputs)}"


def least_tokens(outputs, inputs):
    return 2048 if min(outputs, inputs) >= 4096 else None


def pays(outputs, inputs):
    least = least_tokens(outputs, inputs)
    return f"from {least:,} tokens" if least else "with no number of tokens"
