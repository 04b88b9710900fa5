"""heddle.quant.prune_2_4_: masks against all choices, zeros that stay in training, and what is refused."""

import copy
import itertools
import pickle

import pytest
import torch
from torch import nn

import heddle
from heddle import optim
from heddle.quant import SparseLinear, prune_2_4_, quantize_, revert_2_4, sparse_gain
from heddle.quant import prune as methods
from tiny import tiny, tokens

PATTERNS = [[place in pair for place in range(4)] for pair in itertools.combinations(range(4), 2)]


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def inputs(rows, columns, seed=1):
    return drawn(rows, columns, seed=seed) @ (torch.eye(columns) + drawn(columns, columns, seed=9) / 2)


def masks(columns):
    """All masks of a row."""
    for each in itertools.product(PATTERNS, repeat=columns // 4):
        yield torch.tensor(each).flatten()


def is_2_4(mask):
    return bool((mask.unflatten(-1, (-1, 4)).sum(-1) == 2).all())


@pytest.mark.parametrize("method", ["magnitude", "wanda"])
def test_masks_are_the_best_of_all(method):
    """The sum of what is kept, |w| or |w| times the norm of its inputs, is the largest of all masks."""
    weight, x = drawn(7, 12), inputs(50, 12)
    if method == "magnitude":
        (values, mask), scores = methods.by_magnitude(weight), weight.abs()
    else:
        values, mask = methods.by_wanda(weight, x.T @ x)
        scores = weight.abs() * x.norm(dim=0)
    assert is_2_4(mask)
    assert torch.equal(values, weight * mask)
    best = torch.stack([(scores * each).sum(-1) for each in masks(12)]).amax(0)
    torch.testing.assert_close((scores * mask).sum(-1), best)


def fitted(weight, x, mask, first):
    """The row whose columns from `first` on take the values that lessen the error most, zeros where the mask
    says so; those before `first` stay. And its squared error."""
    moves = mask.clone()
    moves[:first] = False
    fixed = torch.where(moves, 0.0, weight[1] * mask)
    target = x @ (weight[0] - fixed)
    row = fixed.clone()
    row[moves] = torch.linalg.lstsq(x[:, moves], target).solution
    return row, float((x @ (weight[0] - row)).square().sum())


def test_sparsegpt_of_four_columns_is_the_best_of_all():
    weight, x = drawn(20, 4).double(), inputs(30, 4).double()
    values, mask = methods.by_sparsegpt(weight, x.T @ x, damping=0)
    assert is_2_4(mask)
    for row, made in zip(weight, values, strict=True):
        wanted, _ = min((fitted((row, row), x, each, 0) for each in masks(4)), key=lambda found: found[1])
        torch.testing.assert_close(made, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("columns", [12, 136])
def test_sparsegpt_is_its_definition(columns):
    """Each group in turn takes the best of six masks, with the best values of all columns from it on."""
    weight, x = drawn(3, columns).double(), inputs(2 * columns, columns).double()
    values, mask = methods.by_sparsegpt(weight, x.T @ x, damping=0)
    assert is_2_4(mask)
    assert not values[~mask].any()
    for number, row in enumerate(weight):
        now, chosen = row.clone(), torch.ones(columns, dtype=torch.bool)
        for at in range(0, columns, 4):
            tried = []
            for pattern in PATTERNS:
                each = chosen.clone()
                each[at : at + 4] = torch.tensor(pattern)
                tried.append((*fitted((row, now), x, each, at), each))
            now, _, chosen = min(tried, key=lambda found: found[1])
        assert torch.equal(mask[number], chosen)
        torch.testing.assert_close(values[number], now, rtol=1e-6, atol=1e-8)


def test_methods_that_see_inputs_lose_less():
    weight, x = drawn(16, 64), drawn(300, 64, seed=1) * torch.linspace(0.1, 3, 64)
    x = x @ (torch.eye(64) + drawn(64, 64, seed=2) / 16)
    hessian = x.T @ x
    made = [methods.by_magnitude(weight), methods.by_wanda(weight, hessian),
            methods.by_sparsegpt(weight, hessian)]  # fmt: skip
    errors = [float((x @ (weight - values).T).norm()) for values, _ in made]
    assert errors[2] < 0.9 * errors[1] < 0.9 * errors[0]
    dead = torch.eye(64)
    dead[5, 5] = 0  # an input that is always zero
    assert methods.by_sparsegpt(weight, dead)[0].isfinite().all()


@pytest.mark.parametrize("method", methods.METHODS)
def test_a_model_is_pruned_block_by_block(method):
    model, ids = tiny("llama"), [tokens(2, 12), {"input_ids": tokens(1, 9)}]
    names = list(model.state_dict())
    dense, before = copy.deepcopy(model), model(tokens()).logits
    assert prune_2_4_(model, None if method == "magnitude" else ids, method=method) is model
    assert list(model.state_dict()) == names
    layers = {n: m for n, m in model.named_modules() if isinstance(m, SparseLinear)}
    assert len(layers) == 2 * 7
    assert type(model.lm_head) is nn.Linear
    assert all(not each.weight[~each.mask_2_4].any() and is_2_4(each.mask_2_4) for each in layers.values())
    assert not torch.equal(model(tokens()).logits, before)
    if method == "wanda":  # the second block sees what the first, pruned, gives
        part = prune_2_4_(dense, ids, method=method, skip=("layers.1.*",))
        seen = []
        layer = part.model.layers[1].mlp.down_proj
        layer.register_forward_pre_hook(lambda _, x: seen.append(x[0].flatten(0, 1)))
        with torch.no_grad():
            part(ids[0]), part(**ids[1])
        x = torch.cat(seen)
        wanted = methods.by_wanda(layer.weight, x.T @ x)[1]
        assert torch.equal(layers["model.layers.1.mlp.down_proj"].mask_2_4, wanted)


OPTIMIZERS = {
    "adamw": lambda params: torch.optim.AdamW(params, lr=1e-2, weight_decay=0.1),
    "sgd": lambda params: torch.optim.SGD(params, lr=1e-2, momentum=0.9, nesterov=True),
    "heddle": lambda params: optim.AdamW(params, lr=1e-2),
}


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 8))


