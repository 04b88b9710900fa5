"""Attention over several ranks, which are threads here: compared with attention in fp64 and with one process.
test_context_parallel_gloo.py has ranks that are processes."""

import functools
import itertools
import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

import heddle
import ranks
from heddle import attention
from heddle.flex.masks import evaluate
from heddle.flex.trace import Captured, trace_score
from heddle.parallel import attention as rings
from heddle.parallel import moves, pieces, scored
from heddle.parallel.ranks import agree
from heddle.parallel.shards import deal
from heddle.parallel.ulysses import even_parts, heads_of

METHODS = ("ring", "allgather", "ulysses")
DOCUMENTS = (0, 5, 40, 41, 70)


def inputs(length=70, batch=1, heads=4, groups=2, dim=8, dtype=torch.float32):
    made = torch.Generator().manual_seed(length)
    sizes = (heads, dim), (groups, dim), (groups, dim + 8)
    return [torch.randn(batch, h, length, e, generator=made).to(dtype) for h, e in sizes]


def seen(length, causal=False, window=(-1, -1), documents=None):
    q, k = torch.arange(length).reshape(-1, 1), torch.arange(length)
    made = (k <= q) if causal else torch.ones(length, length, dtype=torch.bool)
    for width, apart in zip(window, (q - k, k - q), strict=True):
        made = made & (apart <= width) if width >= 0 else made
    if documents:
        ids = torch.bucketize(k, torch.tensor(documents), right=True)
        made = made & (ids.reshape(-1, 1) == ids)
    return made


