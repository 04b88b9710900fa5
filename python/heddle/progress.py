"""The progress of some work: a line on a terminal, or the logger "heddle".

>>> heddle.load(folder, progress=lambda progress: print(progress.text))
"""

import logging
import subprocess
import sys
import time
from typing import NamedTuple

from heddle.errors import InvalidArgument

LOGGER = logging.getLogger("heddle")
PATIENCE = 2.0  # seconds without a word
PAUSE = 5.0  # seconds between lines that stay


class Progress(NamedTuple):
    """`done` of `all` bytes or kernels (`what`) are loaded or compiled (`doing`); `text` says it in words,
    with the time that is left. Work of several kinds comes one after the other, and ends with done == all."""

    doing: str
    what: str
    done: int
    all: int
    text: str


class _Line:
    """A line of a terminal, which is taken away in the end."""

    def __init__(self, patience):
        self.patience, self.began, self.width = patience, None, 0

    def __call__(self, progress):
        now = time.monotonic()
        self.began = now if self.began is None else self.began
        if progress.done >= progress.all:
            self._show("")
            self.began = None
        elif now - self.began >= self.patience:
            self._show(progress.text)

    def _show(self, text):
        if text or self.width:
            sys.stderr.write(f"\r{text.ljust(self.width)}" + ("" if text else "\r"))
            sys.stderr.flush()
        self.width = len(text)


class _Lines:
    """Lines that stay, a few seconds apart."""

    def __init__(self, patience, write):
        self.patience, self.write, self.next = patience, write, None

    def __call__(self, progress):
        now = time.monotonic()
        if self.next is None:
            self.next = now + self.patience
        if progress.done >= progress.all:
            self.next = None
        elif now >= self.next:
            self.write(progress.text)
            self.next = now + PAUSE


def _to_stderr(text):
    print(text, file=sys.stderr, flush=True)


def teller(progress):
    """The function of (doing, what, done, all, text) that tells what `progress` asks for; None: nobody."""
    on_terminal = hasattr(sys.stderr, "isatty") and sys.stderr.isatty()
    if progress is None:
        tell = _Line(PATIENCE) if on_terminal else _Lines(PATIENCE, LOGGER.info)
    elif progress is True:
        tell = _Line(0.0) if on_terminal else _Lines(0.0, _to_stderr)
    elif progress is False:
        return None
    elif callable(progress):
        tell = progress
    else:
        raise InvalidArgument(
            f"[load] progress is {progress!r}; must be True, False or a function of a Progress"
        )
    return lambda *told: tell(Progress(*told))


def run_told(command, doing):
    """Runs a command as subprocess.run does, its output as text, and tells of it if that takes long."""
    tell, began = teller(None), time.monotonic()
    tell(doing, "commands", 0, 1, doing)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    so_far = f"{doing}, {time.monotonic() - began:.0f} s so far"
                    tell(doing, "commands", 0, 1, so_far)
        except BaseException:
            process.kill()
            raise
        finally:
            tell(doing, "commands", 1, 1, doing)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
