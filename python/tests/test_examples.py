"""The scripts of examples/ run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


# test_ray.py runs the one that needs a Ray.
PATHS = sorted(path for path in EXAMPLES.glob("*.py") if path.stem != "ray_batch")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    made = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout
