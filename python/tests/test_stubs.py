"""The stubs that editors read are those of the ops, settings and options that the module has."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import heddle.ops
from heddle.model import Model

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


# The names of torch that signatures have; its own files take four times as long to read as all others.
TORCH = {
    "__init__.pyi": "class Tensor:\n    @property\n    def __dlpack__(self) -> object: ...\n",
    "nn/__init__.pyi": "class Module: ...\n",
    "nn/attention/__init__.pyi": "",
    "nn/attention/flex_attention.pyi": "class BlockMask: ...\n",
}
# As a user's script: each name of the package, and what comes back from its classes.
SCRIPT = """
import heddle, heddle.ops, numpy

class Twice(heddle.Op):
    reads, writes, tile = {"x": (None, "M, D")}, {"y": (None, "M, D")}, ("M",)
    factor: float = 2.0

x = numpy.zeros((2, 8), numpy.float32)
call = heddle.schedule("softmax", x=x, y=x)
kernel = heddle.Megakernel([call])
model = heddle.load("folder")
"""
MADE = (
    *(f"heddle.{name}" for name in heddle.__all__),
    *(f"heddle.ops.{name}" for name in ("NAMES", "info", "mean", "softmax")),
    *(f"call.{name}" for name in ("op", "tensors", "attributes", "on")),
    *(f"kernel.{name}" for name in ("run", "bind", "check", "program", "trace()", "write_trace", "workers")),
    *(f"kernel.trace().{name}" for name in ("worker", "done", "tile", "ops")),
    *(f"model.{name}" for name in vars(Model) if name[0] != "_"),
    *("Twice(x)", "Twice.schedule", "Twice.check", "Twice.compile"),
)


def checked(tmp_path, file):
    for name, text in TORCH.items():
        (tmp_path / "torch" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "torch" / name).write_text(text)
    options = ["--config-file=", f"--cache-dir={tmp_path}", "--strict", "--warn-unused-ignores"]
    options += ["--explicit-package-bases", "--follow-imports=silent"]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(file)],
        env=os.environ | {"MYPYPATH": f"{tmp_path}:{PACKAGE.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_type_checker_reads_them(tmp_path):
    # An `ignore` that hides nothing is an error, so that wrong calls must be found.
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\n".join(f"reveal_type({each})" for each in MADE))
    made = checked(tmp_path, script)
    assert made.returncode == 0, made.stdout + made.stderr
    lines = [line for line in made.stdout.splitlines() if "Revealed type is" in line]
    assert len(lines) == len(MADE)
    # Any shape, and any parameters.
    lines = [re.sub(r"PickAny|ndarray\[tuple\[Any, \.\.\.\]|\(\*Any, \*\*Any\)", "", line) for line in lines]
    untyped = [name for name, line in zip(MADE, lines, strict=True) if "Any" in line]
    assert untyped == []
    made = checked(tmp_path, HERE / "typed_calls.py")
    assert made.returncode == 0, made.stdout + made.stderr
