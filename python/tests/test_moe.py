"""heddle.moe: mixtures of experts against loops over experts in fp64 and transformers', with gradients."""

import pytest
import torch

import heddle
import heddle.moe
from heddle.moe import ops, routes

transformers = pytest.importorskip("transformers")


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def routing(tokens, experts, taken, kind):
    """(index, shares): experts of tokens, uniform, by Zipf's law, or the same few of all tokens."""
    weights = torch.ones(experts) if kind == "uniform" else 1.0 / torch.arange(1, experts + 1) ** 2
    if kind == "few":
        weights = (torch.arange(experts) < taken).float() + 1e-30
    generator = torch.Generator().manual_seed(tokens)
    index = torch.multinomial(weights.expand(tokens, experts), taken, generator=generator) if tokens else None
    index = torch.zeros(0, taken, dtype=torch.long) if index is None else index
    return index, torch.rand(tokens, taken, generator=generator)


def loop(x, index, shares, gate_up, down):
    y = torch.zeros_like(x)
    for expert in range(len(down)):
        token, choice = torch.where(index == expert)
        gate, up = (x[token] @ gate_up[expert].T).chunk(2, -1)
        rows = (torch.nn.functional.silu(gate) * up) @ down[expert].T
        y = y.index_add(0, token, rows * shares[token, choice, None].to(rows.dtype))
    return y


def run(function, x, index, *others):
    """y and the gradients of x, shares, gate_up and down."""
    leaves = [each.detach().clone().requires_grad_() for each in (x, *others)]
    y = function(leaves[0], index, *leaves[1:])
    (y.double() * drawn(*y.shape, seed=9)).sum().backward()
    return [y.detach(), *(leaf.grad for leaf in leaves)]


def error(made, wanted):
    return float((made.double() - wanted).norm() / wanted.norm().clamp(min=1e-30))


def layer(tokens, experts, taken, kind="uniform", hidden=24, inner=16, dtype=torch.float32):
    index, shares = routing(tokens, experts, taken, kind)
    gate_up = (drawn(experts, 2 * inner, hidden, seed=2) / hidden**0.5).to(dtype)
    down = (drawn(experts, hidden, inner, seed=3) / inner**0.5).to(dtype)
    return drawn(tokens, hidden, seed=1).to(dtype), index, shares, gate_up, down


SIZES = [
    (37, 8, 2, "uniform"),
    (300, 16, 4, "zipf"),
    (40, 8, 2, "few"),
    (1, 8, 3, "uniform"),
    (50, 1, 1, "uniform"),
    (9, 4, 4, "uniform"),
    (0, 4, 2, "uniform"),
]


@pytest.mark.parametrize("unit", [1, 32])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_layer_is_a_loop_over_experts(sizes, unit, monkeypatch):
    monkeypatch.setattr("heddle.moe.layer.unit_of", lambda x: unit)
    given = layer(*sizes)
    wide = [each.double() if each.is_floating_point() else each for each in given]
    for made, wanted in zip(run(heddle.moe.grouped_mlp, *given), run(loop, *wide), strict=True):
        assert made.shape == wanted.shape
        assert error(made, wanted) < 2e-6
    for gradient in run(heddle.moe.grouped_mlp, *given)[3:]:
        for expert in range(sizes[1]):
            if not (given[1] == expert).any():
                assert not gradient[expert].any()


@pytest.mark.parametrize("sizes", [(300, 16, 4, "zipf"), (64, 8, 2, "uniform")])
def test_bf16_is_as_near_to_fp64_as_the_loop(sizes):
    given = layer(*sizes, dtype=torch.bfloat16)
    wide = [each.double() if each.is_floating_point() else each for each in given]
    exact = run(loop, *wide)
    for made, other, wanted in zip(
        run(heddle.moe.grouped_mlp, *given), run(loop, *given), exact, strict=True
    ):
        assert error(made, wanted) <= 1.2 * error(other, wanted) + 1e-6


