"""heddle.patch: what it changes, what it leaves, and what the numbers are then."""

import copy
import subprocess
import sys
from unittest import mock

import pytest
import torch

import heddle
from heddle.patching import classes
from tiny import FAMILIES, WITH_NORM, gradients, take_every_size, tiny, tokens

CALLS = {"llama": 5, "mistral": 5, "qwen2": 5, "qwen3": 9, "gpt2": 5, "gemma2": 9, "gemma3_text": 13}
ATTENTION = (
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gpt2",
    "gemma3_text",
)  # gemma2's is eager, for its softcap


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    take_every_size(monkeypatch)


def module_classes(model):
    return [type(module) for module in model.modules()]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_patched_model_computes_the_same_in_f32(family):
    model, ids = tiny(family), tokens()
    expected, (loss, expected_gradients) = model(ids).logits, gradients(model, ids)
    report = heddle.patch(model)
    assert (model(ids).logits - expected).abs().max() < 2e-5
    got_loss, got = gradients(model, ids)
    assert abs(got_loss - loss) < 1e-5
    assert got.keys() == expected_gradients.keys() == dict(model.named_parameters()).keys()
    for name, gradient in expected_gradients.items():
        assert torch.allclose(got[name], gradient, atol=1e-6, rtol=1e-4), name
    assert [row.calls for row in report if row.is_heddle] == [0] * sum(row.is_heddle for row in report)
    report = heddle.patched(model)
    assert report.calls("norm") == 2 * CALLS[family]
    assert report.calls("mlp") == 4
    assert report.calls("attention") == (4 if family in ATTENTION else 0)
    assert report.calls("cross_entropy") == 1
    # Every part is in the table, once with heddle or a reason.
    assert {row.part for row in report} == {"norm", "mlp", "attention", "cross_entropy"}
    assert all(row.reason for row in report if not row.is_heddle)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_within_twice_the_noise_of_bf16(family):
    rounded = tiny(family, torch.bfloat16).train()
    exact = copy.deepcopy(rounded).float()
    ids = tokens(4, 16)
    _, reference = gradients(exact, ids)
    _, eager = gradients(rounded, ids)
    heddle.patch(rounded)
    _, patched = gradients(rounded, ids)
    report = heddle.patched(rounded)
    assert report.calls("norm") + report.calls("mlp") > 0
    for name, gradient in reference.items():
        noise = (eager[name] - gradient).norm()
        assert (patched[name] - gradient).norm() <= 2 * noise + 1e-6, name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_patched_model_computes_the_same_on_a_gpu(family):
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    model, ids = tiny(family).cuda(), tokens(4, 16).cuda()
    expected, (loss, expected_gradients) = model(ids).logits, gradients(model, ids)
    heddle.patch(model)
    assert (model(ids).logits - expected).abs().max() < 1e-4
    got_loss, got = gradients(model, ids)
    assert abs(got_loss - loss) < 1e-4
    for name, gradient in expected_gradients.items():
        assert torch.allclose(got[name], gradient, atol=1e-5, rtol=1e-3), name
    report = heddle.patched(model)
    assert report.calls("norm") == 2 * CALLS[family]
    with torch.autocast("cuda", torch.bfloat16):
        assert model(ids).logits.dtype == torch.bfloat16


@pytest.mark.parametrize("family", FAMILIES)
def test_unpatching_restores_classes_and_bits(family):
    model, other, ids = tiny(family), tiny(family), tokens()
    before = module_classes(model)
    weights = [(p.data_ptr(), p._version) for p in model.parameters()]
    expected = model(ids).logits
    for _ in range(2):  # again: the second time starts from the same state
        report = heddle.patch(model)
        assert heddle.is_patched(model)
        assert heddle.patched(model) == report
    assert module_classes(model) != before
    assert module_classes(other) == before
    assert not heddle.is_patched(other)
    assert torch.equal(other(ids).logits, expected)
    heddle.unpatch(model)
    assert module_classes(model) == before
    assert not heddle.is_patched(model)
    assert not any(classes.CALLS in module.__dict__ for module in model.modules())
    assert torch.equal(model(ids).logits, expected)
    assert weights == [(p.data_ptr(), p._version) for p in model.parameters()]
    heddle.unpatch(model)
    assert len(heddle.patched(model)) == 0
    assert repr(heddle.patched(model)) == "not patched"


