"""Ops on memory of a GPU, or of one that a build without a GPU emulates."""

import os
import signal
import threading
from pathlib import Path

import numpy
import pytest

import heddle
import heddle.ops
from gpu_array import Driver, GpuArray

try:
    DRIVER = Driver()
except OSError as error:
    pytest.skip(f"no GPU can be used here: {error}", allow_module_level=True)

MODEL = Path(__file__).parents[2] / "models/storyteller"
RANDOM = numpy.random.default_rng(1)
X, W = RANDOM.standard_normal((2, 3, 64), "f"), RANDOM.standard_normal(64, "f")


def on_gpu(values):
    return GpuArray(DRIVER, values)


def test_a_call_runs_where_its_tensors_are():
    out = on_gpu(numpy.zeros_like(X))
    assert heddle.ops.rms_norm(on_gpu(X), on_gpu(W), out=out) is out
    assert heddle.last_path().device == "cuda:0"
    numpy.testing.assert_allclose(out.numpy(), heddle.ops.rms_norm(X, W), atol=1e-5)


def test_attributes_and_several_shapes():
    for rows in (1, 2, 5):
        x = X.reshape(6, 64)[:rows]
        out = on_gpu(numpy.zeros((rows, 32), "f"))
        heddle.ops.gated_activation(on_gpu(x), kind="gelu", out=out)
        numpy.testing.assert_allclose(out.numpy(), heddle.ops.gated_activation(x, kind="gelu"), atol=1e-5)


def test_a_step_of_adamw_has_the_bits_of_the_host():
    """Which an optimizer's states on both have to have."""
    for columns in (64, 61):
        values = [RANDOM.standard_normal((5, columns)).astype("f") for _ in range(4)]
        values[3] = abs(values[3]) * 1e-3
        host = [each.copy() for each in (values[0], *values[2:])]
        options = {"lr": 1e-2, "weight_decay": 0.1, "grad_scale": 0.3, "step": 7}
        heddle.ops.adamw(host[0], values[1], *host[1:], out=tuple(host), **options)
        made = [on_gpu(numpy.zeros_like(each)) for each in host]
        heddle.ops.adamw(*map(on_gpu, values), out=tuple(made), **options)
        for ours, theirs in zip(made, host, strict=True):
            numpy.testing.assert_array_equal(ours.numpy(), theirs)


def test_no_rows():
    out = on_gpu(numpy.zeros((0, 64), "f"))
    assert heddle.ops.rms_norm(on_gpu(X[:0, 0]), on_gpu(W), out=out) is out


def test_outputs_of_a_library_that_heddle_cannot_make():
    with pytest.raises(heddle.InvalidArgument, match="give out="):
        heddle.ops.rms_norm(on_gpu(X), on_gpu(W))


def test_the_reference_runs_on_the_host():
    heddle.set_backend("softmax", "reference")
    try:
        with pytest.raises(heddle.Unsupported, match="these are on GPU 0"):
            heddle.ops.softmax(on_gpu(X), out=on_gpu(X))
    finally:
        heddle.set_backend("softmax", "kernel")


