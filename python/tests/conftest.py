"""Shared by all tests: a run does not reuse configurations that an earlier one found."""

import os
import signal
import tempfile

_FOLDER = tempfile.TemporaryDirectory()
os.environ["HEDDLE_TUNED"] = _FOLDER.name

# torch's compiler would start a process for each core, which imports torch before it has anything to do.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

# A job in the background ignores Ctrl-C, which tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)
