"""The workflow of an op of one's own: check, bench, profile, tune, ranges of profilers, by the name of its
file."""

import json
import subprocess
import sys
import types

import pytest
import torch

import heddle
import heddle.ops
from heddle import _heddle, check, ranges, tune
from heddle.bench import __main__ as bench
from heddle.commands import named
from heddle.own import balance
from heddle.profile import __main__ as profile
from heddle.profile import calls, ncu, nsys, sanitizer
from heddle.profile.trace import largest_case
from test_profile import SAMPLES, sample

OPS = '''
import heddle
import heddle.ops


class Raised(heddle.Op):
    """y = x + lift"""

    reads = {"x": (None, "M, D")}
    writes = {"y": (None, "M, D")}
    tile = {"M": "rows"}
    configs = [{"rows": 16, "way": 0}, {"rows": 4, "way": 0}, {"rows": 2, "way": 0, "reorders": True}]
    lift: float = 1.0
    body = """
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), y = block.row(a.y, row);
      block.map(a.x.last(), [&](auto i) { y.store(i, x.load(i) + a.lift + float(kWay)); });
    }
    """
    peers = {"torch": lambda x, lift: x + lift}

    @staticmethod
    def reference(x, lift):
        return x + lift


class Wrong(Raised):
    configs = ()
    tile = ("M",)
    body = Raised.body.replace("float(kWay)", "1.0f")


if __name__ == "__main__":
    raise SystemExit("nobody runs this file")
'''


@pytest.fixture
def ops(tmp_path, monkeypatch):
    (tmp_path / "my_ops.py").write_text(OPS)
    monkeypatch.chdir(tmp_path)
    yield "my_ops.py"
    for name in [name for name in sys.modules if name == "my_ops" or name.startswith("heddle_file_my_ops")]:
        del sys.modules[name]


def test_an_op_is_named_by_its_file_or_module(ops):
    (raised,) = named.ops_named("check", ["my_ops.py:Raised"])
    assert raised.startswith("raised")
    assert named.ops_named("check", ["my_ops:Raised", "softmax"]) == [raised, "softmax"]
    assert len(named.ops_named("check", ["my_ops.py"])) == 2
    assert named.ops_named("check", [raised]) == [raised]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("my_ops.py:Raise", r"\[check\] my_ops.py has no op Raise; it has Raised, Wrong"),
        ("other.py:Raised", r"\[check\] there is no file other.py"),
        ("other_module:Raised", r"other_module cannot be imported: ModuleNotFoundError"),
        ("empty.py", r"\[check\] empty.py declares no op; must have a class of heddle.Op"),
        ("broken.py:X", r"\[check\] broken.py:3 cannot be imported: ZeroDivisionError"),
        ("rms_nrom", r"\[check\] no op rms_nrom; did you mean rms_norm\?"),
    ],
)
def test_a_name_that_is_none_says_what_would_be(ops, tmp_path, word, message):
    (tmp_path / "empty.py").write_text("import heddle\n")
    (tmp_path / "broken.py").write_text("import heddle\n\nx = 1 / 0\n")
    with pytest.raises(heddle.InvalidArgument, match=message):
        named.ops_named("check", [word])


def test_check_finds_a_wrong_body(ops, capsys):
    assert check.main(["my_ops.py:Raised", "--device", "cpu", "--runs", "2"]) == 0
    assert check.main(["my_ops.py:Wrong", "--device", "cpu", "--runs", "2"]) == 1
    said = capsys.readouterr().out
    assert "1 of 1 ops hold on cpu" in said
    assert "FAIL wrong" in said
    assert "above its bound" in said


def test_check_looks_at_accesses_too(ops, tmp_path, capsys):
    peeks = OPS.replace(
        "const auto x = block.row(a.x, row)", "block.row(a.x, 0).get(0);\nconst auto x = block.row(a.x, row)"
    )
    (tmp_path / "my_peeks.py").write_text(peeks)
    assert check.main(["my_peeks.py:Raised", "--device", "cpu", "--runs", "2"]) == 1
    assert "the body reads x[0, 0]; of x this tile reads" in capsys.readouterr().out


