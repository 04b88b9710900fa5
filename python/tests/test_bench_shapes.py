"""The suite of drawn shapes: what a seed draws, and what its bars come to. Counts and words, no times."""

import json
import math
import random
from collections import Counter

import pytest
import torch

from heddle.bench import __main__ as command
from heddle.bench import report
from heddle.bench.peers import Peers
from heddle.bench.suites import bars, shapes
from heddle.bench.work import BACKWARD, FORWARD

BOUNDS = [shapes.LARGE, shapes.SMALL]
WORDS = ["--suite", "shapes", "--device", "cpu", "--scale", "tiny", "--visits", "1", "--rounds", "1"]


def names(seed, count=shapes.COUNT):
    return [work.name for work in shapes.works(Peers("cpu"), "cpu", True, seed, count)]


def test_a_seed_draws_the_same_shapes_again():
    assert names(7) == names(7)
    assert set(names(7)) != set(names(8))


def test_a_greater_count_adds_to_what_a_seed_draws():
    assert set(names(7, 2)) < set(names(7, 5))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("aligned", [True, False])
def test_products_lie_as_they_are_wanted(bounds, aligned):
    drawn = shapes.draw_products(random.Random(1), bounds, 200, aligned)
    assert Counter(each.layout for each in drawn) == dict.fromkeys(shapes.LAYOUTS, 50)
    assert all(each.aligned == aligned for each in drawn)
    for each in drawn:
        assert bounds.m[0] <= each.m <= bounds.m[1]
        assert all(bounds.nk[0] <= size <= bounds.nk[1] for size in (each.n, each.k))
    # Neither kind has only sizes that suit tiles.
    assert any(each.m % 8 for each in drawn)
    assert any(each.k % 64 for each in drawn)
    assert {each.offset > 0 for each in drawn} == ({False} if aligned else {False, True})


@pytest.mark.parametrize(
    ("layout", "sizes", "aligned"),
    [
        ("nn", (33, 64, 40), True),  # m is in no row
        ("tn", (33, 64, 40), False),
        ("tn", (32, 64, 41), True),  # nor is k
        ("tt", (32, 64, 41), False),
        ("nt", (33, 60, 40), False),  # rows of the result
    ],
)
def test_what_is_adjacent_decides_how_a_product_lies(layout, sizes, aligned):
    assert shapes.Product(*sizes, layout).aligned == aligned
    assert not shapes.Product(*sizes, layout, offset=1).aligned


