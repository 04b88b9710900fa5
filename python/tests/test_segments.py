"""Attention over streams: however a sequence is cut, its rows are those of the whole."""

import math

import pytest
import torch

import heddle
from heddle.attention import LongSequenceOptimizer, SegmentedAttentionMemory

WINDOW = 70


def layer_of(kind="kv", **options):
    torch.manual_seed(3)
    memory = {} if kind == "power" else {"memory_length": WINDOW, "num_kv_heads": 2}
    return SegmentedAttentionMemory(32, 4, 400, kind=kind, **memory, **options)


def cuts(length, seed):
    """Random lengths of segments, with sum `length`."""
    generator = torch.Generator().manual_seed(seed)
    while length:
        made = min(length, int(torch.randint(1, (2, 20, 200)[seed % 3], (), generator=generator)))
        length -= made
        yield made


def streamed(layer, x, lengths):
    layer.reset()
    return torch.cat([layer(each) for each in x.split(list(lengths), 1)], 1)


def exact(layer, x):
    """The definition of kind="kv", in fp64."""
    q, k, v = (
        (x.double() @ each.weight.double().t()).unflatten(-1, (-1, layer.head_dim)).transpose(1, 2)
        for each in (layer.q_proj, layer.k_proj, layer.v_proj)
    )
    k, v = (each.repeat_interleave(layer.num_heads // layer.num_kv_heads, 1) for each in (k, v))
    score = q @ k.transpose(-1, -2) / math.sqrt(layer.head_dim)
    apart = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])
    score = score.masked_fill((apart < 0) | (apart > WINDOW), -math.inf)
    return (score.softmax(-1) @ v).transpose(1, 2).flatten(2) @ layer.o_proj.weight.double().t()


def turned(x, first):
    """A rotary embedding of the last dimension, in halves."""
    angle = (first + torch.arange(x.shape[1]))[:, None] / 50 ** torch.linspace(0, 1, x.shape[-1] // 2)
    one, two = x.chunk(2, -1)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)


def test_rows_are_those_of_a_window_over_the_whole():
    layer, x = layer_of(), torch.randn(2, 331, 32)
    with torch.no_grad():
        assert (layer(x) - exact(layer, x)).abs().max() < 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_any_cut_gives_the_same_bits(seed):
    layer, x = layer_of(), torch.randn(2, 400, 32)
    with torch.no_grad():
        assert torch.equal(streamed(layer, x, cuts(400, seed)), streamed(layer, x, [400]))


@pytest.mark.parametrize("seed", range(3))
def test_power_depends_on_cuts_by_rounding_alone(seed):
    layer, x = layer_of("power"), torch.randn(2, 400, 32)
    with torch.no_grad():
        whole = streamed(layer, x, [400])
        assert (streamed(layer, x, cuts(400, seed)) - whole).norm() / whole.norm() < 1e-5


def test_positions_go_on():
    layer, x = layer_of(rotate=turned), torch.randn(1, 200, 32)
    with torch.no_grad():
        whole = streamed(layer, x, [200])
        assert (streamed(layer, x, [33, 100, 67]) - whole).abs().max() < 1e-5
        assert (whole - streamed(layer_of(), x, [200])).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["kv", "power"])
def test_sequences_begin_anew_each_by_itself(kind):
    layer, x = layer_of(kind), torch.randn(3, 120, 32)
    with torch.no_grad():
        layer(x[:, :50])
        layer.reset(torch.tensor([False, True, False]))
        middle = layer(x[:, 50:90])
        layer.reset(torch.tensor([True, False, False]))
        last = layer(x[:, 90:])
        for row, begin in ((0, 90), (1, 50), (2, 0)):
            layer.reset()
            parts = [layer(x[row : row + 1, a:b]) for a, b in ((begin, 90), (max(begin, 90), 120)) if a < b]
            alone = torch.cat(parts, 1)
            wanted = torch.cat((middle, last), 1)[row, max(begin, 50) - 50 :]
            assert torch.allclose(alone[0, -len(wanted) :], wanted, atol=1e-6)
        other = torch.randn(3, 50, 32)
        other[2] = x[2, :50]
        assert torch.equal(streamed(layer, other, [50])[2], streamed(layer, x[:, :50], [50])[2])


