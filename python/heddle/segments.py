"""Attention over streams: a layer reads a sequence segment by segment, and keeps a memory of fixed size.

However a sequence is cut, its rows are those of the whole sequence in one piece: positions go on, and each
sequence of a batch has a memory of its own.
"""

import dataclasses

import torch

from heddle import ops
from heddle.errors import InvalidArgument, named, named_class
from heddle.power import power_attention

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LongSequenceOptimizer", "SegmentState", "SegmentedAttentionMemory"]

# flash_attention takes keys in chunks of so many on a CPU. Chunks that begin at the same positions in each
# call give the same order of sums.
_CHUNK = 64


@dataclasses.dataclass(frozen=True)
class _Part:
    """Sequences of a batch that began together."""

    rows: "torch.Tensor | None"  # int64 [n]: their numbers in the batch; None: all
    seen: int = 0  # positions until now
    memory: tuple = ()  # kv: the last keys and values, [n, m, g, d] each; power: sums; empty at the beginning

    def of(self, batch):
        return batch if self.rows is None else batch[self.rows]

    def chosen(self, mask):
        """The sequences among them that a boolean mask of the whole batch names."""
        rows = torch.arange(len(mask)) if self.rows is None else self.rows
        keep = mask[rows]
        return _Part(rows[keep], self.seen, tuple(each[keep.to(each.device)] for each in self.memory))


@dataclasses.dataclass(frozen=True)
class SegmentState:
    """The memory that a layer has of earlier segments: opaque, but for `batch` and `nbytes`."""

    batch: int
    calls: int
    parts: "tuple[_Part, ...]"

    @property
    def nbytes(self) -> int:
        """Bytes of the memory of all sequences."""
        return sum(each.numel() * each.element_size() for part in self.parts for each in part.memory)

    def tensors(self):
        return [each for part in self.parts for each in part.memory]

    def reset(self, mask: "torch.Tensor | None" = None) -> "SegmentState | None":
        """Lets the sequences that a boolean mask [batch] names begin anew; all without one."""
        if mask is None:
            return None
        mask = torch.as_tensor(mask).cpu()
        if mask.dtype != torch.bool or mask.shape != (self.batch,):
            raise InvalidArgument(
                f"[SegmentState] the mask of a reset is {mask.dtype} {list(mask.shape)}; must be bool"
                f" [{self.batch}], one for each sequence of the batch"
            )
        if not mask.any():
            return self
        kept = [part.chosen(~mask) for part in self.parts]
        parts = [part for part in kept if len(part.rows)]
        return dataclasses.replace(self, parts=(*parts, _Part(mask.nonzero()[:, 0])))


class _RowLinear(torch.nn.Linear):
    """A linear layer whose row has the same bits whatever other rows there are."""

    def forward(self, x):
        y = ops.matmul(x, self.weight.t())
        return y if self.bias is None else y + self.bias


