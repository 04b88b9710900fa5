"""Every op under each of torch's modes, transforms and tracers: right, or refused by name."""

import contextlib
import copy

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import heddle
import heddle.ops
from op_cases import CALLABLE, WITH_GRADIENT, float_case, results_of, small_cases, tensors_of

OTHER = 0.5  # what a second input is of the first


class Call:
    """A call of an op as a function of its float inputs that have gradients, or of all its floats."""

    def __init__(self, name):
        self.name = name
        if name in WITH_GRADIENT:
            number, case, wanted = float_case(name)
        else:
            number, case = next(iter(small_cases(name)))
            wanted = [key for key, (dtype, _, _) in case["tensors"].items() if dtype == "float32"]
        self.tensors = tensors_of(name, number, case)
        self.attributes = case["attributes"]
        self.wanted = [key for key in wanted if key in self.tensors]
        self.inputs = tuple(self.tensors[key] for key in self.wanted)
        self.others = tuple(OTHER * each for each in self.inputs)
        self.has_gradient = name in WITH_GRADIENT and bool(self.inputs)

    def __call__(self, *inputs):
        given = {**self.tensors, **dict(zip(self.wanted, inputs, strict=True))}
        return results_of(getattr(heddle.ops, self.name)(**given, **self.attributes))

    def first(self, x):
        """All results as a function of the first input, as one vector."""
        return torch.cat([y.reshape(-1).float() for y in self(x, *self.inputs[1:])])

    def loss(self, *inputs):
        return sum(y.float().pow(2).sum() for y in self(*inputs) if y.is_floating_point())

    def gradients(self, function=None):
        leaves = [each.clone().requires_grad_() for each in self.inputs]
        return torch.autograd.grad((function or self.loss)(*leaves), leaves, allow_unused=True)


CALLS = [name for name in CALLABLE if name != "route"]  # its outputs are the caller's


@pytest.fixture(scope="module", params=CALLS)
def call(request):
    return Call(request.param)


def assert_same(made, wanted, **bounds):
    for one, other in zip(made, wanted, strict=True):
        if one is not None or other is not None:
            torch.testing.assert_close(one, other, equal_nan=True, **bounds)


@contextlib.contextmanager
def refusal():
    """Allows refusals that name the op, or one that its gradient calls."""
    try:
        yield
    except heddle.Error as error:
        if not str(error).startswith("["):
            raise


class Dispatched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


