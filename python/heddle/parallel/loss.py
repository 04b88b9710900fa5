"""Losses of sequences that several processes share: their divisor, and labels across the ends of parts."""

import torch

from heddle.errors import InvalidArgument, named
from heddle.parallel.ranks import LIMIT, agree, everyones, ranks_of
from heddle.parallel.shards import borders_of

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@named
def mean_loss(
    loss_sum: torch.Tensor,
    tokens: "torch.Tensor | int",
    group: "Any" = None,
    *,
    averaged_over: int = 1,
    timeout: float = LIMIT,
) -> torch.Tensor:
    """The mean loss of all ranks' tokens, the same number on each rank.

    `loss_sum`: the sum of the losses of this rank's tokens; `tokens`: how many these are, without those that
    labels leave out; either may be 0. `group`: the ranks that share the batch, in sequences and in data.

    Its gradient is this rank's part of the whole: parameters' gradients have to be added over the ranks.
    Where they are averaged instead, as DistributedDataParallel and FSDP do, `averaged_over` is over how many.
    (A mean of the ranks' means is wrong wherever ranks have different numbers of tokens.)
    """
    ranks = ranks_of(group, "mean_loss")

    def check():
        if not isinstance(loss_sum, torch.Tensor) or loss_sum.numel() != 1:
            raise InvalidArgument(
                f"[mean_loss] loss_sum has sizes {list(getattr(loss_sum, 'shape', ()))}; must be one number"
            )

    device = loss_sum.device if isinstance(loss_sum, torch.Tensor) else "cpu"
    agree(ranks, "mean_loss", check, f"averaged_over {averaged_over}", 0, device, timeout)
    own = torch.stack(
        [torch.as_tensor(each, device=device).detach().double().reshape(()) for each in (loss_sum, tokens)]
    )
    total, count = everyones(ranks, own, "mean_loss", timeout).sum(0)
    share = 1 / count.clamp(min=1)
    return _Mean.apply(loss_sum.reshape(()), (total * share).to(loss_sum.dtype), share * averaged_over)


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own, mean, share):
        ctx.save_for_backward(share)
        return mean.clone()

    @staticmethod
    def backward(ctx, grad):
        (share,) = ctx.saved_tensors
        return (grad * share).to(grad.dtype), None, None


@named
def shift_labels(
    labels: torch.Tensor,
    cu_seqlens: "torch.Tensor | Sequence[int] | None" = None,
    dim: int = -1,
    ignore_index: int = -100,
) -> torch.Tensor:
    """The label of each position's next one, and `ignore_index` at the end of the sequence and of each
    document. It is for all positions, before they are shared: after that the next one may be another rank's.
    """
    length = labels.shape[dim]
    borders = borders_of(cu_seqlens, length, "shift_labels")
    made = labels.roll(-1, dim)
    ends = torch.tensor([each - 1 for each in borders if each], dtype=torch.int64, device=labels.device)
    return made.index_fill(dim, ends, ignore_index)
