"""From which sizes products in FP8, with their casts, take less time than those of bf16."""

# Products on an H200, in FLOP a nanosecond (30 November 2026, torch 2.11; shapes of an 8B).
BF16 = 700e3
FP8 = {"tensor": 1200e3, "row": 1150e3, "block": 950e3}
# Estimates: bytes of casts a nanosecond, and bytes read and written for an element. The rest is what a layer
# of 4096 x 4096 takes besides, forward and backward in eager mode, with 8,192 tokens (H200, 1 December 2026,
# ms: bf16 1.12, tensor 1.28, row 1.34, block 1.40).
CAST = 3000.0
CAST_BYTES = {"tensor": 6, "row": 8, "block": 4}
REST = 390e3


def nanoseconds(config, tokens, outputs, inputs):
    """(in bf16, in FP8) of a forward and a backward."""
    flops = 6.0 * tokens * outputs * inputs
    elements = tokens * (outputs + inputs) + 2 * outputs * inputs
    cast = CAST_BYTES[config.recipe] * elements / CAST + REST
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