def test_tensors_lie_as_the_name_says():
    for work in shapes.works(Peers("cpu"), "cpu", True, seed=5, count=12):
        if work.op == "mm":
            offset = int(work.name.partition(" offset ")[2] or 0)
            for tensor in work.inputs(*work.shape):
                assert tensor.is_contiguous()
                assert tensor.storage_offset() == offset
    found = shapes.after(lambda n: [torch.arange(n)], 3)(5)
    assert found[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_rows_have_every_op_at_known_widths_and_each_by_turns_at_others(bounds):
    drawn = shapes.draw_rows(random.Random(2), bounds, 40)
    known, others = drawn[: len(bounds.widths) * 4], drawn[len(bounds.widths) * 4 :]
    pairs = {(op, width) for op in shapes.ROW_OPS for width in bounds.widths}
    assert {(op, columns) for op, _, columns in known} == pairs
    assert Counter(op for op, _, _ in others) == dict.fromkeys(shapes.ROW_OPS, 10)
    for _, rows, columns in drawn:
        assert rows >= 1
        assert rows * columns <= bounds.elements[1]
    for _, _, columns in others:
        assert bounds.columns[0] <= columns <= bounds.columns[1]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_attention_stays_within_its_bounds(bounds):
    source = random.Random(3)
    drawn = [shapes.draw_sequences(source, bounds) for _ in range(300)]
    for each in drawn:
        assert bounds.lengths[0] <= each.length <= bounds.lengths[1]
        assert bounds.head_sizes[0] <= each.head_size <= bounds.head_sizes[1]
        assert each.head_size % 8 == 0
        assert each.heads % each.group == 0
        assert each.batch * each.length <= max(bounds.tokens, each.length)
        # The flops are bounded, but one head of keys always stays.
        assert each.flops <= bounds.flops or each.heads == each.group
    assert {each.group for each in drawn} == set(shapes.GROUPS)
    assert {each.causal for each in drawn} == {False, True}


def test_fp8_takes_what_torch_takes():
    source = random.Random(4)
    drawn = [shapes.draw_fp8(source, shapes.LARGE) for _ in range(100)]
    assert all(n % 16 == 0 and k % 16 == 0 and n >= 240 for _, n, k in drawn)
    assert any(m % 16 for m, _, _ in drawn)


def gemm_rows(ratios, kind=shapes.GEMM):
    """Rows of products; a ratio is the peer's time over heddle's."""
    return [
        {"work": f"mm {i}", "kind": kind, "part": FORWARD, "ratio": ratio} for i, ratio in enumerate(ratios)
    ]


def judged(rows, device="cuda", name="NVIDIA H200"):
    return {(each.bar.title, each.bar.part, each.bar.figure): each for each in bars.judge(rows, device, name)}


def test_means_are_geometric_and_the_worst_has_its_shape():
    assert bars.geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    found = judged(gemm_rows([0.5, 2.0]) + gemm_rows([0.25], shapes.GEMM_UNALIGNED))
    everything = found["gemm, all", FORWARD, bars.TIME].record()
    assert everything["shapes"] == 3
    assert everything["mean"] == pytest.approx(math.cbrt(2 * 0.5 * 4), abs=1e-4)
    assert (everything["worst"], everything["worst_work"]) == (4.0, "mm 0")
    aligned = found["gemm, rows and pointers of 16 bytes", FORWARD, bars.TIME].record()
    assert (aligned["worst"], aligned["worst_work"]) == (2.0, "mm 0")
    assert aligned["states"] == {"worst": "missed"}


def test_the_least_rate_is_the_worst():
    rows = [
        {"work": f"rms_norm {rate}", "kind": shapes.NORMS, "part": BACKWARD, "rate": rate}
        | {"rate_unit": "GB/s", "ceiling": "copy", "of_ceiling": rate / 4000, "ratio": 1.0}
        for rate in (3800, 3499.6, 3600)
    ]
    found = judged(rows)
    rate = found["rms_norm, layer_norm", BACKWARD, bars.RATE]
    assert rate.record()["worst_work"] == "rms_norm 3499.6"
    assert rate.record()["states"] == {"worst": "holds"}  # 3500, as it is printed
    assert found["rows", BACKWARD, bars.COPY].record()["states"] == {"worst": "missed"}
    # The rate is an H200's; a copy's is any GPU's.
    other = judged(rows, name="NVIDIA H100")
    assert other["rms_norm, layer_norm", BACKWARD, bars.RATE].record()["wanted"] == {}
    assert other["rows", BACKWARD, bars.COPY].record()["wanted"] == {"worst": 0.88}


def test_the_verdict_says_which_bars_hold():
    rows = gemm_rows([1.0, 0.9]) + gemm_rows([0.7], shapes.GEMM_UNALIGNED)
    found = bars.judge(rows, "cuda", "NVIDIA H200")
    text = bars.verdict(found, missing=2)
    assert text.splitlines()[0] == "verdict: 1 of 8 bars hold"
    assert "  gemm, all, forward: mean <= 1.02 missed" in text
    assert "  gemm, others, forward: worst <= 1.30 missed" in text
    assert "  attention, backward: worst <= 1.00 not measured" in text
    assert "16 bytes" not in text
    assert text.splitlines()[-1] == "  2 works failed or lacked time, and are in no bar"
    assert not bars.all_hold(found)
    assert "worst 1.43 (mm 0); worst <= 1.30 missed" in found[2].line()


def test_a_row_without_a_peer_is_named_and_holds_no_bar():
    rows = gemm_rows([1.0])
    del rows[0]["ratio"]
    each = bars.judge(rows, "cuda", "NVIDIA H200")[1]
    assert each.line().endswith("0 shapes; 1 without a peer; worst <= 1.15 not measured")


def test_nothing_is_wanted_of_a_cpu():
    found = bars.judge(gemm_rows([0.1]), "cpu", "a CPU")
    assert bars.all_hold(found)
    assert bars.verdict(found) == "verdict: there are no bars for this device"


def test_a_run_prints_its_seed_and_writes_its_bars(tmp_path, capsys):
    out = tmp_path / "out.json"
    words = [*WORDS, "--count", "1", "--only", "mm |copy", "--out", str(out)]
    assert command.main(words) == 0
    result = report.read(out)
    said = capsys.readouterr().out
    assert f"--seed {result['seed']} --count 1" in said
    assert said.splitlines()[-1] == "verdict: there are no bars for this device"
    assert "gemm, all, forward" in said
    assert "attention, forward" not in said  # --only left it out
    assert {each["title"]: each["shapes"] for each in result["bars"]}["gemm, all"] == 2
    # The file repeats its shapes, and so does a comparison with it.
    assert f"--seed {result['seed']}" in result["command"]
    again = tmp_path / "again.json"
    command.main([*words[:-1], str(again), "--seed", str(result["seed"])])
    assert [row["work"] for row in report.read(again)["rows"]] == [row["work"] for row in result["rows"]]
    arguments = command.parse([*WORDS, "--compare", str(out)])
    command.settle_draws(arguments, json.loads(out.read_text()))
    assert (arguments.seed, arguments.count) == (result["seed"], 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--suite", "rows", "--seed", "0"], "--seed is for --suite shapes"),
        (["--suite", "rows", "--count", "3"], "--count is for --suite shapes"),
        (["softmax", "--gate"], "--gate is for --suite shapes"),
        (["--suite", "shapes", "--seed", "-1"], "--seed -1: must not be negative"),
        (["--suite", "shapes", "--count", "0"], "--count 0: must be positive"),
        (["--suite", "shapes", "--gate", "--device", "cpu"], "--gate: bars are for a GPU"),
    ],
)
def test_flags_that_do_not_fit_are_refused(words, said, capsys):
    with pytest.raises(SystemExit):
        command.parse(words)
    assert said in capsys.readouterr().err


def test_a_wrong_shape_is_not_timed(monkeypatch, capsys):
    monkeypatch.setitem(shapes.ELEMENT_OPS, "copy", (lambda x: x + 1, torch.clone, 1))
    assert command.main([*WORDS, "--count", "1", "--seed", "1", "--only", "copy"]) == 1
    assert "wrong: y: error" in capsys.readouterr().err
