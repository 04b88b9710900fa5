"""flex_attention: attention with functions of the caller's for scores and masks."""

import torch

from heddle.errors import InvalidArgument, Unsupported
from heddle.flex import gradients, ops
from heddle.flex.expression import SCORE, TRUE, in_order, split_band
from heddle.flex.lists import block_lists, full_blocks
from heddle.flex.trace import Captured, trace_mask, trace_score

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from torch.nn.attention.flex_attention import BlockMask

PLACES = ("b", "h", "q", "kv")


# It traces functions itself: torch.compile goes on after it.
@torch.compiler.disable
def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: "Callable[..., Any] | None" = None,
    block_mask: "BlockMask | None" = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: "dict[str, Any] | None" = None,
    *,
    return_aux: "Any" = None,
) -> "Any":
    """Attention whose scores and masks are functions of the caller's, as torch.nn.attention.flex_attention
    has it.

    query: [B, Hq, L, E]; key: [B, Hkv, S, E]; value: [B, Hkv, S, Ev], bf16, f16 or f32. Result: [B, Hq, L,
    Ev]; with `return_lse` also the log of the sum of exp(score), float32 [B, Hq, L].

    `score_mod`(score, b, h, q_idx, kv_idx) and the mask_mod of `block_mask` are traced, not called for each
    pair: arithmetic, comparisons, torch.where, minimum, maximum, clamp, abs, exp, tanh, sigmoid, sqrt, and
    captured tensors, of which all indices are given. What cannot be traced raises Unsupported with its
    line. An index outside of a captured tensor means its nearest element. What was traced is compiled once
    (a C++ compiler for CPUs, NVRTC for GPUs): lengths, batch sizes and the values of captured tensors are
    data. Numbers of Python are constants, so that another number is another function, but for windows:
    `q_idx - kv_idx <= 512` is no part of what is compiled.

    Captured tensors that score_mod reads get gradients, the same bits each time. `block_mask` is a BlockMask
    of torch, or of heddle.attention.create_block_mask; the mask_mod must agree with its lists of blocks. A
    query that sees no key has the result 0 and -inf as the log.
    """
    _check(query, key, value, enable_gqa, kernel_options, return_aux)
    captured = Captured()
    score = trace_score(score_mod, captured)
    mask = trace_mask(getattr(block_mask, "mask_mod", None), captured)
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    _check_captured(
        score, mask, captured, dict(zip(PLACES, (batch, heads, queries, keys), strict=True)), query
    )
    band, rest = split_band(mask)
    arguments = {"scale": float(scale) if scale is not None else 0.0, "q_offset": queries - keys}
    if band.left is not None:
        arguments["window_left"] = min(band.left, 2**31 - 1)
    if band.right is not None:
        arguments["window_right"] = min(band.right, 2**31 - 1)
    follows = getattr(block_mask, "heddle_lists_follow_mask", False)
    if block_mask is not None and not (rest == TRUE and follows):
        arguments |= _kept(block_mask, block_lists)
        _check_lists(block_mask, arguments, (batch, heads, queries, keys))
    if key.shape[0] != batch:
        key, value = (each.expand(batch, *each.shape[1:]).contiguous() for each in (key, value))
    inputs = [each.transpose(1, 2) for each in (query, key, value)]
    full = _kept(block_mask, full_blocks) if rest != TRUE else None
    made = _call(inputs, score, rest, captured, arguments, full)
    out, lse = made[0].transpose(1, 2), made[1]
    slopes = gradients.slopes_of(score, captured)
    if slopes:
        blocks, block = None, ()
        if "kv_num_blocks" in arguments:
            blocks, block = block_mask.to_dense().bool(), block_mask.BLOCK_SIZE
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = gradients.Scores(score, rest, band, captured, slopes, scale, blocks, block)
        out, lse = gradients.with_gradients(scores, query, key, value, out, lse)
    return (out, lse) if return_lse else out