class Called(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


def test_modes_and_profilers_see_it(call):
    wanted = call(*call.inputs)
    for mode in (Dispatched(), Called()):
        with mode:
            assert_same(call(*call.inputs), wanted)
        assert any(f"heddle.{call.name}" in each for each in mode.seen), mode.seen
    with torch.autograd.profiler.profile() as profile:
        assert_same(call(*call.inputs), wanted)
    assert f"heddle::{call.name}" in {event.name for event in profile.function_events}


def test_contexts_change_no_value(call):
    wanted = call(*call.inputs)
    contexts = (
        torch.no_grad(),
        torch.inference_mode(),
        torch.device("cpu"),
        torch.autograd.set_detect_anomaly(True),
        torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    )
    for context in contexts:
        with context:
            assert_same(call(*call.inputs), wanted)
    torch.use_deterministic_algorithms(True)
    try:
        assert_same(call(*call.inputs), wanted)
    finally:
        torch.use_deterministic_algorithms(False)


def test_fake_and_meta_tensors(call):
    wanted = call(*call.inputs)
    fakes = copy.copy(call)
    with FakeTensorMode() as mode:
        fakes.tensors = {key: mode.from_tensor(each) for key, each in call.tensors.items()}
        made = fakes(*(fakes.tensors[key] for key in call.wanted))
    fakes.tensors = {key: each.to("meta") for key, each in call.tensors.items()}
    for results in (made, fakes(*(fakes.tensors[key] for key in call.wanted))):
        for one, other in zip(results, wanted, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)


def test_traces_depend_on_their_inputs(call):
    if not call.inputs:
        pytest.skip("no input is of float32")
    wanted = call(*call.others)
    traced = torch.jit.trace(lambda *x: call(*x), call.inputs, check_trace=False)
    assert_same(results_of(traced(*call.others)), wanted)
    assert_same(make_fx(call)(*call.inputs)(*call.others), wanted)
    assert_same(torch.func.functionalize(call)(*call.others), wanted)


def test_batches(call):
    if not call.inputs:
        pytest.skip("no input is of float32")
    batch = tuple(torch.stack((one, other)) for one, other in zip(call.inputs, call.others, strict=True))
    made = torch.vmap(call)(*batch)
    for one, first, second in zip(made, call(*call.inputs), call(*call.others), strict=True):
        assert_same((one[0], one[1]), (first, second))


def test_forward_mode_is_refused_by_name(call):
    if not call.inputs:
        pytest.skip("no input is of float32")
    x = call.inputs[0]
    match = rf"\[{call.name}\] .* has a tangent"
    with forward_ad.dual_level():
        with pytest.raises(heddle.Unsupported, match=match):
            call.first(forward_ad.make_dual(x, x))
        call.first(x)  # it has none
    for transform in (torch.func.jacfwd(call.first), lambda x: torch.func.jvp(call.first, (x,), (x,))):
        with pytest.raises(heddle.Unsupported, match=match):
            transform(x)


def test_forward_mode_is_refused_where_results_are_given():
    x = torch.randn(3, 8)
    with forward_ad.dual_level():
        dual, plain = forward_ad.make_dual(x, x), torch.empty(3, 8)
        for wrong in (
            lambda: heddle.ops.softmax(dual, out=plain),
            lambda: heddle.ops.softmax(x, out=dual),
            lambda: torch.ops.heddle.softmax.out(dual, out=plain),
            lambda: heddle.Megakernel([heddle.schedule("softmax", x=dual, y=plain)]),
            lambda: heddle.linear_cross_entropy(dual, torch.randn(5, 8), torch.tensor([1, 2, 3])),
        ):
            with pytest.raises(heddle.Unsupported, match="has a tangent"):
                wrong()


def test_gradients_of_transforms(call):
    if not call.has_gradient:
        pytest.skip("it has no gradient")
    wanted = call.gradients()
    every = tuple(range(len(call.inputs)))
    bounds = {"rtol": 1e-4, "atol": 1e-4}
    assert_same(torch.func.grad(call.loss, every)(*call.inputs), wanted, **bounds)
    assert_same(make_fx(torch.func.grad(call.loss, every))(*call.inputs)(*call.inputs), wanted, **bounds)
    traced = torch.jit.trace(call.loss, call.inputs, check_trace=False)
    assert_same(call.gradients(traced), wanted, **bounds)
    assert_same(call.gradients(lambda *x: checkpoint(call.loss, *x, use_reentrant=False)), wanted)
    leaves = [each.clone().requires_grad_() for each in call.inputs]
    checkpoint(call.loss, *leaves, use_reentrant=True).backward()
    assert_same([each.grad for each in leaves], wanted)
    with torch.autograd.graph.save_on_cpu(), torch.autograd.detect_anomaly(check_nan=False):
        assert_same(call.gradients(), wanted)
    for watcher in (Dispatched(), Called(), torch.autograd.profiler.profile()):
        with watcher:
            assert_same(call.gradients(), wanted, **bounds)


def test_jacobians(call):
    if not call.has_gradient or call.inputs[0].numel() > 64:
        pytest.skip("it has no gradient, or no small input")
    x = call.inputs[0]
    wanted = torch.autograd.functional.jacobian(call.first, x)
    assert_same((torch.func.jacrev(call.first)(x),), (wanted,), rtol=1e-4, atol=1e-4)
    made = torch.autograd.functional.jacobian(call.first, x, vectorize=True)
    assert_same((made,), (wanted,), rtol=1e-4, atol=1e-4)


def numeric_product(function, x, v, step=2.0**-6):
    """The change of the gradient of `function` along v."""
    up, down = (
        torch.autograd.grad(function(y), y)[0]
        for y in ((x + step * v).requires_grad_(), (x - step * v).requires_grad_())
    )
    return (up - down) / (2 * step)


def test_second_derivatives_are_right_or_refused(call):
    if not call.has_gradient:
        pytest.skip("it has no gradient")
    x = call.inputs[0]
    v = torch.randn(x.shape, generator=torch.Generator().manual_seed(3))

    def loss(x):
        return call.loss(x, *call.inputs[1:])

    def by_torch_func(x):
        return torch.func.vjp(torch.func.grad(loss), x)[1](v)[0]

    wanted = None
    for product in (lambda x: torch.autograd.functional.hvp(loss, x, v)[1], by_torch_func):
        with refusal():
            made = product(x)
            wanted = numeric_product(loss, x, v) if wanted is None else wanted
            assert_same((made,), (wanted,), rtol=5e-2, atol=5e-2)


def test_compiled(call):
    if not call.inputs:
        pytest.skip("no input is of float32")
    torch._dynamo.reset()
    compiled = torch.compile(call.loss if call.has_gradient else call, backend="aot_eager", fullgraph=True)
    if call.has_gradient:
        assert_same(call.gradients(compiled), call.gradients(), rtol=1e-4, atol=1e-4)
    else:
        assert_same(compiled(*call.inputs), call(*call.inputs))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_the_loss_of_a_linear_layer(reduction):
    h, weight, target = torch.randn(6, 8), torch.randn(20, 8), torch.randint(0, 20, (6,))

    def ours(h):
        return heddle.linear_cross_entropy(h, weight, target, reduction=reduction).sum()

    def theirs(h):
        return torch.nn.functional.cross_entropy(h @ weight.T, target, reduction=reduction).sum()

    wanted = torch.func.grad(theirs)(2 * h)
    assert_same((torch.func.grad(ours)(2 * h),), (wanted,))
    assert_same((make_fx(torch.func.grad(ours))(h)(2 * h),), (wanted,))
    assert_same((torch.vmap(ours)(torch.stack((h, 2 * h)))[1],), (theirs(2 * h),))
    assert_same((torch.jit.trace(ours, (h,))(2 * h),), (theirs(2 * h),))


def test_symbolic_traces():
    x, w = torch.randn(3, 8), torch.rand(8)

    def f(x, w):
        y = heddle.ops.rms_norm(x, w, eps=1e-6)
        return heddle.ops.sum(heddle.ops.softmax(y), 1)

    traced = torch.fx.symbolic_trace(f)
    leaves = x.clone().requires_grad_(), w.clone().requires_grad_()
    assert torch.equal(traced(x, w), f(x, w))
    assert_same(
        torch.autograd.grad(traced(*leaves).pow(2).sum(), leaves),
        torch.autograd.grad(f(*leaves).pow(2).sum(), leaves),
    )