def test_a_value_that_is_no_number_ends_with_its_reset():
    layer, x = layer_of("power"), torch.randn(2, 40, 32)
    spoilt = x.clone()
    spoilt[0] = math.nan
    with torch.no_grad():
        layer(spoilt)
        layer.reset(torch.tensor([True, False]))
        assert layer(x).isfinite().all()


@pytest.mark.parametrize(("detach", "sees"), [("segment", 2), (2, 1), ("never", 0)])
def test_gradients_end_where_they_are_told_to(detach, sees):
    """`sees`: the first of three segments that the last one's gradient reaches."""
    layer, x = layer_of(detach=detach), torch.randn(1, 60, 32)
    parts = [each.clone().requires_grad_() for each in x.split(20, 1)]
    state = None
    for part in parts:
        y, state = layer.step(part, state)
    if detach == 2:  # cuts are before the first and the third
        parts.append(torch.randn(1, 20, 32).requires_grad_())
        y, state = layer.step(parts[-1], state)
        sees = 2
    y.sum().backward()
    assert [each.grad is not None for each in parts] == [n >= sees for n in range(len(parts))]
    if detach == "never":
        whole = x.clone().requires_grad_()
        layer.step(whole)[0][:, 40:].sum().backward()
        mine = torch.cat([each.grad for each in parts], 1)
        assert torch.allclose(mine, whole.grad, atol=1e-5)


@pytest.mark.parametrize("kind", ["kv", "power"])
def test_memory_of_a_long_stream_is_flat(kind):
    layer, sizes, length = layer_of(kind), [], 200_000
    with torch.no_grad():
        x = torch.randn(1, 400, 32)
        for _ in range(length // 400):
            y = layer(x)
            sizes.append(layer.state.nbytes)
    assert y.isfinite().all()
    assert len(sizes) * 400 == length
    assert max(sizes[1:]) <= 2 * (WINDOW + 63) * 2 * 8 * 4 if kind == "kv" else len(set(sizes)) == 1


def test_segments_are_views_in_order():
    x = torch.arange(10).reshape(1, 10)
    parts = list(LongSequenceOptimizer(4).segment_sequence(x))
    assert [each.shape[1] for each in parts] == [4, 4, 2]
    assert torch.equal(torch.cat(parts, 1), x)
    assert parts[0].data_ptr() == x.data_ptr()


def test_the_state_is_no_part_of_the_weights():
    layer = layer_of()
    before = set(layer.state_dict())
    layer(torch.randn(1, 5, 32))
    assert set(layer.state_dict()) == before


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda layer: layer(torch.randn(1, 401, 32)), r"\[1, 401, 32\]; must be .* s from 1 to 400"),
        (lambda layer: layer(torch.randn(1, 5, 31)), r"\[b, s, 32\]"),
        (lambda layer: layer(torch.randn(2, 5, 32)), "batch of 2, and the memory one of 1; .* reset"),
        (
            lambda layer: layer.bfloat16()(torch.randn(1, 5, 32).bfloat16()),
            "memory is torch.float32 .* reset",
        ),
        (lambda layer: layer.reset(torch.tensor([True, False])), r"bool \[1\], one for each"),
        (lambda layer: SegmentedAttentionMemory(30, 4, 8, 8), "embed_dim is 30 and num_heads 4"),
        (lambda layer: SegmentedAttentionMemory(32, 4, 8), "memory_length is None; must be a whole"),
        (lambda layer: SegmentedAttentionMemory(32, 4, 8, 8, kind="power"), "leave it out"),
        (lambda layer: SegmentedAttentionMemory(32, 4, 8, kind="lstm"), "must be 'kv' or 'power'"),
        (lambda layer: SegmentedAttentionMemory(32, 4, 8, 8, detach=0), "detach is 0"),
        (lambda layer: SegmentedAttentionMemory(32, 4, 0, 8), "segment_length is 0"),
        (lambda layer: LongSequenceOptimizer(0), "max_segment_length is 0"),
    ],
)
def test_wrong_arguments_are_named(wrong, said):
    layer = layer_of()
    layer(torch.randn(1, 5, 32))
    with pytest.raises(heddle.InvalidArgument, match=said):
        wrong(layer)