def _call(inputs, score, mask, captured, arguments, full):
    if score == SCORE and mask == TRUE:
        from heddle.ops import flash_attention

        return flash_attention(*inputs, **arguments)
    used = sorted({each.data for each in in_order(score, mask) if each.op == "load"})
    tensors = [captured[number].detach() for number in used] + ([] if full is None else [full])
    read, forms = ops.forms_of(tensors)
    score, mask = (_renumbered(each, used, {}) for each in (score, mask))
    run = ops.op_of(score, mask, forms)
    return run(*inputs, **{f"captured_{n}": each for n, each in enumerate(read)}, **arguments)


def _renumbered(node, used, known):
    """The expression with captured tensors counted among those that it uses."""
    if node not in known:
        args = tuple(_renumbered(each, used, known) for each in node.args)
        data = used.index(node.data) if node.op == "load" else node.data
        known[node] = type(node)(node.op, args, data, node.kind)
    return known[node]


def _check(query, key, value, enable_gqa, kernel_options, return_aux):
    named = {"query": query, "key": key, "value": value}
    for name, tensor in named.items():
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4:
            raise InvalidArgument(
                f"[flex_attention] {name} is of type {type(tensor).__name__} and sizes"
                f" {list(getattr(tensor, 'shape', ()))}; must be a tensor [B, H, L, E]"
            )
    if kernel_options:
        raise Unsupported("[flex_attention] kernel_options are of torch's kernels; leave them out")
    if return_aux is not None:
        raise Unsupported("[flex_attention] return_aux is not supported; use return_lse=True")
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared and not enable_gqa:
        raise InvalidArgument(
            f"[flex_attention] query has {heads} heads and key {shared}; must be equal, or give"
            " enable_gqa=True"
        )
    if key.shape[0] not in (1, query.shape[0]):
        raise InvalidArgument(
            f"[flex_attention] query has a batch of {query.shape[0]} and key of {key.shape[0]}; must be"
            " equal, or 1"
        )


def _check_captured(score, mask, captured, sizes, query):
    for node in in_order(score, mask):
        if node.op != "load":
            continue
        tensor = captured[node.data]
        if tensor.device != query.device and tensor.dim():
            raise InvalidArgument(
                f"[flex_attention] a captured tensor of sizes {list(tensor.shape)} is on {tensor.device}"
                " and query on"
                f" {query.device}; must be on one device"
            )
        for dim, index in enumerate(node.args[: tensor.dim()]):
            if index.op in PLACES and tensor.shape[dim] < sizes[index.op]:
                raise InvalidArgument(
                    f"[flex_attention] dimension {dim} of a captured tensor of sizes"
                    f" {list(tensor.shape)} is read at"
                    f" {index.op}; must have at least {sizes[index.op]} elements"
                )
    for number, tensor in enumerate(captured):
        if tensor.dim() == 0 and tensor.device != query.device:
            captured[number] = tensor.to(query.device)


def _kept(block_mask, make):
    """Calls make(block_mask) once: a model gives the same mask to all its layers."""
    known = vars(block_mask).setdefault("heddle_made", {})
    if make not in known:
        known[make] = make(block_mask)
    return known[make]


def _check_lists(block_mask, lists, sizes):
    batch, heads, queries, keys = sizes
    counts = lists["kv_num_blocks"]
    lengths = tuple(getattr(block_mask, "seq_lengths", (queries, keys)))
    if lengths != (queries, keys) or counts.shape[2] != -(-queries // lists["block_q"]):
        raise InvalidArgument(
            f"[flex_attention] block_mask is of {lengths[0]} queries and {lengths[1]} keys; there are"
            f" {queries} and"
            f" {keys}"
        )
    for dim, (name, size) in enumerate((("batch", batch), ("heads", heads))):
        if counts.shape[dim] not in (1, size):
            raise InvalidArgument(
                f"[flex_attention] block_mask has {name} {counts.shape[dim]}; must be 1 or {size}"
            )
