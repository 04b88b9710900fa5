"""Ops, gradients, compiled functions, programs and models on torch's CUDA tensors."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import heddle
import heddle.torch
from op_cases import (
    CALLABLE,
    WITH_GRADIENT,
    by_reference,
    call,
    check_rows_with_gaps,
    distance,
    float_case,
    results_of,
    rounding,
    small_cases,
    tensors_of,
)
from test_gradient_node import by_node, check_bits  # noqa: F401

if not torch.cuda.is_available():
    pytest.skip("torch has no GPU here", allow_module_level=True)

MODEL = Path(__file__).parents[2] / "models" / "storyteller"


def on_gpu(inputs, device="cuda"):
    return {key: value.to(device) for key, value in inputs.items()}


@pytest.mark.parametrize("name", CALLABLE)
def test_agrees_with_its_reference(name):
    ran = 0
    for number, case in small_cases(name):
        inputs = tensors_of(name, number, case)
        made = call(name, on_gpu(inputs), case)
        path = heddle.last_path()
        assert (path.op, path.backend, path.device, path.copies) == (name, "kernel", "cuda:0", 0)
        wanted = by_reference(name, inputs, case)
        for one, other in zip(made, wanted, strict=True):
            assert (one.device.type, one.dtype) == ("cuda", other.dtype)
            assert distance(one.cpu(), other) <= case["bound"] + rounding(one.dtype), case
        ran += 1
    assert ran > 0


@pytest.mark.parametrize("name", CALLABLE)
def test_reads_and_writes_rows_with_gaps(name):
    check_rows_with_gaps(name, on_gpu, error=1e-6)


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_gradients_are_those_of_the_cpu(name):
    number, case, wanted = float_case(name)
    inputs = tensors_of(name, number, case)
    wanted = [key for key in wanted if key in inputs]
    grads = []
    for device in ("cpu", "cuda"):
        made = {key: value.detach().clone().to(device) for key, value in inputs.items()}
        for key in wanted:
            made[key].requires_grad_()
        results = results_of(getattr(heddle.ops, name)(**made, **case["attributes"]))
        generator = torch.Generator().manual_seed(1)
        given = [torch.randn(y.shape, generator=generator).to(device) for y in results]
        torch.autograd.backward(results, given)
        grads.append([made[key].grad.cpu() for key in wanted])
    for one, other in zip(*grads, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("by_node")
@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_gradients_by_the_node_are_those_of_python(name):
    check_bits(name, "cuda")


@pytest.mark.usefixtures("by_node")
def test_a_gradient_is_on_the_stream_of_its_call():
    x = torch.randn(4096, 4096, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(20):
            y = heddle.ops.softmax(x)
        y.sum().backward()
    torch.cuda.synchronize()
    assert x.grad.abs().max() < 1e-5


@pytest.mark.parametrize(("rows", "columns"), [(33000, 4096), (16390, 8200), (4100, 4096), (70001, 72)])
def test_long_columns_are_summed_in_order(rows, columns):
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    one, other = (heddle.ops.column_sum(x) for _ in range(2))
    assert torch.equal(one, other)
    assert (one.double() - x.double().sum(0)).abs().max() < 1e-5 * rows**0.5


@pytest.mark.parametrize("columns", [64, 2056, 4096, 8192, 12288, 18440])
def test_gradients_of_norms_of_any_width(columns):
    x, dy = torch.randn(2, 1999, columns, device="cuda", dtype=torch.bfloat16)
    weight, bias = torch.randn(2, columns, device="cuda")
    made = []
    for norm in (heddle.ops.layer_norm, heddle.ops.layer_norm, torch.nn.functional.layer_norm):
        wide = torch.float64 if norm is torch.nn.functional.layer_norm else None
        values = [each.to(wide or each.dtype).clone().requires_grad_() for each in (x, weight, bias)]
        args = (values[0], (columns,), *values[1:]) if wide else values
        made.append(torch.autograd.grad(norm(*args), values, dy.to(wide or dy.dtype)))
    for one, other, right in zip(*made, strict=True):
        assert torch.equal(one, other)
        assert (one.double() - right).abs().max() < 0.01 * right.abs().max()


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_have_the_same_bits_wherever_lines_begin(layout, dtype):
    m, n, k = 1030, 1411, 525

    def matrix(rows, columns, turned, first, gap):
        """Zeros, whose lines lie `gap` elements apart, in ones; the first begins at element `first`."""
        lines, line = (columns, rows) if turned else (rows, columns)
        room = torch.ones(first + lines * (line + gap) + 8, dtype=dtype, device="cuda")
        made = torch.as_strided(room, (lines, line), (line + gap, 1), first).zero_()
        return room, made.t() if turned else made

    left, right = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    turned = [letter == "t" for letter in layout]
    wanted = None
    for first, gap in ((0, -1), (0, 0), (0, 1), (1, 0), (4, 3), (7, 16)):
        sides = [(m, k, turned[0]), (k, n, turned[1]), (m, n, False)]
        # -1: lines begin at multiples of 16 bytes
        gaps = [-(c if not t else r) % 8 if gap < 0 else gap for r, c, t in sides]
        (_, a), (_, b), (room, y) = (matrix(*side, first, by) for side, by in zip(sides, gaps, strict=True))
        heddle.ops.mm(a.copy_(left), b.copy_(right), out=y)
        if wanted is None:
            wanted = y.clone()
            exact = left.to(dtype).double() @ right.to(dtype).double()
            torch.testing.assert_close(wanted.double(), exact, atol=0.02, rtol=2**-8)
        assert torch.equal(y, wanted), (first, gap, heddle.last_path().body)
        y.fill_(1)
        assert (room == 1).all(), "what lies between the lines is not stored"


def test_scattered_inputs_are_copied():
    x, weight = torch.randn(8, 6, device="cuda").T, torch.ones(8, device="cuda")
    wanted = heddle.ops.rms_norm(x.contiguous(), weight)
    assert torch.equal(heddle.ops.rms_norm(x, weight), wanted)
    assert heddle.last_path().copies == 1


def test_empty_tensors():
    x, weight = torch.empty(0, 8, device="cuda"), torch.ones(8, device="cuda")
    assert heddle.ops.rms_norm(x, weight).shape == (0, 8)


def test_a_call_is_in_the_order_of_the_current_stream():
    x = torch.zeros(256, 256, device="cuda")
    weight = torch.ones(256, device="cuda")
    heddle.ops.rms_norm(x, weight)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)  # clocks; a call on any other stream would see zeros
        x.fill_(1)
        made = heddle.ops.rms_norm(x, weight, eps=0.0)
        assert not side.query()  # the call itself does not wait
    side.synchronize()
    assert (made == 1).all()


def test_memory_of_a_call_on_a_side_stream_is_not_reused_too_early():
    weight = torch.ones(1024, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(50):
            x = torch.randn(64, 1024, device="cuda")
            turned = x.T.contiguous().T  # copied inside the call
            made = heddle.ops.rms_norm(turned, weight)
            assert torch.equal(made, heddle.ops.rms_norm(x, weight))


def test_many_threads_of_python_each_with_its_stream():
    inputs = [torch.randn(64, 128, device="cuda") for _ in range(16)]
    weight = torch.ones(128, device="cuda")
    wanted = [heddle.ops.rms_norm(x, weight) for x in inputs]
    torch.cuda.synchronize()

    def run(x):
        with torch.cuda.stream(torch.cuda.Stream()):
            made = heddle.ops.rms_norm(x, weight)
            torch.cuda.current_stream().synchronize()
        return made

    with ThreadPoolExecutor(16) as pool:
        for _ in range(5):
            made = list(pool.map(run, inputs))
            assert all(torch.equal(one, other) for one, other in zip(made, wanted, strict=True))


def test_tensors_of_two_places_are_refused():
    with pytest.raises(heddle.InvalidArgument, match="weight is memory of the host; the call runs on GPU 0"):
        heddle.ops.rms_norm(torch.randn(2, 8, device="cuda"), torch.ones(8))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_a_call_runs_on_the_gpu_of_its_tensors():
    x, weight = torch.randn(4, 64), torch.ones(64)
    wanted = heddle.ops.rms_norm(x.cuda(), weight.cuda()).cpu()
    assert torch.equal(heddle.ops.rms_norm(x.to("cuda:1"), weight.to("cuda:1")).cpu(), wanted)
    assert (heddle.last_path().device, torch.cuda.current_device()) == ("GPU 1", 0)
    with pytest.raises(heddle.InvalidArgument, match="GPU 0"):
        heddle.ops.rms_norm(x.to("cuda:1"), weight.to("cuda:0"))
    kernel = heddle.Megakernel([heddle.schedule("softmax", x=x.to("cuda:1"), y=(y := x.to("cuda:1")))])
    kernel.run()
    assert torch.allclose(y.cpu(), x.softmax(-1), atol=1e-6)


def block(x, weight, gate_up, down):
    h = heddle.ops.matmul(heddle.ops.rms_norm(x, weight, eps=1e-6), gate_up)
    return heddle.ops.matmul(heddle.ops.gated_activation(h, kind="silu"), down)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_function_has_one_graph_for_all_lengths(backend):
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    function = torch.compile(block, fullgraph=True, dynamic=True, backend=counter)
    weights = [torch.randn(size, device="cuda") for size in ((16,), (16, 64), (32, 16))]
    for length in (4, 7, 9, 100, 33):
        x = torch.randn(2, length, 16, device="cuda")
        made, wanted = x.clone().requires_grad_(), x.clone().requires_grad_()
        y, z = function(made, *weights), block(wanted, *weights)
        assert torch.equal(y, z)
        y.square().sum().backward()
        z.square().sum().backward()
        assert torch.allclose(made.grad, wanted.grad, rtol=1e-4, atol=1e-3)
    assert counter.frame_count == 1


@pytest.mark.parametrize("executor", ["launches", "megakernel"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_program_of_calls(executor, dtype):
    x, residual = (torch.randn(40, 256, device="cuda", dtype=dtype) for _ in range(2))
    weight = torch.rand(256, device="cuda", dtype=dtype)
    h, y = torch.empty_like(x), torch.empty_like(x)
    wanted = heddle.ops.add(residual, heddle.ops.softmax(heddle.ops.rms_norm(x, weight)))
    kernel = heddle.Megakernel(
        [
            heddle.schedule("rms_norm", x=x, weight=weight, y=h),
            heddle.schedule("softmax", x=h, y=y),
            heddle.schedule("add", a=residual, b=y, y=residual),
        ],
        heddle.MegakernelConfig(executor=executor, tracing=True),
    )
    kernel.check()
    kernel.run()
    # Calls by themselves add in the order of whole kernels, programs in that of tiles.
    torch.testing.assert_close(residual, wanted)
    other = torch.randn_like(x)
    wanted = heddle.ops.add(residual, heddle.ops.softmax(heddle.ops.rms_norm(other, weight)))
    kernel.bind([each.on(x=other) if each.op == "rms_norm" else each for each in kernel.ops])
    kernel.run()
    torch.testing.assert_close(residual, wanted)
    assert set(kernel.trace().call) >= {0, 1, 2}


def test_a_model_says_what_it_says_on_the_cpu():
    prompts = ["Once upon a time", "17 + 25 ="]
    with heddle.load(MODEL, device="cpu") as model:
        wanted = [model.generate(prompt, max_tokens=40) for prompt in prompts]
    with heddle.load(MODEL, device="cuda") as model:
        assert [model.generate(prompt, max_tokens=40) for prompt in prompts] == wanted
        assert [token.text for token in model.stream(prompts[0], max_tokens=40)]


def test_a_call_in_a_forked_process_is_refused_by_name():
    x, weight, out = torch.randn(2, 8, device="cuda"), torch.ones(8, device="cuda"), torch.empty(2, 8).cuda()
    heddle.ops.rms_norm(x, weight, out=out)
    torch.cuda.synchronize()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            heddle.ops.rms_norm(x, weight, out=out)
            os.write(write, b"no error")
        except heddle.Error as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"fork" in os.read(read, 1000)
