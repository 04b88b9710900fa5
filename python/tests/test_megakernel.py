"""Scheduled calls as one program."""

import os
import signal
import threading

import numpy
import pytest
import torch

import heddle
from heddle import _heddle

EXECUTORS = ("threads", "reference")
RANDOM = numpy.random.default_rng(3)


def block(x, weight, up, down, library):
    """A gated MLP with its norm, in place: x += down(silu(gate) * up) of rms_norm(x)."""
    rows, size = x.shape
    like = {"dtype": x.dtype, "device": x.device} if library is torch else {"dtype": x.dtype}
    h, wide = library.empty((rows, size), **like), library.empty((rows, up.shape[1]), **like)
    narrow, out = library.empty((rows, down.shape[0]), **like), library.empty((rows, size), **like)
    return [
        heddle.schedule(heddle.ops.rms_norm, x=x, weight=weight, y=h, eps=1e-6),
        heddle.schedule("matmul", a=h, b=up, y=wide),
        heddle.schedule("gated_activation", x=wide, y=narrow, kind="silu"),
        heddle.schedule("matmul", a=narrow, b=down, y=out),
        heddle.schedule("add", a=x, b=out, y=x),
    ]


def tensors(rows=5, size=16, hidden=24):
    made = [(rows, size), (size,), (size, 2 * hidden), (hidden, size)]
    return [torch.from_numpy(RANDOM.standard_normal(shape).astype("f")) for shape in made]


def expected(x, weight, up, down):
    h = heddle.ops.matmul(heddle.ops.rms_norm(x, weight, eps=1e-6), up)
    return x + heddle.ops.matmul(heddle.ops.gated_activation(h, kind="silu"), down)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("scheduler", heddle.schedulers())
def test_calls_wait_for_what_they_read(executor, scheduler):
    given = tensors(rows=70)
    wanted = expected(*given)
    config = heddle.MegakernelConfig(executor=executor, scheduler=scheduler, workers=3)
    kernel = heddle.Megakernel(block(*given, torch), config=config)
    kernel.run()
    torch.testing.assert_close(given[0], wanted, atol=1e-4, rtol=1e-4)
    assert kernel.workers == 3
    assert kernel.executor == executor
    assert kernel.check().instructions > 5


def test_numpy_arrays():
    given = [each.numpy() for each in tensors()]
    wanted = expected(*[torch.from_numpy(each.copy()) for each in given]).numpy()
    heddle.Megakernel(block(*given, numpy)).run()
    numpy.testing.assert_allclose(given[0], wanted, atol=1e-4, rtol=1e-4)


def test_other_addresses_keep_the_program():
    heddle.Megakernel(block(*tensors(), torch)).run()
    made = _heddle.programs_made()
    for _ in range(3):
        given = tensors()
        wanted = expected(*given)
        kernel = heddle.Megakernel(block(*given, torch))
        kernel.run()
        torch.testing.assert_close(given[0], wanted, atol=1e-4, rtol=1e-4)
    given = tensors()
    wanted = expected(*given)
    kernel.bind(block(*given, torch))
    kernel.run()
    torch.testing.assert_close(given[0], wanted, atol=1e-4, rtol=1e-4)
    x = torch.zeros(5, 16)
    moved, y = torch.randn(5, 16), torch.empty(5, 16)
    twice = heddle.Megakernel([heddle.schedule("add", a=x, b=x, y=y)])
    assert _heddle.programs_made() == made + 1
    x.data = moved  # at another address
    twice.run()
    assert torch.equal(y, 2 * moved)
    assert _heddle.programs_made() == made + 1
    heddle.Megakernel(block(*tensors(rows=6), torch))
    assert _heddle.programs_made() == made + 2


def test_a_run_counts_as_a_write_for_torch():
    given = tensors()
    version = given[0]._version
    heddle.Megakernel(block(*given, torch)).run()
    assert given[0]._version > version


def test_the_program_is_text():
    text = heddle.Megakernel(block(*tensors(), torch)).program
    assert "borrowed" in text
    assert "0.rms_norm" in text
    assert "eps = 1e-06" in text


