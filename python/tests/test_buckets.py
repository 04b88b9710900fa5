"""heddle.buckets: the best edges, inputs padded to them, outputs cropped."""

import itertools
import random
import threading

import pytest
import torch

import heddle
from heddle.buckets import bucket_edges, bucketed


def cost_of(lengths, edges, cost):
    return sum(cost(min(edge for edge in edges if edge >= length)) for length in lengths)


def all_edges(lengths, count, multiple):
    ends = sorted({-(-length // multiple) * multiple for length in lengths})
    for size in range(1, count + 1):
        for below in itertools.combinations(ends[:-1], size - 1):
            yield (*below, ends[-1])


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("cost", [None, lambda length: length**2, lambda length: max(9, length)])
def test_edges_are_the_best_of_all(cost, multiple):
    generator = random.Random(0)
    for count in (1, 2, 3, 4):
        for _ in range(10):
            lengths = [generator.randint(1, 24) for _ in range(generator.randint(1, 12))]
            found = bucket_edges(lengths, count, max_padding=None, multiple=multiple, cost=cost)
            price = cost or (lambda length: length)
            least = min(cost_of(lengths, each, price) for each in all_edges(lengths, count, multiple))
            assert cost_of(lengths, found.edges, price) == least
            total = cost_of(lengths, found.edges, lambda length: length)
            assert found.padding == 1 - sum(lengths) / total


def test_edges_are_the_fewest_within_the_padding():
    generator = random.Random(1)
    for _ in range(20):
        lengths = [generator.randint(1, 30) for _ in range(10)]
        found = bucket_edges(lengths, 10, max_padding=0.1)
        assert found.padding <= 0.1
        for each in all_edges(lengths, len(found.edges) - 1, 1):
            assert 1 - sum(lengths) / cost_of(lengths, each, lambda length: length) > 0.1


def test_sixteen_edges_pad_at_most_a_tenth():
    generator = random.Random(2)
    lognormal = [min(8192, max(1, int(generator.lognormvariate(6, 0.5)))) for _ in range(20000)]
    zipf = [min(4096, int(1 / generator.random() ** 0.6)) for _ in range(20000)]
    for lengths in (lognormal, zipf):
        assert bucket_edges(lengths).padding <= 0.1
    with pytest.raises(
        heddle.Unsupported, match=r"2 edges pad \d+\.\d% at least; must be 10.0% or less: 12 edges reach it"
    ):
        bucket_edges(lognormal, 2)


def test_lengths_that_are_wrong():
    for lengths, more in (([], {}), ([0, 3], {}), ([3], {"count": 0}), ([3], {"max_padding": 2})):
        with pytest.raises(heddle.InvalidArgument, match="must be"):
            bucket_edges(lengths, **more)
    with pytest.raises(heddle.InvalidArgument, match="cost must not fall"):
        bucket_edges([1, 2], cost=lambda length: -length)
    with pytest.raises(heddle.InvalidArgument, match="length 9 is above the last edge, 7"):
        bucket_edges([3, 7]).edge_of(9)


class Model(torch.nn.Module):
    """Attends to all positions that `mask` has."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(50, 16)

    def forward(self, ids, mask, scale=1.0):
        x = self.embedding(ids) * scale
        scores = (x @ x.mT).masked_fill(~mask[:, None, :], float("-inf"))
        made = scores.softmax(-1) @ x
        return {"out": made, "scores": scores, "mean": (made * mask[..., None]).sum() / mask.sum()}


def wrapped(**changed):
    options = {
        "dims": {"ids": {0: "B", 1: "S"}, "mask": {0: "B", 1: "S"}},
        "pad": {"ids": 49, "mask": False},
        "outputs": {"out": {0: "B", 1: "S"}, "scores": {0: "B", 1: "S", 2: "S"}},
        **changed,
    }
    return bucketed(Model(), {"S": bucket_edges([7, 12, 20], 2, max_padding=None), "B": [1, 4]}, **options)


def inputs(batch, length):
    generator = torch.Generator().manual_seed(batch * 100 + length)
    ids = torch.randint(0, 50, (batch, length), generator=generator)
    return ids, torch.ones(batch, length, dtype=torch.bool)


def test_outputs_are_those_without_padding():
    model, plain = wrapped(), Model()
    wrong = []

    def run(number):
        ids, mask = inputs(1 + number % 4, 1 + number % 20)
        made, wanted = model(ids, mask=mask, scale=2.0), plain(ids, mask, 2.0)
        for name in ("out", "scores"):
            if made[name].shape != wanted[name].shape or not torch.allclose(
                made[name], wanted[name], atol=1e-5
            ):
                wrong.append((number, name))

    threads = [
        threading.Thread(target=lambda first=first: [run(first * 10 + i) for i in range(10)])
        for first in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sum(model.counts.values()) == 80
    assert len(model.counts) <= 4
    assert 0 < model.padding < 1


def test_what_is_not_declared_is_refused():
    for options, message in (
        ({"pad": {"ids": 0}}, "mask is padded, but pad has no value"),
        ({"dims": {"ids": {1: "T"}, "mask": {}}}, "ids has the length T, without edges"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=message):
            wrapped(**options)
    ids, mask = inputs(2, 5)
    with pytest.raises(heddle.InvalidArgument, match="mask is a tensor that dims does not name"):
        wrapped(dims={"ids": {1: "S"}})(ids, mask)
    with pytest.raises(
        heddle.InvalidArgument, match="mask has 4 elements in dimension 1, others have 5 of S"
    ):
        wrapped()(ids, mask[:, :4])
    with pytest.raises(heddle.InvalidArgument, match="gives 'scores', which outputs does not name"):
        wrapped(outputs={"out": {0: "B", 1: "S"}})(ids, mask)
    with pytest.raises(
        heddle.InvalidArgument, match="an output has 16 elements in dimension 2; must have 12"
    ):
        wrapped(outputs={"out": {2: "S"}, "scores": {}})(ids, mask)


def test_gradients_pass_and_single_outputs_are_cropped():
    linear = torch.nn.Linear(4, 4)
    model = bucketed(linear, {"S": [8]}, dims={"input": {0: "S"}}, pad={"input": 0.0}, outputs={0: "S"})
    x = torch.randn(5, 4)
    made = model(x)
    made.sum().backward()
    ours = linear.weight.grad.clone()
    linear.zero_grad()
    linear(x).sum().backward()
    assert made.shape == (5, 4)
    torch.testing.assert_close(ours, linear.weight.grad)
