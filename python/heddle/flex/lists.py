"""The lists of blocks of a BlockMask of torch."""

from heddle.errors import named

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from typing import TypedDict

    from torch import Tensor
    from torch.nn.attention.flex_attention import BlockMask

    class BlockLists(TypedDict):
        kv_num_blocks: Tensor
        kv_indices: Tensor
        block_q: int
        block_k: int


@named
def block_lists(mask: "BlockMask") -> "BlockLists":
    """Turns a BlockMask of torch's flex_attention into named arguments of heddle.ops.flash_attention.

    flash_attention(q, k, v, **block_lists(mask), causal=True) visits the blocks that the mask lists, and in
    each of them the pairs that `causal`, windows and a bias leave. The mask's mask_mod is a function of
    Python and is not called: these must say what it masks in partial blocks. All blocks become one list.
    """
    counts, indices, full = mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks
    if full is not None:
        both = indices.new_empty(*indices.shape[:-1], indices.shape[-1] + mask.full_kv_indices.shape[-1])
        both[..., : indices.shape[-1]], both[..., indices.shape[-1] :] = indices, mask.full_kv_indices
        # Entry n of the joint list: partial blocks come first.
        place = both.new_ones(both.shape).cumsum(-1) - 1
        first_full = indices.shape[-1] - counts[..., None]
        place = place.where(place < counts[..., None], place + first_full).clamp(max=both.shape[-1] - 1)
        counts, indices = counts + full, both.gather(-1, place)
    queries, keys = mask.BLOCK_SIZE
    return {"kv_num_blocks": counts, "kv_indices": indices, "block_q": queries, "block_k": keys}
