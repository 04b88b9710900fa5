"""Tests how objects print, in a terminal and in a notebook; the words of a comparison."""

import torch

import heddle
import heddle.ops
from heddle.bench import compare, page, report
from heddle.patching.report import Report, Row
from tiny import tiny


def test_objects_say_what_they_are():
    x, y = torch.randn(40, 64), torch.empty(40, 64)
    kernel = heddle.Megakernel(
        [heddle.schedule("softmax", x=x, y=y)], heddle.MegakernelConfig(tracing=True, workers=2)
    )
    kernel.run()
    trace, program, info = kernel.trace(), kernel.program, heddle.ops.info("softmax")
    report = heddle.patch(tiny("llama"))
    assert repr(trace).startswith("<Trace of ")
    assert "softmax" in repr(trace)
    assert "softmax" in program
    assert repr(program).startswith("<Program of ")
    assert repr(info) == "<OpInfo softmax(x, dim=-1, *, out=None): y = softmax of x, row by row>"
    assert str(info) == heddle.ops.softmax.__doc__
    for each, words in ((trace, "softmax"), (program, "softmax"), (info, "softmax"), (report, "rms_norm")):
        made = each._repr_html_()
        assert made.startswith("<")
        assert made.endswith(">")
        assert words in made


def test_a_verdict_is_a_line():
    assert compare.verdict_line(["fine", "fine", "new"]) == (
        "verdict: no row is slower than the baseline (2 fine, 1 new)"
    )
    assert "slower than" in compare.verdict_line(["slower", "fine"])
    assert "unclear" in compare.verdict_line(["unclear", "unclear", "fine"])


def row(ratio, spread, of_peer=0.01):
    peers = {"torch": {"us": 1.0, "spread": of_peer, "ratio": ratio}}
    return {"ratio": ratio, "spread": spread, "peers": peers, "fastest_peer": "torch", "us": 1.0}


def test_the_headline_is_a_median_of_calm_rows():
    rows = [row(1.0, 0.01), row(1.2, 0.01), row(1.1, 0.02), row(103.0, 0.5), row(53.0, 0.01, of_peer=0.4)]
    made = page.tiles({"rows": rows, "ceilings": {}})
    assert "1.10 x" in made
    assert "median of 3 rows; 2 noisy ones left out" in made


def test_tables_of_a_terminal_fit_it(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    reason = "torch is as fast for so few values, and this goes on for longer than a line of a terminal"
    made = Report(
        [Row("attention", "heddle flash_attention", "", 16, 3), Row("mlp", "torch", reason, 4, None)]
    )
    lines = repr(made).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(repr(made).split()).endswith(reason)
    peers = {name: {"us": 123.4, "ratio": 1.25} for name in ("torch", "cudnn", "liger", "quack", "inductor")}
    row = {
        "work": "rms_norm 4096 x 4096 bfloat16",
        "part": "forward and backward",
        "us": 81.25,
        "peers": peers,
    }
    row |= {"spread": 0.011, "rate": 3051.5, "rate_unit": "GB/s", "ceiling": "copy", "of_ceiling": 0.91}
    row |= {"body": "rms_norm_kernel", "why_no_kernel": reason, "left_out": {"quack": reason}}
    lines = list(report.lines_of(row))
    assert max(len(line) for text in lines for line in text.splitlines()) <= 80
    assert "81.2 us ±1.1%" in lines[0]
    monkeypatch.setenv("COLUMNS", "300")
    assert "\n" not in next(report.lines_of(row))
