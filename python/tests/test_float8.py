"""heddle.float8: products of codes, exactly; training that keeps no state; layers that stay as they are."""

import copy
import threading

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import heddle
from heddle import float8
from heddle.float8 import casts, linear
from heddle.float8.gain import why_slower
from tiny import take_every_size, tiny, tokens

LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}
ALWAYS = {name: float8.Float8Config(name, always=True) for name in float8.RECIPES}


def coded(x, high, wide, dtype):
    """x in fp64 as codes with a scale for each high x wide elements have it; 0: of that whole dimension."""
    rows, columns = x.shape
    high, wide = high or rows, wide or columns
    parts = torch.nn.functional.pad(x.double(), (0, -columns % wide, 0, -rows % high))
    parts = parts.unflatten(1, (-1, wide)).unflatten(0, (-1, high))
    scales = parts.abs().amax((1, 3), keepdim=True).clamp(min=1e-30) / LARGEST[dtype]
    near = (parts / scales).clamp(-LARGEST[dtype], LARGEST[dtype]).float().to(dtype).double() * scales
    return near.flatten(2).flatten(0, 1)[:rows, :columns]


# (rows, columns) that share a scale: in inputs and gradients, in weights.
GROUPS = {"tensor": ((0, 0), (0, 0)), "row": ((1, 0), (1, 0)), "block": ((1, 128), (128, 128))}


def exact(x, weight, dy, recipe, code):
    """(y, dx, dweight) of codes in fp64."""
    lines, of_weight = GROUPS[recipe]
    e4m3 = torch.float8_e4m3fn
    y = coded(x, *lines, e4m3) @ coded(weight, *of_weight, e4m3).t()
    dx = coded(dy, *lines, code) @ coded(weight.t(), *of_weight, e4m3).t()
    dw = coded(dy.t(), *lines, code) @ coded(x.t(), *lines, e4m3).t()
    return y, dx, dw


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer(outputs, inputs, config, bias=False):
    made = torch.nn.Linear(inputs, outputs, bias)
    with torch.no_grad():
        made.weight.copy_(drawn(outputs, inputs, seed=1))
    return float8.convert_to_float8_training(made, config=config)


