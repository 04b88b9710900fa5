"""Choices of tokens, sorted by expert: the rows of grouped products."""

import torch


def sort(index, experts, unit):
    """(choice [R], place [T, C], ends [E]), all int32, of index [T, C], the experts of tokens.

    Row r of the sorted rows has choice number choice[r] (token choice[r] // C), or none where it is -1; the
    choice is at row place[t, c]; the rows of expert e end before ends[e], a multiple of `unit`. Choices of
    one expert keep their order. An index outside of the experts has no row, and its place is -1. The host
    waits for nothing: R is the most that `unit` may need.
    """
    tokens, taken = index.shape
    count, device = tokens * taken, index.device
    rows = count if unit == 1 else (count // unit + min(experts, count)) * unit
    found, order = torch.sort(index.reshape(-1), stable=True)
    each = torch.arange(experts, device=device, dtype=found.dtype)
    begins, plain_ends = torch.searchsorted(found, each), torch.searchsorted(found, each, right=True)
    sizes = (plain_ends - begins + (unit - 1)) // unit * unit
    ends = sizes.cumsum(0)
    is_there = (found >= 0) & (found < experts)
    shift = (ends - sizes - begins)[found.clamp(0, experts - 1)] if experts else found
    row = torch.where(is_there, torch.arange(count, device=device) + shift, rows)
    choice = torch.full((rows + 1,), -1, dtype=torch.int32, device=device)
    choice.scatter_(0, row, order.to(torch.int32))
    place = torch.empty(count, dtype=torch.int32, device=device)
    place.scatter_(0, order, torch.where(is_there, row, -1).to(torch.int32))
    return choice[:rows], place.reshape(tokens, taken), ends.to(torch.int32)
