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


NORMS = {
    "rms_norm": lambda x, w, b: heddle.ops.rms_norm(x, w),
    "layer_norm": heddle.ops.layer_norm,
    "rms_norm_residual": lambda x, w, b: heddle.ops.rms_norm_residual(x, x, w)[0],
    "head_norm": lambda x, w, b: heddle.ops.head_norm(x, w, heads=2, head_dim=8),
}


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", NORMS)
def test_trained_weights(name, fullgraph, dynamic):
    torch._dynamo.reset()
    function = torch.compile(NORMS[name], backend="aot_eager", fullgraph=fullgraph, dynamic=dynamic)
    for rows in (4, 7):
        x, leaves = torch.randn(rows, 16), [torch.randn(16, requires_grad=True) for _ in range(2)]
        used = leaves[:2] if name == "layer_norm" else leaves[:1]
        made = torch.autograd.grad(function(x, *leaves).pow(2).sum(), used)
        wanted = torch.autograd.grad(NORMS[name](x, *leaves).pow(2).sum(), used)
        for one, other in zip(made, wanted, strict=True):
            assert torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_power_attention(backend, dynamic):
    def f(q, k, v, log_gates):
        y, state = heddle.power_attention(q, k, v, log_gates, chunk=16, return_state=True)
        return y.pow(2).sum() + state.sum()

    torch._dynamo.reset()
    function = torch.compile(f, backend=backend, dynamic=dynamic)
    for length in (37, 20):
        q, v = torch.randn(1, length, 2, 8), torch.randn(1, length, 2, 12)
        leaves = [each.requires_grad_() for each in (q, q + 0.1, v, -torch.rand(1, length, 2))]
        made, wanted = (torch.autograd.grad(each(*leaves), leaves) for each in (function, f))
        for one, other in zip(made, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "amax"])
def test_reductions_with_dynamic_shapes(name, fullgraph):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    op = getattr(heddle.ops, name)
    function = torch.compile(lambda x: op(x, (0, 2)), backend=counter, fullgraph=fullgraph, dynamic=True)
    for length in (4, 7):
        x = torch.randn(3, length, 5, requires_grad=True)
        made, wanted = (
            torch.autograd.grad(each(x).pow(2).sum(), x)[0] for each in (function, lambda x: op(x, (0, 2)))
        )
        torch.testing.assert_close(made, wanted)
    assert counter.frame_count == 1


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(16))

    def forward(self, x):
        return heddle.ops.rms_norm(x, self.weight) + heddle.ops.sum(x, 1, True)


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_runs_and_trains(strict):
    norm, rows = Norm(), torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(
        norm, (torch.randn(4, 16),), dynamic_shapes=({0: rows},), strict=strict
    ).module()
    x = torch.randn(7, 16)
    assert torch.allclose(program(x), norm(x))
    program(x).pow(2).sum().backward()
    norm(x).pow(2).sum().backward()
    assert torch.allclose(program.weight.grad, norm.weight.grad)
