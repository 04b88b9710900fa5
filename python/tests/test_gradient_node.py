"""Gradients by the node in C++: the same bits as by Python, and what torch's own nodes have."""

import gc
import os
import shlex
import subprocess
import sys
import threading
import weakref

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import heddle
import heddle.ops
from heddle import _heddle
from heddle.torch import node
from op_cases import WITH_GRADIENT, float_case, results_of, tensors_of

pytestmark = pytest.mark.usefixtures("by_node")


@pytest.fixture
def by_node():
    if "no C++ compiler" in node.prepare():
        pytest.skip(node.state())
    before = _heddle.use_node(True)
    yield
    _heddle.use_node(before)


def test_preparing_waits_for_a_thread_that_compiles(monkeypatch):
    entered, goes_on = threading.Event(), threading.Event()

    def build(progress):
        entered.set()
        assert goes_on.wait(60)
        raise heddle.CompileError("slow")

    monkeypatch.setattr(node, "build", build)
    monkeypatch.setattr(node, "find", lambda: None)
    monkeypatch.setitem(node._state, "text", node.WAITS)
    first = threading.Thread(target=node._build_and_load)
    first.start()
    assert entered.wait(60)
    found = []
    second = threading.Thread(target=lambda: found.append(node.prepare()))
    second.start()
    second.join(0.2)
    assert not found
    goes_on.set()
    first.join()
    second.join()
    assert found == ["in Python: slow"]


def leaves(*sizes, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(each, dtype=dtype).requires_grad_() for each in sizes]


def check_bits(name, device):
    number, case, wanted = float_case(name)
    tensors = {key: each.to(device) for key, each in tensors_of(name, number, case).items()}
    made = []
    for use in (True, False):
        _heddle.use_node(use)
        inputs = dict(tensors)
        for key in wanted:
            if key in inputs:
                inputs[key] = inputs[key].clone().requires_grad_()
        results = results_of(getattr(heddle.ops, name)(**inputs, **case["attributes"]))
        assert heddle.last_path().gradient == ("node" if use else "python")
        assert results[0].grad_fn.name() == f"{name}_gradientBackward"
        results = [y for y in results if y.requires_grad]
        torch.autograd.backward(results, [torch.ones_like(y) for y in results])
        made.append([inputs[key].grad for key in wanted if key in inputs])
    assert all(torch.equal(one, other) for one, other in zip(*made, strict=True))


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_bits_are_those_of_python(name):
    check_bits(name, "cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_forms_of_gradients(dtype):
    x, weight, bias = leaves((2, 5, 8), (8,), (8,), dtype=dtype)
    other = torch.randn(8, 5, dtype=dtype, requires_grad=True)
    y = heddle.ops.matmul(heddle.ops.layer_norm(x.mT.contiguous().mT, weight, bias), other)
    y.sum().backward()  # its gradient is expanded
    for each in (x, weight, bias, other):
        assert (each.grad.shape, each.grad.dtype) == (each.shape, dtype)


def test_no_rows():
    x, weight = torch.empty(0, 8, requires_grad=True), torch.randn(8, requires_grad=True)
    heddle.ops.rms_norm(x, weight).sum().backward()
    assert heddle.last_path().gradient != "python"
    assert x.grad.shape == (0, 8)
    assert torch.equal(weight.grad, torch.zeros(8))


def test_only_what_is_wanted_is_computed():
    x, weight = leaves((3, 8), (8,))
    (dx,) = torch.autograd.grad(heddle.ops.rms_norm(x, weight).sum(), x)
    assert heddle.last_path().op == "rms_norm_backward"  # no column_sum
    (dweight,) = torch.autograd.grad(heddle.ops.rms_norm(x.detach(), weight).sum(), weight)
    assert (dx.shape, dweight.shape) == (x.shape, weight.shape)


def test_gradients_that_are_others_are_not_copied():
    x, other, bias = leaves((3, 8), (3, 8), (8,))
    dy = torch.randn(3, 8)
    made = torch.autograd.grad(heddle.ops.add(x, other), (x, other), dy)
    assert [each.data_ptr() for each in made] == [dy.data_ptr()] * 2
    for _ in range(2):  # what autograd keeps is its own
        heddle.ops.bias(heddle.ops.add(x, other), bias).backward(dy)
    assert torch.equal(x.grad, 2 * dy)
    assert torch.equal(other.grad, 2 * dy)
    x.grad.zero_()
    assert other.grad.any()
    assert dy.any()


def test_an_output_that_nobody_uses():
    x, residual, weight = leaves((3, 8), (3, 8), (8,))
    y, added = heddle.ops.rms_norm_residual(x, residual, weight)
    (first,) = torch.autograd.grad(added.sum(), x, retain_graph=True)
    assert torch.equal(first, torch.ones(3, 8))
    y.sum().backward()
    assert x.grad.shape == (3, 8)


def test_what_changed_in_place_is_refused():
    (x,) = leaves((3, 8))
    for changed in (x.detach(), None):
        y, z = heddle.ops.softmax(x), heddle.ops.rms_norm(x, torch.ones(8))
        (y if changed is None else changed).mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            (y.sum() + z.sum()).backward()


def test_a_graph_is_used_once_unless_it_is_kept():
    (x,) = leaves((3, 8))
    loss = heddle.ops.softmax(x).pow(2).sum()
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    (second,) = torch.autograd.grad(loss, x)
    assert torch.equal(first, second)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(loss, x)


def test_hooks_of_saved_tensors_see_what_is_saved():
    x, weight = leaves((3, 8), (8,))
    packed = []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = heddle.ops.rms_norm(x, weight)
    assert heddle.last_path().gradient == "node"
    assert packed == [(3, 8), (8,)]
    y.sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: 1 / 0):
        y = heddle.ops.rms_norm(x, weight)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def test_hooks_of_nodes_and_tensors():
    (x,) = leaves((3, 8))
    y = heddle.ops.softmax(x)
    y.retain_grad()
    seen = []
    y.register_hook(lambda grad: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda grads: seen.append("before"))
    y.grad_fn.register_hook(lambda made, grads: (2 * made[0],))
    assert y.grad_fn.next_functions[0][0].variable is x
    (3 * y).sum().backward()
    assert sorted(seen) == ["before", "tensor"]
    assert torch.equal(y.grad, torch.full((3, 8), 3.0))