def test_each_run_has_the_same_bits_and_tokens_do_not_meet():
    given = layer(200, 16, 4, "zipf")
    made, again = run(heddle.moe.grouped_mlp, *given), run(heddle.moe.grouped_mlp, *given)
    assert all(map(torch.equal, made, again))
    order = torch.randperm(200, generator=torch.Generator().manual_seed(3))
    x, index, shares, *weights = given
    turned = heddle.moe.grouped_mlp(x[order], index[order], shares[order], *weights)
    assert error(turned, made[0][order].double()) < 1e-6  # torch's products on a CPU know which row is which


def test_memory_that_nobody_wrote_is_not_read(monkeypatch):
    monkeypatch.setattr("heddle.moe.layer.unit_of", lambda x: 32)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    torch.use_deterministic_algorithms(True)
    try:
        for made in run(heddle.moe.grouped_mlp, *layer(40, 8, 2, "few")):
            assert made.isfinite().all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_an_index_outside_adds_nothing():
    x, index, shares, gate_up, down = layer(30, 8, 2)
    outside = index.clone()
    outside[::3, 0], outside[1::3, 1] = 8, -1
    kept = (outside >= 0) & (outside < 8)
    made = run(heddle.moe.grouped_mlp, x, outside, shares, gate_up, down)
    wanted = run(loop, x.double(), outside, shares.double(), gate_up.double(), down.double())
    assert all(error(*pair) < 2e-6 for pair in zip(made, wanted, strict=True))
    assert not made[2][~kept].any()


@pytest.mark.parametrize("unit", [1, 16])
def test_rows_are_sorted_by_expert_and_choices_keep_their_order(unit):
    index, _ = routing(50, 6, 3, "zipf")
    choice, place, ends = routes.sort(index, 6, unit)
    begin = 0
    for expert, end in enumerate(ends.tolist()):
        of_it = torch.where(index.reshape(-1) == expert)[0]
        assert end % unit == 0
        assert torch.equal(choice[begin : begin + len(of_it)].long(), of_it)
        assert (choice[begin + len(of_it) : end] == -1).all()
        begin = end
    assert (choice[begin:] == -1).all()
    assert torch.equal(choice[place.reshape(-1).long()].long(), torch.arange(150))


def test_compiled_layers_have_the_same_bits():
    given = layer(30, 8, 2)
    compiled = torch.compile(heddle.moe.grouped_mlp, backend="aot_eager", fullgraph=True)
    assert all(map(torch.equal, run(compiled, *given), run(heddle.moe.grouped_mlp, *given)))


def test_autocast_multiplies_in_its_dtype():
    x, index, shares, gate_up, down = layer(30, 8, 2)
    with torch.autocast("cpu", torch.bfloat16):
        made = heddle.moe.grouped_mlp(x, index, shares, gate_up, down)
    narrow = [each.bfloat16() for each in (x, gate_up, down)]
    wanted = heddle.moe.grouped_mlp(narrow[0], index, shares, *narrow[1:])
    assert made.dtype == torch.float32
    assert torch.equal(made, wanted.float())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"index": torch.zeros(5, 3, dtype=torch.long)}, r"index \[5, 3\]"),
        ({"index": torch.zeros(5, 2)}, "must be of integers"),
        ({"down": torch.zeros(8, 24, 16).double()}, "must be of float32"),
        ({"act": "swish"}, "must be one of silu"),
        ({"shares": None}, "must be a torch.Tensor"),
    ],
)
def test_wrong_arguments_are_refused(change, words):
    given = dict(zip(("x", "index", "shares", "gate_up", "down"), layer(5, 8, 2), strict=True))
    with pytest.raises(heddle.InvalidArgument, match=words):
        heddle.moe.grouped_mlp(**{**given, **change})


def test_a_second_derivative_is_refused_or_right():
    leaf = drawn(12, 8).requires_grad_()
    index, shares = routing(4, 4, 3, "uniform")
    choice, place, _ = routes.sort(index, 4, 1)
    (first,) = torch.autograd.grad(
        ops.SUM(leaf, shares, choice, place).square().sum(), leaf, create_graph=True
    )
    with pytest.raises(RuntimeError):
        first.sum().backward()


SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 64,
}
MODELS = {
    "Qwen3Moe": {"num_experts": 8, "moe_intermediate_size": 16, "intermediate_size": 16, "head_dim": 16},
    "Mixtral": {"num_local_experts": 8, "intermediate_size": 16},
    "GptOss": {
        "num_local_experts": 8,
        "intermediate_size": 16,
        "head_dim": 16,
        "layer_types": ["full_attention"],
    },
    "DeepseekV3": {
        "n_routed_experts": 8,
        "moe_intermediate_size": 16,
        "intermediate_size": 16,
        "first_k_dense_replace": 0,
        "n_group": 2,
        "topk_group": 2,
        "q_lora_rank": None,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 16,
    },
}


def small(family):
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SMALL, **MODELS[family], pad_token_id=0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name or parameter.dim() == 3:
                parameter.copy_(drawn(*parameter.shape, seed=4) / 4)
    return model


def experts_of(model):
    return next(module for module in model.modules() if hasattr(module, "_apply_gate"))


def run_experts(experts, x, index, shares):
    leaves = [x.detach().clone().requires_grad_(), shares.detach().clone().requires_grad_()]
    experts.zero_grad()
    y = experts(leaves[0], index, leaves[1])
    (y.double() * drawn(*y.shape, seed=9)).sum().backward()
    found = [y.detach(), *(leaf.grad for leaf in leaves), *(each.grad for each in experts.parameters())]
    return [each.clone() for each in found]


@pytest.mark.parametrize("family", MODELS)
def test_experts_of_transformers_are_as_near_as_eager(family):
    model = small(family)
    index, shares = routing(60, 8, 2, "zipf")
    x = drawn(60, 32, seed=1)
    found = {}
    for name, dtype in (("eager", torch.float64), ("eager", torch.bfloat16), ("heddle", torch.bfloat16)):
        model.to(torch.bfloat16).to(dtype)
        model.set_experts_implementation(name)
        x = x.bfloat16().to(dtype)
        found[name, dtype] = run_experts(experts_of(model), x, index, shares.bfloat16().to(dtype))
    exact, eager, made = found.values()
    for one, other, wanted in zip(made, eager, exact, strict=True):
        assert error(one, wanted) <= 1.2 * error(other, wanted) + 1e-6


@pytest.mark.parametrize("family", MODELS)
def test_models_train_as_with_eager(family):
    model, losses = small(family), {}
    ids = torch.arange(40).reshape(2, 20) % 64
    for name in ("eager", "heddle"):
        model.set_experts_implementation(name)
        model.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        losses[name] = [
            loss.detach(),
            *(each.grad.clone() for each in model.parameters() if each.grad is not None),
        ]
    for made, wanted in zip(losses["heddle"], losses["eager"], strict=True):
        assert error(made, wanted.double()) < 2e-5 or (made - wanted).abs().max() < 1e-7


def test_explain_says_which_experts_run_in_heddle():
    model = small("Qwen3Moe")
    (row,) = [each for each in heddle.explain(model) if each.cls.endswith("Experts")]
    assert not row.is_heddle
    assert "set_experts_implementation" in row.reason
    model.set_experts_implementation("heddle")
    (row,) = [each for each in heddle.explain(model) if each.cls.endswith("Experts")]
    assert row.is_heddle
    assert row.path == "heddle experts"
    other = small("GptOss")
    other.set_experts_implementation("heddle")
    (row,) = [each for each in heddle.explain(other) if each.cls.endswith("Experts")]
    assert row.is_heddle
    assert "a gate of its own" in row.reason


def test_experts_of_a_transformers_that_knows_no_norm_after_them():
    model = small("Qwen3Moe")
    for module in model.modules():
        module.__dict__.pop("has_post_expert_norm", None)
    model.set_experts_implementation("heddle")
    ids = torch.arange(20)[None] % 64
    made = model(input_ids=ids).logits
    (row,) = [each for each in heddle.explain(model) if each.cls.endswith("Experts")]
    assert row.path == "heddle experts"
    model.set_experts_implementation("eager")
    assert error(made, model(input_ids=ids).logits.double()) < 2e-5
