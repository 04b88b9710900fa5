"""python -m heddle.demos: demos hold what they claim, and one that does not is told apart.

Those of streams and of several processes take longer than all others; test_segments and
test_context_parallel have their claims.
"""

import pytest

from heddle import demos
from heddle.demos.__main__ import main

QUICK = [name for name in demos.DEMOS if name not in ("streams", "ring")]


def test_demos_hold(capsys):
    assert main(["--quick", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [[name, "ok"] for name in QUICK]


def test_a_claim_that_does_not_hold_fails(capsys, monkeypatch):
    monkeypatch.setitem(demos.DEMOS, "shapes", lambda quick: demos.claim.holds(quick is None, "2 is 3"))
    assert main(["--quick", "shapes"]) == 1
    assert capsys.readouterr().out.split() == ["shapes", "FAILS", "0.0", "s", "2", "is", "3"]


def test_unknown_demos_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["shape"])
    assert "did you mean shapes?" in capsys.readouterr().err
