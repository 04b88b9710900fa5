"""Shared by benchmarks: the checkpoint that they measure, and the file that keeps their results."""

import datetime
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def make_checkpoint(model, folder, python=sys.executable, dtype="bfloat16", layers=0):
    """Random weights in the shape of `model` or its first layers, if the folder holds no checkpoint yet."""
    if not (folder / "config.json").exists():
        command = [python, ROOT / "scripts/make_checkpoint.py", model, folder, "--dtype", dtype]
        command += ["--layers", str(layers)] if layers else []
        subprocess.run(command, check=True)


def of_package(name):
    """The module heddle.bench.NAME, which needs no build of the package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"python/heddle/bench/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commit():
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"git does not say which commit this is; give it with --commit: {error}") from None


def today():
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def folder_name(device):
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"\((R|TM)\)", "", device).lower()).strip("_")


def write(result, out, name):
    """Writes to `out`; by default bench/results/<device>/<name>.json. Returns the path."""
    out = out or ROOT / "bench/results" / folder_name(result["device"]) / f"{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(of_package("lines").text_of(result) + "\n")
    return out
