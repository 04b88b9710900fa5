"""Wrong calls: heddle's own exceptions, a line that names op, argument and value, a process that goes on."""

import numpy
import pytest
import torch

import heddle
from heddle.ops.info import info
from op_cases import CALLABLE

X, W = torch.randn(3, 8), torch.ones(8)
ops = heddle.ops

# (call, what the message names)
WRONG = [
    (lambda: ops.rms_norm(), ["[rms_norm]", "x is missing", "rms_norm(x, weight, *, eps=1e-05, out=None)"]),
    (lambda: ops.rms_norm(X), ["[rms_norm]", "weight is missing"]),
    (lambda: ops.rms_norm(None, W), ["x is missing"]),
    (lambda: ops.rms_norm(X, W, W), ["3 arguments by position"]),
    (lambda: ops.rms_norm(X, W, x=X), ["x is given twice"]),
    (lambda: ops.rms_norm(X, W, epsilon=1), ["no argument epsilon", "eps=1e-05"]),
    (lambda: ops.rms_norm(3.5, W), ["x is 3.5, of type float", "torch.Tensor or a numpy.ndarray"]),
    (lambda: ops.rms_norm([[1.0]], W), ["x is [[1.0]], of type list"]),
    (lambda: ops.rms_norm("text", W), ["x is 'text', of type str"]),
    (
        lambda: ops.rms_norm(X, W.numpy()),
        ["weight is a numpy.ndarray and x is a torch.Tensor", "one library"],
    ),
    (lambda: ops.rms_norm(X, W[:5]), ["weight is f32 [5]", "[8]"]),
    (lambda: ops.rms_norm(X, X), ["weight is f32 [3, 8]", "must be [D]"]),
    (lambda: ops.rms_norm(X.double(), W), ["x has dtype float64", "convert"]),
    (lambda: ops.rms_norm(X.to(torch.complex64), W), ["x has a dtype of 64 bits"]),
    (lambda: ops.rms_norm(X.int(), W), ["x is i32 [3, 8]", "must be f32 or f16 or bf16"]),
    (lambda: ops.rms_norm(torch.tensor(1.0), W), ["x is f32 []"]),
    (lambda: ops.rms_norm(X, W, eps="small"), ["eps", "small", "must be a number"]),
    (lambda: ops.rms_norm(X, W, eps=None), ["eps is None"]),
    (lambda: ops.rms_norm(X, W, eps=-1), ["eps = -1", "must not be negative"]),
    (lambda: ops.rms_norm(X, W, eps=1e300), ["eps = 1e+300"]),
    (lambda: ops.rms_norm(X, W, eps=X), ["eps is", "of type torch.Tensor"]),
    (lambda: ops.rms_norm(X, W, out=3), ["y is 3, of type int"]),
    (lambda: ops.rms_norm(X, W, out=X[:2].clone()), ["y has leading dimensions [2]", "[3]"]),
    (lambda: ops.rms_norm(X, W, out=torch.empty(3, 9)), ["y is f32 [3, 9]", "[3, 8]"]),
    (lambda: ops.rms_norm(X, W, out=torch.empty(3, 8, dtype=torch.int32)), ["y is i32"]),
    (lambda: ops.rms_norm(X, W, out=torch.empty(8, 3).T), ["y has strides [1, 3]", "contiguous"]),
    (lambda: ops.rms_norm(X, W, out=torch.empty(1, 8).expand(3, 8)), ["y", "overlap"]),
    (lambda: ops.rms_norm(X, W, out=W.expand(3, 8)), ["y", "weight"]),
    (lambda: ops.softmax(X, out=X.view(-1)[:24].view(3, 8)[:, :8][:3].flip(0)[:1]), ["y"]),
    (lambda: ops.rms_norm(X, W, out=(X, X)), ["out has 2 tensors", "y"]),
    (lambda: ops.rms_norm(X, W, out={"z": X}), ["out has z", "the outputs are y"]),
    (lambda: ops.rms_norm(X.numpy(), W.numpy(), out=read_only()), ["y is read-only"]),
    (lambda: ops.rms_norm(numpy.ma.masked_array(X.numpy()), W.numpy()), ["x is", "MaskedArray"]),
    (lambda: ops.rms_norm(X.numpy().astype(">f4"), W.numpy()), ["x cannot be read"]),
    (lambda: ops.rms_norm(misaligned(), W.numpy()), ["x"]),
    (lambda: ops.activation(X, kind="swish"), ["kind", "swish", "silu"]),
    (lambda: ops.activation(X, kind=1), ["kind", "1", "silu"]),
    (lambda: ops.scale(X, factor=[]), ["factor is [], of type list"]),
    (lambda: ops.add(X, X[:1]), ["b has leading dimensions [1] and a has [3]"]),
    (lambda: ops.add(X, X[:, :4]), ["b", "[3, 4]"]),
    (lambda: ops.matmul(X, X), ["[matmul]", "b"]),
    (lambda: ops.matmul(X, torch.randn(8, 2, 2)), ["b is f32 [8, 2, 2]"]),
    (lambda: ops.gated_activation(X[:, :7]), ["x", "7"]),
    (lambda: ops.rope_rows(X, torch.randn(3, 4), head_dim=3), ["[rope_rows]"]),
    (lambda: ops.route(X), ["[route]", "choice"]),
    (lambda: ops.linear(X, X), ["[linear]", "packed weight", "matmul"]),
    (lambda: ops.attention(X), ["[attention]", "part of a program", "heddle.load"]),
    (lambda: ops.clamped_gate(X.clone().requires_grad_()), ["x requires a gradient", "torch.no_grad()"]),
    (lambda: ops.rms_norm(X.clone().requires_grad_(), W, out=X.clone()), ["out is given", "gradient"]),
    (lambda: ops.rms_norm(X, W, out=X.clone().requires_grad_()), ["out requires a gradient"]),
    (lambda: ops.rms_norm(X.to_sparse(), W), ["[rms_norm]", "Sparse"]),
    (lambda: ops.rms_norm(X.to("meta"), W), ["[rms_norm]", "one device"]),
    (lambda: heddle.set_backend("rms_norm", "fast"), ["backend is 'fast'", "'reference'"]),
    (lambda: heddle.set_backend("rms", "kernel"), ["no op 'rms'", "rms_norm"]),
    (lambda: ops.info("rms"), ["no op 'rms'"]),
]