def train(model, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        (model(drawn(5, 16, seed=step)) - drawn(5, 8, seed=step + 100)).square().mean().backward()
        optimizer.step()


def zeros_of(model):
    return [each.weight == 0 for each in (model[0], model[2])]


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("pruned_at", [0, 3])
def test_zeros_stay_through_steps(kind, pruned_at):
    """Also where the optimizer has a momentum from before."""
    model = network()
    optimizer = OPTIMIZERS[kind](model.parameters())
    train(model, optimizer, range(pruned_at))
    prune_2_4_(model)
    zeros, before = zeros_of(model), model[0].weight.detach().clone()
    train(model, optimizer, range(10))
    assert all(torch.equal(a, b) for a, b in zip(zeros_of(model), zeros, strict=True))
    assert ((model[0].weight != before) == ~zeros[0]).all()
    assert not model[0].weight.grad[zeros[0]].any()


def test_gradients_are_those_of_a_masked_weight():
    layer, x = nn.Linear(16, 8), drawn(3, 16)
    prune_2_4_(layer)
    wanted = layer.weight.detach().clone().requires_grad_()
    given = x.clone().requires_grad_()
    nn.functional.linear(given, wanted * layer.mask_2_4, layer.bias).square().sum().backward()
    x.requires_grad_()
    layer(x).square().sum().backward()
    assert torch.equal(layer.weight.grad, wanted.grad)
    assert torch.equal(x.grad, given.grad)


def test_training_goes_on_after_a_restart_with_the_same_bits():
    model = prune_2_4_(network())
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    train(model, optimizer, range(4))
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    train(model, optimizer, range(4, 8))
    for seed, is_first in ((0, True), (5, True), (5, False)):  # with the same mask, another, and none
        other = network(seed)
        if is_first:
            prune_2_4_(other)
        other.load_state_dict(saved[0])
        if not is_first:
            prune_2_4_(other)
        again = OPTIMIZERS["adamw"](other.parameters())
        again.load_state_dict(copy.deepcopy(saved[1]))
        train(other, again, range(4, 8))
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_copies_and_pickles_keep_their_zeros():
    model = prune_2_4_(network())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.deepcopy(model).double()):
        zeros = zeros_of(other)
        optimizer = torch.optim.AdamW(other.parameters(), lr=1e-2)
        other(drawn(2, 16).to(other[0].weight.dtype)).sum().backward()
        optimizer.step()
        assert all(torch.equal(a, b) for a, b in zip(zeros_of(other), zeros, strict=True))


