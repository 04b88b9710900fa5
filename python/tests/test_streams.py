"""Every op on sixteen streams at once, and in a CUDA graph: no call may use memory of another."""

import pytest
import torch

from op_cases import CALLABLE, call, small_cases, tensors_of

if not torch.cuda.is_available():
    pytest.skip("torch has no GPU here", allow_module_level=True)

STREAMS, ROUNDS = 16, 3


def scaled(inputs, factor):
    """The inputs on the GPU, where numbers that are no indices are others."""
    return {
        key: (value.float() * factor).to(value.dtype).cuda() if value.is_floating_point() else value.cuda()
        for key, value in inputs.items()
    }


def assert_same_bits(made, wanted):
    for one, other in zip(made, wanted, strict=True):
        assert torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))


@pytest.mark.parametrize("name", CALLABLE)
def test_sixteen_streams(name):
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    for number, case in small_cases(name):
        inputs = tensors_of(name, number, case)
        given = [scaled(inputs, 1 + i / STREAMS) for i in range(STREAMS)]
        wanted = [call(name, each, case) for each in given]
        torch.cuda.synchronize()
        made = []
        for _ in range(ROUNDS):
            for stream, each in zip(streams, given, strict=True):
                with torch.cuda.stream(stream):
                    made.append(call(name, each, case))
        torch.cuda.synchronize()
        for i, results in enumerate(made):
            assert_same_bits(results, wanted[i % STREAMS])


@pytest.mark.parametrize("name", CALLABLE)
def test_a_captured_call_reads_new_values(name):
    for number, case in small_cases(name):
        inputs = tensors_of(name, number, case)
        given, others = scaled(inputs, 1.0), scaled(inputs, 1.25)
        wanted = call(name, scaled(inputs, 1.25), case)
        call(name, given, case)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = call(name, given, case)
        for key, value in given.items():
            value.copy_(others[key])
        graph.replay()
        torch.cuda.synchronize()
        assert_same_bits(made, wanted)
