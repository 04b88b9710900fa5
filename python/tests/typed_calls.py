"""Calls as a type checker sees them: what they return, which are wrong. test_stubs.py has mypy read this."""

from typing import Any, assert_type

import numpy
from numpy.typing import NDArray

import heddle
import heddle.ops
from heddle.megakernel import Proof, ScheduledOp
from heddle.model import Model
from heddle.patching import Report
from heddle.paths import Path

Array = NDArray[numpy.float32]


def calls(x: Array, weight: Array) -> None:
    assert_type(heddle.ops.rms_norm(x, weight, eps=1e-6), Array)
    assert_type(heddle.ops.layer_norm(x, weight, bias=weight), Array)
    assert_type(heddle.ops.rms_norm_backward(x, weight, x), tuple[Array, Array])
    assert_type(heddle.ops.activation(x, kind="gelu", out=x), Array)
    heddle.ops.activation(x, kind="swish")  # type: ignore[arg-type]
    heddle.ops.rms_norm(x)  # type: ignore[call-arg]
    heddle.ops.rms_norm(x, weight, epsilon=1)  # type: ignore[call-arg]
    heddle.ops.rms_norm(x, weight, out="y")  # type: ignore[arg-type]


def models(tokens: list[int]) -> None:
    model = heddle.load("folder", device="cpu", max_context=100)
    assert_type(model, Model)
    assert_type(model.generate("a", max_tokens=3, stop=["b"]), str)
    assert_type(model.generate(tokens, temperature=1), str)
    assert_type(model.generate(["a", "b"], eos_token_id=3), list[str])
    assert_type([token.logprob for token in model.stream("a")], list[float | None])
    assert_type(model.chat("a"), str)
    assert_type(next(model.chat([{"role": "user"}], stream=True)).text, str)
    assert_type(model.logits(tokens), Array)
    assert_type(model.logits([tokens]), list[Array])
    assert_type(model.generate_tokens(tokens, priority=2)[0].logprob, float | None)
    assert_type(model.stats["new_tokens"], int)
    model.update_weights({"head": numpy.zeros(3)})
    assert_type(heddle.from_transformers(model, progress=False), Model)
    model.generate("a", temprature=1)  # type: ignore[call-overload]
    model.stream("a", seed="b")  # type: ignore[arg-type]
    heddle.load("folder", context=3)  # type: ignore[call-arg]


class Twice(heddle.Op):
    """y = 2 x"""

    reads, writes, tile = {"x": (None, "M, D")}, {"y": (None, "M, D")}, ("M",)
    factor: float = 2.0

    @staticmethod
    def plan(call: Any) -> heddle.KernelPlan:
        return heddle.KernelPlan([heddle.Launch(grid=4)], constants={"rows": 2})


def programs(x: Array, model: Any) -> None:
    call = heddle.schedule("softmax", x=x, y=x)
    assert_type(call, ScheduledOp)
    assert_type(Twice.schedule(x=x, y=x), ScheduledOp)
    assert_type(Twice(x, factor=3.0), Array)
    assert_type(Twice(x, out=x), Array)
    assert_type(call.tensors, dict[str, heddle.ops.Tensor])
    kernel = heddle.Megakernel([call], heddle.MegakernelConfig(tracing=True, workers=2))
    assert_type(kernel, heddle.Megakernel)
    assert_type(kernel.check(), Proof)
    assert_type(kernel.trace().ops, tuple[str, ...])
    assert_type(kernel.trace().done, NDArray[numpy.int64])
    assert_type(heddle.last_path(), Path | None)
    assert_type(heddle.load_ops("folder"), dict[str, type[heddle.Op]])
    assert_type(heddle.power_attention(x, x, x, power=4), Array)
    assert_type(heddle.power_attention(x, x, x, return_state=True), tuple[Array, Array])
    assert_type(heddle.patch(model, norm=False), Report)
    assert_type(heddle.is_patched(model), bool)
    heddle.MegakernelConfig(worker=2)  # type: ignore[call-arg]
    heddle.Megakernel(call)  # type: ignore[arg-type]
    heddle.patch(model, nrm=False)  # type: ignore[call-arg]
    kernel.runs()  # type: ignore[attr-defined]
