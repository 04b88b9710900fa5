"""The backend with which pip builds the package: scikit-build-core's, with progress on the terminal.

pip keeps the output of a build for itself, so that minutes would pass in silence."""

import contextlib
import os
import subprocess
from pathlib import Path

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403

PROGRESS = Path(__file__).parents[2] / "cmake" / "progress"


@contextlib.contextmanager
def shown():
    """Lets cmake/progress read what this process and its children print, and pass it on."""
    os.environ.setdefault("CXX", "c++")  # as CMake calls it, so that ccache knows what `make demo` compiled
    with subprocess.Popen(["bash", PROGRESS, "--copy"], stdin=subprocess.PIPE) as progress:
        kept = os.dup(1)
        os.dup2(progress.stdin.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            progress.stdin.close()


def build_wheel(*arguments, **keywords):
    with shown():
        return build.build_wheel(*arguments, **keywords)


def build_editable(*arguments, **keywords):
    with shown():
        return build.build_editable(*arguments, **keywords)
