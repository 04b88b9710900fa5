"""sparse_prefill: attention with chosen blocks is dense attention with their mask, and choices keep what they
say they keep."""

import math

import pytest
import torch

import heddle
from heddle import attention
from heddle.attention import SparseReport, sparse_prefill
from heddle.sparse import blocks
from tiny import tiny, tokens

ALWAYS = {"least_length": 0, "least_gain": 0.0, "report": True}
SHAPES = [(1, 2, 1, 700, 700), (2, 4, 2, 300, 555), (1, 2, 2, 1, 400), (1, 1, 1, 130, 1024)]


def inputs(batch, heads, shared, queries, keys, dim=16, seed=1):
    """Queries that attend to a few keys far away, to their neighbours, and a little to all."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*sizes):
        return torch.randn(sizes, generator=generator)

    k, v = normal(batch, shared, keys, dim), normal(batch, shared, keys, dim)
    place = keys - queries + torch.arange(queries)
    near = k[:, :, place].repeat_interleave(heads // shared, 1)
    far = k[:, :, torch.arange(queries) % 7 * (keys // 60)].repeat_interleave(heads // shared, 1)
    return near * 2 + far * 1.5 + normal(batch, heads, queries, dim) * 0.3, k, v


def dense(q, k, v, kept=None, block=128):
    """The definition in fp64, over the blocks kept; also the weights."""
    k, v = (each.double().repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    position = k.shape[2] - q.shape[2] + torch.arange(q.shape[2])[:, None]
    seen = torch.arange(k.shape[2]) <= position
    if kept is not None:
        each = kept.repeat_interleave(block, 2).repeat_interleave(block, 3)
        seen = seen & each[:, :, : q.shape[2], : k.shape[2]]
    scores = (q.double() @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
    weights = scores.softmax(-1)
    return weights @ v, weights


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("method", [*blocks.METHODS, "per_head"])
def test_result_is_dense_attention_over_the_blocks_kept(method, sizes, monkeypatch):
    q, k, v = inputs(*sizes)
    seen = []
    lists = heddle.sparse.prefill._lists
    monkeypatch.setattr(
        heddle.sparse.prefill, "_lists", lambda kept, block: seen.append(kept) or lists(kept, block)
    )
    y, report = sparse_prefill(q, k, v, method, 0.8, window=200, **ALWAYS)
    (kept,) = seen
    wanted, _ = dense(q, k, v, kept)
    assert (y - wanted).abs().max() < 1e-5
    grid = blocks.Grid(sizes[3], sizes[4], 128)
    assert bool((kept & ~grid.seen("cpu")).any()) is False
    assert kept[..., 0].all()  # the first keys
    assert (kept | ~grid.near("cpu", 0)).all()  # a query's own block
    share = float(kept.sum() / (grid.seen("cpu").sum() * kept.shape[0] * kept.shape[1]))
    assert report.density == pytest.approx(share)


@pytest.mark.parametrize("sizes", SHAPES)
def test_mass_of_a_report_is_exact(sizes, monkeypatch):
    q, k, v = inputs(*sizes)
    seen = []
    lists = heddle.sparse.prefill._lists
    monkeypatch.setattr(
        heddle.sparse.prefill, "_lists", lambda kept, block: seen.append(kept) or lists(kept, block)
    )
    _, report = sparse_prefill(q, k, v, "antidiagonal", 0.5, **ALWAYS)
    _, weights = dense(q, k, v)
    each = seen[0].repeat_interleave(128, 2).repeat_interleave(128, 3)[:, :, : sizes[3], : sizes[4]]
    rows = blocks.Grid(sizes[3], sizes[4], 128)
    rows = heddle.sparse.prefill._samples(rows, "cpu")
    kept = (weights * each).sum(-1)[:, :, rows].mean(-1)
    assert report.mass == pytest.approx(float(kept.mean()), abs=1e-5)
    assert report.least_mass == pytest.approx(float(kept.min()), abs=1e-5)


def test_per_head_keeps_the_threshold_on_every_head():
    q, k, v = inputs(1, 4, 2, 1500, 1500)
    q[:, 0] = 0  # a head that attends to all keys alike
    _, report = sparse_prefill(q, k, v, "per_head", 0.9, window=128, **ALWAYS)
    assert report.least_mass >= 0.9
    assert report.methods[0][0] in ("dense", "antidiagonal", "pooled")
    assert set(report.methods[0]) <= {*blocks.METHODS, "dense"}


def test_estimates_sum_to_one_and_find_the_blocks_that_matter():
    q, k, _ = inputs(1, 1, 1, 1024, 1024)
    q = q * 3
    grid = blocks.Grid(1024, 1024, 128)
    _, weights = dense(q, k, k)
    exact = weights.unflatten(3, (-1, 128)).sum(-1).unflatten(2, (-1, 128)).mean(3)
    for made in (blocks.antidiagonal(q, k, grid, 0.25, 1), blocks.antidiagonal(q, k, grid, 0.25, 16)):
        assert torch.allclose(made.sum(-1), torch.ones(()), atol=1e-5)
    assert (blocks.antidiagonal(q, k, grid, 0.25, 1) - exact).abs().max() < 1e-5  # every score
    verticals, slashes = blocks.lines(q, k, grid, 0.25)
    last = weights[:, :, -64:].mean(2).unflatten(2, (-1, 128)).sum(-1)
    assert (verticals - last).abs().max() < 1e-5
    distance = torch.zeros(8, dtype=torch.double)
    for i in range(960, 1024):
        distance.index_add_(0, (i - torch.arange(i + 1)) // 128, weights[0, 0, i, : i + 1] / 64)
    assert (slashes[0, 0] - distance).abs().max() < 1e-5


@pytest.mark.parametrize("sizes", [(300, 555), (700, 700), (5, 1000)])
def test_slashes_cover_their_distances(sizes):
    grid = blocks.Grid(*sizes, 128)
    for chosen in range(grid.columns):
        mask = torch.zeros(grid.columns, dtype=torch.bool)
        mask[chosen] = True
        apart = grid.offset + torch.arange(grid.queries)[:, None] - torch.arange(grid.keys)
        pairs = (apart >= 0) & (apart // 128 == chosen)
        full = torch.zeros(grid.rows * 128, grid.columns * 128, dtype=torch.bool)
        full[: grid.queries, : grid.keys] = pairs
        wanted = full.unflatten(1, (-1, 128)).any(-1).unflatten(0, (-1, 128)).any(1)
        made = blocks.along(mask, grid)
        assert bool((wanted & ~made).any()) is False


def test_top_takes_the_fewest_shares_that_reach_the_threshold():
    generator = torch.Generator().manual_seed(0)
    shares = torch.rand(50, 9, generator=generator).softmax(-1)
    for threshold in (0.01, 0.5, 0.95, 1.0):
        chosen = blocks.top(shares, threshold)
        kept = (shares * chosen).sum(-1)
        assert (kept >= threshold - 1e-6).all()
        smallest = shares.masked_fill(~chosen, 2).amin(-1)
        assert (kept - smallest < threshold).all()
    assert (blocks.top(shares, 0.95, torch.tensor(2)).sum(-1) <= 2).all()


def test_a_cap_bounds_what_is_chosen():
    q, k, v = inputs(1, 2, 1, 1400, 1400)
    _, capped = sparse_prefill(q * 0, k, v, threshold=0.99, max_density=0.1, **ALWAYS)
    _, free = sparse_prefill(q * 0, k, v, threshold=0.99, **ALWAYS)
    assert capped.density < 0.5 < 0.9 < free.density


def test_dense_attention_is_taken_and_reported_where_it_is_as_fast():
    q, k, v = inputs(1, 2, 1, 700, 700)
    wanted, _ = dense(q, k, v)
    y, short = sparse_prefill(q, k, v, threshold=0.5, report=True)
    assert (short.path, short.density, short.mass) == ("dense", 1.0, 1.0)
    assert short.reason == "700 keys are fewer than 8192"
    assert (y - wanted).abs().max() < 1e-5
    y, full = sparse_prefill(q * 0, k, v, threshold=1.0, least_length=0, report=True)
    assert full.path == "dense"
    assert "times as fast as dense" in full.reason
    assert isinstance(full, SparseReport)
    assert torch.equal(
        sparse_prefill(q, k, v),
        heddle.ops.flash_attention(*(each.transpose(1, 2) for each in (q, k, v)), causal=True)[0].transpose(
            1, 2
        ),
    )


@pytest.mark.parametrize("padded", [False, True])
def test_models_of_transformers_take_it_for_prompts(padded, monkeypatch):
    attention.register_transformers()
    calls = []

    def counted(*arguments, **keywords):
        calls.append(arguments[0].shape[2])
        return sparse_prefill(*arguments, **keywords, threshold=1.0, least_length=0, least_gain=0.0)

    monkeypatch.setattr(heddle.patching.sparse, "sparse_prefill", counted)
    model, ids = tiny("llama"), tokens(2, 12)
    mask = torch.ones_like(ids)
    mask[1, :3] = 1 - padded
    given = {"attention_mask": mask, "max_new_tokens": 3, "do_sample": False}
    wanted = model.generate(ids, **given)
    model.set_attn_implementation("heddle_sparse")
    assert torch.equal(model.generate(ids, **given), wanted)
    assert calls == ([] if padded else [12, 12])  # a prompt in both layers


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "magic"}, "method is 'magic'; must be one of antidiagonal"),
        ({"threshold": 0.0}, "threshold is 0.0; must be above 0"),
        ({"max_density": 1.5}, "max_density is 1.5"),
        ({"block": 100}, "block is 100 and stride 16; must be a multiple of 128"),
        ({"stride": 48}, "stride 48"),
        ({"key": torch.zeros(1, 3, 9, 16)}, r"query is \[1, 2, 5, 16\], key \[1, 3, 9, 16\]"),
        ({"query": torch.zeros(1, 2, 10, 16)}, "query has 2 heads and 10 positions"),
        ({"query": [1]}, "query is of type list"),
    ],
)
def test_wrong_arguments_are_named(change, said):
    given = {
        "query": torch.zeros(1, 2, 5, 16),
        "key": torch.zeros(1, 2, 9, 16),
        "value": torch.zeros(1, 2, 9, 16),
    }
    with pytest.raises(heddle.InvalidArgument, match=said):
        sparse_prefill(**{**given, **change})
