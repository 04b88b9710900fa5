"""heddle's ops inside torch: registered ops, tensors that are no memory, threads."""

import os

import numpy
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import heddle
import heddle.torch
from heddle import _heddle
from heddle.ops.info import info
from op_cases import CALLABLE, call, out_of, small_cases, tensors_of

X, W = torch.randn(3, 8), torch.ones(8)


def in_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def registered(name):
    return getattr(torch.ops.heddle, name)


@pytest.mark.parametrize("name", CALLABLE)
def test_every_op_is_registered_with_both_forms(name):
    number, case = next(iter(small_cases(name)))
    inputs = tensors_of(name, number, case)
    wanted = call(name, inputs, case)
    names = heddle.torch.schema.out_names(info(name))
    outs = [torch.empty_like(one) for one in wanted]
    assert registered(name)(**inputs, **case["attributes"], **dict(zip(names, outs, strict=True))) is None
    for one, other in zip(outs, wanted, strict=True):
        assert torch.equal(one, other)
    if out_of(name, case) is None:
        made = registered(name)(**inputs, **case["attributes"])
        for one, other in zip(in_tuple(made), wanted, strict=True):
            assert torch.equal(one, other)


def test_a_short_call_of_a_packet_is_seen_by_whoever_watches():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    packet, seen = torch.ops.heddle.rms_norm, []
    assert isinstance(packet, torch._ops.OpOverloadPacket)
    assert type(packet).__call__ is not torch._ops.OpOverloadPacket.__call__
    assert (str(packet), packet.overloads()) == ("heddle.rms_norm", ["default", "out"])

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Called(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    wanted = packet(X, W)
    with Dispatched():
        assert torch.equal(packet(X, W), wanted)
    assert "heddle.rms_norm.default" in seen
    seen.clear()
    with Called():
        assert torch.equal(packet(X, W), wanted)
    assert any("rms_norm" in each for each in seen)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        packet(X, W)
    assert "heddle::rms_norm" in [event.key for event in profile.key_averages()]
    assert packet(X.to("meta"), W.to("meta")).device.type == "meta"
    for wrong in ((X,), (X, 3), (X.numpy(), W)):  # torch says what it says of its own ops
        with pytest.raises(RuntimeError, match="heddle::rms_norm"):
            packet(*wrong)
    with pytest.raises(heddle.InvalidArgument, match="weight is f32"):
        packet(X, W[:3])
    x = X.clone().requires_grad_()
    packet(x, W).sum().backward()
    assert x.grad.shape == X.shape


def kinds_of_cases(name):
    """The first case of each set of attributes and of inputs: dtypes, layouts, sizes of 0, 1 or more."""
    kinds = {}
    for number, case in small_cases(name):
        attributes = {key: value for key, value in case["attributes"].items() if not isinstance(value, float)}
        tensors = {
            key: (dtype, [min(n, 2) for n in sizes], turned)
            for key, (dtype, sizes, turned) in case["tensors"].items()
        }
        kinds.setdefault(str((attributes, tensors)), (number, case))
    return kinds.values()


@pytest.mark.parametrize("name", [name for name in CALLABLE if name != "route"])
def test_fakes_have_the_shapes_and_dtypes_that_calls_have(name):
    op = getattr(heddle.ops, name)
    for number, case in kinds_of_cases(name):
        inputs = tensors_of(name, number, case)
        wanted = op(**inputs, **case["attributes"])
        with FakeTensorMode(shape_env=ShapeEnv()) as mode:
            fakes = {key: mode.from_tensor(value) for key, value in inputs.items()}
            made = op(**fakes, **case["attributes"])
        for one, other in zip(in_tuple(made), in_tuple(wanted), strict=True):
            assert one.dtype == other.dtype
            for size, exact in zip(one.shape, other.shape, strict=True):
                assert not isinstance(size, int) or size == exact
            if all(isinstance(size, int) for size in one.shape):
                assert one.stride() == other.stride()


@pytest.mark.parametrize(
    "name", ["rms_norm", "layer_norm", "gated_activation", "matmul", "rope", "rope_rows", "argmax", "softmax"]
)
def test_opcheck(name):
    cases = [each for each in small_cases(name) if "float32" in str(each[1]["tensors"])]
    given = [(tensors_of(name, *each), each[1]["attributes"]) for each in cases]
    # opcheck takes NaN for unequal to itself.
    inputs, attributes = [
        each for each in given if all(x.float().isfinite().all() for x in each[0].values())
    ][-1]
    positional = tuple(inputs.get(each.name) for each in info(name).inputs)
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(registered(name).default, positional, attributes, test_utils=tests)


def test_a_fake_never_reaches_an_address():
    with FakeTensorMode():
        x, weight = torch.empty(3, 8), torch.empty(8)
        assert type(heddle.ops.rms_norm(x, weight)).__name__ == "FakeTensor"
    assert type(heddle.ops.rms_norm(x, weight)).__name__ == "FakeTensor"
    # The kernel of the dispatcher has no other guard than the check of the type.
    with pytest.raises(heddle.InvalidArgument, match="FakeTensor, which is no memory"):
        _heddle.function("rms_norm", True)(x, weight)


def test_the_check_of_the_type_is_what_keeps_fakes_out():
    with FakeTensorMode():
        x, weight = torch.empty(3, 8), torch.empty(8)
    _heddle.trust_subclasses(True)
    try:
        with pytest.raises(heddle.Error) as caught:
            _heddle.function("rms_norm", True)(x, weight)
        assert "no memory" not in str(caught.value)
    finally:
        _heddle.trust_subclasses(False)


class Plain(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    """A tensor without memory, as tensors of quantised or sharded weights are."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    def __init__(self, inner):
        pass

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        unwrapped = [each.inner if isinstance(each, Wrapper) else each for each in arguments]
        return Wrapper(function(*unwrapped, **(keywords or {})))


def test_subclasses():
    assert type(heddle.ops.rms_norm(X.as_subclass(Plain), W)) is Plain
    made = heddle.ops.rms_norm(Wrapper(X), W)
    assert type(made) is Wrapper
    assert torch.equal(made.inner, heddle.ops.rms_norm(X, W))
    with pytest.raises(heddle.InvalidArgument, match="no memory by itself"):
        _heddle.function("rms_norm", True)(Wrapper(X), W)
    assert torch.equal(
        heddle.ops.rms_norm(X, torch.nn.Parameter(W, requires_grad=False)), heddle.ops.rms_norm(X, W)
    )


def test_subclasses_have_gradients():
    for make in (lambda x: x.as_subclass(Plain), Wrapper):
        x = torch.randn(3, 8, requires_grad=True)
        made = make(x)
        if not made.requires_grad:
            made = made.requires_grad_()
        heddle.ops.softmax(made)  # the gradient's own calls are seen as others are


def test_modes_see_calls():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            seen.append(str(function))
            return function(*arguments, **(keywords or {}))

    with Mode():
        heddle.ops.rms_norm(X, W)
    assert seen == ["heddle.rms_norm.default"]


def test_meta_and_functional_tensors():
    made = heddle.ops.rms_norm(X.to("meta"), W.to("meta"))
    assert (made.device.type, made.shape) == ("meta", X.shape)
    function = torch.func.functionalize(lambda x: heddle.ops.rms_norm(x, W))
    assert torch.equal(function(X), heddle.ops.rms_norm(X, W))


def test_functions_of_torch_func():
    wanted = torch.func.grad(lambda x: torch.nn.functional.rms_norm(x, (8,), W, 1e-5).pow(3).sum())(X)
    made = torch.func.grad(lambda x: heddle.ops.rms_norm(x, W).pow(3).sum())(X)
    assert torch.allclose(made, wanted, atol=1e-4)


def test_writes_count_as_versions():
    out = torch.empty(3, 8)
    before = out._version
    heddle.ops.rms_norm(X, W, out=out)
    assert out._version > before


def test_inference_mode():
    with torch.inference_mode():
        made = heddle.ops.rms_norm(X, W)
        heddle.ops.rms_norm(X, W, out=made)
    assert made.is_inference()


def test_threads_of_torch_are_respected():
    large = torch.randn(600, 256)
    weight = torch.ones(256)
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            heddle.ops.rms_norm(large, weight)
            assert heddle.last_path().threads == threads
    finally:
        torch.set_num_threads(before)
    heddle.ops.rms_norm(X, W)
    assert heddle.last_path().threads == 1


def test_survives_fork():
    large = torch.randn(600, 256)
    weight = torch.ones(256)
    wanted = heddle.ops.rms_norm(large, weight).numpy().tobytes()
    child = os.fork()
    if child == 0:
        numbers = large.numpy(), weight.numpy()
        os._exit(0 if heddle.ops.rms_norm(*numbers).tobytes() == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_threads_of_python():
    from concurrent.futures import ThreadPoolExecutor

    inputs = [torch.randn(200, 128) for _ in range(16)]
    weight = torch.ones(128)
    wanted = [heddle.ops.rms_norm(x, weight) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            made = list(pool.map(lambda x: heddle.ops.rms_norm(x, weight), inputs))
            assert all(torch.equal(one, other) for one, other in zip(made, wanted, strict=True))


def test_numpy_scalars_and_tensors_do_not_mix():
    with pytest.raises(heddle.InvalidArgument, match="one library"):
        heddle.ops.add(X, numpy.zeros((3, 8), "f"))
