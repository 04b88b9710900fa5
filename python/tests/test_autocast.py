"""torch.autocast: dtypes as those of torch's own ops."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

import heddle
import heddle.ops
import heddle.torch

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
LOWER = (torch.bfloat16, torch.float16)

# heddle's op, torch's, and the one that torch's lists name
PAIRS = {
    "matmul": (lambda x, w: heddle.ops.matmul(x, x), lambda x, w: x @ x, "matmul"),
    "bmm": (lambda x, w: heddle.ops.bmm(x, x), lambda x, w: torch.bmm(x[None], x[None])[0], "bmm"),
    "rms_norm": (heddle.ops.rms_norm, lambda x, w: F.rms_norm(x, (8,), w), "rms_norm"),
    "layer_norm": (heddle.ops.layer_norm, lambda x, w: F.layer_norm(x, (8,), w), "layer_norm"),
    "softmax": (lambda x, w: heddle.ops.softmax(x), lambda x, w: F.softmax(x, -1), "softmax.int"),
    "activation": (lambda x, w: heddle.ops.activation(x), lambda x, w: F.silu(x), "silu"),
    "multiply": (lambda x, w: heddle.ops.multiply(x, x), lambda x, w: x * x, "mul.Tensor"),
    "add": (lambda x, w: heddle.ops.add(x, x), lambda x, w: x + x, "add.Tensor"),
    "column_sum": (lambda x, w: heddle.ops.column_sum(x), lambda x, w: x.sum(0), "sum.dim_IntList"),
}


def inputs(dtype, device="cpu", **keywords):
    make = {"dtype": dtype, "device": device, **keywords}
    return torch.full((8, 8), 0.5, **make), torch.ones(8, **make)


@pytest.mark.parametrize("lower", LOWER)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", PAIRS)
def test_results_have_torchs_dtypes(op, dtype, lower):
    ours, torchs, _ = PAIRS[op]
    with torch.autocast("cpu", lower):
        made, wanted = ours(*inputs(dtype)), torchs(*inputs(dtype))
    if op != "column_sum":  # it adds up in f32 and says so in any mode
        assert made.dtype == wanted.dtype
    torch.testing.assert_close(made.float(), wanted.float(), atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("op", PAIRS)
def test_rules_are_those_of_torchs_lists(op):
    """Torch has a kernel for autocast where an op is on a list; lists are by kind of device."""
    if op == "rms_norm" and torch.__version__ < "2.13":
        pytest.skip("torch 2.11 has no rms_norm on its lists; it autocasts what that is made of")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for key in ("AutocastCPU", "AutocastCUDA"):
        rule = heddle.ops.info(op).autocast
        listed = rule == "lower" or (rule == "float32" and key == "AutocastCUDA")
        assert listed == has(f"aten::{PAIRS[op][2]}", key), key


@contextlib.contextmanager
def cuda_autocast():
    """torch.autocast("cuda", torch.bfloat16), which torch leaves off without a GPU."""
    before = torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)
        torch.set_autocast_dtype("cuda", before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", PAIRS)
def test_results_on_a_gpu(op, dtype):
    """Fake tensors have the dtypes of a GPU without having one."""
    info, ours = heddle.ops.info(op), PAIRS[op][0]
    with FakeTensorMode():
        plain = ours(*inputs(dtype, "cuda"))
        full = ours(*inputs(torch.float32, "cuda"))
        with cuda_autocast():
            made = ours(*inputs(dtype, "cuda"))
        off = ours(*inputs(dtype, "cuda"))
    wanted = {"lower": torch.bfloat16, "float32": full.dtype, "": plain.dtype}[info.autocast]
    assert made.dtype == wanted
    assert made.device.type == "cuda"
    assert off.dtype == plain.dtype


@pytest.mark.parametrize("lower", LOWER)
def test_gradients(lower):
    def run(product):
        torch.manual_seed(0)
        a, b = torch.randn(5, 8, requires_grad=True), torch.randn(8, 3, requires_grad=True)
        with torch.autocast("cpu", lower):
            y = product(a, b)
        assert y.dtype == lower
        y.float().square().sum().backward()
        return y, a.grad, b.grad

    for ours, torchs in zip(run(heddle.ops.matmul), run(torch.matmul), strict=True):
        assert ours.dtype == torchs.dtype
        torch.testing.assert_close(ours, torchs, atol=0.2, rtol=0.05)


def test_torchs_own_name_of_the_op():
    x, _ = inputs(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.ops.heddle.matmul(x, x).dtype == torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert torch.ops.heddle.matmul(x, x).dtype == torch.float32
            assert heddle.ops.matmul(x, x).dtype == torch.float32
        assert heddle.ops.matmul(x, x).dtype == torch.bfloat16
    assert heddle.ops.matmul(x, x).dtype == torch.float32


def test_autocast_of_another_device_changes_nothing():
    x, _ = inputs(torch.float32)
    with cuda_autocast():
        assert heddle.ops.matmul(x, x).dtype == torch.float32


def test_a_given_output_is_what_the_call_writes():
    x, _ = inputs(torch.float32)
    out = torch.empty_like(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert heddle.ops.matmul(x, x, out=out) is out
    assert torch.equal(out, x @ x)


def test_codes_keep_their_scales():
    x, _ = inputs(torch.float32)
    codes, scales = torch.ones(8, 8, dtype=torch.int8), torch.full((1, 8), 0.5)
    plain = heddle.ops.matmul(x, codes, b_scales=scales)
    with torch.autocast("cpu", torch.bfloat16):
        made = heddle.ops.matmul(x, codes, b_scales=scales)
    torch.testing.assert_close(made.float(), plain, atol=1e-2, rtol=1e-2)
    assert made.dtype == torch.bfloat16


@pytest.mark.parametrize("gradient", [False, True])
def test_inside_a_compiled_function(gradient):
    x, w = inputs(torch.float32, requires_grad=gradient)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def block(x, w):
        return heddle.ops.matmul(heddle.ops.rms_norm(x, w), x)

    with torch.autocast("cpu", torch.bfloat16):
        y = block(x, w)
    assert y.dtype == torch.bfloat16
    if gradient:
        y.float().sum().backward()
        assert x.grad.dtype == torch.float32
    assert block(x, w).dtype == torch.float32
