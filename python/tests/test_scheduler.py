"""Schedulers written in Python."""

import pytest
import torch

import heddle
from heddle import _heddle

X, WEIGHT = torch.randn(40, 16), torch.ones(16)


def calls(rows=40):
    h, y = torch.empty(rows, 16), torch.empty(rows, 16)
    x = X[:rows]
    return [heddle.schedule("rms_norm", x=x, weight=WEIGHT, y=h), heddle.schedule("softmax", x=h, y=y)], y


def run(scheduler, workers=3, rows=40):
    ops, y = calls(rows)
    kernel = heddle.Megakernel(ops, heddle.MegakernelConfig(scheduler=scheduler, workers=workers))
    kernel.run()
    wanted = heddle.ops.softmax(heddle.ops.rms_norm(X[:rows], WEIGHT))
    torch.testing.assert_close(y, wanted, atol=1e-6, rtol=1e-6)
    return kernel


def in_turn(work):
    return work.deal(range(len(work.tiles)))


def test_it_sees_the_work_and_decides():
    seen = []

    def last_worker(work):
        seen.append(work)
        return [[], [], list(range(len(work.tiles)))]

    kernel = run(last_worker)
    (work,) = seen
    assert isinstance(work, heddle.Work)
    assert work.workers == 3
    assert work.message > 0
    assert [call.op for call in work.calls] == ["rms_norm", "softmax"]
    assert [call.name for call in work.calls] == ["0.rms_norm", "1.softmax"]
    assert [call.after for call in work.calls] == [(), (0,)]
    assert sorted(i for call in work.calls for i in call.tiles) == list(range(len(work.tiles)))
    assert all(work.tiles[i].call == number for number, call in enumerate(work.calls) for i in call.tiles)
    assert all(tile.cost > 0 and tile.home is None for tile in work.tiles)
    rows = [work.tiles[i].at[:2] for i in work.calls[0].tiles]
    assert rows[0][0] == 0
    assert rows[-1][1] == 40
    assert kernel.check().instructions >= len(work.tiles)


def test_an_order_that_needs_parts_of_calls():
    """A worker may end the rows of a tile before it begins those of another."""

    def row_by_row(work):
        first, second = (call.tiles for call in work.calls)
        return [[i for pair in zip(first, second, strict=True) for i in pair]]

    assert run(row_by_row, workers=1, rows=40).workers == 1


def test_classes_objects_and_the_default():
    class Policy:
        asked = 0

        def __call__(self, work):
            Policy.asked += 1
            return in_turn(work)

    run(Policy)
    run(Policy())
    assert Policy.asked == 2
    heddle.set_default_scheduler(Policy())
    try:
        run(None)
    finally:
        heddle.set_default_scheduler("level_batched")
    assert Policy.asked == 3


def test_it_is_asked_once_for_calls_that_differ_in_addresses_alone():
    run(in_turn)
    made = _heddle.programs_made()
    run(in_turn)
    assert _heddle.programs_made() == made
    run(lambda work: in_turn(work))
    assert _heddle.programs_made() == made + 1


def test_its_own_exception_comes_through():
    def broken(work):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(broken)
    run("dag")


def changed(change):
    def policy(work):
        streams = in_turn(work)
        return change(streams, work) or streams

    return policy


def swap_calls(streams, work):
    """The second call's tiles come first."""
    for stream in streams:
        stream.reverse()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, w: s[1].pop(0) and None, r"policy gives tile 1 \(of call 0.rms_norm\) to no worker"),
        (
            lambda s, w: s[2].append(0),
            r"gives tile 0 \(of call 0.rms_norm\) to worker 0 and again to worker 2",
        ),
        (lambda s, w: s[0].append(len(w.tiles)), r"gives worker 0 the tile \d+; tiles are 0 to"),
        (lambda s, w: s[0].append(-1), r"gives worker 0 the tile -1; tiles are 0 to"),
        (lambda s, w: [*s, []], r"makes streams for 4 workers; must make one for each of 3"),
        (lambda s, w: s[:2], r"makes streams for 2 workers; must make one for each of 3"),
        (swap_calls, r"the order deadlocks: worker 0 stops at tile \d+ \(of call 1\), which needs tile"),
        (lambda s, w: "none", r"returns none; must be a list of numbers of tiles for each worker"),
        (lambda s, w: [[0.5]], r"returns \[\[0.5\]\]; must be a list"),
    ],
)
def test_wrong_schedules_are_refused(change, message):
    with pytest.raises(heddle.InvalidArgument, match=message):
        run(changed(change))


@pytest.mark.parametrize("scheduler", [3, "fast"])
def test_what_is_no_scheduler_is_refused(scheduler):
    with pytest.raises(heddle.InvalidArgument, match=r"\[scheduler\]"):
        run(scheduler)
    with pytest.raises(heddle.InvalidArgument, match=r"\[scheduler\]"):
        heddle.set_default_scheduler(scheduler)
