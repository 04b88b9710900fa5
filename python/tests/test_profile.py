"""heddle.profile: its own trace, and what it reads of foreign tools, after their documented formats."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import heddle
from heddle.profile import __main__ as command
from heddle.profile import ncu, sanitizer, tools
from heddle.profile.calls import run_op, some

SAMPLES = Path(__file__).parent / "profile_samples"


def sample(name):
    return (SAMPLES / name).read_text()


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """A program in the place of both tools."""
    for name in ("compute-sanitizer", "ncu"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setenv("HEDDLE_SANITIZER", str(tmp_path))
    monkeypatch.setenv("HEDDLE_NCU", str(tmp_path / "ncu"))
    return tmp_path


def run_sanitizer(name, ops, check="memcheck", code=0):
    def start(words, _):
        assert words[1:3] == ["--tool", check]
        assert words[words.index("heddle.profile.calls") + 1 :][: len(ops)] == ops
        return SimpleNamespace(lines=sample(name).splitlines(), late=False, code=lambda: code)

    *lines, clean = sanitizer.run(ops, check, start=start)
    return lines, clean


def test_errors_belong_to_the_op_whose_cases_ran(tool):
    lines, clean = run_sanitizer("memcheck.txt", ["softmax", "copy"], code=sanitizer.FOUND)
    assert not clean
    assert lines == [
        "memcheck  softmax                      clean       6 cases: softmax_kernel.sm80 4, softmax 2",
        "memcheck  copy                         2 FOUND     2 cases: copy_kernel.sm80 2",
        "    2 x Invalid __global__ write of size 2 bytes at launch0+0x5b0 in kernel.cu:61",
        "    1 x refused: [copy] no such dtype",
    ]


def test_races_are_errors(tool):
    lines, clean = run_sanitizer("racecheck.txt", ["reduce"], "racecheck", sanitizer.FOUND)
    assert not clean
    assert lines[0].startswith("racecheck reduce                       1 FOUND")
    assert "Race reported between Write access at launch0+0x... in kernel.cu:40" in lines[1]


def test_a_clean_run_is_clean_only_where_all_ops_ran(tool):
    assert run_sanitizer("clean.txt", ["softmax"])[1]
    lines, clean = run_sanitizer("clean.txt", ["softmax", "matmul"])
    assert not clean
    assert lines[-1] == "memcheck: not run: matmul"
    assert not run_sanitizer("clean.txt", ["softmax"], code=1)[1]


def test_a_tool_that_failed_is_not_clean(tool):
    lines, clean = run_sanitizer("no_device.txt", ["softmax"])
    assert not clean
    assert lines[0] == "memcheck: no summary; the last lines were:"
    assert any("terminated before first instrumented API call" in line for line in lines)


def test_a_tool_that_is_late_ends_and_what_it_said_counts(tool):
    path = tool / "compute-sanitizer"
    path.write_text(f"#!/bin/sh\nhead -2 {SAMPLES}/clean.txt\nexec sleep 100\n")

    def start(words, _):
        return sanitizer.Process(words, 1.0)

    *lines, clean = sanitizer.run(["softmax", "copy"], "memcheck", start=start)
    assert not clean
    assert lines[0].startswith("memcheck  softmax                      clean")
    assert "memcheck: it was ended, as it was late; the last lines were:" in lines
    assert lines[-1] == "memcheck: not run: copy"


def test_counters_of_a_line_each_in_words():
    (kernel,) = ncu.parse(sample("details.csv"))
    assert list(ncu.in_words(kernel)) == [
        "launch0: 180.0 us, 8192 CTAs of 128 threads",
        "    memory: 268.44 MB read, 250.00 MB written: 2880 GB/s, 88 % of what it can",
        "    arithmetic: not counted; occupancy 61 %, 48 registers a thread",
        "    a warp that does not issue: waits for memory 75%, waits at a barrier 25%",
    ]


def test_counters_of_a_column_each():
    first, second = ncu.parse(sample("raw.csv"))
    assert (first.name, first.values["read"]) == ("standalone", 12.5e6)
    assert first.values["time"] == pytest.approx(1e-5)
    assert (second.name, second.values["registers"]) == ("launch0", 40)


def test_ncu_that_measured_nothing_says_why(tool):
    def process(words, **_):
        said = (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU counters\n"
        )
        return subprocess.CompletedProcess(words, 1, said, "")

    with pytest.raises(heddle.Unsupported, match="ERR_NVGPUCTRPERM"):
        ncu.run("softmax", run_process=process)


def test_a_missing_tool_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(tools.glob, "glob", lambda _: [])
    with pytest.raises(heddle.Unsupported, match="pip install nvidia-cuda-sanitizer-api"):
        tools.find("compute-sanitizer")
    monkeypatch.setenv("HEDDLE_NCU", "/nowhere/ncu")
    with pytest.raises(heddle.Unsupported, match="HEDDLE_NCU is /nowhere/ncu"):
        tools.find("ncu")


def test_cases_of_all_dtypes_come_first():
    def case(dtype, size):
        return {"tensors": {"x": (dtype, [size], False)}}

    cases = [
        (0, case("float32", 9)),
        (1, case("float32", 7)),
        (2, case("float16", 3)),
        (3, case("float32", 8)),
    ]
    assert [number for number, _ in some(cases, 3)] == [0, 2, 3]
    assert len(some(cases, 0)) == 4


def test_an_op_runs_its_cases():
    ran = run_op("softmax", "cpu", 4)
    assert ran["cases"] == 4
    assert ran["bodies"] == {"softmax": 4}


def test_trace_says_what_ran(capsys, tmp_path):
    page = tmp_path / "run.html"
    words = ["trace", "--device", "cpu", "--size", "M=64,D=256", "--out", str(page), "--", "rms_norm"]
    assert command.main(words) == 0
    said = capsys.readouterr().out
    for text in ("x float32 [64, 256]", "ran in rms_norm on cpu", "for 0.132 MB", "4 tiles", "a tile: "):
        assert text in said
    assert page.stat().st_size > 1000


def test_trace_takes_an_ops_largest_case(capsys):
    assert command.main(["trace", "--device", "cpu", "--", "softmax"]) == 0
    assert "as a program on threads" in capsys.readouterr().out


def test_sizes_that_are_missing_or_no_numbers_are_named():
    with pytest.raises(heddle.InvalidArgument, match="no size of D in --size; it has D, M"):
        command.main(["trace", "--device", "cpu", "--size", "M=4", "--", "rms_norm"])
    with pytest.raises(heddle.InvalidArgument, match="must be NAME=NUMBER"):
        command.main(["trace", "--size", "M=x", "--", "rms_norm"])
    with pytest.raises(heddle.InvalidArgument, match="no op nothing"):
        command.main(["trace", "--", "nothing"])