def test_parts_are_chosen_one_by_one():
    model = tiny("gpt2")
    report = heddle.patch(model, norm=False, attention=False, cross_entropy=False)
    assert [(row.part, row.path, row.modules) for row in report] == [("mlp", "heddle activation", 2)]
    report = heddle.patch(model, mlp=False)
    assert [(row.part, row.path, row.modules) for row in report] == [
        ("norm", "heddle layer_norm", 5),
        ("attention", "heddle flash_attention", 2),
        ("cross_entropy", "heddle linear_cross_entropy", 1),
    ]
    assert model.config._attn_implementation == "heddle"
    heddle.unpatch(model)
    assert model.config._attn_implementation == "sdpa"
    assert "_loss_function" not in model.__dict__
    assert "layer_norm" in repr(report)


def test_an_mlp_that_is_no_gated_silu_is_refused_by_name():
    (row,) = heddle.patch(tiny("llama", hidden_act="relu"), norm=False).of("mlp")
    assert (row.path, row.modules) == ("torch", 2)
    assert "act_fn is ReLU" in row.reason
    model = tiny("llama")
    model.model.layers[0].mlp.act_fn.register_forward_hook(lambda *_: None)
    rows = heddle.patch(model).of("mlp")
    assert [(row.path, row.modules) for row in rows] == [("heddle gated_product", 1), ("torch", 1)]
    # A hook that comes later sees its calls too.
    seen = []
    model.model.layers[1].mlp.act_fn.register_forward_hook(lambda *_: seen.append(1))
    model(tokens())
    assert seen == [1]


@pytest.mark.parametrize("watch", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_hooks_of_an_activations_gradient_see_it(monkeypatch, watch):
    take_every_size(monkeypatch)
    model, seen = tiny("llama"), []
    heddle.patch(model)
    getattr(model.model.layers[0].mlp.act_fn, watch)(lambda *_: seen.append(1))
    model(tokens()).logits.sum().backward()
    assert seen == [1]


def test_attention_that_is_not_sdpa_is_left_alone():
    model = tiny("llama", attn_implementation="eager")
    (row,) = heddle.patch(model).of("attention")
    assert "its attention is 'eager'" in row.reason
    assert model.config._attn_implementation == "eager"


def test_attention_takes_prompts_and_tokens_after_them():
    model, ids = tiny("llama").train(), tokens(2, 9)
    expected = model(ids).logits
    heddle.patch(model)
    assert torch.allclose(model(ids).logits, expected, atol=2e-5)
    with torch.no_grad():  # with a cache: the prompt, then a token, whose query sees every key
        made = model(ids[:, :8], use_cache=True)
        last = model(ids[:, 8:], past_key_values=made.past_key_values).logits
    assert torch.allclose(last[:, 0], expected[:, 8], atol=2e-5)
    assert heddle.patched(model).calls("attention") == 6
    model.model.layers[0].self_attn.attention_dropout = 0.5
    model(ids)
    assert any("dropout" in row.reason for row in heddle.patched(model).of("attention"))


def test_the_loss_is_that_of_every_way_to_ask():
    model, ids = tiny("llama"), tokens(2, 9)
    labels = ids.clone()
    labels[0, :4] = -100
    ways = ({}, {"num_items_in_batch": torch.tensor(5)}, {"num_items_in_batch": 5})
    expected = [model(ids, labels=labels, **way).loss for way in ways]
    heddle.patch(model, cross_entropy=True)
    for way, loss in zip(ways, expected, strict=True):
        assert torch.allclose(model(ids, labels=labels, **way).loss, loss, atol=1e-6)
    logits = model(ids).logits
    shifted = labels.roll(1)
    for way in ({"shift_labels": shifted}, {"ignore_index": 7}):
        given = labels if "shift_labels" in way else ids
        own = model.loss_function.own(logits, given, 128, **way)
        assert torch.allclose(model.loss_function(logits, given, 128, **way), own, atol=1e-6)
    assert model.loss_function(logits, labels * 0 - 100, 128).isnan()  # as torch: no target
    half = model.loss_function(logits.bfloat16(), labels, 128)
    assert half.dtype == torch.float32
    assert torch.allclose(half, model.loss_function.own(logits.bfloat16(), labels, 128), atol=1e-5)
    report = heddle.patched(model)
    assert report.calls("cross_entropy") == 7
    assert report.calls("cross_entropy", heddle=False) == 0


def test_a_loss_of_somebody_else_stays():
    model = tiny("llama")
    model.loss_function = lambda **_: 0
    (row,) = heddle.patch(model).of("cross_entropy")
    assert "loss_function was set to" in row.reason
    with pytest.raises(heddle.Unsupported, match="cross_entropy is True, and loss_function was set to"):
        heddle.patch(model, cross_entropy=True)
    heddle.unpatch(model)
    assert model.loss_function() == 0


def test_heddle_takes_the_calls_that_it_is_faster_for(monkeypatch):
    monkeypatch.undo()
    model, ids = tiny("gemma2"), tokens(4, 16)
    expected = model(ids).logits
    heddle.patch(model)
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, expected, atol=2e-5)
    assert heddle.patched(model).calls("mlp") == 2
    assert heddle.patched(model).calls("norm") == 9
    model(ids)  # a gradient is wanted
    with torch.no_grad():
        model.train()(ids)  # a checkpoint
    x = torch.randn(32, 64, 64, requires_grad=True)
    model.model.norm(x)
    report = heddle.patched(model)
    assert (report.calls("norm"), report.calls("norm", heddle=False)) == (10, 18)
    assert report.calls("mlp") == 2
    assert report.calls("mlp", heddle=False) == 4
    assert any("in training" in row.reason for row in report.of("mlp"))


