"""heddle.bench: what its files hold, what its comparison finds, and what its page shows. Counts, no times."""

import json
import random

import pytest
import torch

import heddle
from heddle.bench import __main__ as command
from heddle.bench import compare, measure, page, report, suites
from heddle.bench.peers import Peers
from heddle.bench.timing import Yardstick
from heddle.bench.work import FORWARD, Amount, Work

# How much samples of a process differ, and processes as a whole.
SPREADS = ((0.002, 0.002), (0.005, 0.003), (0.005, 0.006))
VISITS = 8


def process(source, factor, within, between):
    """Samples of a row in one process; one in ten is disturbed and up to 15 % longer."""
    whole = factor * source.lognormvariate(0, between)
    for _ in range(VISITS):
        late = 1 + 0.15 * source.random() if source.random() < 0.1 else 1
        yield whole * source.lognormvariate(0, within) * late


def verdicts(seed, factors, spreads):
    source = random.Random(seed)
    rows = {number: list(process(source, 1, *spreads)) for number in range(len(factors))}
    fresh = {number: list(process(source, factors[number], *spreads)) for number in rows}
    return compare.judge_all(
        rows, fresh, lambda names: {name: list(process(source, factors[name], *spreads)) for name in names}
    )


@pytest.mark.parametrize("spreads", SPREADS)
def test_equal_runs_raise_no_alarm(spreads):
    rows = 20
    alarms = sum("slower" in verdicts(seed, [1.0] * rows, spreads).values() for seed in range(200))
    assert alarms < 1, f"{alarms} of 200 runs with {rows} rows"


@pytest.mark.parametrize("spreads", SPREADS)
def test_a_loss_of_five_percent_is_found(spreads):
    found = sum(verdicts(seed, [1.05], spreads)[0] == "slower" for seed in range(200))
    assert found >= 190


def test_rows_without_a_baseline_are_new_and_measured_no_more():
    def take(names):
        raise AssertionError(names)

    assert compare.judge_all({"a": [1.0] * 8}, {"a": [0.9] * 8, "b": [1.0] * 8}, take) == {
        "a": "fine",
        "b": "new",
    }


@pytest.mark.parametrize("suite", suites.NAMES)
def test_every_suite_runs_without_a_gpu(suite, tmp_path):
    out, drawn = tmp_path / "out.json", tmp_path / "out.html"
    words = ["--suite", suite, "--device", "cpu", "--scale", "tiny", "--visits", "1", "--rounds", "1"]
    assert command.main([*words, "--seconds", "0", "--out", str(out), "--page", str(drawn)]) == 0
    result = report.read(out)
    assert set(result["ceilings"]) == {"copy", "product"}
    assert result["rows"]
    assert result["failures"] == {}
    assert result["peers_missing"].keys() == {"compile", "cudnn", "flex", "liger", "quack"}
    for row in result["rows"]:
        assert row["us"] > 0
        assert row["peers"]["torch"]["ratio"] > 0
        assert row["units"]
        assert row["body"]
        assert row["error"] <= measure.ALLOWED * row["error_of_torch"] + measure.ROUNDING
    text = drawn.read_text()
    assert text.startswith("<!doctype html>")
    assert "http" not in text.replace("http://www.w3.org", "")


def test_a_wrong_result_is_not_timed():
    def exact(x):
        return x * 2

    work = Work(
        name="wrong 8 x 8",
        ours=lambda x: heddle.ops.scale(x, factor=2.01),
        exact=exact,
        peers={"torch": exact},
        inputs=lambda *shape: [torch.randn(*shape)],
        shape=(8, 8),
        amounts={FORWARD: Amount(bytes=512)},
    )
    bench = measure.Bench("cpu", tiny=True, seconds=0, rounds=1)
    rows, failures, _ = measure.run([work], bench, 1)
    assert rows == []
    assert failures["wrong 8 x 8"].startswith("wrong: y: error")


def test_a_peer_that_fails_is_left_out_with_its_reason():
    def broken(x):
        raise RuntimeError("no kernel for this shape")

    work = Work(
        name="copy 8 x 8",
        ours=heddle.ops.copy,
        exact=torch.clone,
        peers={"torch": torch.clone, "liger": broken, "compile": lambda x: x + 1},
        inputs=lambda *shape: [torch.randn(*shape)],
        shape=(8, 8),
        amounts={FORWARD: Amount(bytes=512)},
    )
    (row,), failures, _ = measure.run([work], measure.Bench("cpu", tiny=True, seconds=0, rounds=1), 1)
    assert failures == {}
    assert row["peers"].keys() == {"torch"}
    assert "no kernel for this shape" in row["left_out"]["liger"]
    assert "differs from heddle's" in row["left_out"]["compile"]


def test_what_lacks_time_is_named():
    works = suites.works_of("smoke", Peers("cpu"), "cpu", True)
    bench = measure.Bench("cpu", tiny=True, seconds=0, rounds=1)
    rows, _, left_out = measure.run(works, bench, 1, time_limit=1e-9)
    assert rows == []
    assert left_out == [work.name for work in works]


def result_of(**changed):
    row = {
        "work": "copy 8 x 8",
        "part": FORWARD,
        "clock": "device",
        "us": 2.0,
        "spread": 0.01,
        "units": [1.0] * VISITS,
    }
    row |= {
        "peers": {"torch": {"us": 3.0, "spread": 0.0, "ratio": 1.5}},
        "fastest_peer": "torch",
        "ratio": 1.5,
    }
    row |= {"rate": 3.0, "rate_unit": "GB/s", "ceiling": "copy", "of_ceiling": 0.5, "body": "copy"}
    ceilings = Yardstick("cpu", True).ceilings()
    result = dict.fromkeys(report.KEYS, "") | {"form": report.FORM, "scale": "tiny", "ceilings": ceilings}
    return result | {"versions": {}, "peers_missing": {"liger": "<not here>"}, "rows": [row | changed]}


def test_a_page_shows_names_and_reasons_as_text():
    text = page.render(result_of(work="<b>op</b> 8", goal=0.9, goal_of="copy"))
    assert "<b>op" not in text
    assert "&lt;not here&gt;" in text
    assert "below 0.90" in text


def test_a_comparison_marks_what_is_slower(tmp_path):
    arguments = command.parse(["--suite", "smoke", "--compare", str(tmp_path / "before.json")])
    result = result_of(units=[1.06] * VISITS)
    again = []

    def take(_, works):
        again.append(works)
        return {("copy 8 x 8", FORWARD): [1.06] * VISITS}

    slower = command.compare_with(arguments, result, result_of(), take)
    assert slower == ["copy 8 x 8, forward"]
    assert again == [["copy 8 x 8"]]  # is measured again before it fails
    assert result["rows"][0]["compared"] == {"verdict": "slower", "samples": 16, "change": 0.06}
    with pytest.raises(heddle.InvalidArgument, match="has device another"):
        command.compare_with(arguments, result, result_of() | {"device": "another"}, take)


def test_files_of_others_are_refused(tmp_path):
    file = tmp_path / "other.json"
    for text, said in (
        ("{", "must be a file that --out wrote"),
        (json.dumps({"rows": []}), "has no form, suite"),
    ):
        file.write_text(text)
        with pytest.raises(heddle.InvalidArgument, match=said):
            report.read(file)


def test_the_command_names_what_is_wrong():
    with pytest.raises(heddle.InvalidArgument, match="no work of smoke has 'nothing' in its name"):
        command.main(["--suite", "smoke", "--device", "cpu", "--scale", "tiny", "--only", "nothing"])
