"""The loss of a linear layer's logits, without the logits in memory."""

import torch

import heddle.ops
from heddle.errors import InvalidArgument, named
from heddle.torch.gradient import apply_of_function, is_watched, refusing_of
from heddle.torch.register import register_composed

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from typing import Literal

CHUNK_BYTES = 128 << 20  # logits in memory at once
SUM_SHARE = 2  # or a part of weight's gradient in float32, which each chunk reads and writes
SLICE_BYTES = 64 << 20  # a part of weight's gradient, which is rounded by itself
HELD = 3  # all logits are, if no more than so many times weight: its sum in float32 and a chunk take as much
PARTS, ALIGNED = 32, 64  # the first part of a gradient's memory holds no logits; classes, for the products
LEAST_ROWS = 128  # in a chunk, for the products; torch's allocator packs its multiples well


def _chunks(x, weight, chunk_rows, sums=False):
    """The chunks, as slices of rows. `sums`: weight's gradient is summed over them."""
    if chunk_rows is None:
        room = max(CHUNK_BYTES, weight.numel() * 4 // SUM_SHARE if sums else 0)
        most = max(1, room // (LEAST_ROWS * weight.shape[0] * weight.element_size()))
        parts = -(-len(x) // LEAST_ROWS)
        count = -(-parts // most)
        chunk_rows = LEAST_ROWS * -(-parts // max(1, count))  # all chunks alike
    return [slice(begin, min(begin + chunk_rows, len(x))) for begin in range(0, len(x), max(1, chunk_rows))]


class _Summed:
    """Gradients that are made chunk by chunk. weight's are added up in float32, so that 16 bits are rounded
    to once, at the end."""

    def __init__(self, x, weight, dx, dweight, chunk_rows):
        self.x, self.weight, self.needs_weight = x, weight, dweight
        self.chunks = _chunks(x, weight, chunk_rows, dweight)
        self.dx = torch.empty_like(x) if dx else x.new_empty(0)
        self.is_sum = len(self.chunks) > 1
        classes = (
            max(1, SLICE_BYTES // (weight.shape[1] * weight.element_size())) if self.is_sum else len(weight)
        )
        self.slices = [slice(begin, begin + classes) for begin in range(0, len(weight), max(1, classes))]
        self.sums = []

    def add(self, rows, dlogits):
        if self.dx.numel():
            torch.mm(dlogits, self.weight, out=self.dx[rows])
        for i, part in enumerate(self.slices if self.needs_weight else ()):
            factor = dlogits[:, part].T
            if not self.is_sum:
                self.sums.append(factor @ self.x[rows])
            elif i == len(self.sums):
                self.sums.append(_product(factor, self.x[rows]))
            else:
                _add_product(self.sums[i], factor, self.x[rows])

    def made(self):
        if not self.needs_weight:
            return self.dx, self.weight.new_empty(0)
        if not self.sums:
            return self.dx, torch.zeros_like(self.weight)
        for i in range(len(self.sums)):  # one at a time: each frees its float32
            self.sums[i] = self.sums[i].to(self.weight.dtype)
        return self.dx, self.sums[0] if len(self.sums) == 1 else torch.cat(self.sums)


class _Held:
    """The gradients of all logits are held, so that weight's is written once. As many classes as fit lie in
    the memory of weight's gradient, in parts that are read before it is written there."""

    def __init__(self, x, weight, dx):
        self.x, self.weight, self.needs_x = x, weight, dx
        self.chunks = _chunks(x, weight, None)
        self.dweight = torch.empty_like(weight, memory_format=torch.contiguous_format)
        memory, self.parts, end = self.dweight.view(-1), [], 0
        for begin, end, at in _parts_in_gradient(len(x), *weight.shape):
            part = memory[at : at + len(x) * (end - begin)].view(len(x), end - begin)
            self.parts.append((slice(begin, end), part))
        others = len(weight) - end
        apart = x.new_empty(len(x), -(-others // ALIGNED) * ALIGNED)[:, :others]
        self.parts.append((slice(end, len(weight)), apart))

    def add(self, rows, dlogits):
        for classes, part in self.parts:
            part[rows] = dlogits[:, classes]

    def made(self):
        dx = self.x.new_empty(0)
        if self.needs_x:
            sums = None
            for classes, part in self.parts:
                if sums is None:
                    sums = _product(part, self.weight[classes])
                else:
                    _add_product(sums, part, self.weight[classes])
            dx = sums.to(self.x.dtype)
            del sums
        for classes, part in self.parts:
            torch.mm(part.T, self.x, out=self.dweight[classes])
        return dx, self.dweight


def _parts_in_gradient(rows, classes, width):
    """Parts (begin, end, at) of the classes: the gradients of their logits [rows, end - begin] lie in the
    memory of weight's gradient [classes, width] from element `at` on, which comes after its row `end`."""
    parts, begin, size = [], 0, classes // PARTS // ALIGNED * ALIGNED
    at = size * width
    while size > 0:
        parts.append((begin, begin + size, at))
        begin, at = begin + size, at + rows * size
        size = min(at // width - begin, (classes * width - at) // rows) // ALIGNED * ALIGNED
    return parts


def _gradients(x, weight, dx, dweight, chunk_rows):
    """Returns what makes the gradients, from those of the logits by its chunks of rows."""
    if dweight and chunk_rows is None and _should_hold(x, weight):
        return _Held(x, weight, dx)
    return _Summed(x, weight, dx, dweight, chunk_rows)


def _should_hold(x, weight):
    """True where that takes less memory than sums in float32. On a CPU there is no product of 16 bits with
    a sum in float32, which dx would need."""
    rows, width = len(x), weight.shape[1]
    is_small = width < rows and rows <= HELD * width and weight.element_size() < 4
    return is_small and x.device.type != "cpu" and len(_chunks(x, weight, None)) > 1


def _product(a, b):
    """a @ b in float32."""
    if a.is_cuda and a.dtype != torch.float32:
        return torch.mm(a, b, out_dtype=torch.float32)
    return (a @ b).float()


def _add_product(sums, a, b):
    """sums += a @ b, in float32."""
    if a.dtype == torch.float32:
        sums.addmm_(a, b)
    elif a.is_cuda:
        torch.addmm(sums, a, b, out_dtype=torch.float32, out=sums)
    else:
        sums += a @ b


def _losses(x, weight, target, factor, *, chunk_rows, later, dx=False, dweight=False, **options):
    """Loss of each row times `factor`. The gradients `dx` and `dweight` of a chunk are made while its logits
    are there; where those of the rows are known only `later`, the backward makes its logits again."""
    gradients = _gradients(x, weight, dx, dweight, chunk_rows)
    loss = torch.empty(len(x), dtype=torch.float32, device=x.device)
    lse = torch.empty_like(loss)
    for part in gradients.chunks:
        logits = x[part] @ weight.T
        heddle.ops.cross_entropy(logits, target[part], **options, out=(loss[part], lse[part]))
        if dx or dweight:
            _add_chunk(gradients, target, lse, factor, options, part, logits)
        del logits  # before the next ones are made
    # The gradients take all memory that there should be.
    lse = lse if later else loss.new_empty(0)
    return loss.mul_(factor), lse, *gradients.made()


def _losses_backward(x, weight, target, lse, factor, *, chunk_rows, dx, dweight, **options):
    gradients = _gradients(x, weight, dx, dweight, chunk_rows)
    for part in gradients.chunks:
        logits = x[part] @ weight.T
        _add_chunk(gradients, target, lse, factor, options, part, logits)
        del logits
    return gradients.made()


def _add_chunk(gradients, target, lse, factor, options, part, logits):
    """Puts the gradient of a chunk's logits in their place, and adds it to the gradients."""
    heddle.ops.cross_entropy_backward(
        logits, target[part], lse[part], factor[part].contiguous(), **options, out=logits
    )
    gradients.add(part, logits)


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
    128 MB hold, or half of weight's gradient in float32, in which its chunks are added up.
    `reduction` is "mean" (over the targets that are not ignored), "sum" or "none"; with "none" the gradient
    makes the logits again.
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