def test_calls_that_do_not_fit_run_the_modules_own_forward():
    holder = tiny("llama")
    heddle.patch(holder)
    norm = holder.model.norm
    own = classes.original_of(norm).forward
    x = torch.randn(2, 3, 64)
    with torch.no_grad():
        for value in (x.half(), x.double(), x.bfloat16()):
            got = norm(value)
            assert torch.equal(got, own(norm, value))
            assert got.dtype == own(norm, value).dtype
        jacobian = torch.func.jvp(norm, (x,), (x,))[1]
        assert torch.allclose(jacobian, torch.func.jvp(lambda v: own(norm, v), (x,), (x,))[1])
        batched = torch.vmap(norm)(x)
        assert torch.allclose(batched, own(norm, x), atol=1e-6)
    reasons = {row.reason: row.calls for row in heddle.patched(holder).of("norm") if not row.is_heddle}
    assert sum(reasons.values()) == 5
    assert any("f16" in reason or "float16" in reason for reason in reasons)
    assert any("float64" in reason for reason in reasons)
    assert any("weight is float32" in reason for reason in reasons)
    assert any("torch.func" in reason for reason in reasons)
    assert heddle.patched(holder).calls("norm") == 0


def test_forward_mode_derivatives_are_not_lost():
    model = tiny("llama")
    heddle.patch(model)
    norm, x = model.model.norm, torch.randn(2, 64)
    with torch.no_grad(), torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        assert torch.autograd.forward_ad.unpack_dual(norm(dual)).tangent is not None


def test_a_subclass_of_a_tensor_runs_the_modules_own_forward():
    class Watched(torch.Tensor):
        pass

    model = tiny("llama")
    heddle.patch(model)
    x = torch.randn(2, 64).as_subclass(Watched)
    assert isinstance(model.model.norm(x), Watched)
    assert any("Watched" in row.reason for row in heddle.patched(model))


def test_a_class_that_computes_something_else_is_left_alone():
    model = tiny("mistral")
    cls = type(model.model.norm)

    def changed(self, hidden_states):
        return 2 * hidden_states

    with mock.patch.object(cls, "forward", changed):
        (row,) = heddle.patch(model).of("norm")
    assert row.path == "torch"
    assert "no class of transformers or torch" in row.reason
    assert row.modules == 5


def test_a_class_of_the_users_own_is_left_alone():
    model = tiny("llama")

    class LoudRMSNorm(type(model.model.norm)):
        def forward(self, hidden_states):
            return super().forward(hidden_states) * 3

    model.model.norm.__class__ = LoudRMSNorm
    rows = heddle.patch(model).of("norm")
    assert [(row.path, row.modules) for row in rows] == [("heddle rms_norm", 4), ("torch", 1)]
    assert "LoudRMSNorm is no class of transformers or torch" in rows[1].reason


