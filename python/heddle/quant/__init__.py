"""Weights with few bits: layers and folders in the formats of compressed-tensors (docs/quantised.md).

>>> heddle.quant.quantize_(model, "int4")  # a model of torch, in place
>>> heddle.quant.quantize_folder("Llama-3.2-1B", "Llama-3.2-1B-int4")  # what `heddle quantize` does
"""

from heddle.quant.allocate import Allocation, allocate_bits
from heddle.quant.convert import quantize_folder
from heddle.quant.formats import FORMATS, Format, format_named
from heddle.quant.linear import QuantLinear, quantize_

__all__ = [
    "FORMATS",
    "Allocation",
    "Format",
    "QuantLinear",
    "allocate_bits",
    "format_named",
    "quantize_",
    "quantize_folder",
]