def exact(q, k, v, mask):
    q, k, v = (each.double() for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    score = q @ k.mT / math.sqrt(q.shape[-1])
    return score.masked_fill(~mask, -1e300).softmax(-1) * mask @ v


SHAPES = ((-1, 1, 1, 1), (-1, 1, 1), (-1, 1), (-1,))


def attend(method, group, given, causal, window, documents, shards):
    """By the functions where there are, and else by the context."""
    options = {"causal": causal, "window": window, "cu_seqlens": documents, "shards": shards}
    if method != "allgather":
        function = attention.ring_attention if method == "ring" else attention.ulysses_attention
        return function(*given, group, **options)
    plan = rings.plan_of(method, group, given, **options, attributes={}, limit=20, method=method)
    return rings.Attention.apply(plan, *given)[0]


def whole(made, shards, dim=2):
    """The tensor of all positions, of the ranks' parts."""
    order = torch.cat([shards.positions(rank) for rank in range(len(shards.sizes))])
    return torch.cat(made, dim).index_select(dim, order.argsort())


def compare(
    method, count, given, causal=False, window=(-1, -1), documents=None, balance="zigzag", error=1e-5
):
    """Results and gradients of all ranks."""
    length = given[0].shape[2]
    shards = deal(length, count, balance, documents)
    exacts = [each.double().requires_grad_() for each in given]
    wanted = exact(*exacts, seen(length, causal, window, documents))
    dy = torch.linspace(-1, 1, wanted.numel()).reshape(wanted.shape)

    def run(group):
        own = [shards.shard(each, 2, group.rank).requires_grad_() for each in given]
        y = attend(method, group, own, causal, window, documents, balance)
        return y.detach(), *torch.autograd.grad(y, own, shards.shard(dy, 2, group.rank).to(y.dtype))

    made = [whole(each, shards) for each in zip(*ranks.results(count, run), strict=True)]
    torch.testing.assert_close(made[0].double(), wanted.detach(), rtol=error, atol=error)
    for each, one in zip(made[1:], torch.autograd.grad(wanted, exacts, dy.double()), strict=True):
        torch.testing.assert_close(each.double(), one, rtol=10 * error, atol=10 * error)
    return made[0]


MASKS = {
    "causal": {"causal": True},
    "full": {},
    "window": {"window": (9, 3)},
    "documents": {"causal": True, "documents": DOCUMENTS},
    "documents and a window": {"window": (9, -1), "documents": DOCUMENTS},
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("method", METHODS)
def test_masks(method, mask):
    for count, balance in ((2, "documents"), (3, "zigzag"), (4, "contiguous")):
        compare(method, count, inputs(), **mask, balance=balance)


@pytest.mark.parametrize("method", METHODS)
def test_sizes(method):
    compare(method, 4, inputs(4, heads=1, groups=1, dim=4), causal=True)
    compare(method, 4, inputs(3, batch=2), causal=True)  # a rank has nothing
    compare(method, 2, inputs(37, batch=2, heads=3, groups=1), causal=True, documents=(0, 11, 37))
    compare(method, 3, inputs(70, heads=2, groups=1), causal=True)  # more ranks than heads
    compare(method, 2, inputs(dtype=torch.bfloat16), causal=True, error=2e-2)


def one_process(given, causal, window=(-1, -1), documents=None):
    q, k, v = (each.transpose(1, 2) for each in given)
    starts = None if documents is None else torch.tensor(documents, dtype=torch.int32)
    options = {"causal": causal, "window_left": window[0], "window_right": window[1]}
    y, _ = heddle.ops.flash_attention(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts, **options)
    return y.transpose(1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])  # CPUs multiply few rows of bf16 otherwise
@pytest.mark.parametrize("method", ["allgather", "ulysses"])
def test_results_have_the_bits_of_one_process(method, dtype):
    for mask in MASKS.values():
        mask = {"causal": False, "window": (-1, -1), "documents": None, **mask}
        length = 333 if mask["documents"] is None else 70
        given = inputs(length, heads=6, groups=2, dtype=dtype)
        wanted = one_process(given, **mask)
        for count, balance in ((1, "zigzag"), (2, "zigzag"), (5, "contiguous"), (8, "documents")):
            shards = deal(length, count, balance, mask["documents"])

            def run(group, given=given, mask=mask, shards=shards):
                own = [shards.shard(each, 2, group.rank) for each in given]
                return attend(method, group, own, **mask, shards=shards)

            assert torch.equal(whole(ranks.results(count, run), shards), wanted), (mask, count, balance)


def test_the_error_of_a_ring_does_not_grow_with_ranks():
    given = inputs(256, heads=1, groups=1)
    given[0] *= 30  # scores are far apart, up to hundreds
    wanted = exact(*given, seen(256, True))
    errors = []
    for count in (2, 4, 8):
        shards = deal(256, count)

        def run(group, shards=shards):
            own = [shards.shard(each, 2, group.rank) for each in given]
            return attention.ring_attention(*own, group, causal=True)

        errors.append((whole(ranks.results(count, run), shards) - wanted).abs().max().item())
    assert max(errors) <= 1.5 * errors[0], errors
    assert errors[0] <= 2e-5


def test_merging_distant_sums():
    y = torch.zeros(1, 4, 1, 2)
    lse = torch.tensor([[[-math.inf, -math.inf, 100, -100]]], dtype=torch.float64)
    part = torch.ones(1, 4, 1, 2), torch.tensor([[[-math.inf, 100.0, -100.0, 100.0]]])
    pieces.merge(y, lse, pieces.Piece((0, 4), (0, 1), 0), part)
    assert y[0, :, 0, 0].tolist() == [0, 1, 0, 1]
    assert lse.flatten().tolist() == [-math.inf, 100, 100, 100]
    pieces.merge(y, lse, pieces.Piece((0, 4), (0, 1), 0), (part[0] * math.nan, part[1] * math.nan))
    assert torch.isnan(y).all()


def test_gradients_of_the_log_of_sums():
    given, shards = inputs(30), deal(30, 2)
    exacts = [each.double().requires_grad_() for each in given]
    k = exacts[1].repeat_interleave(2, 1)
    lse = (exacts[0] @ k.mT / math.sqrt(8)).logsumexp(-1)
    wanted = torch.autograd.grad(lse.sin().sum(), exacts[:2])

    def run(group):
        own = [shards.shard(each, 2, group.rank).requires_grad_() for each in given]
        _, lse = attention.ring_attention(*own, group, return_lse=True)
        return torch.autograd.grad(lse.sin().sum(), own[:2])

    for each, one in zip(zip(*ranks.results(2, run), strict=True), wanted, strict=True):
        torch.testing.assert_close(whole(each, shards).double(), one, rtol=1e-4, atol=1e-5)


# Faults of other implementations, planted.


def test_a_backward_with_the_keys_of_the_first_step_is_found(monkeypatch):
    travel = rings.travelling_sources
    calls = []

    def first_again(plan, held):
        calls.append(plan)
        for columns, kv in travel(plan, held):
            yield columns, kv if len(calls) <= 3 else held  # three ranks' forward goes first

    monkeypatch.setitem(rings.SOURCES, "ring", first_again)
    with pytest.raises(AssertionError, match="not close"):
        compare("ring", 3, inputs(72), causal=True)


def test_documents_that_see_each_other_are_found(monkeypatch):
    make = pieces.Mask
    monkeypatch.setattr(pieces, "Mask", lambda borders, *window: make((0, borders[-1]), *window))
    for method in METHODS:
        with pytest.raises(AssertionError, match="not close"):
            compare(method, 2, inputs(), causal=True, documents=DOCUMENTS)


def test_mean_loss_with_as_many_tokens_as_they_come():
    losses, counts = (torch.tensor([3.0, 5.0, 10.0]), torch.tensor([]), torch.tensor([1.0])), (3, 0, 1)

    def run(group):
        own = losses[group.rank].clone().requires_grad_()
        mean = attention.mean_loss(own.sum(), counts[group.rank], group)
        of_means = own.sum() / max(counts[group.rank], 1)  # the fault: these are averaged over ranks
        (2 * mean).backward()
        return mean.item(), own.grad, of_means.item()

    made = ranks.results(3, run)
    assert [each[0] for each in made] == [4.75] * 3
    assert all(torch.all(each[1] == 0.5) for each in made)
    assert sum(each[2] for each in made) / 3 != 4.75

    def averaged(group):
        own = losses[group.rank].clone().requires_grad_()
        attention.mean_loss(own.sum(), counts[group.rank], group, averaged_over=3).backward()
        return own.grad

    assert torch.all(ranks.results(3, averaged)[0] == 0.75)
    assert all(
        each.item() == 0
        for each in ranks.results(2, lambda group: attention.mean_loss(losses[1].sum(), 0, group))
    )


def test_labels_are_shifted_before_they_are_shared():
    labels = torch.arange(10, 18).reshape(1, 8)
    assert attention.shift_labels(labels).tolist() == [[11, 12, 13, 14, 15, 16, 17, -100]]
    made = attention.shift_labels(labels, (0, 3, 3, 8))
    assert made.tolist() == [[11, 12, -100, 14, 15, 16, 17, -100]]


# The context.


IDS, BIAS = torch.arange(140) // 23, torch.linspace(-1, 1, 4)


def bend(score, b, h, q_idx, kv_idx):
    return score + BIAS[h] * torch.abs(q_idx - kv_idx) / 64


def of_documents(b, h, q_idx, kv_idx):
    return ((IDS[q_idx] == IDS[kv_idx]) | (kv_idx < 7)) & (q_idx >= kv_idx) & (kv_idx != h)


def test_a_score_of_moved_queries_and_heads():
    at = [torch.arange(n).reshape(shape) for n, shape in zip((2, 4, 6, 9), SHAPES, strict=True)]
    made = []
    for begin, head in ((0, 0), (5, 1)):
        captured = Captured()
        made.append(trace_score(scored.moved_score(bend, begin, head), captured))
        places = {"b": at[0], "h": at[1][:2], "q": at[2], "kv": at[3], "score": torch.ones(2, 2, 6, 9)}
        wanted = bend(places["score"], at[0], places["h"] + head, at[2] + begin, at[3])
        torch.testing.assert_close(evaluate(made[-1], captured, places, "cpu").expand(2, 2, 6, 9), wanted)
    assert made[0] == made[1]  # one function to compile


@pytest.mark.parametrize("multiple", [1, 32])
def test_functions_of_masks(multiple):
    mask_mod = of_documents
    given = inputs(140)
    block = attention.create_block_mask(mask_mod, None, 4, 140, 140, device="cpu", BLOCK_SIZE=32)
    exacts = [each.double().requires_grad_() for each in given]
    at = [torch.arange(n).reshape(shape) for n, shape in zip((1, 4, 140, 140), SHAPES, strict=True)]
    wanted = exact(*exacts, mask_mod(*at))
    gradients = torch.autograd.grad(wanted.sin().sum(), exacts)

    def run(method, group):
        own = [each.clone() for each in given]
        with attention.context_parallel(
            group, buffers=own, buffer_seq_dims=[2] * 3, method=method, multiple=multiple
        ) as parallel:
            own = [each.detach().requires_grad_() for each in own]
            y = attention.flex_attention(*own, None, block, enable_gqa=True)
            made = torch.autograd.grad(y.sin().sum(), own)
            return [parallel.unshard(each, 2) for each in (y, *made)]

    for method, count in (("allgather", 2), ("allgather", 3), ("ulysses", 3)):
        for made in ranks.results(count, functools.partial(run, method)):
            torch.testing.assert_close(made[0].double(), wanted.detach(), rtol=1e-5, atol=1e-5)
            for each, one in zip(made[1:], gradients, strict=True):
                torch.testing.assert_close(each.double(), one, rtol=1e-4, atol=1e-4)
            if multiple == 32 or method == "ulysses":
                assert torch.equal(made[0], attention.flex_attention(*given, None, block, enable_gqa=True))


@pytest.mark.parametrize("method", METHODS)
def test_a_forward_that_runs_again_in_the_backward(method):
    given = inputs(24, heads=2, groups=2)

    def run(group):
        parts = [each.clone() for each in given]
        with attention.context_parallel(group, buffers=parts, buffer_seq_dims=[2] * 3, method=method):
            own = [each.clone().requires_grad_() for each in parts]
            kept = scaled_dot_product_attention(*own, is_causal=True)
            wanted = torch.autograd.grad(kept.sin().sum(), own)
            again = checkpoint(scaled_dot_product_attention, *own, is_causal=True, use_reentrant=False)
            made = torch.autograd.grad(again.sin().sum(), own)
            again = checkpoint(
                lambda *own: scaled_dot_product_attention(*own, is_causal=True), *own, use_reentrant=True
            )
            again.sin().sum().backward()
            pairs = zip(wanted * 2, (*made, *(each.grad for each in own)), strict=True)
            return [torch.equal(a, b) for a, b in pairs]

    assert ranks.results(2, run) == [[True] * 6] * 2


def test_attention_inside_of_functions_of_torch():
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    x, shards = torch.randn(1, 21, 16), deal(21, 2)

    def run(weights, group):
        own = shards.shard(x, 1, group.rank)
        with attention.context_parallel(group):
            return layer(own, own, own, need_weights=weights)[0]

    made = ranks.results(2, functools.partial(run, False))
    torch.testing.assert_close(whole(made, shards, 1), layer(x, x, x, need_weights=False)[0])
    assert all(isinstance(each, heddle.Unsupported) for each in ranks.run(2, functools.partial(run, True)))


@pytest.mark.parametrize("method", METHODS)
def test_context_restores_and_attends(method):
    given = inputs(41)
    wanted = exact(*given, seen(41, True, documents=(0, 17, 41)))

    def run(group):
        wide = torch.zeros(1, 41, 6)
        positions, view, lost = torch.arange(41), wide[:, :, :2], torch.arange(41)
        own = [each.clone() for each in given]
        buffers, dims = [positions, view, lost, *own], [0, 1, -1, 2, 2, 2]
        with attention.context_parallel(
            group,
            buffers=buffers,
            buffer_seq_dims=dims,
            no_restore_buffers={lost},
            method=method,
            cu_seqlens=torch.tensor([0, 17, 41]),
        ) as parallel:
            assert torch.equal(positions, parallel.shards.positions(group.rank))
            y = scaled_dot_product_attention(*own, is_causal=True, enable_gqa=True)
            y = parallel.unshard(y, 2)
            view.add_(1)
        assert torch.equal(positions, torch.arange(41))
        assert view.shape == (1, 41, 2)
        assert view.data_ptr() == wide.data_ptr()
        assert torch.all(wide == 0)
        assert lost.numel() < 41
        return y

    for y in ranks.results(3, run):
        torch.testing.assert_close(y.double(), wanted, rtol=1e-5, atol=1e-5)


def test_an_exception_restores_everything():
    def run(group):
        buffer = torch.arange(10)
        with pytest.raises(KeyError):  # noqa: SIM117
            with attention.context_parallel(group, buffers=[buffer], buffer_seq_dims=[0]):
                raise KeyError
        q = torch.randn(1, 1, 3, 8)
        scaled_dot_product_attention(q, q, q)  # torch's own
        return buffer.tolist()

    assert ranks.results(2, run) == [list(range(10))] * 2


def test_two_models_with_other_heads_in_one_context():
    def run(group):
        made = []
        with attention.context_parallel(group, method="ulysses"):
            for heads, length in ((3, 5), (7, 9)):
                q = torch.randn(1, heads, length, 8)
                made.append(scaled_dot_product_attention(q, q, q).shape)
        return made

    assert ranks.results(2, run) == [[(1, 3, 5, 8), (1, 7, 9, 8)]] * 2


# Wrong arguments.

Q = torch.randn(1, 4, 6, 8)


def in_context(attend, **options):
    def run(group):
        with attention.context_parallel(group, timeout=10, **options):
            return attend(group.rank)

    return run


def call(change, **options):
    """A call that one rank makes otherwise."""

    def run(group):
        given, others = change([Q, Q, Q], {**options}) if group.rank == 1 else ([Q, Q, Q], options)
        return attention.ring_attention(*given, group, timeout=10, **others)

    return run


def sdpa(rank, **options):
    return scaled_dot_product_attention(Q, Q, Q, **(options if rank else {}))


def flex(**options):
    mask = attention.create_block_mask(attention.causal, None, None, 6, 6, device="cpu")
    return in_context(lambda rank: attention.flex_attention(Q, Q, Q, block_mask=mask), **options)


def buffers(change, **options):
    def run(group):
        own = {"buffers": [torch.zeros(8, 2)], "buffer_seq_dims": [0], **options}
        if group.rank:
            own.update(change)
        with attention.context_parallel(group, timeout=10, **own):
            pass

    return run


WRONG = {
    "head dims": (call(lambda given, o: ([given[0][..., :4], *given[1:]], o)), "as wide as those of k"),
    "heads": (call(lambda given, o: ([given[0][:, :3], *given[1:]], o)), "must be a multiple"),
    "no tensor": (call(lambda given, o: ([None, *given[1:]], o)), r"q is of type NoneType .*\(rank 1 of 2\)"),
    "dtype": (call(lambda given, o: ([each.double() for each in given], o)), "must be all bfloat16"),
    "causal on one": (call(lambda given, o: (given, {"causal": True})), "ranks differ: rank 0 has"),
    "window": (call(lambda given, o: (given, {"window": 3})), "window|TypeError"),
    "documents": (call(lambda given, o: (given, o), cu_seqlens=[0, 9]), "must rise from 0 to 12"),
    "documents of one": (
        call(lambda given, o: (given, {"cu_seqlens": [0, 9, 12]}), cu_seqlens=[0, 12]),
        "differ",
    ),
    "no numbers": (call(lambda given, o: (given, o), cu_seqlens=["a"]), "must rise from 0 to 12"),
    "lengths": (call(lambda given, o: ([each[:, :, :2] for each in given], o)), "must have"),
    "balance": (call(lambda given, o: (given, o), shards="even"), "balance is 'even'"),
    "gradient on one": (
        call(lambda given, o: ([given[0].clone().requires_grad_(), *given[1:]], o)),
        "with a grad",
    ),
    "mask": (in_context(lambda rank: sdpa(rank, attn_mask=torch.ones(6, 6) > 0)), "attn_mask is given"),
    "dropout": (in_context(lambda rank: sdpa(rank, dropout_p=0.5)), "dropout_p is 0.5"),
    "flex in a ring": (flex(method="ring"), 'method="ring"'),
    "flex with a window": (flex(window=(3, 0)), "the mask_mod must have them"),
    "local mask": (flex(), "must be of the whole sequence, 12 and 12"),
    "method": (buffers({}, method="star"), "method is 'star'"),
    "dims": (buffers({"buffer_seq_dims": [2]}), "none of 2"),
    "dims of one": (buffers({"buffer_seq_dims": [1]}), "ranks differ"),
    "count": (buffers({"buffer_seq_dims": []}), "1 buffers and 0 buffer_seq_dims"),
    "buffers": (buffers({"buffers": [torch.zeros(9, 2)]}), "ranks differ"),
    "parameter": (
        buffers({"buffers": [torch.nn.Parameter(torch.zeros(8, 2))]}),
        "buffer 0 is of type Parameter",
    ),
    "stranger": (buffers({"no_restore_buffers": {torch.zeros(8)}}), "not in buffers"),
    "twice": (buffers({"buffers": [Q, Q], "buffer_seq_dims": [0, 0]}), "given twice"),
}


@pytest.mark.parametrize(("run", "said"), WRONG.values(), ids=WRONG)
def test_all_ranks_raise_one_error(run, said):
    made = ranks.run(2, run)
    assert all(isinstance(each, heddle.Error) for each in made), made
    assert len({str(each) for each in made}) == len({type(each) for each in made}) == 1
    with pytest.raises(type(made[0]), match=said):
        raise made[0]


def test_nobody_waits_for_ever():
    def run(group):
        if group.rank == 0:
            return None
        return attention.ring_attention(Q, Q, Q, group, timeout=0.1)

    made = ranks.run(2, run)
    assert isinstance(made[1], heddle.DeadlineExceeded)


def test_a_call_outside_of_processes():
    with pytest.raises(heddle.InvalidArgument, match="init_process_group"):
        attention.ring_attention(Q, Q, Q)
    for function in (attention.ring_attention, attention.ulysses_attention, attention.context_parallel):
        with pytest.raises(heddle.WrongCall, match="has no argument causl"):
            function(*[Q] * (1 if function is attention.context_parallel else 3), causl=True)


# Its parts.


def test_each_position_is_dealt_out_once():
    for length, count, balance in itertools.product(
        (0, 1, 7, 64, 1000), (1, 3, 8), ("zigzag", "contiguous", "documents")
    ):
        for multiple in (1, 16):
            made = deal(length, count, balance, (0, length // 3, length), multiple)
            everything = torch.cat([made.positions(rank) for rank in range(count)])
            assert everything.sort().values.tolist() == list(range(length))
            assert all(begin % multiple == 0 for each in made.segments for begin, _ in each)
            if multiple == 1:
                assert max(made.sizes) - min(made.sizes) <= 8


def test_balance():
    def share(shards, documents):
        """The most work of a rank, and the mean."""
        work = seen(1024, True, documents=documents).sum(1)
        each = [work[shards.positions(rank)].sum().item() for rank in range(4)]
        return max(each) / (sum(each) / 4)

    one, several = (0, 1024), (0, 600, 650, 700, 1000, 1024)
    assert share(deal(1024, 4, "contiguous"), one) > 1.7
    assert share(deal(1024, 4, "zigzag"), one) < 1.01
    assert share(deal(1024, 4, "documents", several), several) < 1.05
    assert share(deal(1024, 4, "zigzag"), several) > 1.1


def test_uneven_heads():
    for heads, shared_by, count in itertools.product((1, 6, 12), (1, 3), (1, 2, 4, 5, 8)):
        if heads % shared_by:
            continue
        own, _ = heads_of(heads, shared_by, count)
        assert [head for each in own for head in range(*each)] == list(range(heads))
        for first, last in own:
            parts = even_parts(first, last, shared_by)
            assert [head for each in parts for head in range(*each)] == list(range(first, last))
            for a, b in parts:
                shared = -(-b // shared_by) - a // shared_by
                assert (b - a) % shared == 0
                assert all(
                    (head - a) // ((b - a) // shared) + a // shared_by == head // shared_by
                    for head in range(a, b)
                )


def test_agreed_numbers():
    made = ranks.results(3, lambda group: agree(group, "test", lambda: None, "same", group.rank * 2**40))
    assert made == [(0, 2**40, 2**41)] * 3


def test_rows_there_and_back():
    x, heads, shards = torch.randn(1, 5, 11, 2), [(0, 2), (2, 4), (3, 5)], deal(11, 3)

    def run(group):
        plan = rings.Plan(group, shards, None, {}, "test", 10)
        own = shards.shard(x, 2, group.rank)
        return moves.Collect.apply(plan, moves.Spread.apply(plan, own, heads, "x"), heads, "x")

    count = torch.tensor([1, 1, 1, 2, 1]).reshape(1, 5, 1, 1)
    assert torch.equal(whole(ranks.results(3, run), shards), x * count)