def test_compiled_training_keeps_zeros():
    model = prune_2_4_(network())
    zeros = zeros_of(model)
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    for each in model[0].weight, model[2].weight:  # a momentum from before
        optimizer.state[each] = {"step": torch.tensor(1.0), "exp_avg": torch.ones_like(each),
                                 "exp_avg_sq": torch.ones_like(each)}  # fmt: skip
    train(torch.compile(model, backend="eager"), optimizer, range(3))
    assert all(torch.equal(a, b) for a, b in zip(zeros_of(model), zeros, strict=True))


def test_pruned_layers_are_quantised_and_reverted():
    model, x = prune_2_4_(nn.Sequential(nn.Linear(128, 8))), drawn(3, 128)
    zeros = model[0].weight == 0
    coded = quantize_(copy.deepcopy(model), "int4")
    assert not coded[0].dequantize()[zeros].any()
    y = model(x)
    assert type(revert_2_4(model)[0]) is nn.Linear
    assert torch.equal(model(x), y)
    model(x).sum().backward()
    assert model[0].weight.grad[zeros].any()


def test_adapters_train_on_a_pruned_base():
    import peft

    model = prune_2_4_(tiny("llama"))
    model = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["q_proj", "down_proj"]))
    model(tokens(), labels=tokens()).loss.backward()
    grads = [name for name, param in model.named_parameters() if param.grad is not None]
    assert grads
    assert all("lora_" in name for name in grads)


def test_explain_says_which_calls_are_dense():
    model = prune_2_4_(tiny("llama"))
    with torch.no_grad():
        model(tokens())
    rows = [row for row in heddle.explain(model) if row.cls == "SparseLinear"]
    assert {row.path for row in rows} == {"torch, dense with frozen zeros"}
    assert all("on a GPU" in row.reason and row.calls == row.modules for row in rows)


def test_the_compressed_weight_is_that_of_torch():
    """Without a GPU it is only checked."""
    layer = prune_2_4_(nn.Linear(128, 64).bfloat16())
    with torch.no_grad():
        if torch.cuda.is_available():
            layer = layer.cuda()
            x = drawn(512, 128).bfloat16().cuda()
            y = nn.functional.linear(x, layer._compressed(torch.bfloat16), layer.bias)
            wanted = nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
            assert (y - wanted).norm() < 4e-3 * wanted.norm()
        layer.weight[3, 8:12] = 1.0
        with pytest.raises(heddle.InvalidArgument, match=r"\[1.0, 1.0, 1.0, 1.0\] at row 3, columns 8 to 11"):
            layer._compressed(torch.bfloat16)
    assert "must be multiples of 64" in sparse_gain.why_slower(9000, 96, 128)


def test_what_cannot_be_pruned_is_named_and_changes_nothing():
    for call, words in (
        ({"method": "random"}, r"method is 'random'; must be one of magnitude, wanda, sparsegpt"),
        ({"method": "wanda"}, r"method='wanda' needs data"),
        ({"data": drawn(2, 16)}, r"method='magnitude' reads no data"),
        ({"skip": ("9",)}, r"\[prune_2_4_\] --skip 9 is no layer's name"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=words):
            prune_2_4_(network(), **call)
    model = nn.Sequential(nn.Linear(16, 8), nn.Linear(6, 8))
    with pytest.raises(heddle.InvalidArgument, match=r"\[1\] has 6 columns; must be a multiple of 4"):
        prune_2_4_(model)
    model[1] = nn.Linear(8, 8)
    model[1].weight.data[2, 3] = torch.nan
    with pytest.raises(heddle.InvalidArgument, match=r"\[1\] has nan at \[2, 3\]"):
        prune_2_4_(model)
    assert all(type(each) is nn.Linear and (each.weight != 0).all() for each in model)
    model[1] = nn.Linear(8, 8)
    model.forward = lambda x: x
    with pytest.raises(heddle.InvalidArgument, match=r"\[prune_2_4_\] 0 is not called with the data"):
        prune_2_4_(model, drawn(2, 16), method="wanda")
    with pytest.raises(heddle.Unsupported, match=r"\[prune_2_4_\] Conv1d has no layer"):
        prune_2_4_(nn.Conv1d(4, 4, 1))
    with pytest.raises(heddle.InvalidArgument, match=r"the model is str"):
        prune_2_4_("model")


def test_weights_that_are_not_2_4_are_not_loaded():
    model = prune_2_4_(network())
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RuntimeError, match=r"\[0.weight\] has .* at row 0, columns 0 to 3; at most two"):
        model.load_state_dict(network(3).state_dict())
    assert torch.equal(model[0].weight, before["0.weight"])