def test_leading_dimensions_and_views():
    x, weight = torch.randn(2, 5, 8), torch.ones(8)
    rows = torch.zeros(10, 16)
    left, right = rows[:, :8], rows[:, 8:]
    heddle.Megakernel(
        [
            heddle.schedule("rms_norm", x=x, weight=weight, y=left),
            heddle.schedule("add", a=left, b=left, y=right),
        ]
    ).run()
    wanted = heddle.ops.rms_norm(x, weight).reshape(10, 8)
    torch.testing.assert_close(rows, torch.cat([wanted, 2 * wanted], 1))


def test_trace(tmp_path):
    given = tensors(rows=70)
    kernel = heddle.Megakernel(block(*given, torch), heddle.MegakernelConfig(tracing=True, workers=2))
    kernel.run()
    trace = kernel.trace()
    assert len(trace.call) == kernel.check().instructions
    assert set(trace.worker) <= {0, 1}
    assert trace.ops[0] == "rms_norm"
    assert trace.nodes[0] == "0.rms_norm"
    assert set(trace.call) - {-1} == set(range(5))
    assert (trace.fetched <= trace.ready).all()
    assert (trace.ready <= trace.computed).all()
    assert trace.tile.shape == (len(trace.call), 4)
    for ending, begin in (("nanotrace", b"nanotrace"), ("perfetto", b"\n"), ("html", b"<!")):
        path = tmp_path / f"run.{ending}"
        kernel.write_trace(path)
        assert path.read_bytes().lower().startswith(begin), ending
    with pytest.raises(heddle.InvalidArgument, match=r"nanotrace, \.html"):
        kernel.write_trace(tmp_path / "run.txt")


def test_the_default_scheduler():
    heddle.set_default_scheduler("backward")
    try:
        given = tensors()
        wanted = expected(*given)
        heddle.Megakernel(block(*given, torch)).run()
        torch.testing.assert_close(given[0], wanted, atol=1e-4, rtol=1e-4)
    finally:
        heddle.set_default_scheduler("level_batched")
    with pytest.raises(heddle.InvalidArgument, match="'fast' is no scheduler; they are backward"):
        heddle.set_default_scheduler("fast")


