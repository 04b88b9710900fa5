"""The loss of a linear layer's logits, without the logits in memory."""

import torch

import heddle
import heddle.ops
from heddle.errors import named

CHUNK_BYTES = 128 << 20  # of logits that are in memory at once, and of x's gradient where it grows with them
SMALL_BYTES = 1 << 20  # of losses and what else is there besides
LEAST_ROWS = 128  # of a chunk, for the products; its multiples are blocks that torch's allocator packs well


def _chunks(x, weight, chunk_rows, grows=False):
    """The chunks, as slices of rows. `grows`: each leaves its rows of x's gradient in memory, and the next
    has less room."""
    begin = 0
    while begin < len(x):
        rows = chunk_rows
        if rows is None:
            taken, of_row = (begin * x.shape[1], x.shape[1]) if grows else (0, 0)
            room = (CHUNK_BYTES - (SMALL_BYTES if grows else 0)) // weight.element_size() - taken
            rows = max(LEAST_ROWS, room // (weight.shape[0] + of_row) // LEAST_ROWS * LEAST_ROWS)
        yield slice(begin, begin + rows)
        begin += rows


class _GradientOfRows:
    """x's gradient, chunk by chunk. A small one grows in pieces, so that early chunks may have more logits;
    joined at the end, when no logits are left, it takes no more memory than they did."""

    def __init__(self, x):
        self.grows = 0 < 2 * x.numel() * x.element_size() <= CHUNK_BYTES
        self.whole = None if self.grows else torch.empty_like(x)
        self.pieces = []

    def add(self, part, logits, weight):
        if self.grows:
            self.pieces.append(logits @ weight)
        else:
            torch.mm(logits, weight, out=self.whole[part])

    def joined(self):
        if not self.grows:
            return self.whole
        return self.pieces[0] if len(self.pieces) == 1 else torch.cat(self.pieces)


class _LinearCrossEntropy(torch.autograd.Function):
    """Loss of each row times `factor`. The gradients of a chunk are made while its logits are there; where
    those of the rows are known only later (`later`), its logits are made again."""

    @staticmethod
    def forward(ctx, x, weight, target, factor, options, chunk_rows, later):
        needs_x, needs_weight = ctx.needs_input_grad[:2]
        now = (needs_x or needs_weight) and not later
        dx = _GradientOfRows(x) if now and needs_x else None
        dweight = torch.zeros_like(weight) if now and needs_weight else None
        loss = torch.empty(len(x), dtype=torch.float32, device=x.device)
        lse = torch.empty_like(loss)
        for part in _chunks(x, weight, chunk_rows, dx is not None and dx.grows):
            logits = x[part] @ weight.T
            heddle.ops.cross_entropy(logits, target[part], **options, out=(loss[part], lse[part]))
            if now:
                _chunk(x, weight, target, lse, factor, options, part, logits, dx, dweight)
            del logits  # before the next ones are made
        ctx.now, ctx.options, ctx.chunk_rows = now, options, chunk_rows
        if not now:
            ctx.save_for_backward(x, weight, target, lse, factor)
        given = loss * factor
        del loss, lse  # the gradients take all memory that there should be
        ctx.made = (dx and dx.joined(), dweight)
        return given

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, given):
        if ctx.now:
            if ctx.made is None:
                raise heddle.InvalidArgument(
                    "[linear_cross_entropy] its gradient was taken before, in place; call it again"
                )
            (dx, dweight), ctx.made = ctx.made, None
            # The sum of the losses is what is differentiated, so that all rows have one gradient.
            one = given[0] if given.numel() else given.sum()
            for each in (dx, dweight):
                if each is not None:
                    each.mul_(one.reshape(1, 1))  # in float32: a scalar would be rounded to their dtype first
            return dx, dweight, None, None, None, None, None
        x, weight, target, lse, factor = ctx.saved_tensors
        dx = _GradientOfRows(x) if ctx.needs_input_grad[0] else None
        dweight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        for part in _chunks(x, weight, ctx.chunk_rows, dx is not None and dx.grows):
            logits = x[part] @ weight.T
            _chunk(x, weight, target, lse, factor * given, ctx.options, part, logits, dx, dweight)
            del logits
        return dx and dx.joined(), dweight, None, None, None, None, None


