"""Ops of one's own inside torch: gradients, fakes, torch.compile."""

# ruff: noqa: RUF012 - a class declares an op by its attributes, which nobody changes

import numpy
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

import heddle
import heddle.ops

HEAD = "for (i32 m = t[0]; m < t[1]; ++m) {"


class SquareScaled(heddle.Op):
    """y = scale * (x + bias)^2"""

    reads = {"x": (None, "M, D"), "bias": (None, "D")}
    writes = {"y": (None, "M, D")}
    tile = ("M",)
    scale: float = 1.0
    body = (
        HEAD
        + """
      const auto x = block.row(a.x, m), y = block.row(a.y, m);
      const auto bias = block.row(a.bias);
      block.map(a.x.last(), [&](auto i) {
        const auto sum = x.load(i) + bias.load(i);
        y.store(i, a.scale * sum * sum);
      });
    }"""
    )

    @staticmethod
    def reference(x, bias, scale):
        return scale * (x + bias) ** 2

    @staticmethod
    def backward(x, bias, dy, scale):
        dx = SquareScaledBackward(x, bias, dy, scale=scale)
        return {"dx": dx, "dbias": dx.reshape(-1, dx.shape[-1]).sum(0)}


class SquareScaledBackward(heddle.Op):
    """dx = 2 scale (x + bias) dy"""

    reads = {"x": (None, "M, D"), "bias": (None, "D"), "dy": (None, "M, D")}
    writes = {"dx": (None, "M, D")}
    tile = ("M",)
    scale: float = 1.0
    body = (
        HEAD
        + """
      const auto x = block.row(a.x, m), dy = block.row(a.dy, m), dx = block.row(a.dx, m);
      const auto bias = block.row(a.bias);
      const float twice = 2 * a.scale;
      block.map(a.x.last(), [&](auto i) { dx.store(i, twice * (x.load(i) + bias.load(i)) * dy.load(i)); });
    }"""
    )

    @staticmethod
    def reference(x, bias, dy, scale):
        return 2 * scale * (x + bias) * dy


class Parts(heddle.Op):
    """The largest and the sum of each row; the gradient is a tuple, over torch's own functions."""

    reads = {"x": (heddle.f32, "M, D")}
    writes = [("largest", heddle.f32, "M"), ("sum", heddle.f32, "M")]
    tile = ("M",)
    body = (
        HEAD
        + """
      const auto x = block.row(a.x, m);
      block.row(a.largest).set(m, block.reduce(a.x.last(), Max(), [&](auto i) { return x.load(i); }));
      block.row(a.sum).set(m, block.reduce(a.x.last(), Sum(), [&](auto i) { return x.load(i); }));
    }"""
    )

    @staticmethod
    def reference(x):
        return x.max(-1), x.sum(-1)

    @staticmethod
    def backward(x, largest, dlargest, dsum):
        return torch.where(x == largest[:, None], dlargest[:, None], 0) + dsum[:, None]


def close(made, wanted, bound=1e-5):
    """Compared in f64."""
    error = (made.double() - wanted).abs() / (1 + wanted.abs())
    assert error.max() <= bound


def test_gradients_are_those_of_torch_in_f64():
    assert max(SquareScaledBackward.check().values()) < 1e-3
    torch.manual_seed(0)
    x, bias = torch.randn(2, 7, 16), torch.randn(16)
    f32 = [each.clone().requires_grad_() for each in (x, bias)]
    f64 = [each.double().requires_grad_() for each in (x, bias)]
    SquareScaled(*f32, scale=1.5).sin().sum().backward()
    (1.5 * (f64[0] + f64[1]) ** 2).sin().sum().backward()
    for made, wanted in zip(f32, f64, strict=True):
        close(made.grad, wanted.grad, 2e-5)


def test_finite_differences_of_the_reference():
    x, bias, dy = (numpy.random.default_rng(at).standard_normal((3, 4)) for at in range(3))
    bias = bias[0]
    given = torch.tensor(x, dtype=torch.float32, requires_grad=True)
    SquareScaled(given, torch.tensor(bias, dtype=torch.float32)).backward(torch.tensor(dy).float())
    step = 1e-6
    for at in numpy.ndindex(x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][at] += step
        moved[1][at] -= step
        high, low = (SquareScaled.reference(each, bias, 1.0) for each in moved)
        assert abs(given.grad[at].item() - ((high - low) * dy).sum() / (2 * step)) < 1e-5


def test_a_gradient_of_several_outputs():
    x = torch.randn(5, 9)
    f32, f64 = x.clone().requires_grad_(), x.double().requires_grad_()
    largest, total = Parts(f32)
    (largest * total).sum().backward()
    (f64.amax(-1) * f64.sum(-1)).sum().backward()
    close(f32.grad, f64.grad)
    largest, total = Parts(f32.detach().requires_grad_())
    total.sum().backward()  # nobody wants that of the other


class Plain(heddle.Op):
    reads = {"x": (heddle.f32, "M, D"), "w": (heddle.f32, "D")}
    writes = {"y": (heddle.f32, "M, D")}
    tile = ("M",)
    body = HEAD + "block.row(a.y, m).set(0, 1); }"

    @staticmethod
    def reference(x, w):
        return x


