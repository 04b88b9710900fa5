"""torch.compile: whole graphs, and one for all lengths."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

import heddle
import heddle.ops

LENGTHS = (4, 7, 9, 100, 33)


def compiled(function, backend):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    return torch.compile(function, fullgraph=True, dynamic=True, backend=counter), counter


def block(x, weight, gate_up, down):
    h = heddle.ops.matmul(heddle.ops.rms_norm(x, weight, eps=1e-6), gate_up)
    return heddle.ops.matmul(heddle.ops.gated_activation(h, kind="silu"), down)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_one_graph_for_all_lengths(backend):
    function, counter = compiled(block, backend)
    weights = torch.randn(16), torch.randn(16, 64), torch.randn(32, 16)
    for length in LENGTHS:
        x = torch.randn(2, length, 16)
        assert torch.equal(function(x, *weights), block(x, *weights))
    assert counter.frame_count == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_gradients_in_one_graph(backend):
    function, counter = compiled(block, backend)
    weights = [torch.randn(16), torch.randn(16, 64), torch.randn(32, 16)]
    for length in LENGTHS:
        inputs = [torch.randn(2, length, 16), *weights]
        made = [each.clone().requires_grad_() for each in inputs]
        wanted = [each.clone().requires_grad_() for each in inputs]
        function(*made).pow(2).sum().backward()
        block(*wanted).pow(2).sum().backward()
        for one, other in zip(made, wanted, strict=True):
            assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-3)
    assert counter.frame_count == 1


def test_every_op_is_one_node_of_the_graph():
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    torch.compile(heddle_softmax, fullgraph=True, backend=keep)(torch.randn(2, 8))
    assert "torch.ops.heddle.softmax.default" in graphs[0].code


def heddle_softmax(x):
    return heddle.ops.softmax(x)


def test_out():
    function, _ = compiled(lambda x, y: heddle.ops.softmax(x, out=y) + 1, "aot_eager")
    x, y = torch.randn(3, 8), torch.zeros(3, 8)
    assert torch.equal(function(x, y), x.softmax(-1) + 1) or torch.allclose(function(x, y), x.softmax(-1) + 1)
    assert torch.allclose(y, x.softmax(-1))


def test_a_tensor_twice():
    function, _ = compiled(lambda x: heddle.ops.multiply(x, x), "aot_eager")
    x = torch.randn(3, 8, requires_grad=True)
    function(x).sum().backward()
    assert torch.allclose(x.grad, 2 * x)