@pytest.mark.filterwarnings("ignore:Error detected in softmax_gradientBackward")
def test_anomalies_name_the_op():
    (x,) = leaves((3, 8))
    nan = torch.full((3, 8), torch.nan)
    with torch.autograd.set_detect_anomaly(True):
        y = heddle.ops.softmax(x)
        with pytest.raises(RuntimeError, match=r"softmax_gradientBackward' returned nan"):
            y.backward(nan)
    assert y.grad_fn.metadata["traceback_"]


def test_errors_of_a_backward_are_those_of_its_op():
    (x,) = leaves((3, 8))
    (dx,) = torch.autograd.grad(heddle.ops.softmax(x).pow(2).sum(), x, create_graph=True)
    with pytest.raises(heddle.Unsupported, match=r"\[softmax_backward\] .* no second derivative"):
        torch.autograd.grad(dx.sum(), x, allow_unused=True)


def test_checkpoints_and_batches_of_gradients():
    x, weight = leaves((3, 8), (8,))

    def loss(x):
        return heddle.ops.softmax(heddle.ops.rms_norm(x, weight, eps=1e-3)).pow(2).sum(-1)

    (wanted,) = torch.autograd.grad(loss(x).sum(), x)
    for reentrant in (False, True):
        y = checkpoint(loss, x, use_reentrant=reentrant)
        x.grad = None
        y.sum().backward()
        assert torch.equal(x.grad, wanted)
    (rows,) = torch.autograd.grad(loss(x), x, torch.eye(3), is_grads_batched=True)
    torch.testing.assert_close(rows.sum(0), wanted)


def test_nothing_is_kept_alive():
    class Attribute(float):
        pass

    eps = Attribute(1e-3)
    x, weight = leaves((3, 8), (8,))
    y = heddle.ops.rms_norm(x.clone(), weight, eps=eps)
    counts, gone = sys.getrefcount(eps), weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(eps) == counts - 1
    y = heddle.ops.softmax(x)  # it saves its own output
    saved = weakref.ref(y)
    y.sum().backward()
    del y
    assert saved() is None


def test_long_chains_end():
    (x,) = leaves((1, 8))
    y = x
    for _ in range(20_000):
        y = heddle.ops.activation(y, kind="silu")
    y.sum().backward(retain_graph=True)
    del y
    assert x.grad is not None


def test_threads():
    x, weight = leaves((16, 64), (64,))
    made = [None] * 8

    def run(i):
        for _ in range(20):
            made[i] = torch.autograd.grad(heddle.ops.rms_norm(x, weight).pow(2).sum(), (x, weight))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(made))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(torch.equal(one, other) for each in made for one, other in zip(each, made[0], strict=True))


def test_watchers_are_left_to_the_dispatcher():
    x, weight = leaves((3, 8), (8,))
    with torch.autocast("cpu", torch.bfloat16):
        heddle.ops.rms_norm(x, weight)  # it stays
        assert heddle.last_path().gradient == "node"
        assert heddle.ops.matmul(x, torch.ones(8, 8)).dtype == torch.bfloat16
        assert heddle.last_path().gradient == "python"
    assert torch.func.grad(lambda x: heddle.ops.rms_norm(x, weight).sum())(x).shape == x.shape
    with torch.inference_mode():
        inside = torch.ones(8)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        heddle.ops.rms_norm(x, inside)
    view = torch.view_as_complex(torch.randn(3, 8, 2)).conj().imag  # torch negates its elements
    y = heddle.ops.add(x, view)
    assert torch.equal(y.detach(), x.detach() + view)


