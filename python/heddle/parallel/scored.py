"""flex_attention of some of a sequence's queries, or heads: its functions see the numbers of the whole."""

import torch
from torch.nn.attention.flex_attention import BlockMask

from heddle.errors import InvalidArgument
from heddle.flex import create_block_mask
from heddle.flex.flex import attend
from heddle.parallel.moves import Spread


def check_mask(block_mask, length):
    lengths = None if block_mask is None else tuple(block_mask.seq_lengths)
    if lengths not in (None, (length, length)):
        raise InvalidArgument(
            f"[flex_attention] block_mask is of {lengths[0]} queries and {lengths[1]} keys; in"
            f" context_parallel it must be of the whole sequence, {length} and {length}"
        )


def by_rows(plan, q, k, v, score_mod, block_mask, scale):
    """(y, lse) of this rank's queries, and keys of all."""
    heads = [(0, k.shape[1])] * plan.ranks.size
    k, v = (Spread.apply(plan, each, heads, name) for each, name in ((k, "keys"), (v, "values")))
    parts = []
    for (begin, end), row in plan.shards.placed(plan.ranks.rank):
        score = moved_score(score_mod, begin, 0)
        mask = _kept(block_mask, (begin, end), lambda a=begin, b=end: _rows_of(block_mask, a, b))
        parts.append(attend(q[:, :, row : row + end - begin], k, v, score, mask, scale))
    if not parts:  # a rank without positions has a part in the gradients
        nothing = 0 * (q.sum() + k.sum() + v.sum())
        parts = [
            (q.new_zeros(*q.shape[:3], v.shape[3]) + nothing, q.new_zeros(q.shape[:3]).float() + nothing)
        ]
    y, lse = zip(*parts, strict=True)
    return torch.cat(y, 2), torch.cat(lse, 2)


def of_heads(q, k, v, first, score_mod, block_mask, scale):
    """The result for all positions, and heads from `first` on."""
    count = q.shape[1]
    score = moved_score(score_mod, 0, first)
    mask = _kept(block_mask, ("heads", first, count), lambda: _heads_of(block_mask, first, count))
    return attend(q, k, v, score, mask, scale)[0]


def moved_score(score_mod, begin, head):
    """Begins and heads are tensors: as numbers of Python they would be other functions, to be compiled."""
    if score_mod is None:
        return None
    begin, head = torch.tensor(begin, dtype=torch.int32), torch.tensor(head, dtype=torch.int32)
    return lambda score, b, h, q_idx, kv_idx: score_mod(score, b, h + head, q_idx + begin, kv_idx)


def _kept(block_mask, key, make):
    """A model gives the same mask to all its layers."""
    if block_mask is None:
        return None
    known = vars(block_mask).setdefault("heddle_parts", {})
    if key not in known:
        known[key] = make()
    return known[key]


def _rows_of(block_mask, begin, end):
    mod, (rows, columns) = block_mask.mask_mod, block_mask.BLOCK_SIZE

    def moved(b, h, q_idx, kv_idx):
        return mod(b, h, q_idx + begin, kv_idx)

    length = block_mask.seq_lengths[1]
    if begin % rows:
        outer = (size if size > 1 else None for size in block_mask.kv_num_blocks.shape[:2])
        device = block_mask.kv_num_blocks.device
        return create_block_mask(moved, *outer, end - begin, length, device, (rows, columns))
    return _part(block_mask, 2, slice(begin // rows, -(-end // rows)), moved, end - begin)


def _heads_of(block_mask, first, count):
    mod = block_mask.mask_mod

    def moved(b, h, q_idx, kv_idx):
        return mod(b, h + first, q_idx, kv_idx)

    heads = slice(first, first + count) if block_mask.kv_num_blocks.shape[1] > 1 else slice(None)
    return _part(block_mask, 1, heads, moved, block_mask.seq_lengths[0])


def _part(block_mask, dim, which, mod, queries):
    """Takes the lists of some queries or heads as they are, so that sums keep their order."""
    at = (*(slice(None),) * dim, which)
    lists = (block_mask.kv_num_blocks, block_mask.kv_indices)
    lists += (block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    made = BlockMask.from_kv_blocks(
        *(None if each is None else each[at] for each in lists),
        BLOCK_SIZE=block_mask.BLOCK_SIZE,
        mask_mod=mod,
        seq_lengths=(queries, block_mask.seq_lengths[1]),
    )
    made.heddle_lists_follow_mask = getattr(block_mask, "heddle_lists_follow_mask", False)
    return made
