"""heddle.bench: what its files hold, what its comparison finds, and what its page shows. Counts, no times."""

import json
import random
import statistics
from pathlib import Path

import pytest
import torch

import heddle
from heddle.bench import __main__ as command
from heddle.bench import compare, lines, measure, page, report, suites
from heddle.bench.peers import Peers
from heddle.bench.timing import Yardstick
from heddle.bench.work import FORWARD, Amount, Work

RESULTS = Path(__file__).parents[2] / "bench/results/nvidia_h100_80gb_hbm3"
VISITS = 8


def measured_rows(clock):
    """Samples of an H100's rows, their median as 1."""
    for name in ("suite_smoke", "suite_attention_special"):
        for row in report.read(RESULTS / f"{name}.json")["rows"]:
            if row["clock"] == clock:
                yield [each / statistics.median(row["units"]) for each in row["units"]]


def verdicts(seed, factor, rows, between):
    """Verdicts on made-up runs whose samples are drawn from `rows`. Runs differ by `between` as a whole."""
    source = random.Random(seed)

    def process(number, factor):
        whole = factor * source.lognormvariate(0, between)
        return [whole * source.choice(rows[number]) for _ in range(VISITS)]

    baseline = {number: process(number, 1) for number in range(len(rows))}
    fresh = {number: process(number, factor) for number in baseline}
    return compare.judge_all(
        baseline, fresh, lambda names: {number: process(number, factor) for number in names}
    )


@pytest.mark.parametrize("between", [0.002, 0.004])
def test_equal_runs_raise_no_alarm(between):
    rows = list(measured_rows("device"))
    alarms = sum("slower" in verdicts(seed, 1.0, rows, between).values() for seed in range(200))
    assert alarms < 1, f"{alarms} of 200 runs with {len(rows)} rows"


@pytest.mark.parametrize("between", [0.002, 0.004])
def test_a_loss_of_five_percent_is_found(between):
    rows = list(measured_rows("device"))
    runs = [verdicts(seed, 1.05, rows, between) for seed in range(100)]
    found = [sum(run[number] == "slower" for run in runs) for number in range(len(rows))]
    assert min(found) >= 90
    assert statistics.mean(found) >= 98


def test_rows_that_differ_by_themselves_are_unclear():
    wide = [1, 1.2, 0.8, 1.1, 0.9, 1.3, 1.0, 0.75]
    assert compare.verdict_of_row(wide, [1.5 * each for each in wide * 2]) == "unclear"
    assert compare.verdict_of_row(wide, [0.5 * each for each in wide]) == "fine"
    assert compare.verdict_of_row([1.0] * 8, [1.5] * 16) == "slower"


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
    assert result["peers_missing"].keys() == {"compile", "cudnn", "flash", "flex", "liger", "quack"}
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


def test_what_cannot_run_does_not_end_the_others():
    def ours(x):
        raise RuntimeError("out of memory\nmore lines")

    works = suites.works_of("small", Peers("cpu"), "cpu", True)[:2]
    works[0].ours = ours
    rows, failures, _ = measure.run(works, measure.Bench("cpu", tiny=True, seconds=0, rounds=1), 1)
    assert failures == {works[0].name: "RuntimeError: out of memory"}
    assert {row["work"] for row in rows} == {works[1].name}


def test_a_row_that_is_not_measured_again_is_unclear():
    assert compare.judge_all({"a": [1.0] * 8}, {"a": [1.1] * 8}, lambda names: {}) == {"a": "unclear"}


def test_a_command_names_no_place_of_one_machine():
    words = ["--suite", "rows", "--out", "/somewhere/a b.json", "--page=/somewhere/x.html", "--only", "a|b"]
    assert report.typed(words) == "python -m heddle.bench --suite rows --only 'a|b'"


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


@pytest.mark.parametrize(
    ("flags", "changed", "said"),
    [
        (["--compare", "{}/none.json"], {}, "none.json"),
        (["--compare", "{}/old.json"], {"device": "another"}, "has device another"),
        (["--compare", "{}/old.json"], {"suite": "rows"}, "has suite rows"),
        (["--compare", "{}/old.json"], {"scale": "full"}, "has scale full"),
        (["--compare", "{}/old.json"], {"rows": []}, "rows with work, part and units"),
        (
            ["--compare", "{}/old.json"],
            {"rows": [{"work": "x", "part": "y"}]},
            "rows with work, part and units",
        ),
        (["--compare", "{}/old.json"], {"seed": "x"}, "has seed 'x'"),
        (["--out", "/dev/null/x.json"], {}, "must be a file to write"),
        (["--page", "{}"], {}, "must be a file to write"),
    ],
)
def test_files_that_cannot_be_used_are_refused_before_the_run(tmp_path, monkeypatch, flags, changed, said):
    usual = {"device": report.device_name("cpu"), "suite": "smoke"}
    (tmp_path / "old.json").write_text(json.dumps(result_of() | usual | changed))
    monkeypatch.setattr(command, "run_suite", lambda _: pytest.fail("it ran"))
    flags = [flag.format(tmp_path) for flag in flags]
    with pytest.raises(heddle.InvalidArgument, match=said):
        command.main(["--suite", "smoke", "--scale", "tiny", "--device", "cpu", *flags])


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


def test_a_file_has_a_line_for_each_row():
    result = {"suite": "rows", "versions": {"torch": "2"}, "none": [], "rows": [{"us": [1.5, 2]}, {"us": []}]}
    text = lines.text_of(result)
    assert json.loads(text) == result
    assert text.splitlines()[6:10] == [' "rows": [', '  {"us": [1.5, 2]},', '  {"us": []}', " ]"]