def test_an_input_without_a_gradient_is_named():
    x, table = torch.randn(2, 8), torch.randn(2, 4, requires_grad=True)
    with pytest.raises(heddle.InvalidArgument, match="table requires a gradient"):
        heddle.ops.rope_rows(x, table, head_dim=4, rotary_dim=4, heads=2)


PROGRAM = """
import logging, torch, heddle
logging.basicConfig(level=logging.INFO)
x = torch.randn(3, 8, requires_grad=True)
y = heddle.ops.softmax(x)
y.sum().backward()
print(heddle.last_path().op, heddle.torch.node.state())
heddle.ops.softmax(x)
print(heddle.last_path().gradient)
y = heddle.ops.softmax(x)  # the process ends with a graph
"""


def run_program(program=PROGRAM, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_process_loads_what_was_compiled():
    made = run_program()
    assert made.stdout.splitlines()[1] == "node"


def test_the_way_of_python_is_told():
    off = run_program(HEDDLE_NODE="off")
    assert off.stdout.splitlines() == ["softmax_backward in Python: HEDDLE_NODE=off", "python"]
    assert "gradients go through Python" in off.stderr


def test_what_cannot_be_compiled_is_told(tmp_path):
    none = run_program(HEDDLE_NODE="now", HEDDLE_CACHE=str(tmp_path), HEDDLE_CXX="no_such_compiler")
    assert none.stdout.splitlines()[1] == "python"
    assert "WARNING:heddle:[autograd node] no C++ compiler is here" in none.stderr
    wrong = run_program(HEDDLE_NODE="now", HEDDLE_CACHE=str(tmp_path), HEDDLE_CXX="false")
    assert "it did not compile for torch" in wrong.stderr
    (tmp_path / "file").touch()
    unwritable = run_program(HEDDLE_NODE="now", HEDDLE_CACHE=str(tmp_path / "file"))
    assert unwritable.stdout.splitlines()[1] == "python"
    assert "gradients go through Python" in unwritable.stderr


COUNTED = """
import logging, time, torch, heddle
logging.basicConfig(level=logging.INFO)
x = torch.randn(3, 8, requires_grad=True)
seen = []
for i in range(1100):
    heddle.ops.softmax(x)
    seen.append(heddle.last_path().gradient)
assert set(seen[:999]) == {"python"}
while heddle.last_path().gradient == "python":
    time.sleep(0.01)
    heddle.ops.softmax(x)
"""


def test_a_thousand_calls_have_it_compiled_in_the_background(tmp_path):
    compiler = tmp_path / "compiler"
    made = shlex.quote(str(node.library()))
    compiler.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp {made} "$2"\n')
    compiler.chmod(0o755)
    told = run_program(COUNTED, HEDDLE_CACHE=str(tmp_path), HEDDLE_CXX=str(compiler)).stderr
    assert "in the background" in told
    assert "gradients go through" in told
    assert "compiling" not in run_program(HEDDLE_CACHE=str(tmp_path)).stderr


@pytest.mark.parametrize("use", [True, False])
def test_compiled_autograd(use):
    x, weight = leaves((3, 8), (8,))
    _heddle.use_node(use)

    def loss(eps):
        x.grad = weight.grad = None
        return heddle.ops.softmax(heddle.ops.rms_norm(x, weight, eps=eps)).pow(2).sum()

    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        for eps in (1e-3, 1e-3, 0.5):
            wanted = torch.autograd.grad(loss(eps), (x, weight))
            loss(eps).backward()
            assert torch.equal(x.grad, wanted[0])
            assert torch.equal(weight.grad, wanted[1])


@pytest.mark.parametrize("use", [True, False])
def test_calls_by_torchs_name_have_the_node_of_heddles(use):
    _heddle.use_node(use)
    (x,) = leaves((16, 1024))
    mine, torchs = heddle.ops.softmax(x), torch.ops.heddle.softmax(x)
    assert torchs.grad_fn.name() == mine.grad_fn.name()
    assert (heddle.last_path().gradient == "node") == use
    (given,), (wanted,) = (torch.autograd.grad(y.sum(), x) for y in (torchs, mine))
    assert torch.equal(given, wanted)
    with torch.autocast("cpu", torch.bfloat16):
        assert type(torch.ops.heddle.softmax(x).grad_fn) is type(heddle.ops.softmax(x).grad_fn)