def error(made, wanted):
    return float((made.double() - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("gradients", ["e4m3", "e5m2"])
@pytest.mark.parametrize("recipe", float8.RECIPES)
@pytest.mark.parametrize(("tokens", "outputs", "inputs"), [(48, 144, 272), (1, 16, 640), (131, 128, 896)])
def test_a_layer_and_its_gradients_are_products_of_codes(recipe, gradients, tokens, outputs, inputs):
    module = layer(outputs, inputs, float8.Float8Config(recipe, gradients, always=True))
    x, dy = drawn(tokens, inputs).requires_grad_(), drawn(tokens, outputs, seed=2)
    y = module(x)
    y.backward(dy)
    wanted = exact(x.detach(), module.weight.detach(), dy, recipe, casts.CODES[gradients])
    for made, each in zip((y.detach(), x.grad, module.weight.grad), wanted, strict=True):
        assert error(made, each) < 1e-3  # quotients on a border between codes go either way


@pytest.mark.parametrize("recipe", float8.RECIPES)
def test_zeros_and_outliers_are_neither_nan_nor_lost(recipe):
    module, x = layer(128, 256, ALWAYS[recipe]), drawn(130, 256)
    x[3], x[:, 5], x[7, 9] = 0, 0, 1e4
    x.requires_grad_()
    for weight in (module.weight.detach().clone(), torch.zeros(128, 256)):
        module.weight.data.copy_(weight)
        y = module(x)
        y.backward(torch.cat([torch.zeros(2, 128), drawn(128, 128)]))
        assert y.isfinite().all()
        assert not y[3].any()
        assert not x.grad[:2].any()
        assert x.grad.isfinite().all()
        assert module.weight.grad.isfinite().all()
        assert not module.weight.grad[:, 5].any()


def test_without_a_least_scale_zeros_are_nan(monkeypatch):
    monkeypatch.setattr(casts, "LEAST", 0.0)
    assert casts.cast(torch.zeros(128, 128), "square").rows.values().isnan().all()


@pytest.mark.parametrize("recipe", float8.RECIPES)
def test_what_is_not_finite_shows(recipe):
    module, x = layer(32, 128, ALWAYS[recipe]), drawn(16, 128)
    for wrong in (torch.nan, torch.inf):
        x[2, 3] = wrong
        y = module(x)
        assert not y[2].isfinite().any()
        assert recipe == "tensor" or y[3:].isfinite().all()


def test_words_of_its_recipes():
    for wrong, said in (({"recipe": "rowwise"}, "recipe is 'rowwise'; must be one of block, row, tensor"),
                        ({"gradients": "fp8"}, "gradients is 'fp8'; must be one of e4m3, e5m2")):  # fmt: skip
        with pytest.raises(heddle.InvalidArgument, match=said):
            float8.Float8Config(**wrong)


def network(seed=0, width=64):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Embedding(32, width),
        torch.nn.Linear(width, 4 * width),
        torch.nn.SiLU(),
        torch.nn.Linear(4 * width, width),
        torch.nn.LayerNorm(width),
        torch.nn.Linear(width, 32),
    )


def converted(recipe="block", **options):
    return float8.convert_to_float8_training(
        network(), config=float8.Float8Config(recipe, always=True, **options)
    )


def batches(steps):
    """Tokens that follow from the one ahead by a table, three times of four."""
    generator = torch.Generator().manual_seed(3)
    after = torch.randperm(32, generator=generator)
    for _ in range(steps):
        x = torch.randint(32, (4, 48), generator=generator)
        other = torch.randint(32, x.shape, generator=generator)
        yield x, torch.where(torch.rand(x.shape, generator=generator) < 0.75, after[x], other)


def trained(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for x, wanted in batches(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), wanted.flatten())
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return sum(losses[-50:]) / 50


def test_losses_are_those_of_training_without():
    wanted = trained(network(), 300)
    for recipe in float8.RECIPES:
        assert abs(trained(converted(recipe, gradients="e5m2"), 300) / wanted - 1) < 0.005, recipe


def step_of(model, optimizer, number=0):
    x, wanted = list(batches(number + 1))[number]
    torch.nn.functional.cross_entropy(model(x).flatten(0, 1), wanted.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize("recipe", float8.RECIPES)
def test_training_resumes_with_the_same_bits(recipe):
    model, other = converted(recipe), converted(recipe)
    assert list(model.state_dict()) == list(network().state_dict())
    optimizers = [torch.optim.AdamW(each.parameters()) for each in (model, other)]
    step_of(model, optimizers[0])
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    optimizers[1].load_state_dict(copy.deepcopy(optimizers[0].state_dict()))
    step_of(model, optimizers[0], 1)
    step_of(other, optimizers[1], 1)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def gradients_of(model, call):
    x, _ = next(iter(batches(1)))
    model.zero_grad()
    call(model, x).square().mean().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_checkpointed_layers_and_plans_of_memory_have_the_same_bits():
    model = converted()
    wanted = gradients_of(model, lambda model, x: model(x))

    def checkpointed(model, x):
        return checkpoint(model[1:], model[0](x), use_reentrant=False)

    for made, each in zip(gradients_of(model, checkpointed), wanted, strict=True):
        assert torch.equal(made, each)
    blocks = torch.nn.ModuleList([model[1:4], model[4:]])
    whole = torch.nn.Sequential(model[0], *blocks)
    with heddle.memory.checkpoint(whole, budget=0.0, blocks=list(blocks)):
        for _ in range(3):
            for made, each in zip(gradients_of(whole, lambda model, x: model(x)), wanted, strict=True):
                assert torch.equal(made, each)


def test_layers_share_the_codes_of_an_input_until_it_changes(monkeypatch):
    made = []

    def noted(*arguments, **options):
        made.append(arguments[0].shape)
        return casts.cast(*arguments, **options)

    monkeypatch.setattr(linear, "cast", noted)
    one, two, x = layer(16, 32, ALWAYS["row"]), layer(48, 32, ALWAYS["row"]), drawn(16, 32)
    one(x), two(x)
    assert made.count((16, 32)) == 2  # the input once, and the first weight, which is as large
    x.mul_(2)
    wanted, _, _ = exact(x, two.weight.detach(), drawn(16, 48), "row", torch.float8_e4m3fn)
    assert error(two(x).detach(), wanted) < 1e-3


def test_a_layer_keeps_codes_of_its_input_alone():
    module, x, sizes = layer(128, 256, ALWAYS["block"]), drawn(64, 256).bfloat16(), []
    module.bfloat16()

    def pack(tensor):
        if tensor is not module.weight:
            sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(x)
    assert sum(sizes) == 64 * 256 + 4 * 256  # a scale for the 64 of each column
    module.weight.requires_grad_(False)
    sizes.clear()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(x.requires_grad_())
    assert sum(sizes) == 0


def test_base_layers_of_adapters_train_in_fp8():
    peft = pytest.importorskip("peft", reason="adapters need peft")
    base = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.SiLU(), torch.nn.Linear(128, 64))
    model = peft.get_peft_model(base, peft.LoraConfig(r=4, target_modules=["0", "2"]))
    names = list(model.state_dict())
    float8.convert_to_float8_training(model, config=ALWAYS["row"])
    assert list(model.state_dict()) == names
    x = drawn(32, 64).requires_grad_()
    model(x).square().mean().backward()
    assert x.grad.isfinite().all()
    paths = {
        row.name: row.path for row in heddle.explain(model) if "lora" in row.name or "base_layer" in row.name
    }
    assert any(path.startswith("heddle.float8") for name, path in paths.items() if "base_layer" in name)
    reasons = float8.left_out(model)
    assert len(reasons) == 4
    assert all("multiples of 16" in each for each in reasons.values())
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == ("lora" in name)


def test_autocast_decides_the_dtype():
    module, x = layer(16, 32, ALWAYS["row"]), drawn(16, 32)
    with torch.autocast("cpu", torch.bfloat16):
        y = module(x)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert module.weight.grad.dtype == torch.float32
    assert torch.equal(y.detach(), module(x.bfloat16().float()).detach().bfloat16())
    with pytest.raises(heddle.Unsupported, match=r"gets torch.float16.*train in torch.bfloat16"):
        module.half()(x.half())


def test_odd_shapes():
    module = layer(16, 32, ALWAYS["block"], bias=True)
    x = drawn(2, 3, 32)
    assert module(x).shape == (2, 3, 16)
    assert module(x[0, 0]).shape == (16,)
    assert module(x[:0]).shape == (0, 3, 16)
    with pytest.raises(RuntimeError):
        module(x.double())
    assert torch.equal(module(x.transpose(0, 1)), module(x).transpose(0, 1))
    with torch.inference_mode():
        assert torch.equal(module(x * 1), module(x))


@pytest.mark.parametrize("recipe", float8.RECIPES)
def test_compiled_layers_have_the_same_bits(recipe):
    model = converted(recipe)
    wanted = gradients_of(model, lambda model, x: model(x))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for made, each in zip(gradients_of(model, lambda model, x: compiled(x)), wanted, strict=True):
        assert torch.equal(made, each)


def test_second_derivatives_are_refused():
    module, x = layer(16, 32, ALWAYS["row"]), drawn(16, 32).requires_grad_()
    (dx,) = torch.autograd.grad(module(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_steps_that_are_not_finite_touch_nothing():
    model = converted()
    optimizer = torch.optim.AdamW(model.parameters())
    trainer = float8.Float8Trainer(model)
    x, wanted = next(iter(batches(1)))
    with trainer:
        first = trainer.training_step(x, wanted)
        assert trainer.optimizer_step(optimizer)
        assert trainer.training_step(x, wanted) < first
        next(model.parameters()).grad[0, 0] = torch.inf
        before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        assert not trainer.optimizer_step(optimizer)
        assert trainer.skipped == 1
    after = (model.state_dict(), optimizer.state_dict())
    assert all(torch.equal(before[0][name], each) for name, each in after[0].items())
    for number, state in before[1]["state"].items():
        assert all(torch.equal(state[name], each) for name, each in after[1]["state"][number].items())


def test_layers_that_stay_say_so():
    model = network(width=2048)
    model.append(torch.nn.Linear(32, 30))
    made = float8.convert_to_float8_training(
        model, recipe="block", module_filter_fn=lambda module, name: name != "3"
    )
    assert made is model
    assert type(model[1]) is float8.Float8Linear
    reasons = float8.left_out(model)
    assert reasons["3"] == "module_filter_fn leaves it out"
    assert reasons["5"] == "its weight is 32 x 2048, too small to gain"
    assert reasons["6"] == "its weight is 30 x 32; both must be multiples of 16"
    rows = {row.name: row for row in heddle.explain(model)}
    assert rows["3"].path == "torch"
    assert rows["3"].reason == reasons["3"]
    assert rows["1"].path == "heddle.float8: block, emulated in f32: a CPU has no products of fp8"
    model(torch.tensor([[1, 2]]))
    assert {row.name: row for row in heddle.explain(model)}["1"].calls == 1
    copied = copy.deepcopy(model)
    assert float8.left_out(copied) == reasons
    float8.revert(model)
    assert type(model[1]) is torch.nn.Linear
    assert not float8.left_out(model)


def test_patched_models_keep_their_paths(monkeypatch):
    take_every_size(monkeypatch)
    model, ids = tiny("llama").train(), tokens(2, 48)
    heddle.patch(model)
    float8.convert_to_float8_training(model, config=ALWAYS["block"])
    model(input_ids=ids, labels=ids).loss.backward()
    paths = {row.name.split(".")[-1]: (row.path, row.calls) for row in heddle.explain(model)}
    assert paths["loss_function"] == ("heddle linear_cross_entropy", 1)
    assert paths["mlp"] == ("heddle gated_product", 2)
    assert paths["gate_proj"][0].startswith("heddle.float8: block")
    assert paths["gate_proj"][1] == 2
    assert float8.left_out(model)["lm_head"] == "heddle.patch has taken it for the loss"


def test_few_tokens_do_not_gain():
    config = float8.Float8Config("block")
    assert "pays from about" in why_slower(config, 16, 4096, 4096)
    assert not why_slower(config, 32768, 14336, 4096)


def test_models_that_cannot_convert_stay_as_they_are():
    for model, options, kind, said in (
        (3, {}, heddle.InvalidArgument, "the model is int"),
        (torch.nn.SiLU(), {}, heddle.Unsupported, "the model has no nn.Linear"),
        (network(), {"recipe": "row", "config": ALWAYS["row"]}, heddle.InvalidArgument, "not both"),
    ):
        with pytest.raises(kind, match=said):
            float8.convert_to_float8_training(model, **options)
    with pytest.warns(UserWarning, match="no layer trains in FP8; the layer: its weight is 30 x 30; both"):
        float8.convert_to_float8_training(torch.nn.Linear(30, 30))


def test_counts_say_what_casts_lose():
    module, x = layer(16, 128, ALWAYS["row"]), torch.ones(16, 128)
    x[:, 0], x[:, 1], x[0, 2] = 1e6, 0, torch.nan
    with float8.count() as counts:
        module(x)
    assert counts["", "input"][0] == 16 * 128
    assert counts["", "input"][3] == 1
    assert counts["", "input"][1] == 15 * 126  # ones next to a million; the row of NaN has no zeros
    assert "became zero" in repr(counts)
    module(x)
    assert counts["", "input"][0] == 16 * 128
    with float8.count() as counts:
        y = module(drawn(16, 128).requires_grad_())
    thread = threading.Thread(target=lambda: y.sum().backward())  # as a GPU's backward
    thread.start()
    thread.join()
    assert counts["", "gradient"][0] == 16 * 16
