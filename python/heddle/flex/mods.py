"""Functions for flex_attention that are often wanted. A score_mod or mask_mod of the caller's own does as
well."""

import torch


def causal(b, h, q_idx, kv_idx):
    """A query sees the keys up to its own number."""
    return q_idx >= kv_idx


def sliding_window(width):
    """A query sees its own key and `width` before it."""

    def mask(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx <= width)

    return mask


def dilated(width, step):
    """A query sees every `step`-th key, counted back from its own, up to `width` before it."""

    def mask(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx <= width) & ((q_idx - kv_idx) % step == 0)

    return mask


def prefix(length):
    """All see the first `length` keys, and a query those up to its own number. `length`: a number, or a
    tensor [B]."""

    def mask(b, h, q_idx, kv_idx):
        return (kv_idx < (length[b] if isinstance(length, torch.Tensor) else length)) | (q_idx >= kv_idx)

    return mask


def documents(ids):
    """A query sees keys of its own document. `ids`: whole numbers, [L] or [B, L]."""

    def mask(b, h, q_idx, kv_idx):
        if ids.dim() == 1:
            return ids[q_idx] == ids[kv_idx]
        return ids[b, q_idx] == ids[b, kv_idx]

    return mask


def alibi(slopes):
    """Scores fall with the distance, by slopes [H]."""

    def score_mod(score, b, h, q_idx, kv_idx):
        return score - slopes[h] * torch.abs(q_idx - kv_idx)

    return score_mod


def softcap(cap):
    """Scores between -cap and cap."""

    def score_mod(score, b, h, q_idx, kv_idx):
        return cap * torch.tanh(score / cap)

    return score_mod


def relative_bias(table):
    """Adds table[h, q_idx - kv_idx + n], for a table [H, 2 n + 1]; greater distances have its ends."""

    def score_mod(score, b, h, q_idx, kv_idx):
        most = table.shape[1] // 2
        return score + table[h, torch.clamp(q_idx - kv_idx, -most, most) + most]

    return score_mod


def and_masks(*masks):
    """True where all masks are."""

    def mask(b, h, q_idx, kv_idx):
        made = b.new_ones((), dtype=torch.bool)
        for each in masks:
            made = made & each(b, h, q_idx, kv_idx)
        return made

    return mask


def or_masks(*masks):
    """True where any mask is."""

    def mask(b, h, q_idx, kv_idx):
        made = b.new_zeros((), dtype=torch.bool)
        for each in masks:
            made = made | each(b, h, q_idx, kv_idx)
        return made

    return mask


def chained(*score_mods):
    """One function after the other."""

    def score_mod(score, b, h, q_idx, kv_idx):
        for each in score_mods:
            score = each(score, b, h, q_idx, kv_idx)
        return score

    return score_mod
