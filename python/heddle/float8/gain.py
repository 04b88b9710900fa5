"""From which sizes products in FP8, with their casts, take less time than those of bf16."""

# Rates of an H200, in FLOP a nanosecond and in bytes a nanosecond.
BF16 = 700e3
FP8 = {"tensor": 1200e3, "row": 1150e3, "block": 1000e3}
CAST = 3000.0
CAST_BYTES = {"tensor": 8, "row": 10, "block": 4}  # read and written for each element of x and of dy
LAUNCHES = {
    "tensor": 60e3,
    "row": 60e3,
    "block": 60e3,
}  # nanoseconds of casts' launches, beyond those of bf16


def nanoseconds(config, tokens, outputs, inputs):
    """(in bf16, in FP8) of a forward and a backward."""
    flops = 6.0 * tokens * outputs * inputs
    elements = tokens * (outputs + inputs) + 2 * outputs * inputs
    cast = CAST_BYTES[config.recipe] * elements / CAST + LAUNCHES[config.recipe]
    return flops / BF16, flops / FP8[config.recipe] + cast


def why_slower(config, tokens, outputs, inputs):
    """The reason why a layer [outputs, inputs] is not faster in FP8 with so many tokens, or ""."""
    wide, narrow = nanoseconds(config, tokens, outputs, inputs)
    if narrow < wide:
        return ""
    return f"too few tokens: FP8 pays from about {least_tokens(config, outputs, inputs)}"


def least_tokens(config, outputs, inputs):
    """Tokens, in powers of two, from which the layer is faster in FP8; a word where there are none."""
    for power in range(5, 21):
        wide, narrow = nanoseconds(config, 1 << power, outputs, inputs)
        if narrow < wide:
            return f"{1 << power:,}"
    return "no number of tokens"
