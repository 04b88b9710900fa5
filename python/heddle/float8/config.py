"""The choices of training in FP8."""

from dataclasses import dataclass

import torch

from heddle.errors import InvalidArgument

RECIPES = ("block", "row", "tensor")
CODES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


@dataclass(frozen=True)
class Float8Config:
    """recipe: what shares a scale. "block": 128 neighbours that are summed over, and 128 x 128 of a weight;
    "row": a row that is summed over (torchao's rowwise); "tensor": all (its tensorwise).
    gradients: the code of outputs' gradients: "e4m3", or "e5m2" (HYBRID: fewer bits, more range).
    always: False leaves calls to torch that are too small to gain on the GPU; True runs all in FP8.
    """

    recipe: str = "block"
    gradients: str = "e4m3"
    always: bool = False

    def __post_init__(self):
        for name, value, known in (
            ("recipe", self.recipe, RECIPES),
            ("gradients", self.gradients, tuple(CODES)),
        ):
            if value not in known:
                raise InvalidArgument(
                    f"[Float8Config] {name} is {value!r}; must be one of {', '.join(known)}"
                )