def read_only():
    array = numpy.zeros((3, 8), "f")
    array.setflags(write=False)
    return array


def misaligned():
    return numpy.zeros(3 * 8 * 4 + 1, "u1")[1:].view("f").reshape(3, 8)


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_the_message_names_what_is_wrong(number):
    wrong, names = WRONG[number]
    with pytest.raises(heddle.Error) as caught:
        wrong()
    text = str(caught.value)
    assert "\n" not in text
    for name in names:
        assert name in text, text


class Odd:
    """An object that fails wherever it is asked."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    def __repr__(self):
        raise RuntimeError("no repr")


VALUES = [
    None,
    1,
    2.5,
    "x",
    b"x",
    [],
    {},
    (),
    object(),
    Odd(),
    int,
    numpy.zeros(3, "f"),
    numpy.zeros((2, 3), "O"),
]


def test_two_hundred_wrong_calls_in_one_process():
    count = 0
    for name in CALLABLE:
        op = getattr(ops, name)
        for value in VALUES:
            inputs = [value] * len(info(name).inputs)
            for wrong in (
                lambda op=op, inputs=inputs: op(*inputs),
                lambda op=op, inputs=inputs: op(*inputs, no_such=1),
            ):
                try:
                    wrong()
                except heddle.Error:
                    count += 1
                except Exception as error:
                    raise AssertionError(f"{name}({value!r:.40}) raised {error!r}") from error
    for _ in range(4):
        for wrong, _names in WRONG:
            with pytest.raises(heddle.Error):
                wrong()
            count += 1
    assert count >= 200
    assert torch.equal(ops.rms_norm(X, W), ops.rms_norm(X, W))


def test_classes():
    assert issubclass(heddle.InvalidArgument, (heddle.Error, ValueError))
    assert issubclass(heddle.Unsupported, RuntimeError)
    assert issubclass(heddle.CompilerMissing, heddle.Unsupported)
    error = heddle.CompileError("message", log="log", line=3)
    assert (str(error), error.log, error.line) == ("message", "log", 3)


@pytest.mark.parametrize(
    ("wrong", "of_python", "said"),
    [
        (lambda: ops.rms_norm(X, W, epsilon=1), TypeError, "did you mean eps?"),
        (lambda: ops.sum(X, axis=1), TypeError, "sum(x, dim=None, keepdim=False, *, dtype=None)"),
        (lambda: ops.softmax(X, axis=1), TypeError, "softmax(x, dim=-1, *, out=None)"),
        (lambda: heddle.MegakernelConfig(foo=1), TypeError, "has no argument foo"),
        (lambda: heddle.MegakernelConfig(scheduler="fast"), ValueError, "'fast' is no scheduler"),
        (lambda: heddle.MegakernelConfig(executor="thread"), ValueError, "did you mean threads?"),
        (lambda: heddle.MegakernelConfig(tracing="yes"), ValueError, "tracing is 'yes'"),
        (lambda: heddle.schedule("softmax", z=X), TypeError, "has no argument z; a call has x, y"),
        (lambda: heddle.schedule("softmax", x=X, y=X).on(q=X), TypeError, "has no argument q"),
        (lambda: heddle.schedule("softmx", x=X), ValueError, "did you mean softmax?"),
        (lambda: ops.rmsnorm, AttributeError, "did you mean rms_norm?"),
        (lambda: heddle.Megakernl, AttributeError, "did you mean Megakernel?"),
        (lambda: heddle.patch(), TypeError, "missing 1 required positional argument: 'model'"),
        (lambda: heddle.linear_cross_entropy(X, W, reducton="sum"), TypeError, "did you mean reduction?"),
        (lambda: heddle.load("folder", progres=True), ValueError, "progres"),
        (lambda: heddle.load("/no/folder"), OSError, "there is no such folder"),
        (lambda: ops.head_norm(X, W), TypeError, "head_dim is missing"),
        (lambda: ops.softmax(X, 2), ValueError, "dim is 2, x has 2 dimensions"),
    ],
)
def test_all_are_errors_of_heddle_and_of_python(wrong, of_python, said):
    with pytest.raises(heddle.Error) as caught:
        wrong()
    assert isinstance(caught.value, of_python)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(heddle._FUNCTIONS, "patched_by_nobody", "no_such_package.module")
    with pytest.raises(heddle.PackageMissing, match="needs the package no_such_package") as caught:
        _ = heddle.patched_by_nobody
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("name", ["softmax", "argmax"])
def test_a_dimension_is_any(name):
    x = torch.randn(3, 4, 5)
    ours, theirs = getattr(ops, name), getattr(torch, name)
    for dim in range(-3, 3):
        wanted = theirs(x, dim)
        for made in (ours(x, dim), ours(x, dim=dim), torch.from_numpy(ours(x.numpy(), dim))):
            assert made.shape == wanted.shape
            assert made.is_contiguous()
            torch.testing.assert_close(made.to(wanted.dtype), wanted)
        out = torch.empty_like(wanted, dtype=made.dtype)
        assert ours(x, dim, out=out) is out
        torch.testing.assert_close(out.to(wanted.dtype), wanted)


def test_a_dimension_has_a_gradient_and_is_compiled():
    x, y = (torch.linspace(-1, 1, 24).view(2, 3, 4).requires_grad_() for _ in range(2))
    compiled = torch.compile(lambda x: ops.softmax(x, 1).square().sum(), fullgraph=True, backend="aot_eager")
    compiled(x).backward()
    y.softmax(1).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
