"""The stubs that editors read are those of the ops that the module has."""

import ast
import importlib.util
from pathlib import Path

import heddle.ops

HERE = Path(__file__).parent


def make_stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", HERE.parent / "tools" / "make_stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_up_to_date():
    module = make_stubs()
    assert module.STUBS.read_text() == module.stubs(), "run python/tools/make_stubs.py"


def test_every_op_has_one():
    functions = {
        each.name for each in ast.parse(make_stubs().stubs()).body if isinstance(each, ast.FunctionDef)
    }
    assert functions == set(heddle.ops.NAMES)
