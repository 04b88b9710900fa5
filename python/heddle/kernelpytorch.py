"""Names of KernelPyTorch over what heddle has. docs/coming_from.md has the table, and what is not claimed."""

import inspect
import weakref

import torch

from heddle import attention, buckets, float8, hardware, memory, ops, optim, quant
from heddle.errors import InvalidArgument, UnknownName, Unsupported
from heddle.patching import patch

FP8Format = float8.FP8Format
convert_model_to_fp8, create_fp8_trainer = float8.convert_model_to_fp8, float8.create_fp8_trainer
LongSequenceOptimizer = attention.LongSequenceOptimizer
SegmentedAttentionMemory = attention.SegmentedAttentionMemory
HardwareAbstractionLayer = hardware.HardwareAbstractionLayer
detect_available_devices = hardware.detect_available_devices
FP4Quantizer, StructuredSparsity24 = quant.FP4Quantizer, quant.StructuredSparsity24
NVIDIABackend, AMDBackend, TPUBackend = (hardware.NVIDIABackend, hardware.AMDBackend, hardware.TPUBackend)

# Names of features that heddle lacks, with what there is instead.
_MISSING = {
    "DynamicMemoryPool": "a memory pool; torch's caching allocator has one",
}


class Attention(torch.nn.Module):
    """Causal self-attention of x [B, S, d_model] with projections, around one of heddle's functions of
    q, k and v [B, H, S, E]."""

    def __init__(self, d_model, num_heads, function, bias=False):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise InvalidArgument(
                f"[kernelpytorch] d_model is {d_model} and num_heads {num_heads}; must divide it"
            )
        self.num_heads, self.function = num_heads, function
        self.qkv_proj = torch.nn.Linear(d_model, 3 * d_model, bias)
        self.o_proj = torch.nn.Linear(d_model, d_model, bias)

    def forward(self, x):
        q, k, v = self.qkv_proj(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        return self.o_proj(self.function(q, k, v).transpose(1, 2).flatten(2))


def create_ring_attention(d_model, num_heads, max_sequence_length, *, group=None):
    """A layer of attention.ring_attention: each process of `group` gives its part of the positions. Alone,
    memory grows with the length and time with its square."""

    def function(q, k, v):
        ranks = _ranks(group)
        if q.shape[2] * ranks > max_sequence_length + ranks - 1:
            raise InvalidArgument(
                f"[create_ring_attention] there are {q.shape[2]} positions on each of {ranks} ranks; must be"
                f" at most {max_sequence_length} in all"
            )
        if ranks == 1:
            y, _ = ops.flash_attention(*(each.transpose(1, 2) for each in (q, k, v)), causal=True)
            return y.transpose(1, 2)
        return attention.ring_attention(q, k, v, group, causal=True)

    return Attention(d_model, num_heads, function)


def create_context_parallel_attention(d_model, num_heads, context_parallel_size, *, group=None):
    """A layer of attention whose keys and values are gathered from `context_parallel_size` processes."""

    def function(q, k, v):
        if _ranks(group) != context_parallel_size:
            raise InvalidArgument(
                f"[create_context_parallel_attention] there are {_ranks(group)} processes; must be"
                f" context_parallel_size, {context_parallel_size}: start as many with torchrun"
            )
        with attention.context_parallel(group or torch.distributed.group.WORLD):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Attention(d_model, num_heads, function)


def create_sparse_attention(d_model, num_heads, sparsity_ratio=0.9, *, threshold=0.95, **options):
    """A layer of attention.sparse_prefill that visits at most 1 - sparsity_ratio of the blocks: `threshold`
    decides below that. `layer.function.report` is of its last call."""

    def function(q, k, v):
        y, function.report = attention.sparse_prefill(
            q, k, v, threshold=threshold, max_density=1 - sparsity_ratio, report=True, **options
        )
        return y

    return Attention(d_model, num_heads, function)


def create_advanced_flex_attention(embed_dim, num_heads, pattern="causal", **options):
    """A layer of attention.flex_attention. pattern: "causal", "sliding_window" (width), "prefix" (length),
    "documents" (ids) or "dilated" (width, step): heddle's ready masks with their arguments; all but "prefix"
    are causal."""
    ready = ("causal", "sliding_window", "prefix", "documents", "dilated")
    if pattern not in ready:
        raise InvalidArgument(
            f"[create_advanced_flex_attention] pattern is {pattern!r}; must be one of {', '.join(ready)}"
        )
    mod = attention.causal if pattern == "causal" else getattr(attention, pattern)(**options)
    if pattern == "documents":
        mod = attention.and_masks(attention.causal, mod)

    def function(q, k, v):
        blocks = attention.create_block_mask(mod, None, None, q.shape[2], k.shape[2], device=q.device)
        return attention.flex_attention(q, k, v, block_mask=blocks)

    return Attention(embed_dim, num_heads, function)


def create_unified_attention_fusion(model):
    """A model of transformers whose `generate` runs in the megakernel: one kernel for many tokens on a GPU,
    threads on a CPU. heddle.patched(model) is the table of what runs where."""
    patch(model, generate="megakernel")
    return model


def create_optimal_bucketing_system(sample_inputs, strategy=None, *, count=16, max_padding=0.10, multiple=1):
    """The best lengths to pad dimension 1 of inputs to. strategy: accepted; the edges are optimal for all."""
    lengths = [each.shape[1] for each in sample_inputs]
    return buckets.bucket_edges(lengths, count, max_padding=max_padding, multiple=multiple)


def DynamicShapeModule(model, bucketing):  # noqa: N802
    """The model with dimension 1 of its first input padded with zeros, and that of its output cropped. The
    model must not let padded positions change others."""
    name = next(iter(inspect.signature(model.forward).parameters))
    return buckets.bucketed(model, {"S": bucketing}, dims={name: {1: "S"}}, pad={name: 0}, outputs={1: "S"})


class MemoryConfig:
    """cpu_memory_limit_gb: of the optimizer's states on the host. The others are accepted: heddle measures
    which share of the update the GPU takes."""

    def __init__(self, cpu_memory_limit_gb=None, gpu_memory_limit_gb=None, offload_threshold=None):
        self.cpu_memory_limit_gb = cpu_memory_limit_gb


def DeepOptimizerStates(optimizer, model=None, memory_config=None, num_groups=None):  # noqa: N802
    """optim.OffloadAdamW with the groups of a torch.optim.AdamW that has made no step yet; states of 8, 4 or
    2 bytes a parameter, the first that memory_config has room for. num_groups: accepted, no grouping needed.
    """
    if not isinstance(optimizer, torch.optim.AdamW) or optimizer.state:
        raise Unsupported(
            f"[DeepOptimizerStates] optimizer is {type(optimizer).__name__}; must be a torch.optim.AdamW that"
            " has made no step"
        )
    known = ("params", "lr", "betas", "eps", "weight_decay", "maximize")
    groups = [{name: group[name] for name in known} for group in optimizer.param_groups]
    count = sum(each.numel() for group in groups for each in group["params"])
    limit = getattr(memory_config, "cpu_memory_limit_gb", None)
    for dtype, size in (("fp32", 8), ("bf16", 4), ("int8", 2)):
        if limit is None or count * size <= limit * 1e9:
            return optim.OffloadAdamW(groups, state_dtype=dtype)
    raise InvalidArgument(
        f"[DeepOptimizerStates] states take {count * 2e-9:.3f} GB at least; cpu_memory_limit_gb is {limit}"
    )


def InterleaveOffloadingOptimizer(optimizer, model=None, memory_limit_gb=None, auto_tune=True):  # noqa: N802
    """As DeepOptimizerStates. auto_tune: accepted, the share is measured."""
    return DeepOptimizerStates(optimizer, model, MemoryConfig(memory_limit_gb))


class AdaptiveCheckpointing:
    """memory.checkpoint with a budget from 0 to 1, put on a model at its first forward."""

    def __init__(self, budget=0.5, blocks=None):
        self.budget, self.blocks, self.managed = budget, blocks, weakref.WeakKeyDictionary()

    def forward(self, model, *inputs, **named):
        if model not in self.managed:
            self.managed[model] = memory.checkpoint(model, budget=self.budget, blocks=self.blocks)
        return model(*inputs, **named)


def _ranks(group):
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size(group) if there else 1


def __getattr__(name):
    if name in _MISSING:
        raise Unsupported(f"[kernelpytorch] {name}: heddle lacks {_MISSING[name]}")
    raise UnknownName(f"heddle.kernelpytorch has no {name}")