def test_without_a_backward_a_gradient_is_refused():
    x = torch.ones(3, 4, requires_grad=True)
    with pytest.raises(
        heddle.Unsupported, match=r"\[plain\] w requires a gradient.* give the class a backward"
    ):
        Plain(x.detach(), x[0])
    with torch.no_grad():
        Plain(x, x[0])
    with pytest.raises(heddle.InvalidArgument, match="out is given, and an input requires a gradient"):
        SquareScaled(x, torch.ones(4), out=torch.ones(3, 4))


def with_backward(backward):
    return type("Backed", (Plain,), {"backward": staticmethod(backward), "writes": Plain.writes})


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda dy: {"dx": dy}, r"\[backed\w*\] its backward returns no dw, and w requires a gradient"),
        (lambda dy: dy, r"its backward returns no dw"),
        (lambda x, dy: (dy, dy), r"its backward returns dw of sizes \[3, 4\]; must have \[4\]"),
    ],
)
def test_a_backward_that_returns_other_things(backward, message):
    op = with_backward(backward)
    y = op(torch.ones(3, 4), torch.ones(4, requires_grad=True))
    with pytest.raises(heddle.InvalidArgument, match=message):
        y.sum().backward()


def test_a_wrong_backward_is_refused_where_it_stands():
    with pytest.raises(
        heddle.InvalidArgument, match="parameter of backward is 'dz'; must be one of x, w, y, dy"
    ):
        with_backward(lambda dz: dz)
    with pytest.raises(heddle.InvalidArgument, match="backward is 3; must be a static method"):
        type("Backed", (Plain,), {"backward": 3})


def test_fakes_follow_the_names_of_dimensions():
    with torch._subclasses.FakeTensorMode():
        y = SquareScaled(torch.empty(2, 3, 8, dtype=torch.float16), torch.empty(8))
        largest, total = Parts(torch.empty(6, 8))
    assert (y.shape, y.dtype) == ((2, 3, 8), torch.float16)
    assert largest.shape == total.shape == (6,)


@pytest.mark.parametrize("gradient", [False, True])
def test_a_compiled_function_has_one_graph_for_all_lengths(gradient):
    def block(x, bias):
        h = SquareScaled(heddle.ops.softmax(x), bias, scale=2.0)
        largest, total = Parts(h)
        return (h * largest[:, None] + total[:, None]).sum()

    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend=counter)
    for length in (4, 7, 16, 33, 100):
        x = torch.randn(length, 16, requires_grad=gradient)
        bias = torch.randn(16, requires_grad=gradient)
        made, wanted = compiled(x, bias), block(x, bias)
        torch.testing.assert_close(made, wanted)
        if gradient:
            for got, right in zip(
                torch.autograd.grad(made, (x, bias)), torch.autograd.grad(wanted, (x, bias)), strict=True
            ):
                torch.testing.assert_close(got, right)
    assert counter.frame_count == 1


def test_torch_knows_the_op():
    SquareScaled(torch.ones(2, 4, requires_grad=True), torch.ones(4))
    op = torch.ops.heddle.square_scaled
    assert (
        str(op.default._schema) == "heddle::square_scaled(Tensor x, Tensor bias, *, float scale=1.) -> Tensor"
    )
    torch.library.opcheck(op.default, (torch.randn(3, 8), torch.randn(8)), {"scale": 2.0})


class Turned(heddle.Op):
    """y = x"""

    reads = {"x": (None, "M, D")}
    writes = {"y": (None, "M, D")}
    tile = ("M",)
    turn: bool = True
    body = (
        HEAD
        + """
      const auto x = block.row(a.x, m), y = block.row(a.y, m);
      block.map(a.x.last(), [&](auto i) { y.store(i, x.load(i)); });
    }"""
    )

    @staticmethod
    def backward(dy, turn):
        return dy.T if turn else dy.reshape(-1, dy.shape[-1])


def test_a_gradient_has_the_sizes_of_its_input_in_their_order():
    x = torch.randn(4, 16, requires_grad=True)
    with pytest.raises(heddle.InvalidArgument, match=r"dx of sizes \[16, 4\]; must have \[4, 16\]"):
        Turned(x).sum().backward()
    x = torch.randn(2, 3, 8, requires_grad=True)
    Turned(x, turn=False).pow(2).sum().backward()
    assert torch.equal(x.grad, 2 * x)


def test_second_derivatives_of_what_torch_computes():
    x = torch.randn(4, 16, requires_grad=True)
    (dx,) = torch.autograd.grad(Turned(x, turn=False).pow(3).sum(), x, create_graph=True)
    assert torch.allclose(torch.autograd.grad(dx.sum(), x)[0], 6 * x)
    traced = torch.jit.trace(lambda x: Turned(x, turn=False), (x,))
    assert torch.equal(traced(2 * x), 2 * x)
    assert torch.equal(torch.fx.symbolic_trace(lambda x: Turned(x, turn=False) + 1)(x), x + 1)