def test_bench_times_it_next_to_its_peers(ops, tmp_path, capsys):
    out = tmp_path / "made.json"
    words = [
        "my_ops.py:Raised",
        "--device",
        "cpu",
        "--size",
        "M=32,D=64",
        "--attribute",
        "lift=2",
        "--visits",
        "2",
    ]
    assert bench.main([*words, "--scale", "tiny", "--seconds", "0", "--rounds", "1", "--out", str(out)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["work"].endswith(" 32x64")
    assert set(row["peers"]) == {"torch"}
    words = ["my_ops.py:Wrong", "--device", "cpu", "--scale", "tiny", "--visits", "1", "--seconds", "0"]
    assert bench.main(words) == 1
    assert "wrong: y: error" in capsys.readouterr().err
    with pytest.raises(heddle.InvalidArgument, match="softmax is an op of heddle; --suite has those"):
        bench.main(["softmax", "--device", "cpu", "--scale", "tiny"])
    with pytest.raises(SystemExit):
        bench.main([])


def test_bench_measures_the_reference_too(capsys):
    words = [
        "--suite",
        "rows",
        "--only",
        "softmax (64",
        "--backend",
        "ref",
        "--visits",
        "1",
        "--seconds",
        "0",
    ]
    words = [*words[:3], "softmax", *words[4:], "--scale", "tiny", "--peers", "torch", "--rounds", "1"]
    bench.main(words)
    assert heddle.last_path().backend == "reference"
    heddle.ops.softmax(torch.ones(2, 3))
    assert heddle.last_path().backend == "kernel"
    assert "softmax" in capsys.readouterr().out


def test_tune_keeps_the_fastest_configuration(ops, capsys):
    words = ["my_ops.py:Raised", "--size", "M=64,D=64", "--device", "cpu"]
    assert tune.main(words) == 0
    said = capsys.readouterr().out
    assert "tuned: config rows=" in said
    assert " of 2, " in said  # the one that reorders is left out
    assert tune.main([*words, "--allow-reorder"]) == 0
    assert " of 3, " in capsys.readouterr().out
    assert tune.main([*words, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["known_before"]
    assert found["ns"] > 0
    assert "rows=" in found["config"]
    with pytest.raises(heddle.InvalidArgument, match=r"wrong\w* has one configuration for such a call"):
        tune.main(["my_ops.py:Wrong", "--device", "cpu"])


def test_an_edited_body_is_tuned_anew(ops, tmp_path, capsys):
    words = ["--size", "M=64,D=64", "--device", "cpu"]
    tune.main(["my_ops.py:Raised", *words])
    (tmp_path / "my_edited.py").write_text(OPS.replace("+ a.lift +", "+ 1.0f * a.lift +"))
    capsys.readouterr()
    tune.main(["my_edited.py:Raised", *words])
    assert "known before" not in capsys.readouterr().out


def test_profile_trace_says_what_peers_take(ops, capsys):
    words = [
        "trace",
        "--device",
        "cpu",
        "--size",
        "M=64,D=256",
        "--attribute",
        "lift=2",
        "--",
        "my_ops.py:Raised",
    ]
    assert profile.main(words) == 0
    said = capsys.readouterr().out
    assert "ran in raised" in said
    assert "torch: " in said
    assert "as a program on threads" in said
    assert profile.main([words[0], "--json", *words[1:]]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["tensors"]["x"] == {"dtype": "float32", "sizes": [64, 256]}
    assert found["attributes"]["lift"] == 2
    assert min(found["us"], found["peers_us"]["torch"]) > 0
    assert found["program"]["tiles"] > 0
    with pytest.raises(heddle.InvalidArgument, match=r"\[raised\w*\] has no attribute up; it has lift"):
        profile.main([*words[:6], "up=2", *words[7:]])


def test_the_cases_run_for_tools_that_watch(ops, capsys):
    (op,) = named.ops_named("profile", ["my_ops.py:Raised"])
    assert calls.run_op(op, "cpu", 4)["cases"] == 4
    inputs, case = largest_case(op)
    assert list(inputs["x"].shape) == [33, 64]
    assert case["attributes"] == {"lift": 1.0}


def test_a_command_is_told_from_an_op():
    for words in (["softmax"], ["all"], ["my_ops.py:Raised"], ["my_ops.py"], ["no-such-program", "x"]):
        assert not profile.is_command(words)
    assert profile.is_command(["sh", "-c", "true"])
    assert profile.is_command([sys.executable, "my.py", "--steps", "3"])


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A program in the place of a tool, that prints a text and runs nothing."""

    def make(name, variable, text, code=0):
        (tmp_path / "said").write_text(text)
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncat {tmp_path}/said\nexit {code}\n')
        path.chmod(0o755)
        monkeypatch.setenv(variable, str(path))
        return tmp_path / "asked"

    return make


def test_ncu_of_any_command(fake, capsys):
    asked = fake("ncu", "HEDDLE_NCU", sample("raw.csv"))
    assert profile.main(["ncu", "--most", "1", "--", "sh", "my.sh", "--fast"]) == 0
    words = asked.read_text().split()
    assert words[-3:] == ["sh", "my.sh", "--fast"]
    assert "--kernel-name" not in words  # the command's own, whatever they are called
    assert "and 1 other kernels; --most 0 shows all" in capsys.readouterr().out
    assert profile.main(["ncu", "--json", "--", "sh", "my.sh"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["kernel"] for each in found} == {"standalone", "launch0"}
    assert all(each["launches"] == 1 and each["time"] == each["time_in_all"] for each in found)
    assert profile.main(["ncu", "--", "softmax"]) == 0
    assert "--kernel-name" in asked.read_text()


def test_launches_of_one_kernel_are_joined(fake, capsys):
    kernels = [ncu.Kernel("mine", {"time": 1e-6 * time, "grid": 1, "threads": 32}) for time in (3, 1, 2)]
    calls = []
    measured = ncu.measured
    ncu.measured = lambda *given: calls.append(given) or kernels
    try:
        first, *_ = ncu.run_command(["true"])
    finally:
        ncu.measured = measured
    assert first == "mine: 2.0 us, 1 CTAs of 32 threads; the median of 3 launches, 6.0 us in all"


def test_sanitizer_of_any_command(fake, capsys):
    fake("compute-sanitizer", "HEDDLE_SANITIZER", "hello\n========= ERROR SUMMARY: 0 errors\n")
    assert profile.main(["sanitizer", "--check", "memcheck", "--", "sh", "-c", "true"]) == 0
    assert capsys.readouterr().out.splitlines() == ["hello", "memcheck  clean"]
    fake("compute-sanitizer", "HEDDLE_SANITIZER", sample("memcheck.txt"), sanitizer.FOUND)
    assert profile.main(["sanitizer", "--check", "memcheck", "--", "sh", "-c", "true"]) == 1
    said = capsys.readouterr().out
    assert "memcheck  2 FOUND" in said
    assert "2 x Invalid __global__ write of size 2 bytes at launch0+0x5b0 in kernel.cu:61" in said
    assert profile.main(["sanitizer", "--check", "memcheck", "--json", "--", "sh", "-c", "true"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["check"], found["clean"], found["found"]) == ("memcheck", False, 2)
    fake("compute-sanitizer", "HEDDLE_SANITIZER", "hello\n", 1)
    assert profile.main(["sanitizer", "--check", "memcheck", "--", "sh", "-c", "true"]) == 1
    assert "no summary, and exit code 1" in capsys.readouterr().out


def test_nsys_of_any_command(fake, tmp_path, capsys):
    asked = fake("nsys", "HEDDLE_NSYS", (SAMPLES / "nsys.csv").read_text())
    report = tmp_path / "run.nsys-rep"
    report.write_text("")
    assert profile.main(["nsys", "--json", "--out", str(report), "--", "sh", "-c", "true"]) == 0
    first, *_ = json.loads(capsys.readouterr().out)
    wanted = {
        "kind": "kernel",
        "name": "launch0",
        "per_cent": 75,
        "times": 2,
        "total_ns": 3e5,
        "median_ns": 1.5e5,
    }
    assert first == wanted
    asked.unlink()
    assert profile.main(["nsys", "--out", str(report), "--", "sh", "-c", "true"]) == 0
    first, *_ = asked.read_text().splitlines()
    assert first.startswith("profile --trace cuda,nvtx --force-overwrite true --output ")
    assert first.endswith("/run sh -c true")
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        "kernels:",
        "     75.0 %      0.300 ms, 2 times 150.0 us (median): launch0",
        "     25.0 %      0.100 ms, 1 times 100.0 us (median): standalone",
    ]
    assert said[-1] == f"wrote {report}: nsys-ui shows it"


def test_nsys_says_when_the_command_failed(fake, tmp_path):
    fake("nsys", "HEDDLE_NSYS", "", 3)
    with pytest.raises(heddle.Unsupported, match=r"nsys ended with 3 and wrote no .*none.nsys-rep"):
        profile.main(["nsys", "--out", str(tmp_path / "none.nsys-rep"), "--", "sh", "-c", "false"])
    assert list(nsys.tables("")) == []


@pytest.fixture
def nvtx(monkeypatch):
    """A package nvtx that notes what it is asked for."""
    said = []
    module = types.SimpleNamespace(push_range=said.append, pop_range=lambda: said.append("end"))
    monkeypatch.setitem(sys.modules, "nvtx", module)
    monkeypatch.setattr(torch.version, "cuda", None)
    yield said
    ranges.stop()


def test_ranges_stand_around_calls_when_asked_for(ops, nvtx):
    x = torch.ones(2, 4)
    heddle.ops.softmax(x)
    assert nvtx == []
    heddle.settings.set_nvtx(True)
    heddle.ops.softmax(x)
    torch.ops.heddle.softmax(x)
    (cls,) = named.classes_named("check", "my_ops.py:Raised")
    cls(x)
    assert nvtx[:2] == ["heddle.softmax", "end"]
    assert nvtx[2:4] == ["heddle.softmax", "end"]
    assert nvtx[-2].startswith("heddle.raised")
    with pytest.raises(heddle.InvalidArgument):
        heddle.ops.softmax(x, kind="none")
    heddle.settings.set_nvtx(False)
    count = len(nvtx)
    heddle.ops.softmax(x)
    assert len(nvtx) == count


def test_ranges_follow_a_profiler(nvtx, monkeypatch):
    ranges.follow_profilers()
    assert not _heddle.has_ranges()
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so")
    ranges.follow_profilers()
    assert _heddle.has_ranges()
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(heddle.Unsupported, match="pip install nvtx"):
        ranges.start()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a(b[c{d}]);", None),
        ('"{" \'{\' // {\n /* { \n */ 1\'000 R"x({)x"', None),
        ("f();\n  for (;;) {\n  g();\n", (2, "this { is not closed")),
        ("f();\n}\n", (2, "this } closes nothing")),
        ("f(\n  g[1);\n", (2, "this [ is not closed before the ) of line 2")),
        ("f();\n/* x\n", (2, "this /* has no */")),
        ('f("x);\ng();', (1, 'this " has no other one on its line')),
        ("#if A\nfor (;;) {\n#else\nwhile (1) {\n#endif\n}", None),
    ],
)
def test_what_is_opened_and_not_closed(text, found):
    assert balance.fault(text) == found


@pytest.mark.parametrize(
    ("body", "line", "wrong"),
    [
        ("for (;;) {\n", 9, "this { is not closed, in its body"),
        ("f(;\n", 9, "this ( is not closed, in its body"),
        ("1;\n}\n", 10, "this } closes nothing, in its body"),
    ],
)
def test_a_missing_brace_is_reported_at_its_line(tmp_path, body, line, wrong):
    text = f'''import heddle


class Open(heddle.Op):
    reads = {{"x": (None, "M, D")}}
    writes = {{"y": (None, "M, D")}}
    tile = ("M",)
    body = """
{body}"""
'''
    (tmp_path / "opened.py").write_text(text)
    (cls,) = named.classes_named("check", str(tmp_path / "opened.py"))
    with pytest.raises(heddle.CompileError, match=rf"\[open\w*\] .*opened.py:{line}: ") as caught:
        cls(torch.ones(2, 3))
    assert caught.value.line == line
    assert wrong in str(caught.value)


def test_the_program_hands_over(ops):
    program = _program()
    if program is None:
        pytest.skip("the program heddle is not built beside this package")
    environment = {"HEDDLE_PYTHON": sys.executable, "PYTHONPATH": heddle.__path__[0] + "/.."}

    command = [program, "layout", "my_ops.py:Raised"]
    made = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (made.returncode, made.stderr) == (1, "heddle.layout: [layout] raised has no whole kernel\n")


def _program():
    from pathlib import Path

    path = Path(heddle.__path__[0]).parents[1] / "heddle"
    return str(path) if path.exists() else None