@named_class
class SegmentedAttentionMemory(torch.nn.Module):
    """Causal self-attention of a stream, of which a call gets the next segment [b, s, embed_dim].

    kind="kv": a position sees itself and the `memory_length` positions before it, in its own segment and in
    earlier ones: a sliding window, by heddle.ops.flash_attention. The memory is the keys and values of the
    last memory_length positions, and at most 63 more. In float32 on a CPU a row has the same bits however the
    stream is cut.
    kind="power": a position sees all before it, weighed by powers of scores (heddle.power_attention); the
    memory is the sums of that, whose size does not depend on any length. Rows depend on the cuts by rounding
    alone. memory_length must be left out.

    segment_length: the most positions of a call. num_kv_heads: heads of keys and values, num_heads unless
    given. rotate(x [b, s, h, d], first position): applied to queries and keys if given, such as a rotary
    embedding; positions go on from segment to segment.
    detach: where gradients end. "segment": at each segment's beginning; n: at every n-th; "never": nowhere,
    so that the memory of the graph grows with the stream.

    The layer holds its state: `layer(x)` goes on with it, `layer.reset(mask)` lets sequences begin anew.
    `layer.step(x, state)` returns (y, state) instead and holds nothing. The state is no part of state_dict.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        segment_length: int,
        memory_length: "int | None" = None,
        *,
        kind: str = "kv",
        num_kv_heads: "int | None" = None,
        rotate: "Callable[[torch.Tensor, int], torch.Tensor] | None" = None,
        detach: "str | int" = "segment",
        bias: bool = False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        shared = num_heads if num_kv_heads is None else num_kv_heads
        _check_sizes(embed_dim, num_heads, shared, segment_length)
        _check_kind(kind, memory_length, embed_dim // num_heads, shared == num_heads)
        self.kind, self.segment_length, self.memory_length = kind, segment_length, memory_length
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, shared, embed_dim // num_heads
        self.embed_dim, self.rotate = embed_dim, rotate
        self.detach_after = _detach_after(detach)
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.q_proj = _RowLinear(embed_dim, embed_dim, **options)
        self.k_proj = _RowLinear(embed_dim, shared * self.head_dim, **options)
        self.v_proj = _RowLinear(embed_dim, shared * self.head_dim, **options)
        self.o_proj = _RowLinear(embed_dim, embed_dim, **options)
        self.state: SegmentState | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, self.state = self.step(x, self.state)
        return y

    def reset(self, mask: "torch.Tensor | None" = None) -> None:
        """Lets the sequences that a boolean mask [batch] names begin anew; all without one."""
        self.state = self.state and self.state.reset(mask)

    @torch.compiler.disable(reason="the sizes of a memory change from call to call")
    def step(
        self, x: torch.Tensor, state: "SegmentState | None" = None
    ) -> "tuple[torch.Tensor, SegmentState]":
        """The rows of a segment, and the state after it. state: that after the segment before, None for the
        first."""
        self._check_segment(x, state)
        state = state or SegmentState(len(x), 0, (_Part(None),))
        cut = self.detach_after and state.calls % self.detach_after == 0
        inputs = [self._heads(project, x) for project in (self.q_proj, self.k_proj, self.v_proj)]
        y, parts = torch.empty_like(inputs[0]), []
        for part in state.parts:
            memory = tuple(each.detach() for each in part.memory) if cut else part.memory
            rows, memory = self._attend([part.of(each) for each in inputs], part.seen, memory)
            parts.append(_Part(part.rows, part.seen + x.shape[1], memory))
            y = rows if part.rows is None else y.index_copy(0, part.rows.to(y.device), rows)
        return self.o_proj(y.flatten(2)), SegmentState(len(x), state.calls + 1, tuple(parts))

    def extra_repr(self) -> str:
        return (
            f"{self.embed_dim}, heads={self.num_heads}, kind={self.kind!r}, segment_length="
            f"{self.segment_length}, memory_length={self.memory_length}"
        )

    def _heads(self, project, x):
        return project(x).unflatten(-1, (-1, self.head_dim))

    def _attend(self, inputs, seen, memory):
        q, k, v = inputs
        if self.rotate is not None:
            q, k = self.rotate(q, seen), self.rotate(k, seen)
        if self.kind == "power":
            y, sums = power_attention(q, k, v, state=memory[0] if memory else None, return_state=True)
            return y, (sums,)
        if memory:
            k, v = torch.cat((memory[0], k), 1), torch.cat((memory[1], v), 1)
        rest = -k.shape[1] % _CHUNK
        keys, values = (torch.nn.functional.pad(each, (0, 0, 0, 0, 0, rest)) for each in (k, v))
        y, _ = ops.flash_attention(
            q, keys, values, causal=True, window_left=self.memory_length, q_offset=-rest
        )
        first, end = seen + q.shape[1] - k.shape[1], seen + q.shape[1]
        unseen = max(end - self.memory_length, 0) // _CHUNK * _CHUNK - first
        return y, (k[:, unseen:].clone(), v[:, unseen:].clone())

    def _check_segment(self, x, state):
        sizes = tuple(getattr(x, "shape", ()))
        if len(sizes) != 3 or sizes[2] != self.embed_dim or not 0 < sizes[1] <= self.segment_length:
            raise InvalidArgument(
                f"[SegmentedAttentionMemory] the segment is {type(x).__name__} {list(sizes)}; must be a"
                f" tensor [b, s, {self.embed_dim}] with s from 1 to {self.segment_length}"
            )
        if state is None:
            return
        if state.batch != len(x):
            raise InvalidArgument(
                f"[SegmentedAttentionMemory] the segment has a batch of {len(x)}, and the memory one of"
                f" {state.batch}; must be equal, or call reset() first"
            )
        for each in state.tensors():
            if each.device != x.device or (self.kind == "kv" and each.dtype != self.k_proj.weight.dtype):
                raise InvalidArgument(
                    f"[SegmentedAttentionMemory] the memory is {each.dtype} on {each.device}, and the segment"
                    f" {x.dtype} on {x.device}; must be equal, or call reset() first"
                )


class LongSequenceOptimizer:
    """Cuts long sequences into segments of at most `max_segment_length` positions."""

    @named
    def __init__(self, max_segment_length: int):
        if not _whole(max_segment_length, 1):
            raise InvalidArgument(
                f"[LongSequenceOptimizer] max_segment_length is {max_segment_length!r}; must be a whole"
                " number from 1 on"
            )
        self.max_segment_length = max_segment_length

    def segment_sequence(self, x: torch.Tensor, dim: int = 1) -> "Iterator[torch.Tensor]":
        """The segments of x along a dimension, in order: views, which share its memory."""
        return iter(x.split(self.max_segment_length, dim))


def _whole(value, least):
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _check_sizes(embed_dim, num_heads, shared, segment_length):
    named_sizes = {
        "embed_dim": embed_dim,
        "num_heads": num_heads,
        "num_kv_heads": shared,
        "segment_length": segment_length,
    }
    for name, value in named_sizes.items():
        if not _whole(value, 1):
            raise InvalidArgument(
                f"[SegmentedAttentionMemory] {name} is {value!r}; must be a whole number from 1 on"
            )
    for name, whole, by, part in (
        ("embed_dim", embed_dim, "num_heads", num_heads),
        ("num_heads", num_heads, "num_kv_heads", shared),
    ):
        if whole % part:
            raise InvalidArgument(
                f"[SegmentedAttentionMemory] {name} is {whole} and {by} {part}; must divide it"
            )


def _check_kind(kind, memory_length, head_dim, all_heads):
    if kind == "power":
        if memory_length is not None:
            raise InvalidArgument(
                f"[SegmentedAttentionMemory] memory_length is {memory_length!r}; kind='power' remembers all,"
                " leave it out"
            )
        if head_dim % 8 or not all_heads:
            raise InvalidArgument(
                f"[SegmentedAttentionMemory] kind='power' has heads of {head_dim}; must be a multiple of 8,"
                " with as many heads of keys as of queries"
            )
    elif kind != "kv":
        raise InvalidArgument(f"[SegmentedAttentionMemory] kind is {kind!r}; must be 'kv' or 'power'")
    elif not _whole(memory_length, 0):
        raise InvalidArgument(
            f"[SegmentedAttentionMemory] memory_length is {memory_length!r}; must be a whole number from 0 on"
        )


def _detach_after(detach):
    """Segments from one cut of the graph to the next; 0: none."""
    known = {"segment": 1, "never": 0}
    if detach in known or _whole(detach, 1):
        return known.get(detach, detach)
    raise InvalidArgument(
        f"[SegmentedAttentionMemory] detach is {detach!r}; must be 'segment', 'never' or a whole number"
        " from 1 on"
    )