def _chunk(x, weight, target, lse, factor, options, part, logits, dx, dweight):
    """Puts the gradient of a chunk's logits in their place, and adds what follows to dx and dweight."""
    heddle.ops.cross_entropy_backward(
        logits, target[part], lse[part], factor[part].contiguous(), **options, out=logits
    )
    if dx is not None:
        dx.add(part, logits, weight)
    if dweight is not None:
        dweight.addmm_(logits.T, x[part])


def _require_tensors(x, weight, target):
    for name, value in (("x", x), ("weight", weight), ("target", target)):
        if not isinstance(value, torch.Tensor):
            raise heddle.InvalidArgument(
                f"[linear_cross_entropy] {name} is of type {type(value).__name__}; must be a torch.Tensor"
            )
        if value.device != x.device:
            raise heddle.InvalidArgument(
                f"[linear_cross_entropy] {name} is on {value.device} and x on {x.device}; must be one device"
            )
        if value.is_floating_point() != (name != "target") or value.is_complex():
            right = "integers" if name == "target" else "floats"
            raise heddle.InvalidArgument(
                f"[linear_cross_entropy] {name} is of {value.dtype}; must be of {right}"
            )
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise heddle.InvalidArgument(
            f"[linear_cross_entropy] x is of {x.dtype} and weight of {weight.dtype}; must be of one dtype"
        )


@named
def linear_cross_entropy(
    x,
    weight,
    target,
    *,
    ignore_index=-100,
    label_smoothing=0.0,
    softcap=0.0,
    z_loss=0.0,
    reduction="mean",
    chunk_rows=None,
):
    """cross_entropy of x @ weight.T, whose logits are never all in memory.

    x [..., K], weight [V, K], target [...]. Logits of `chunk_rows` rows are in memory; by default as many as
    128 MB hold, together with what is made of x's gradient if that is small. `reduction` is "mean" (over the
    targets that are not ignored), "sum" or "none"; with "none" the gradient makes the logits again.
    """
    if reduction not in ("mean", "sum", "none"):
        raise heddle.InvalidArgument(
            f'[linear_cross_entropy] reduction = {reduction!r}; must be "mean", "sum" or "none"'
        )
    _require_tensors(x, weight, target)
    if (
        not x.dim()
        or not weight.dim()
        or x.shape[-1] != weight.shape[-1]
        or x.shape[:-1] != target.shape
        or weight.dim() != 2
    ):
        raise heddle.InvalidArgument(
            f"[linear_cross_entropy] x is {list(x.shape)}, weight {list(weight.shape)}, target"
            f" {list(target.shape)}; must be [..., K], [V, K] and [...]"
        )
    if chunk_rows is not None and (not isinstance(chunk_rows, int) or chunk_rows < 1):
        raise heddle.InvalidArgument(
            f"[linear_cross_entropy] chunk_rows = {chunk_rows!r}; must be a positive whole number"
        )
    options = {
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
        "softcap": softcap,
        "z_loss": z_loss,
    }
    flat, targets = x.reshape(-1, x.shape[-1]), target.reshape(-1).contiguous()
    factor = torch.ones(len(flat), dtype=torch.float32, device=x.device)
    if reduction == "mean":
        factor = factor / (targets != ignore_index).sum()
    later = reduction == "none"
    if later:
        losses = _LinearCrossEntropy.apply(flat, weight, targets, factor, options, chunk_rows, True)
        return losses.reshape(target.shape)
    return _LinearCrossEntropy.apply(flat, weight, targets, factor, options, chunk_rows, False).sum()
