"""Which blocks of keys matter to a block of queries: estimates of the attention that falls on each.

An estimate [B, H, rows, columns] is of blocks of queries (rows) and of keys (columns), and sums to 1 over the
columns that a row sees. Attention is causal: the last query stands at the last key.
"""

import dataclasses
import math

import torch

_MOST = 1 << 26  # elements of scores that are in memory at once
_LAST = 64  # queries at the end whose scores tell verticals and slashes


@dataclasses.dataclass(frozen=True)
class Grid:
    """Blocks of queries and keys."""

    queries: int
    keys: int
    block: int

    @property
    def offset(self):
        """The position of the first query."""
        return self.keys - self.queries

    @property
    def rows(self):
        return -(-self.queries // self.block)

    @property
    def columns(self):
        return -(-self.keys // self.block)

    def ends(self, device):
        """The last position of each row's queries."""
        last = (torch.arange(self.rows, device=device) + 1) * self.block
        return self.offset + last.clamp(max=self.queries) - 1

    def seen(self, device):
        """[rows, columns]: whether a query of the row sees any key of the column."""
        return torch.arange(self.columns, device=device) * self.block <= self.ends(device)[:, None]

    def near(self, device, window):
        """[rows, columns]: the row's own positions, and `window` positions before them."""
        first = self.offset + torch.arange(self.rows, device=device)[:, None] * self.block - window
        end = (torch.arange(self.columns, device=device) + 1) * self.block
        return self.seen(device) & (end > first)


def _products(q, k):
    """q k' in groups of heads that share keys, as float32 [B, H, ., .]."""
    batch, heads, rows, dim = q.shape
    grouped = q.reshape(batch, k.shape[1], heads // k.shape[1] * rows, dim)
    return (grouped @ k.transpose(-1, -2)).reshape(batch, heads, rows, -1).float()


def _padded(x, rows):
    return torch.nn.functional.pad(x, (0, 0, 0, rows - x.shape[2]))


def antidiagonal(q, k, grid, scale, stride):
    """Sums of scores along antidiagonals of cells of stride x stride stand for the cell (Xu et al., 2025:
    "XAttention"); costs 1 / stride of all scores."""
    cells = grid.block // stride
    queries = _padded(q, grid.rows * grid.block).unflatten(2, (-1, stride)).flip(3).flatten(3)
    keys = _padded(k, grid.columns * grid.block).unflatten(2, (-1, stride)).flatten(3)
    at_once = max(1, _MOST // (q.shape[0] * q.shape[1] * cells * keys.shape[2]))
    key_begin = torch.arange(keys.shape[2], device=q.device) * stride
    made = []
    for row in range(0, grid.rows, at_once):
        rows = min(at_once, grid.rows - row)
        part = queries[:, :, row * cells : (row + rows) * cells]
        begin = (torch.arange(part.shape[2], device=q.device) + row * cells) * stride
        position = grid.offset + (begin + stride).clamp(max=grid.queries) - 1
        scores = _products(part, keys) * (scale / stride)
        unseen = (key_begin > position[:, None]) | (key_begin >= grid.keys)
        weights = scores.masked_fill_(unseen, -math.inf).softmax(-1)
        weights = weights * (begin < grid.queries)[:, None]  # not those of cells past the last query
        sums = weights.unflatten(3, (-1, cells)).sum(-1).unflatten(2, (-1, cells)).sum(3)
        made.append(sums / sums.sum(-1, keepdim=True))
    return torch.cat(made, 2)


def pooled(q, k, grid, scale):
    """Scores of the mean query and the mean key of each block."""

    def means(x, blocks):
        sums = _padded(x, blocks * grid.block).unflatten(2, (-1, grid.block)).sum(3, dtype=torch.float32)
        last = x.shape[2] - (blocks - 1) * grid.block
        counts = torch.full((blocks, 1), float(grid.block), device=x.device)
        counts[-1] = last
        return sums / counts

    scores = _products(means(q, grid.rows), means(k, grid.columns)) * scale
    return scores.masked_fill(~grid.seen(q.device), -math.inf).softmax(-1)


def exact_rows(q, k, grid, scale, rows):
    """The attention of some queries (their numbers, [n]) to all keys: float32 [B, H, n, keys]."""
    scores = _products(q[:, :, rows].float(), k.float()) * scale
    unseen = torch.arange(grid.keys, device=q.device) > (grid.offset + rows)[:, None]
    return scores.masked_fill(unseen, -math.inf).softmax(-1)


def by_column(weights, grid):
    """[.., keys] summed up by blocks of keys: [.., columns]."""
    rest = grid.columns * grid.block - grid.keys
    return torch.nn.functional.pad(weights, (0, rest)).unflatten(-1, (-1, grid.block)).sum(-1)


def lines(q, k, grid, scale):
    """(verticals, slashes), [B, H, columns] each: the attention of the last queries, by blocks of keys and by
    blocks of distances (Jiang et al., 2024: "MInference")."""
    count = min(_LAST, grid.queries)
    rows = torch.arange(grid.queries - count, grid.queries, device=q.device)
    weights = exact_rows(q, k, grid, scale, rows)
    # Row i of the keys in reverse, shifted right by i: equal distances share a column.
    shifted = torch.nn.functional.pad(weights.flip(-1), (0, count)).flatten(2)
    shifted = shifted[..., : count * (grid.keys + count - 1)].unflatten(2, (count, -1))
    distances = shifted.sum(2)[..., count - 1 :] / count
    return by_column(weights.mean(2), grid), by_column(distances, grid)


def along(slashes, grid):
    """[.., rows, columns]: whether a chosen block of distances [.., columns] touches a block of both."""
    device = slashes.device
    row = grid.offset + torch.arange(grid.rows, device=device)[:, None] * grid.block
    column = torch.arange(grid.columns, device=device) * grid.block
    low = (row - column - grid.block + 1).div(grid.block, rounding_mode="floor")
    high = (row - column + grid.block - 1).div(grid.block, rounding_mode="floor")
    made = torch.zeros(*slashes.shape[:-1], grid.rows, grid.columns, dtype=torch.bool, device=device)
    for step in range(3):
        index = low + step
        inside = (index >= 0) & (index <= high) & (index < grid.columns)
        made |= slashes[..., index.clamp(0, grid.columns - 1)] & inside
    return made


def top(shares, threshold, most=None):
    """The largest shares of the last dimension that add up to the threshold, at most `most` of them."""
    order = shares.sort(dim=-1, descending=True, stable=True)
    # Rounding must not let a row of few columns miss its last one.
    before = order.values.cumsum(-1) - order.values
    chosen = before < min(threshold, 1.0) * shares.sum(-1, keepdim=True) if threshold < 1 else before >= 0
    if most is not None:
        chosen &= torch.arange(shares.shape[-1], device=shares.device) < most
    return torch.zeros_like(chosen).scatter(-1, order.indices, chosen)


def _antidiagonal(q, k, grid, scale, options):
    return top(
        antidiagonal(q, k, grid, scale, options.stride), options.threshold, options.most(grid, q.device)
    )


def _pooled(q, k, grid, scale, options):
    return top(pooled(q, k, grid, scale), options.threshold, options.most(grid, q.device))


def _vertical_slash(q, k, grid, scale, options):
    verticals, slashes = lines(q, k, grid, scale)
    chosen = top(verticals, options.threshold)[..., None, :]
    return chosen | along(top(slashes, options.threshold), grid)


def _streaming(q, k, grid, scale, options):
    return grid.near(q.device, options.window).expand(*q.shape[:2], -1, -1)


# method: (which blocks, what that costs as a share of dense attention)
METHODS = {
    "antidiagonal": (_antidiagonal, lambda grid, options: 1 / options.stride),
    "pooled": (_pooled, lambda grid, options: 1 / grid.block),
    "vertical_slash": (_vertical_slash, lambda grid, options: _LAST / grid.queries),
    "streaming": (_streaming, lambda grid, options: 0.0),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of a choice of blocks; heddle.sparse.sparse_prefill says what each means."""

    threshold: float
    stride: int
    sink: int
    window: int
    max_density: float

    def most(self, grid, device):
        """Blocks that a row may have, [rows, 1]; None: any number."""
        if self.max_density >= 1:
            return None
        return (grid.seen(device).sum(-1, keepdim=True) * self.max_density).ceil().clamp(min=1)

    def always(self, grid, device):
        """Blocks that every head visits: the first keys, and each row's own positions."""
        sink = torch.arange(grid.columns, device=device) * grid.block < self.sink
        return (sink | grid.near(device, 0)) & grid.seen(device)


def choose(method, q, k, grid, scale, options):
    """bool [B, H, rows, columns]: the blocks that are visited."""
    made = METHODS[method][0](q, k, grid, scale, options)
    return (made | options.always(grid, q.device)) & grid.seen(q.device)


def masses(kept, weights, grid, rows):
    """The share of the attention of some queries that falls on the blocks kept: [B, H]. weights: theirs, as
    exact_rows gives them."""
    return (by_column(weights, grid) * kept[:, :, rows // grid.block]).sum(-1).mean(-1)


def choose_per_head(q, k, grid, scale, options, weights, rows):
    """For each head the sparsest choice of all methods that keeps the threshold's share of the attention of
    some queries; all blocks where none does. Returns also the names, [B][H]."""
    names = list(METHODS)
    choices = torch.stack([choose(name, q, k, grid, scale, options) for name in names])
    kept = torch.stack([masses(each, weights, grid, rows) for each in choices])
    size = choices.sum((-1, -2)).float().masked_fill(kept < options.threshold, math.inf)
    best = size.argmin(0)
    made = choices.gather(0, best[None, :, :, None, None].expand(1, *choices.shape[1:]))[0]
    fails = size.amin(0).isinf()
    made = torch.where(fails[..., None, None], grid.seen(q.device), made)
    chosen = torch.where(fails, len(names), best).tolist()
    return made, [[[*names, "dense"][number] for number in line] for line in chosen]
