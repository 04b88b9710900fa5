"""What is true of all tests: configurations that one run finds are not those of the next."""

import os
import tempfile

_FOLDER = tempfile.TemporaryDirectory()
os.environ["HEDDLE_TUNED"] = _FOLDER.name
