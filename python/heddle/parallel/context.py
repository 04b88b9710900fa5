"""context_parallel: models whose attention is of a sequence that several processes share."""

import contextlib
import math
import types

import torch
from torch.nn.functional import multi_head_attention_forward, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from heddle.errors import InvalidArgument, Unsupported, named
from heddle.flex import flex_attention
from heddle.flex.flex import check_call
from heddle.parallel import scored
from heddle.parallel.attention import NOT_COMPILED, Attention, Plan, plan_of
from heddle.parallel.moves import spread
from heddle.parallel.ranks import LIMIT, agree, ranks_of
from heddle.parallel.shards import BALANCES, borders_of, deal, numbers_of
from heddle.parallel.ulysses import through_heads, whole

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

METHODS = ("allgather", "ring", "ulysses")
NAME = "context_parallel"


class Parallel:
    """A sequence that ranks share: `rank` of `size`, and the `shards` of all (None without buffers)."""

    def __init__(self, ranks, shards, balance, method, mask, limit):
        self._ranks, self._method, self._mask, self._limit = ranks, method, mask, limit
        self._balance, self.shards = balance, shards
        self.rank, self.size = ranks.rank, ranks.size

    def shard(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """This rank's part of a tensor of all positions: a copy."""
        return self._known().shard(tensor, dim, self.rank)

    def unshard(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """The tensor of all positions, in order, without a gradient. All ranks call it."""

        def check():
            if tensor.shape[dim] != self._known().sizes[self.rank]:
                raise InvalidArgument(
                    f"[unshard] dimension {dim} has {tensor.shape[dim]} positions; must have"
                    f" {self.shards.sizes[self.rank]}, as this rank"
                )

        agree(self._ranks, "unshard", check, f"{tensor.dtype}, dim {dim}", 0, tensor.device, self._limit)
        rows = tensor.detach().movedim(dim, 0)
        plan = Plan(self._ranks, self.shards, None, {}, "unshard", self._limit)
        flat = rows.reshape(rows.shape[0], 1, 1, math.prod(rows.shape[1:]))
        made = spread(plan, flat, [(0, 1)] * self.size, "parts")
        return made.reshape(-1, *rows.shape[1:]).movedim(0, dim)

    def _known(self):
        if self.shards is None:
            raise InvalidArgument(f"[{NAME}] the length of the sequence is not known; give buffers")
        return self.shards

    def _plan(self, name, given, causal, attributes, check=None, said="", window=None):
        return plan_of(
            name,
            self._ranks,
            given,
            shards=self.shards or self._balance,
            causal=causal,
            cu_seqlens=self._mask["cu_seqlens"],
            window=window or self._mask["window"],
            attributes=attributes,
            limit=self._limit,
            method=self._method,
            check=check,
            said=said,
        )

    def attend(
        self,
        query,
        key,
        value,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
        window=None,
        softcap=0.0,
    ):
        """torch's scaled_dot_product_attention, of the whole sequence. `window`: instead of the context's."""
        name = "scaled_dot_product_attention"

        def check():
            if attn_mask is not None:
                raise Unsupported(
                    f"[{name}] attn_mask is given in {NAME}; give {NAME} cu_seqlens= or window=, or call"
                    " heddle.attention.flex_attention with a mask of the whole sequence"
                )
            if dropout_p:
                raise Unsupported(f"[{name}] dropout_p is {dropout_p}; must be 0 in {NAME}")
            if query.shape[1] != key.shape[1] and not enable_gqa:
                raise InvalidArgument(
                    f"[{name}] query has {query.shape[1]} heads and key {key.shape[1]}; must be equal, or"
                    " give enable_gqa=True"
                )

        attributes = {"scale": scale or 0.0, "softcap": softcap}
        plan = self._plan(name, (query, key, value), is_causal, attributes, check, window=window)
        if self._method == "ulysses":
            return through_heads(plan, query, key, value, lambda q, k, v, _: whole(plan, q, k, v))
        return Attention.apply(plan, query, key, value)[0]

    def attend_scored(
        self,
        query,
        key,
        value,
        score_mod=None,
        block_mask=None,
        scale=None,
        enable_gqa=False,
        return_lse=False,
        kernel_options=None,
        *,
        return_aux=None,
    ):
        """heddle's flex_attention, whose functions see the positions of the whole sequence."""

        def check():
            check_call(query, key, value, enable_gqa, kernel_options, return_aux)
            if self._method == "ring":
                raise Unsupported(
                    f'[flex_attention] {NAME} has method="ring"; "allgather" and "ulysses" take it'
                )
            if self._method == "ulysses" and return_lse:
                raise Unsupported(f'[flex_attention] {NAME} with method="ulysses" has no return_lse')
            if self._mask["cu_seqlens"] is not None or tuple(self._mask["window"]) != (-1, -1):
                raise InvalidArgument(
                    f"[flex_attention] {NAME} has cu_seqlens or window; the mask_mod must have them instead"
                )
            if self.shards is not None:
                scored.check_mask(block_mask, self.shards.length)

        said = f"score_mod {score_mod is not None}, block_mask {block_mask is not None}, scale {scale}"
        plan = self._plan("flex_attention", (query, key, value), False, {}, check, said)
        scored.check_mask(block_mask, plan.shards.length)
        functions = score_mod, block_mask, scale
        if self._method == "ulysses":
            return through_heads(plan, query, key, value, lambda *given: scored.of_heads(*given, *functions))
        y, lse = scored.by_rows(plan, query, key, value, *functions)
        return (y, lse) if return_lse else y


def _without_checks(function):
    """A function of torch in Python, which does not ask for modes first."""
    checks = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    known = {**function.__globals__, **{name: lambda *_: False for name in checks}}
    made = types.FunctionType(function.__code__, known, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# A mode is off in what it calls; these may call attention: a backward runs forwards again for checkpointing.
BACKWARDS = (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad)
INNER = {each: _without_checks(each) for each in (*BACKWARDS, multi_head_attention_forward)}


class Mode(TorchFunctionMode):
    """Has calls of attention go to a Parallel. It follows torch's threads, and finds functions by whatever
    name they are called, as a patched name would not."""

    def __init__(self, parallel):
        super().__init__()
        self.parallel = parallel

    @torch.compiler.disable(reason=NOT_COMPILED)
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is scaled_dot_product_attention:
            return self.parallel.attend(*args, **kwargs)
        if function is flex_attention:
            return self.parallel.attend_scored(*args, **kwargs)
        if isinstance(function, torch._ops.HigherOrderOperator) and function.name() == "flex_attention":
            raise Unsupported(
                f"[{NAME}] torch's flex_attention knows nothing of other ranks; call"
                " heddle.attention.flex_attention"
            )
        if function is multi_head_attention_forward and kwargs.get("need_weights", True):
            raise Unsupported(f"[{NAME}] multi_head_attention_forward must have need_weights=False")
        if function not in INNER:
            return function(*args, **kwargs)
        with self:
            return INNER[function](*args, **kwargs)


def current():
    """The Parallel of the context_parallel that this is inside of, or None."""
    if torch._C._is_torch_function_mode_enabled():
        for each in reversed(_get_current_function_mode_stack()):
            if isinstance(each, Mode):
                return each.parallel
    return None


def is_active():
    return current() is not None


@contextlib.contextmanager
@named
def context_parallel(
    mesh: "Any",
    *,
    buffers: "Sequence[torch.Tensor] | None" = None,
    buffer_seq_dims: "Sequence[int] | None" = None,
    no_restore_buffers: "set[torch.Tensor] | None" = None,
    balance: str = "zigzag",
    method: str = "allgather",
    cu_seqlens: "torch.Tensor | Sequence[int] | None" = None,
    window: tuple[int, int] = (-1, -1),
    multiple: int = 1,
    timeout: float = LIMIT,
) -> "Iterator[Parallel]":
    """A `with` block in which the processes of `mesh` share a sequence, as
    torch.distributed.tensor.experimental.context_parallel has it. Forward and backward belong into it.

    `mesh`: a DeviceMesh of one dimension or a ProcessGroup. `buffers` hold all positions, the same on each
    rank, along `buffer_seq_dims`; in the block each holds this rank's, and after it, or an exception, all
    again, but for those in `no_restore_buffers`. The block gets a Parallel: its `shards`, shard(tensor, dim)
    and unshard(tensor, dim).

    Calls of torch's scaled_dot_product_attention and of heddle.attention.flex_attention are of the whole
    sequence there. A BlockMask is of all positions, and its functions see their numbers; gradients of
    captured tensors are this rank's part of a sum. `window` and `cu_seqlens` are those of ring_attention, and
    hold for scaled_dot_product_attention.

    `method`: "allgather" gathers keys and values before each attention, with the bits of one process; "ring"
    has those of two ranks at a time; "ulysses" exchanges positions for heads, with the bits of one process.
    `balance`: "zigzag", "contiguous" or "documents", as in heddle.attention.deal. Any length will do: ranks
    have a position more or less, or `multiple` of them, and nothing is padded.

    Wrong arguments on one rank raise the same error on all; a rank that waits longer than `timeout` seconds
    raises DeadlineExceeded (tensors on a GPU: the ProcessGroup's own limit). torch.compile breaks its graph
    at attention.
    """
    ranks = ranks_of(mesh, NAME)
    buffers, dims = list(buffers or ()), list(buffer_seq_dims or ())
    kept = list(no_restore_buffers or ())
    borders = numbers_of(cu_seqlens)
    options = {"balance": balance, "method": method, "window": window, "multiple": multiple}
    forms = [(tuple(each.shape), str(each.dtype)) for each in buffers if isinstance(each, torch.Tensor)]
    text = f"buffers {forms} along {dims}, {options}, cu_seqlens {borders}"
    device = buffers[0].device if forms else "cpu"

    def check():
        _check(buffers, dims, kept, balance, method, multiple)
        if buffers:
            borders_of(borders, buffers[0].shape[dims[0]], NAME)

    agree(ranks, NAME, check, text, 0, device, timeout)
    shards = None
    if buffers:
        length = buffers[0].shape[dims[0]]
        shards = deal(length, ranks.size, balance, borders_of(borders, length, NAME), multiple)
    parallel = Parallel(ranks, shards, balance, method, {"window": window, "cu_seqlens": borders}, timeout)
    whole_ones = [each.data for each in buffers]
    try:
        for buffer, dim in zip(buffers, dims, strict=True):
            buffer.data = shards.shard(buffer.data, dim, ranks.rank)
        with Mode(parallel):
            yield parallel
    finally:
        for buffer, data in zip(buffers, whole_ones, strict=True):
            if not any(buffer is each for each in kept):
                buffer.data = data


def _check(buffers, dims, kept, balance, method, multiple):
    for option, value, known in (("balance", balance, BALANCES), ("method", method, METHODS)):
        if value not in known:
            raise InvalidArgument(f"[{NAME}] {option} is {value!r}; must be one of {', '.join(known)}")
    if not isinstance(multiple, int) or multiple < 1:
        raise InvalidArgument(f"[{NAME}] multiple is {multiple!r}; must be a positive number of positions")
    if len(buffers) != len(dims):
        raise InvalidArgument(f"[{NAME}] there are {len(buffers)} buffers and {len(dims)} buffer_seq_dims")
    for number, (buffer, dim) in enumerate(zip(buffers, dims, strict=True)):
        if not isinstance(buffer, torch.Tensor) or type(buffer) is torch.nn.Parameter or buffer.requires_grad:
            raise InvalidArgument(
                f"[{NAME}] buffer {number} is of type {type(buffer).__name__}; must be a tensor without a"
                " gradient"
            )
        if not -buffer.dim() <= dim < buffer.dim():
            raise InvalidArgument(
                f"[{NAME}] buffer {number} has {buffer.dim()} dimensions, and none of {dim}"
            )
        if any(buffer is each for each in buffers[:number]):
            raise InvalidArgument(f"[{NAME}] buffer {number} is given twice")
    lengths = [buffer.shape[dim] for buffer, dim in zip(buffers, dims, strict=True)]
    if len(set(lengths)) > 1:
        raise InvalidArgument(f"[{NAME}] buffers have {lengths} positions; must have as many")
    if not all(any(each is buffer for buffer in buffers) for each in kept):
        raise InvalidArgument(f"[{NAME}] no_restore_buffers has a tensor that is not in buffers")
