"""The lines that show how far a build or a compiler is, on a terminal and in a file."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

from heddle import progress

SCRIPT = Path(__file__).parents[2] / "cmake/progress"
# A step that lasts longer than the second after which the line is shown again.
BUILD = "echo '[0/2] Re-checking'; echo '[1/3] one'; sleep 2.2; echo '[3/3] three'; echo a warning; exit 3"


def test_a_long_step_is_not_silent():
    reader, writer = pty.openpty()
    process = subprocess.Popen([SCRIPT, "bash", "-c", BUILD], stdout=writer)
    os.close(writer)
    shown = b""
    while True:
        try:
            shown += os.read(reader, 4096)
        except OSError:  # the terminal's other side is closed
            break
    os.close(reader)
    assert process.wait() == 3
    lines = shown.decode().replace("\033[K", "").split("\r")
    lines = [line.strip() for line in lines if line.strip()]
    assert not any("of 2" in line for line in lines), lines
    assert any(line.startswith("compiling 1 of 3, 2 s so far") for line in lines), lines
    assert lines[-1] == "a warning"


def test_a_file_has_few_lines_and_all_messages():
    steps = "; ".join(f"echo '[{i}/40] a step'" for i in range(1, 41))
    done = subprocess.run([SCRIPT, "bash", "-c", steps + "; printf 'no end'"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["compiling 1 of 40", "no end"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_body_that_compiles_for_long_says_so(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    made = progress.run_told(
        ["sh", "-c", "sleep 0.3; echo out; echo err >&2; exit 2"], "compiling the body of x"
    )
    assert (made.returncode, made.stdout, made.stderr) == (2, "out\n", "err\n")
    lines = [line.strip() for line in sys.stderr.getvalue().split("\r")]
    assert "compiling the body of x, 0 s so far" in lines
    assert lines[-1] == ""  # it is taken away
