"""flex_attention: attention with functions of the caller's for scores and masks."""

import torch
from torch.overrides import handle_torch_function

from heddle.errors import InvalidArgument, Unsupported
from heddle.flex import gradients, ops
from heddle.flex.expression import SCORE, TRUE, in_order, split_band
from heddle.flex.lists import block_lists
from heddle.flex.masks import index_outside, mask_cells
from heddle.flex.trace import Captured, trace_mask, trace_score

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from torch.nn.attention.flex_attention import BlockMask


@torch.compiler.disable(reason="it traces functions of scores itself; torch.compile goes on after it")
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
    line. An index outside of a captured tensor raises InvalidArgument; one that another captured tensor says
    means the nearest element. The score is compiled once (a C++ compiler for CPUs, NVRTC for GPUs): lengths,
    batch sizes, masks and the values of captured tensors are data. Numbers of Python are constants of it, so
    that another number is another function.

    Captured tensors that score_mod reads get gradients, the same bits each time. `block_mask` is a BlockMask
    of torch, or of heddle.attention.create_block_mask; the mask_mod must agree with its lists of blocks. A
    query that sees no key has the result 0 and -inf as the log.
    """
    if torch._C._is_torch_function_mode_enabled():  # such as context_parallel's
        return handle_torch_function(
            flex_attention,
            (query, key, value),
            query,
            key,
            value,
            score_mod,
            block_mask,
            scale,
            enable_gqa,
            return_lse,
            kernel_options,
            return_aux=return_aux,
        )
    check_call(query, key, value, enable_gqa, kernel_options, return_aux)
    out, lse = attend(query, key, value, score_mod, block_mask, scale)
    return (out, lse) if return_lse else out


def attend(query, key, value, score_mod=None, block_mask=None, scale=None, **others):
    """(result, log of sums), as flex_attention has them. `others`: sinks, softcap and bias, as
    heddle.ops.flash_attention has them; score_mod follows these."""
    captured = Captured()
    score = trace_score(score_mod, captured)
    mask = trace_mask(getattr(block_mask, "mask_mod", None), captured)
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    band, rest = split_band(mask)
    _check_captured(score, rest, band, captured, (batch, heads, queries, keys), query)
    arguments = {"scale": float(scale) if scale is not None else 0.0, **band.arguments(queries, keys)}
    arguments |= others
    if block_mask is not None:
        _check_lengths(block_mask, queries, keys)
    follows = getattr(block_mask, "heddle_lists_follow_mask", False)
    if block_mask is not None and not (rest == TRUE and follows):
        arguments |= _kept(block_mask, block_lists)
        _check_lists(arguments, batch, heads)
    if key.shape[0] != batch:
        key, value = (each.expand(batch, *each.shape[1:]).contiguous() for each in (key, value))
    inputs = [each.transpose(1, 2) for each in (query, key, value)]
    cells = ()
    if rest != TRUE:
        sizes = (batch, heads, queries, keys)
        cells = _kept(block_mask, lambda _: mask_cells(rest, captured, sizes, query.device), sizes)
    made = _call(inputs, score, captured, arguments, cells)
    out, lse = made[0].transpose(1, 2), made[1]
    slopes = gradients.slopes_of(score, captured)
    if slopes:
        blocks, block = None, ()
        if "kv_num_blocks" in arguments:
            blocks, block = block_mask.to_dense().bool(), block_mask.BLOCK_SIZE
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = gradients.Scores(score, rest, band, captured, slopes, scale, blocks, block)
        out, lse = gradients.with_gradients(scores, query, key, value, out, lse)
    return out, lse


def _call(inputs, score, captured, arguments, cells):
    if score == SCORE and not cells:
        from heddle.ops import flash_attention

        return flash_attention(*inputs, **arguments)
    used = sorted({each.data for each in in_order(score) if each.op == "load"})
    read, forms = ops.forms_of([captured[number].detach() for number in used] + list(cells))
    run = ops.op_of(_renumbered(score, used, {}), bool(cells), forms)
    return run(*inputs, **{f"captured_{n}": each for n, each in enumerate(read)}, **arguments)


def _renumbered(node, used, known):
    """The expression with captured tensors counted among those that it uses."""
    if node not in known:
        args = tuple(_renumbered(each, used, known) for each in node.args)
        data = used.index(node.data) if node.op == "load" else node.data
        known[node] = type(node)(node.op, args, data, node.kind)
    return known[node]


def check_call(query, key, value, enable_gqa, kernel_options, return_aux):
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


def _check_captured(score, mask, band, captured, sizes, query):
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
            outside = index_outside(index, tensor.shape[dim], sizes, band)
            if outside is not None:
                raise InvalidArgument(
                    f"[flex_attention] dimension {dim} of a captured tensor of sizes {list(tensor.shape)} is"
                    f" read at {outside}; must be from {-tensor.shape[dim]} to {tensor.shape[dim] - 1}"
                )
    for number, tensor in enumerate(captured):
        if tensor.dim() == 0 and tensor.device != query.device:
            captured[number] = tensor.to(query.device)


def _kept(block_mask, make, key=block_lists):
    """Calls make(block_mask) once for a key: a model gives the same mask to all its layers."""
    known = vars(block_mask).setdefault("heddle_made", {})
    if key not in known:
        known[key] = make(block_mask)
    return known[key]


def _check_lengths(block_mask, queries, keys):
    lengths = tuple(block_mask.seq_lengths)
    if lengths != (queries, keys):
        raise InvalidArgument(
            f"[flex_attention] block_mask is of {lengths[0]} queries and {lengths[1]} keys; there are"
            f" {queries} and"
            f" {keys}"
        )


def _check_lists(lists, batch, heads):
    counts = lists["kv_num_blocks"]
    for dim, (name, size) in enumerate((("batch", batch), ("heads", heads))):
        if counts.shape[dim] not in (1, size):
            raise InvalidArgument(
                f"[flex_attention] block_mask has {name} {counts.shape[dim]}; must be 1 or {size}"
            )
