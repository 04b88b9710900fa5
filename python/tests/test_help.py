"""help(op): what each op's text says, and that its example runs."""

import ast
import re

import pytest
import torch

import heddle.ops
from op_cases import CALLABLE


@pytest.mark.parametrize("name", CALLABLE)
def test_the_example_runs(name):
    info = heddle.ops.info(name)
    document = getattr(heddle.ops, name).__doc__
    assert info.example in document
    lines = re.findall(r">>> (.*)", info.example)
    assert f"heddle.ops.{name}(" in lines[-1]
    names = {}
    exec("\n".join(lines), names)
    for result in lines[-1].partition(" = ")[0].split(", "):
        assert isinstance(names[result], torch.Tensor)


@pytest.mark.parametrize("name", heddle.ops.NAMES)
def test_it_says_what_each_argument_is(name):
    info = heddle.ops.info(name)
    document = getattr(heddle.ops, name).__doc__
    assert document.startswith(info.doc)
    assert info.about in document
    for tensor in (*info.inputs, *info.outputs):
        assert re.search(rf"^ +{tensor.name}: .*{tensor.dtypes[0]}", document, re.MULTILINE), tensor
    for attribute in info.attributes:
        line = re.search(rf"^ +{attribute.name}\b.*", document, re.MULTILINE)[0]
        shown = re.match(r" *\w+ = ([^:]+):", line)
        assert (shown is None) == (attribute.default is None)
        assert shown is None or ast.literal_eval(shown[1]) == attribute.default
        if info.callable:
            assert attribute.note or attribute.choices, attribute.name
        for choice in attribute.choices:
            assert repr(choice) in line
    if info.callable:
        assert ("Gradient: of " in document) == bool(info.gradient)


def test_numbers_are_as_they_were_written():
    (eps,) = heddle.ops.info("rms_norm").attributes
    assert eps.default == 1e-05
    assert "eps = 1e-05" in heddle.ops.rms_norm.__doc__
