"""heddle.quant.QAT: values of the formats, gradients that pass, codes of quantize_, and adapters on codes."""

import copy
import pickle

import pytest
import torch
from torch import nn

import heddle
from heddle.quant import (
    QAT,
    QatLinear,
    QuantLinear,
    SparseLinear,
    dequantize_,
    format_named,
    prune_2_4_,
    quantize_,
)
from test_quant import NAMES, points_of
from tiny import gradients, take_every_size, tiny, tokens


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def network(width=128):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 16))


def train(model, steps, lr=1e-2):
    """The error after steps whose rate falls to zero."""
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0)
    x = drawn(256, 64, seed=1)
    wanted = torch.tanh(x[:, :16] * 2 + x[:, 16:32])
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - step / steps)
        optimizer.zero_grad()
        (model(x) - wanted).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        return float((model.eval()(x) - wanted).square().mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_a_layer_multiplies_values_and_its_gradient_passes(name, dtype):
    model, x = nn.Sequential(nn.Linear(128, 24)).to(dtype), drawn(5, 128).to(dtype)
    keys, weight = list(model.state_dict()), model[0].weight
    values = format_named(name).encode(weight.detach()).values.requires_grad_()
    assert QAT(name).prepare(model) is model
    assert list(model.state_dict()) == keys
    assert model[0].weight is weight
    given, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, wanted = model(given), nn.functional.linear(other, values, model[0].bias)
    assert torch.equal(y, wanted)
    y.square().sum().backward(), wanted.square().sum().backward()
    assert torch.equal(given.grad, other.grad)
    assert torch.equal(weight.grad, values.grad)


@pytest.mark.parametrize("name", NAMES)
def test_converted_layers_have_the_codes_of_quantize_(name):
    """Also where q, k and v share a divisor, after a step of training; outputs keep their bits."""
    qat = QAT(name, group=64) if name == "int4" else QAT(name)
    size = {"hidden_size": 128, "intermediate_size": 128, "head_dim": 32}
    model = qat.prepare(tiny("llama", **size))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(tokens(), labels=tokens()).loss.backward()
    optimizer.step()
    plain = qat.revert(copy.deepcopy(model))
    assert all(type(each) is nn.Linear for each in plain.modules() if isinstance(each, nn.Linear))
    logits = model(tokens()).logits
    qat.convert(model)
    wanted = quantize_(plain, name, **({"group": 64} if name == "int4" else {}))
    assert model.config.quantization_config == wanted.config.quantization_config
    one, other = model.state_dict(), wanted.state_dict()
    assert list(one) == list(other)
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert torch.equal(model(tokens()).logits, logits)


@pytest.mark.parametrize(
    ("name", "rounding"),
    [("int4/32", "nearest"), ("mxfp4", "nearest"), ("nvfp4", "nearest"), ("mxfp4", "stochastic")],
)
def test_training_makes_up_for_few_bits(name, rounding):
    model = network(64)
    train(model, 400)
    other, qat = copy.deepcopy(model), QAT(name, rounding=rounding)
    train(other.train(), 150, lr=5e-3)
    train(qat.prepare(model).train(), 150, lr=5e-3)
    assert train(qat.convert(model), 0) < 0.9 * train(quantize_(other, name), 0)


@pytest.mark.parametrize("name", NAMES)
def test_by_chance_is_right_on_average(name):
    format = format_named(name)
    points = points_of(format)
    chance = torch.rand(4096, 1, generator=torch.Generator().manual_seed(0))
    assert torch.equal(format.by_chance(points, chance), points.expand(4096, -1))
    inner = points[points.abs() < 9]
    x = torch.cat([inner[:-1] * 0.7 + inner[1:] * 0.3, torch.tensor([1e30, -1e30])])
    made = format.by_chance(x, chance)
    assert torch.isin(made, points).all()
    for index, number in enumerate(x[:-2]):
        low, high = inner[index], inner[index + 1]
        assert set(made[:, index].tolist()) == {float(low), float(high)}
        assert abs(made[:, index].mean() - number) < 0.05 * (high - low)
    assert made[0, -2:].tolist() == [points.max(), points.min()]


def test_stochastic_rounding_is_of_training_alone():
    model, x = nn.Sequential(nn.Linear(128, 8)), drawn(2, 128)
    qat = QAT("int4", rounding="stochastic")
    qat.prepare(model)
    assert not torch.equal(model(x), model(x))
    values = torch.stack([model[0].rounded() for _ in range(500)])
    format = format_named("int4")
    _, scales, nearest = format.fit(model[0].weight.detach(), format.whole_of([model[0].weight]))
    inside = model[0].weight.abs() < scales * 7
    assert ((values.mean(0) - model[0].weight).abs() < 0.12 * scales)[inside].all()
    model.eval()
    assert torch.equal(model(x), nn.functional.linear(x, nearest, model[0].bias))


def test_a_layer_sees_that_weights_have_changed():
    """Values are kept between calls without gradients, as long as no weight of the unit changes."""
    model = QAT("nvfp4").prepare(nn.ModuleDict({"q_proj": nn.Linear(32, 8), "k_proj": nn.Linear(32, 8)}))
    with torch.no_grad():
        kept = model["q_proj"].rounded()
        assert model["q_proj"].rounded() is kept
        model["k_proj"].weight.mul_(9)  # the divisor is that of both
        assert not torch.equal(model["q_proj"].rounded(), kept)
        other = pickle.loads(pickle.dumps(model))
        other["k_proj"].weight.mul_(9)
        assert not torch.equal(other["q_proj"].rounded(), model["q_proj"].rounded())


def test_pruned_layers_keep_their_zeros():
    model = prune_2_4_(network(64))
    zeros = model[0].weight == 0
    qat = QAT("mxfp4")
    train(qat.prepare(model), 5)
    assert torch.equal(model[0].weight == 0, zeros)
    assert type(qat.revert(copy.deepcopy(model))[0]) is SparseLinear
    assert not qat.convert(model)[0].dequantize()[zeros].any()


def test_it_trains_under_autocast_and_compiled():
    model, x = QAT("nvfp4").prepare(network()), drawn(4, 128)
    with torch.autocast("cpu", torch.bfloat16):
        y = model(x)
    assert y.dtype == torch.bfloat16
    values = model[0].rounded()
    assert torch.equal(values, format_named("nvfp4").encode(model[0].weight.detach()).values)
    assert torch.equal(torch.compile(model[:1], backend="eager")(x), model[0](x))


def test_explain_names_layers_of_few_bits():
    model = QAT("mxfp4").prepare(network(64))
    rows = {row.name: row for row in heddle.explain(model)}
    assert {row.path for row in rows.values()} == {"torch, weights rounded to mxfp4"}
    rows = heddle.explain(QAT("mxfp4").convert(model))
    assert {row.path for row in rows} == {"torch, mxfp4"}


def test_wrong_use_is_named_and_changes_nothing():
    model = nn.Sequential(nn.Linear(128, 8), nn.Linear(96, 8))
    for call, words in (
        (lambda: QAT("int4", rounding="up"), r"rounding is 'up'; must be one of nearest, stochastic"),
        (lambda: QAT("int3"), r"no format int3"),
        (lambda: QAT("int4").prepare(model), r"\[1\] has 96 columns"),
        (lambda: QAT({"7": "int4"}).prepare(model), r"\[QAT\] 7 is no nn.Linear"),
        (lambda: QAT().prepare(model[0]), r"the model is a layer; must have layers inside"),
        (lambda: QAT().prepare("model"), r"the model is str"),
        (lambda: QAT().prepare(model, 3), r"\[prepare\] .*must be called as prepare"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=words):
            call()
    assert all(type(layer) is nn.Linear for layer in model)
    with pytest.raises(heddle.Unsupported, match=r"no layer that was prepared"):
        QAT().convert(model)
    qat = QAT("int4/32")
    qat.prepare(model)[1].weight.data[2, 3] = torch.nan
    with pytest.raises(heddle.InvalidArgument, match=r"\[1\] has nan at \[2, 3\]"):
        qat.convert(model)
    assert all(type(layer) is QatLinear for layer in model)


def test_the_engine_takes_converted_models_alone():
    model, qat = tiny("llama", hidden_size=128, intermediate_size=128, head_dim=32), QAT("nvfp4")
    qat.prepare(model)
    with pytest.raises(
        heddle.InvalidArgument, match=r"layers.0.self_attn.q_proj is prepared by QAT.*convert"
    ):
        heddle.from_transformers(model, device="cpu")
    wanted = model(torch.tensor([[3, 17, 5]])).logits[0].detach()
    with heddle.from_transformers(qat.convert(model), device="cpu", threads=1) as made:
        torch.testing.assert_close(torch.tensor(made.logits([3, 17, 5])), wanted, rtol=1e-4, atol=1e-4)


# --- adapters on codes ---

WIDE = {"hidden_size": 128, "intermediate_size": 128, "head_dim": 32}


def adapted(model, **options):
    import peft

    with torch.random.fork_rng():
        torch.manual_seed(5)
        config = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False, **options)
        return peft.get_peft_model(model, config).train()


@pytest.mark.parametrize("is_patched", [False, True])
@pytest.mark.parametrize("name", ["int4", "fp8", "nvfp4"])
def test_adapters_train_on_codes_as_on_their_values(name, is_patched, monkeypatch):
    coded = quantize_(tiny("llama", **WIDE), name)
    floats = dequantize_(copy.deepcopy(coded))
    assert not any(isinstance(each, QuantLinear) for each in floats.modules())
    if is_patched:
        take_every_size(monkeypatch)
        heddle.patch(coded), heddle.patch(floats)
    one, other = adapted(coded), adapted(floats)
    assert {each.dtype for each in one.parameters()} == {torch.float32}
    (loss, grads), (wanted, others) = gradients(one, tokens()), gradients(other, tokens())
    assert torch.equal(loss, wanted)
    assert list(grads) == list(others)
    assert grads
    assert all("lora_" in key and torch.equal(grads[key], others[key]) for key in grads)


def test_adapters_merge_into_floats_alone():
    model = adapted(quantize_(tiny("llama", **WIDE), "int4")).eval()
    logits = model(tokens()).logits
    with pytest.raises(
        heddle.Unsupported, match=r"wants its weight, which is in codes.* heddle.quant.dequantize_\(model\)"
    ):
        model.merge_adapter()
    with pytest.raises(heddle.Unsupported, match=r"\[QuantLinear\] aten.mul"):
        model.base_model.model.model.layers[0].mlp.up_proj.base_layer.weight.mul(2)
    merged = dequantize_(model).merge_and_unload()
    assert {type(each) for each in merged.modules() if isinstance(each, nn.Linear)} == {nn.Linear}
    torch.testing.assert_close(merged(tokens()).logits, logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("autocast", [False, True])
def test_the_backward_keeps_no_matrix(autocast):
    layer, kept = quantize_(nn.Sequential(nn.Linear(256, 256)), "int4")[0], []
    x, floats = drawn(2, 256).requires_grad_(), layer.dequantize()
    other, bias = x.detach().clone().requires_grad_(), layer.bias.detach().clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
            y = layer(x)
        wanted = nn.functional.linear(other, floats, bias)
    assert torch.equal(y, wanted)
    assert max(kept, default=0) <= x.numel()
    y.square().sum().backward(), wanted.square().sum().backward()
    assert torch.equal(x.grad, other.grad)
    assert torch.equal(layer.bias.grad, bias.grad)
    assert (layer.weight.shape, layer.weight.dtype) == ((256, 256), torch.float32)
