"""The loss of a linear layer's logits, without the logits in memory."""

import torch

import heddle.ops
from heddle.errors import InvalidArgument, named
from heddle.torch.gradient import apply_of_function, is_watched, refusing_of
from heddle.torch.register import register_composed

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from typing import Literal

CHUNK_BYTES = 128 << 20  # logits in memory at once, and x's gradient where it grows with them
SMALL_BYTES = 1 << 20  # losses and everything else
SLICE_BYTES = 64 << 20  # a part of weight's gradient, before it is added to the whole
LEAST_ROWS = 128  # in a chunk, for the products; torch's allocator packs its multiples well


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


class _GradientOfWeight:
    """weight's gradient. Chunks are added up in float32, so that 16 bits are rounded to once, at the end."""

    def __init__(self, weight):
        self.weight, self.sum = weight, None

    def add(self, logits, x):
        if self.sum is None:
            self.sum = logits.T @ x
        elif x.dtype == torch.float32:
            self.sum.addmm_(logits.T, x)
        else:
            self.sum = self.sum.float()
            step = max(1, SLICE_BYTES // (x.shape[1] * x.element_size()))  # classes of a product
            for begin in range(0, len(self.sum), step):
                self.sum[begin : begin + step] += logits[:, begin : begin + step].T @ x

    def joined(self):
        return torch.zeros_like(self.weight) if self.sum is None else self.sum.to(self.weight.dtype)


def _losses(x, weight, target, factor, *, chunk_rows, later, dx=False, dweight=False, **options):
    """Loss of each row times `factor`. The gradients `dx` and `dweight` of a chunk are made while its logits
    are there; where those of the rows are known only `later`, the backward makes its logits again."""
    made_dx = _GradientOfRows(x) if dx else None
    made_dweight = _GradientOfWeight(weight) if dweight else None
    loss = torch.empty(len(x), dtype=torch.float32, device=x.device)
    lse = torch.empty_like(loss)
    for part in _chunks(x, weight, chunk_rows, dx and made_dx.grows):
        logits = x[part] @ weight.T
        heddle.ops.cross_entropy(logits, target[part], **options, out=(loss[part], lse[part]))
        if dx or dweight:
            _chunk(x, weight, target, lse, factor, options, part, logits, made_dx, made_dweight)
        del logits  # before the next ones are made
    # The gradients take all memory that there should be.
    lse = lse if later else loss.new_empty(0)
    return (
        loss.mul_(factor),
        lse,
        made_dx.joined() if dx else x.new_empty(0),
        made_dweight.joined() if dweight else weight.new_empty(0),
    )


def _losses_backward(x, weight, target, lse, factor, *, chunk_rows, dx, dweight, **options):
    made_dx = _GradientOfRows(x) if dx else None
    made_dweight = _GradientOfWeight(weight) if dweight else None
    for part in _chunks(x, weight, chunk_rows, dx and made_dx.grows):
        logits = x[part] @ weight.T
        _chunk(x, weight, target, lse, factor, options, part, logits, made_dx, made_dweight)
        del logits
    return made_dx.joined() if dx else x.new_empty(0), made_dweight.joined() if dweight else weight.new_empty(
        0
    )


def _scaled(gradient, scale):
    return (gradient * scale.reshape(1, 1)).to(gradient.dtype)  # in float32: scale has a dimension


def _scaled_in_place(gradient, scale):
    """As _scaled, in the gradient's memory where nothing asks for it again."""
    keeps = torch._C._autograd._get_current_graph_task_keep_graph()
    if keeps or torch.is_grad_enabled() or is_watched(gradient):
        return SCALED(gradient, scale)
    return gradient.mul_(scale.reshape(1, 1))


def _forward(ctx, op, attributes, x, weight, target, factor):
    ctx.attributes = attributes
    ctx.set_materialize_grads(False)
    needs_x, needs_weight = ctx.needs_input_grad[2:4]
    if attributes["later"]:
        made = op(x, weight, target, factor, **attributes)
        ctx.save_for_backward(x, weight, target, made[1], factor)
    else:
        made = op(x, weight, target, factor, **{**attributes, "dx": needs_x, "dweight": needs_weight})
        # The factor depends on x and weight, so that a second derivative is refused and not 0.
        ctx.save_for_backward(*made[2:], factor)
    ctx.mark_non_differentiable(*made[1:])
    return made


def _backward(ctx, given, *_):
    nothing = (None,) * 6
    if given is None:
        return nothing
    needs = ctx.needs_input_grad[2:4]
    if ctx.attributes["later"]:
        x, weight, target, lse, factor = ctx.saved_tensors
        options = {key: value for key, value in ctx.attributes.items() if key != "later"}
        options["dx"], options["dweight"] = needs
        made = LOSSES_BACKWARD(x, weight, target, lse, factor * given, **options)
    else:
        *made, factor = ctx.saved_tensors
        # The sum of the losses is what is differentiated, so that all rows have one gradient.
        one = given[0] if given.numel() else given.sum()
        if torch.is_grad_enabled():
            one = one + factor[:0].sum()
        made = [_scaled_in_place(each, one) if need else None for each, need in zip(made, needs, strict=True)]
    return (None, None, *(each if need else None for each, need in zip(made, needs, strict=True)), None, None)


def _chunk(x, weight, target, lse, factor, options, part, logits, dx, dweight):
    """Puts the gradient of a chunk's logits in their place, and adds what follows to dx and dweight."""
    heddle.ops.cross_entropy_backward(
        logits, target[part], lse[part], factor[part].contiguous(), **options, out=logits
    )
    if dx is not None:
        dx.add(part, logits, weight)
    if dweight is not None:
        dweight.add(logits, x[part])


def _pretended(x, weight, target, factor, *, later, dx=False, dweight=False, **_):
    rows = x.new_empty(len(x), dtype=torch.float32)
    return rows, rows.new_empty(len(x) if later else 0), *_pretended_gradients(x, weight, dx, dweight)


def _pretended_gradients(x, weight, dx, dweight):
    return tuple(
        torch.empty_like(each) if wanted else each.new_empty(0)
        for each, wanted in ((x, dx), (weight, dweight))
    )


_TENSORS, _OPTIONS = (
    "Tensor x, Tensor weight, Tensor target",
    "*, int ignore_index, float label_smoothing, float softcap, float z_loss, int? chunk_rows",
)
LOSSES = register_composed(
    f"linear_cross_entropy({_TENSORS}, Tensor factor, {_OPTIONS}, bool later, bool dx=False,"
    " bool dweight=False) -> (Tensor, Tensor, Tensor, Tensor)",
    _losses,
    _pretended,
    apply_of_function("linear_cross_entropy", _forward, _backward),
)
LOSSES_BACKWARD = register_composed(
    f"linear_cross_entropy_backward({_TENSORS}, Tensor lse, Tensor factor, {_OPTIONS}, bool dx, bool dweight)"
    " -> (Tensor, Tensor)",
    _losses_backward,
    lambda x, weight, *_, dx, dweight, **__: _pretended_gradients(x, weight, dx, dweight),
    refusing_of("linear_cross_entropy_backward"),
)
SCALED = register_composed(
    "linear_cross_entropy_scaled(Tensor gradient, Tensor scale) -> Tensor",
    _scaled,
    lambda gradient, scale: torch.empty_like(gradient),
    refusing_of("linear_cross_entropy_scaled"),
)


def _require_tensors(x, weight, target):
    for name, value in (("x", x), ("weight", weight), ("target", target)):
        if not isinstance(value, torch.Tensor):
            raise InvalidArgument(
                f"[linear_cross_entropy] {name} is of type {type(value).__name__}; must be a torch.Tensor"
            )
        if value.device != x.device:
            raise InvalidArgument(
                f"[linear_cross_entropy] {name} is on {value.device} and x on {x.device}; must be one device"
            )
        if value.is_floating_point() != (name != "target") or value.is_complex():
            right = "integers" if name == "target" else "floats"
            raise InvalidArgument(f"[linear_cross_entropy] {name} is of {value.dtype}; must be of {right}")
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise InvalidArgument(
            f"[linear_cross_entropy] x is of {x.dtype} and weight of {weight.dtype}; must be of one dtype"
        )


@named
def linear_cross_entropy(
    x: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float = 0.0,
    z_loss: float = 0.0,
    reduction: 'Literal["mean", "sum", "none"]' = "mean",
    chunk_rows: int | None = None,
) -> torch.Tensor:
    """cross_entropy of x @ weight.T, whose logits are never all in memory.

    x [..., K], weight [V, K], target [...]. Logits of `chunk_rows` rows are in memory; by default as many as
    128 MB hold, together with what is made of x's gradient if that is small. `reduction` is "mean" (over the
    targets that are not ignored), "sum" or "none"; with "none" the gradient makes the logits again.
    Under torch.autocast x and weight become its dtype. Raises Unsupported where a second derivative is taken.
    """
    if reduction not in ("mean", "sum", "none"):
        raise InvalidArgument(
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
        raise InvalidArgument(
            f"[linear_cross_entropy] x is {list(x.shape)}, weight {list(weight.shape)}, target"
            f" {list(target.shape)}; must be [..., K], [V, K] and [...]"
        )
    if chunk_rows is not None and (not hasattr(chunk_rows, "__index__") or chunk_rows < 1):
        raise InvalidArgument(
            f"[linear_cross_entropy] chunk_rows = {chunk_rows!r}; must be a positive whole number"
        )
    options = {
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
        "softcap": softcap,
        "z_loss": z_loss,
    }
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, weight = x.to(dtype), weight.to(dtype)
    flat, targets = x.reshape(-1, x.shape[-1]), target.reshape(-1).contiguous()
    factor = torch.ones(len(flat), dtype=torch.float32, device=x.device)
    if reduction == "mean":
        factor = factor / (targets != ignore_index).sum()
    later = reduction == "none"
    if not later:
        # It does not change the factor, which carries that the gradients depend on both.
        factor = factor + (flat[:0].sum() + weight[:0].sum())
    losses = LOSSES(flat, weight, targets, factor, **options, chunk_rows=chunk_rows, later=later)[0]
    return losses.reshape(target.shape) if later else losses.sum()
