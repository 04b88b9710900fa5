"""The stubs that editors read are those of the ops, settings and options that the module has."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import heddle.ops

HERE = Path(__file__).parent
PACKAGE = Path(heddle.__file__).parent


def make_stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", HERE.parent / "tools" / "make_stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_build_has_made_them():
    for name, text_of in make_stubs().FILES.items():
        assert (PACKAGE / name).read_text() == text_of()


def test_every_op_has_one():
    functions = {
        each.name for each in ast.parse(make_stubs().ops_stubs()).body if isinstance(each, ast.FunctionDef)
    }
    assert functions == set(heddle.ops.NAMES)


def test_a_type_checker_reads_them(tmp_path):
    # An `ignore` that hides nothing is an error, so that wrong calls must be found. No call here has a tensor
    # of torch, whose files take four times as long to read as all others.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    options = [f"--config-file={config}", f"--cache-dir={tmp_path}", "--strict", "--warn-unused-ignores"]
    options += ["--explicit-package-bases", "--follow-imports=silent"]
    made = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(HERE / "typed_calls.py")],
        env=os.environ | {"MYPYPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