def test_it_runs_in_a_child_of_the_process():
    given = tensors()
    kernel = heddle.Megakernel(block(*given, torch))
    kernel.run()
    before = given[0].clone()
    wanted = expected(*[before, *given[1:]])
    child = os.fork()
    if child == 0:
        kernel.run()
        os._exit(0 if torch.allclose(given[0], wanted, atol=1e-4) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_calls_that_are_refused_leave_the_others():
    x = torch.ones(4, 8)
    kernel = heddle.Megakernel([heddle.schedule("add", a=x, b=x, y=x)])
    with pytest.raises(heddle.InvalidArgument):
        kernel.bind([norm(weight=torch.ones(4))])
    kernel.run()
    assert (x == 2).all()


def test_several_threads_share_one():
    given = tensors()
    x = given[0].clone()
    kernel = heddle.Megakernel([heddle.schedule("add", a=x, b=x, y=x)])
    threads = [threading.Thread(target=lambda: [kernel.run() for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(x, given[0] * 2**20)


X, W, Y = torch.randn(4, 8), torch.ones(8), torch.empty(4, 8)


def norm(**changes):
    return heddle.schedule("rms_norm", **{"x": X, "weight": W, "y": Y, **changes})


def softmax(x):
    """A namesake of an op."""
    return x


def test_a_packet_of_torch_is_scheduled():
    heddle.Megakernel([heddle.schedule(torch.ops.heddle.softmax, x=X, y=Y)]).run()
    assert torch.allclose(Y, torch.softmax(X, -1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: [], "no call with work"),
        (lambda: [1], "ops has 1; must be calls"),
        (lambda: [norm(z=X)], r"\[rms_norm\] has no argument z; a call has x, weight, y, eps"),
        (lambda: [heddle.schedule("rms_norm", x=X, weight=W)], r"\[rms_norm\] y is missing; must be given"),
        (lambda: [norm(x=[1.0])], r"\[rms_norm\] x is \[1.0\], of type list; must be a torch.Tensor"),
        (lambda: [norm(x=X.double())], r"\[rms_norm\] x has dtype float64"),
        (lambda: [norm(x=X.T.contiguous().T)], r"\[rms_norm\] x has strides \[1, 4\].*give a contiguous"),
        (lambda: [norm(weight=torch.ones(4))], r"\[rms_norm\] weight is .*\[4\]; its shape must be \[8\]"),
        (lambda: [norm(y=torch.empty(3, 8))], r"\[rms_norm\] y"),
        (lambda: [norm(x=X[:1].expand(4, 8))], r"\[rms_norm\] x has stride 0 in dimension 0"),
        (lambda: [norm(eps="small")], r"\[rms_norm\] eps"),
        (lambda: [norm(weight=torch.ones(8, requires_grad=True))], r"weight requires a gradient, .*no_grad"),
        (lambda: [norm(x=W[None], y=W[None])], r"\[rms_norm\] y shares memory with x"),
        (lambda: [heddle.schedule("nothing", x=X)], "no op 'nothing'"),
        (lambda: [heddle.schedule(3, x=X)], "op is 3"),
        (
            lambda: [heddle.schedule(torch.softmax, x=X, y=Y)],
            "softmax.*must be a name or a function of heddle",
        ),
        (lambda: [heddle.schedule(softmax, x=X, y=Y)], "softmax.*must be a name or a function of heddle"),
        (lambda: [norm(y=Y.numpy())], r"\[rms_norm\] y is a numpy.ndarray and x is a torch.Tensor; all must"),
        (
            lambda: [norm(weight=W.numpy())],
            r"weight is a numpy.ndarray and x is a torch.Tensor; all must be of",
        ),
    ],
)
def test_wrong_calls_are_refused(make, message):
    with pytest.raises(heddle.InvalidArgument, match=message):
        heddle.Megakernel(make())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"executor": "fast"}, "fast"),
        ({"executor": "megakernel"}, r"executor .megakernel. runs on a GPU, and the tensors are on the host"),
        ({"scheduler": "fast"}, "'fast' is no scheduler"),
        ({"workers": -1}, "workers = -1"),
    ],
)
def test_wrong_settings_are_refused(config, message):
    with pytest.raises(heddle.InvalidArgument, match=message):
        heddle.Megakernel([norm()], heddle.MegakernelConfig(**config))


def test_a_trace_that_was_not_asked_for():
    kernel = heddle.Megakernel([norm()])
    kernel.run()
    with pytest.raises(heddle.InvalidArgument, match="tracing=True"):
        kernel.trace()


def test_parts_of_programs_are_refused():
    with pytest.raises(heddle.Unsupported, match="reads the step record"):
        heddle.Megakernel([heddle.schedule("kv_append", x=X)])


def test_ctrl_c_ends_a_run():
    a = numpy.ones((1024, 1024), "f")
    outputs = [numpy.zeros_like(a) for _ in range(60)]  # a second or more of products, one after the other
    kernel = heddle.Megakernel(
        [
            heddle.schedule("matmul", a=a if i == 0 else outputs[i - 1], b=a, y=y)
            for i, y in enumerate(outputs)
        ]
    )
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel.run()
    timer.join()
    assert not outputs[-1].any(), "the run went on to its end"
    small = numpy.ones((2, 4), "f")
    kernel.bind([heddle.schedule("softmax", x=small, y=small)])
    kernel.run()
    assert small.tolist() == [[0.25] * 4] * 2


def test_the_reference_of_an_op_is_no_part_of_a_program():
    x = numpy.ones((2, 4), "f")
    kernel = heddle.Megakernel([heddle.schedule("softmax", x=x, y=x)])
    heddle.set_backend("softmax", "reference")
    try:
        for run in (kernel.run, lambda: heddle.Megakernel(kernel.ops)):
            with pytest.raises(heddle.Unsupported, match=r"\[softmax\] its backend is 'reference'"):
                run()
    finally:
        heddle.set_backend("softmax", "kernel")
    kernel.run()
    assert x.tolist() == [[0.25] * 4] * 2
