"""From which sizes torch's product with a compressed 2:4 weight takes less time than the dense one."""

UNIT = 64  # rows and columns of a compressed weight are multiples of it


def why_slower(tokens, outputs, inputs):
    """The reason why a weight [outputs, inputs] is not compressed for so many tokens, or ""."""
    if outputs % UNIT or inputs % UNIT:
        return f"the weight is {outputs} x {inputs}; both must be multiples of {UNIT} to be compressed"
    least = least_tokens(outputs, inputs)
    if least is None:
        return f"the weight is {outputs} x {inputs}, too small to gain"
    return "" if tokens >= least else f"too few tokens: it pays {pays(outputs, inputs)}"


def least_tokens(outputs, inputs):
    """Tokens from which it is faster, or None. NVIDIA's figure for an H100 is 1.2 times the dense rate at
    8192 tokens, outputs and inputs; nothing smaller was measured."""
    return 8192 if min(outputs, inputs) >= 8192 else None


def pays(outputs, inputs):
    least = least_tokens(outputs, inputs)
    return f"from {least:,} tokens" if least else "with no number of tokens"