def test_a_forward_in_the_instance_is_somebody_elses():
    model, ids = tiny("llama"), tokens()
    norm = model.model.norm
    norm.forward = lambda hidden_states: hidden_states * 0
    rows = heddle.patch(model).of("norm")
    assert [(row.path, row.modules) for row in rows] == [("heddle rms_norm", 4), ("torch", 1)]
    assert rows[1].reason.endswith("has replaced its forward")
    assert classes.original_of(norm) is None
    assert "lambda" in rows[1].reason
    del norm.forward
    heddle.patch(model)
    norm.forward = lambda hidden_states: hidden_states * 0
    assert any("since" in row.reason for row in heddle.patched(model))
    heddle.unpatch(model)
    assert model(ids).logits.abs().max() == 0
    assert "forward" in norm.__dict__


def test_models_without_a_part_are_refused_by_name():
    import transformers

    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8], depths=[1], layer_type="basic")
    with pytest.raises(
        heddle.Unsupported, match=r"\[patch\] ResNetModel has no norm, gated MLP or attention"
    ):
        heddle.patch(transformers.ResNetModel(config))
    with pytest.raises(heddle.InvalidArgument, match="of type int"):
        heddle.patch(3)
    with pytest.raises(heddle.Unsupported, match="Linear has no norm, gated MLP or attention"):
        heddle.patch(torch.nn.Linear(2, 2))
    model = tiny("llama")
    with pytest.raises(heddle.InvalidArgument, match="norm is 'yes'; must be one of True, False"):
        heddle.patch(model, norm="yes")
    with pytest.raises(heddle.InvalidArgument, match="generate is 'fast'"):
        heddle.patch(model, generate="fast")
    assert not heddle.is_patched(model)


# As where transformers is not installed.
WITHOUT_TRANSFORMERS = """
import sys
sys.modules["transformers"] = None
import torch, heddle
from heddle.patching import kinds
for kind in kinds.ALL:
    kind.least = 0
layers = [torch.nn.LayerNorm(16), torch.nn.Linear(16, 16), torch.nn.GELU("tanh")]
layers.append(torch.nn.RMSNorm(16, eps=1e-5))
model, x = torch.nn.Sequential(*layers).eval(), torch.randn(3, 16)
with torch.no_grad():
    expected = model(x)
    report = heddle.patch(model, generate="megakernel")
    assert (model(x) - expected).abs().max() < 1e-5
print(*((row.part, row.calls, row.reason) for row in heddle.patched(model)), sep="\\n")
assert heddle.is_patched(model)
heddle.unpatch(model)
assert not heddle.is_patched(model) and type(model[0]) is torch.nn.LayerNorm
for module, wanted in ((torch.nn.Linear(2, 2), "has no norm"), (3, "of type int; must be a torch.nn.Module")):
    try:
        heddle.patch(module)
    except heddle.Error as error:
        assert wanted in str(error), error
    else:
        raise SystemExit(f"{module} was patched")
"""


def test_a_model_of_torch_needs_no_transformers():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TRANSFORMERS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "('norm', 1, '')",
        "('norm', 1, '')",
        "('mlp', 1, '')",
        "('cross_entropy', None, 'Sequential has no loss')",
        "('generate', None, 'Sequential does not generate')",
    ]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    "norms",
    [
        lambda: (torch.nn.RMSNorm(16), torch.nn.RMSNorm(16, eps=1e-3)),
        lambda: (torch.nn.LayerNorm(16, elementwise_affine=False), torch.nn.LayerNorm(16)),
    ],
    ids=["no eps", "no weight"],
)
def test_modules_of_one_class_may_be_unlike(norms, order):
    model, x = torch.nn.Sequential(*norms()[::order]).eval(), torch.randn(3, 16) * 1e-2
    with torch.no_grad():
        expected = model(x)
        heddle.patch(model)
        assert (model(x) - expected).abs().max() < 1e-5
    assert [(row.is_heddle, row.modules) for row in heddle.patched(model).of("norm")] == [
        (True, 1),
        (False, 1),
    ]


@pytest.mark.parametrize("family", WITH_NORM)
def test_empty_and_one_dimensional_inputs(family):
    model = tiny(family)
    heddle.patch(model)
    norm = next(m for m in model.modules() if classes.original_of(m) and hasattr(m, "weight"))
    width = norm.weight.shape[0]
    assert norm(torch.zeros(0, width)).shape == (0, width)
    assert norm(torch.zeros(2, 0, width)).shape == (2, 0, width)
    x = torch.randn(width)
    assert torch.allclose(norm(x), classes.original_of(norm).forward(norm, x), atol=1e-6)


def test_importing_heddle_imports_neither_torch_nor_transformers():
    code = "import heddle, sys; heddle.__all__; print('torch' in sys.modules, 'transformers' in sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["False", "False"]
