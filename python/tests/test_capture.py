"""Calls on a stream that a CUDA graph captures."""

import pytest
import torch

import heddle
import heddle.ops
import heddle.torch

if not torch.cuda.is_available():
    pytest.skip(
        "torch has no GPU here; tests/op_call_gpu_test.cpp captures calls on the emulated one",
        allow_module_level=True,
    )


def capture(work):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = work()
    return graph, made


def test_a_graph_runs_calls_again_on_new_values():
    x, weight = torch.randn(32, 64, device="cuda"), torch.ones(64, device="cuda")
    other = torch.randn(64, 48, device="cuda")

    def work():
        return heddle.ops.softmax(heddle.ops.matmul(heddle.ops.rms_norm(x, weight), other))

    work()  # warm: kernels are compiled, and nothing is left to do but launches
    graph, y = capture(work)
    for _ in range(3):
        x.normal_()
        graph.replay()
        torch.testing.assert_close(y, work())


def test_the_first_call_of_all_may_be_captured():
    """Its kernel is compiled and loaded meanwhile, which records nothing and waits for no stream."""
    x = torch.randn(7, 136, device="cuda", dtype=torch.bfloat16)
    graph, y = capture(lambda: heddle.ops.softcap(x, cap=3.0))
    graph.replay()
    torch.testing.assert_close(y, heddle.ops.softcap(x, cap=3.0))


def test_a_given_output_takes_no_memory():
    x, y = torch.randn(16, 64, device="cuda"), torch.empty(16, 64, device="cuda")
    heddle.ops.softmax(x, out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        heddle.ops.softmax(x, out=y)
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    y.zero_()
    graph.replay()
    assert torch.equal(y, heddle.ops.softmax(x))


def test_gradients():
    x = torch.randn(16, 64, device="cuda", requires_grad=True)

    def work():
        (grad,) = torch.autograd.grad(heddle.ops.softmax(x).square().sum(), x)
        return grad

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph, grad = capture(work)
    with torch.no_grad():
        x.normal_()
    graph.replay()
    torch.testing.assert_close(grad, work())


def test_nothing_is_timed_while_a_stream_is_captured():
    a, b = torch.randn(40, 72, device="cuda"), torch.randn(72, 56, device="cuda")
    y = torch.empty(40, 56, device="cuda")
    with heddle.settings.set(heddle.PickBest):
        graph = torch.cuda.CUDAGraph()
        refused = None
        with torch.cuda.graph(graph):
            try:
                heddle.ops.matmul(a, b, out=y)
            except heddle.Unsupported as error:
                refused = str(error)
            y.zero_()
        assert refused is not None
        assert "run the call once before" in refused
        heddle.ops.matmul(a, b)
        graph, made = capture(lambda: heddle.ops.matmul(a, b))
        assert heddle.last_path().tuned
    graph.replay()
    torch.testing.assert_close(made, heddle.ops.matmul(a, b))


def test_a_program_is_refused_by_name():
    """Each run has a number of its own, by which its counters count; a graph would repeat the number."""
    x = torch.randn(8, 64, device="cuda")
    kernel = heddle.Megakernel([heddle.schedule("add", a=x, b=x, y=x)])
    kernel.run()
    refused = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        try:
            kernel.run()
        except heddle.Unsupported as error:
            refused = str(error)
        x.zero_()
    assert "a CUDA graph cannot capture it" in refused
    kernel.run()