class OnHost:
    """A library's tensor on the host."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **_):
        return self.values.__dlpack__()


def test_tensors_of_two_places_are_refused():
    with pytest.raises(heddle.InvalidArgument, match="weight is memory of the host; the call runs on GPU 0"):
        heddle.ops.rms_norm(on_gpu(X), OnHost(W), out=on_gpu(X))


def test_memory_that_is_not_the_gpus_is_refused():
    lie = on_gpu(X)
    memory = numpy.zeros(1 << 12, "f")  # lives on, so that nothing else lies there
    lie.address = memory.ctypes.data
    with pytest.raises(heddle.InvalidArgument, match=r"\[softmax\] x"):
        heddle.ops.softmax(lie, out=on_gpu(X))


@pytest.mark.parametrize("executor", [None, "launches"])
def test_a_program_of_calls(executor):
    x, weight, h, y = (on_gpu(each) for each in (X, W, numpy.zeros_like(X), numpy.zeros_like(X)))
    kernel = heddle.Megakernel(
        [
            heddle.schedule("rms_norm", x=x, weight=weight, y=h),
            heddle.schedule("softmax", x=h, y=y),
            heddle.schedule("add", a=x, b=y, y=x),
        ],
        heddle.MegakernelConfig(executor=executor, tracing=True),
    )
    wanted = X
    for _ in range(2):
        kernel.run()
        wanted = wanted + heddle.ops.softmax(heddle.ops.rms_norm(wanted, W))
        numpy.testing.assert_allclose(x.numpy(), wanted, atol=1e-5)
    assert kernel.executor == (executor or "megakernel")
    assert set(kernel.trace().call) >= {0, 1, 2}


def press_while(work):
    """Presses Ctrl-C while the work is done again and again: a GPU may take less time than a key."""

    def again():
        for _ in range(1000):
            work()

    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        again()
    timer.join()


@pytest.mark.parametrize("executor", ["launches", "megakernel"])
def test_ctrl_c_is_seen_when_a_run_ends(executor):
    """A run on a GPU is never cut short: its outputs are whole, and the program runs again."""
    ones, count = numpy.ones((256, 256), "f"), 4
    a, outputs = on_gpu(ones), [on_gpu(0 * ones) for _ in range(count)]
    kernel = heddle.Megakernel(
        [
            heddle.schedule("matmul", a=a if i == 0 else outputs[i - 1], b=a, y=y)
            for i, y in enumerate(outputs)
        ],
        heddle.MegakernelConfig(executor=executor),
    )
    kernel.run()  # compiles
    press_while(kernel.run)
    for power, y in enumerate(outputs, 1):
        numpy.testing.assert_array_equal(y.numpy(), ones * 256.0**power)
    kernel.run()


def test_ctrl_c_ends_an_answer_between_its_steps():
    with heddle.load(MODEL, device="cuda", max_context=64, max_sequences=1) as model:
        wanted = model.generate("17 + 25 =", max_tokens=4)
        press_while(lambda: model.generate("17 + 25 =", max_tokens=40))
        assert model.generate("17 + 25 =", max_tokens=4) == wanted
    assert wanted == " 42."


def test_a_program_of_the_host_is_refused():
    calls = [heddle.schedule("softmax", x=on_gpu(X), y=on_gpu(X))]
    with pytest.raises(
        heddle.InvalidArgument, match="'threads' runs on the host, and the tensors are on GPU 0"
    ):
        heddle.Megakernel(calls, heddle.MegakernelConfig(executor="threads"))


def weights_of(config, seed):
    """Random weights of a Llama of one layer, f32."""
    random = numpy.random.default_rng(seed)
    width, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {"embed_tokens": (vocab, width), "norm": (width,)}
    for name in "qkvo":
        shapes[f"layers.0.self_attn.{name}_proj"] = (width, width)
    for name, shape in {"gate": (inner, width), "up": (inner, width), "down": (width, inner)}.items():
        shapes[f"layers.0.mlp.{name}_proj"] = shape
    for name in ("input", "post_attention"):
        shapes[f"layers.0.{name}_layernorm"] = (width,)
    made = {f"model.{name}.weight": random.standard_normal(shape, "f") for name, shape in shapes.items()}
    return {**made, "lm_head.weight": random.standard_normal((vocab, width), "f")}


LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "vocab_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}


def test_weights_in_its_memory():
    old, new = weights_of(LLAMA, 1), weights_of(LLAMA, 2)
    options = {"model_config": LLAMA, "device": "cpu", "threads": 1}
    logits = []
    for place in (lambda values: values, on_gpu):
        with heddle.load(tensors={name: place(each) for name, each in old.items()}, **options) as model:
            logits.append(model.logits([3, 1, 4]))
            model.update_weights((name, place(each)) for name, each in new.items())
            logits.append(model.logits([3, 1, 4]))
    assert numpy.array_equal(logits[0], logits[2])
    assert numpy.array_equal(logits[1], logits[3])
    assert not numpy.array_equal(logits[0], logits[1])


def test_weights_are_packed_there():
    options = {"model_config": LLAMA, "device": "cuda", "max_context": 32, "max_sequences": 2}
    weights = [weights_of(LLAMA, seed) for seed in (1, 2)]
    expected = []
    for each in weights:
        with heddle.load(tensors=each, **options) as model:
            expected.append(model.logits([3, 1, 4]))
    assert not numpy.array_equal(*expected)
    places = [{name: on_gpu(values) for name, values in each.items()} for each in weights]
    with heddle.load(tensors=places[0], **options) as model:
        assert numpy.array_equal(model.logits([3, 1, 4]), expected[0])
        for turn in (1, 0):
            model.update_weights(places[turn])
            assert numpy.array_equal(model.logits([3, 1, 4]), expected[turn])
        places[1]["model.norm.weight"] = on_gpu(numpy.full(64, numpy.inf, "f"))
        with pytest.raises(heddle.InvalidArgument, match="must be finite"):
            model.update_weights(places[1])
        assert numpy.array_equal(model.logits([3, 1, 4]), expected[0])
