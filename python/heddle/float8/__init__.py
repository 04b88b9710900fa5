"""Training with products in FP8, scaled from what is multiplied (docs/training.md).

>>> heddle.float8.convert_to_float8_training(model)  # then train as before
>>> print(heddle.explain(model))  # which layers, which not, and why

Weights stay the parameters that they were, under the same names; no state is kept between steps.
"""

from heddle.float8.config import RECIPES, Float8Config
from heddle.float8.convert import convert_to_float8_training, left_out, revert
from heddle.float8.counts import Counts, count
from heddle.float8.linear import Float8Linear
from heddle.float8.trainer import (
    Float8Trainer,
    FP8Format,
    convert_model_to_fp8,
    create_fp8_trainer,
    step_if_finite,
)

__all__ = [
    "RECIPES",
    "Counts",
    "FP8Format",
    "Float8Config",
    "Float8Linear",
    "Float8Trainer",
    "convert_model_to_fp8",
    "convert_to_float8_training",
    "count",
    "create_fp8_trainer",
    "left_out",
    "revert",
    "step_if_finite",
]
