"""Weights with few bits: layers and folders in the formats of compressed-tensors, and 2:4 sparsity
(docs/quantised.md).

>>> heddle.quant.quantize_(model, "int4")  # a model of torch, in place
>>> heddle.quant.quantize_folder("Llama-3.2-1B", "Llama-3.2-1B-int4")  # what `heddle quantize` does
>>> heddle.quant.prune_2_4_(model)  # two of four weights become zero, and stay zero in training
"""

from heddle.quant.allocate import Allocation, allocate_bits
from heddle.quant.convert import quantize_folder
from heddle.quant.formats import FORMATS, Format, format_named
from heddle.quant.linear import FP4Quantizer, QuantLinear, dequantize_, quantize_
from heddle.quant.prune import StructuredSparsity24, prune_2_4_
from heddle.quant.qat import QAT, QatLinear
from heddle.quant.sparse_linear import SparseLinear, revert_2_4

__all__ = [
    "FORMATS",
    "QAT",
    "Allocation",
    "FP4Quantizer",
    "Format",
    "QatLinear",
    "QuantLinear",
    "SparseLinear",
    "StructuredSparsity24",
    "allocate_bits",
    "dequantize_",
    "format_named",
    "prune_2_4_",
    "quantize_",
    "quantize_folder",
    "revert_2_4",
]
