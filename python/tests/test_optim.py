"""heddle.optim: AdamW as torch has it, its states on the host and in fewer bits."""

import copy

import pytest
import torch

import heddle
from heddle.optim import AdamW, AdamW8bit, OffloadAdamW, states

SIZES = [(5,), (33, 40), (130, 64), (7001,), (1,)]
KINDS = {"fp32": AdamW, "int8": AdamW8bit, "bf16": lambda *a, **k: OffloadAdamW(*a, state_dtype="bf16", **k)}


def parameters(dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(size, generator=generator).to(dtype)) for size in SIZES]


def give_gradients(params, step):
    generator = torch.Generator().manual_seed(1000 + step)
    for param in params:
        param.grad = torch.randn(param.shape, generator=generator).to(param.dtype) * 0.1


def run(params, optimizer, steps, first=0):
    for step in range(first, first + steps):
        give_gradients(params, step)
        optimizer.step()
    return params


def bits_of(params):
    return [param.detach().clone() for param in params]


def equal(ours, theirs):
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def groups_of(params):
    params[1].requires_grad_(False)
    return [{"params": params[:3], "lr": 3e-3}, {"params": params[3:], "weight_decay": 0.3, "maximize": True}]


def test_steps_are_those_of_torch_with_groups_schedulers_and_frozen_parameters():
    made = []
    for cls in (torch.optim.AdamW, AdamW, OffloadAdamW):
        params = parameters()
        optimizer = cls(groups_of(params[:4]), lr=1e-2, betas=(0.8, 0.95))
        optimizer.add_param_group({"params": params[4:], "lr": 0.1})
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        for step in range(8):
            give_gradients(params, step)
            params[1].grad = params[4].grad = None
            if step % 2:
                give_gradients(params[4:], step)
            assert optimizer.step(lambda: 7.0) == 7.0
            scheduler.step()
        made.append(params)
    for ours in made[1:]:
        for a, b in zip(ours, made[0], strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("state_dtype", ["fp32", "bf16", "int8"])
def test_every_split_gives_the_same_bits(state_dtype, dtype):
    def trained(fraction, threads=2):
        params = parameters(dtype)
        options = {"state_dtype": state_dtype, "gpu_fraction": fraction, "threads": threads}
        optimizer = OffloadAdamW(params, 1e-2, weight_decay=0.1, max_grad_norm=1.0, **options)
        run(params, optimizer, 5)
        return bits_of(params) + [
            each for param in params for name, each in sorted(optimizer.state[param].items())
        ]

    whole = trained(0, threads=1)
    for fraction in (0.25, 0.5, 1, "auto"):
        assert equal(trained(fraction), whole), fraction
    resident = parameters(dtype)
    run(resident, KINDS[state_dtype](resident, 1e-2, weight_decay=0.1, max_grad_norm=1.0), 5)
    assert equal(bits_of(resident), whole[: len(SIZES)])


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_run_goes_on_with_the_same_bits(kind, dtype, tmp_path):
    params = parameters(dtype)
    optimizer = KINDS[kind](params, lr=1e-2)
    run(params, optimizer, 3)
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    resumed = [torch.nn.Parameter(param.detach().clone()) for param in params]
    run(params, optimizer, 3, first=3)
    again = KINDS[kind](resumed, lr=1.0)
    again.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert again.param_groups[0]["lr"] == 1e-2
    run(resumed, again, 3, first=3)
    assert equal(bits_of(resumed), bits_of(params))


def test_states_come_from_torch_and_go_back():
    theirs = parameters()
    torchs = torch.optim.AdamW(theirs, lr=1e-2)
    run(theirs, torchs, 3)
    for kind, cls in KINDS.items():
        ours = [torch.nn.Parameter(param.detach().clone()) for param in theirs]
        optimizer = cls(ours, lr=1.0)
        optimizer.load_state_dict(torchs.state_dict())
        back = torch.optim.AdamW(ours)
        back.load_state_dict(optimizer.adamw_state_dict())
        bound = 0 if kind == "fp32" else 0.01
        for param, mine in zip(theirs, ours, strict=True):
            state = torchs.state[param]
            assert set(back.state[mine]) == {"step", "exp_avg", "exp_avg_sq"}
            assert back.state[mine]["step"] == 3
            largest = state["exp_avg_sq"].abs().max()
            assert (back.state[mine]["exp_avg_sq"] - state["exp_avg_sq"]).abs().max() <= bound * largest
        run(ours, optimizer, 1, first=3)
    for saved, error in (
        ({"max_exp_avg_sq": torch.ones(5)}, "amsgrad"),
        ({"exp_avg": torch.ones(4)}, r"\[4\]; must be \[5\]"),
    ):
        wrong = copy.deepcopy(torchs.state_dict())
        wrong["state"][0].update(saved)
        with pytest.raises(heddle.Error, match=error):
            AdamW(theirs).load_state_dict(wrong)
    with pytest.raises(heddle.InvalidArgument, match="numbers of parameters"):
        AdamW(theirs[:2]).load_state_dict(torchs.state_dict())


def test_what_is_refused_says_so_and_changes_nothing():
    params = parameters()
    for option in ("amsgrad", "capturable", "differentiable"):
        with pytest.raises(heddle.Unsupported, match=option):
            AdamW(params, **{option: True})
    for options, word in (
        ({"lr": -1.0}, "lr = -1"),
        ({"betas": (0.9, 1.0)}, "betas = "),
        ({"eps": float("nan")}, "eps = nan"),
        ({"max_grad_norm": 0.0}, "max_grad_norm"),
        ({"foreach": True, "fused": True}, "foreach and fused"),
        ({"state_dtype": "int4"}, "state_dtype = 'int4'; must be one of fp32, bf16, int8"),
        ({"gpu_fraction": 2}, "gpu_fraction = 2;"),
        ({"threads": 0}, "threads = 0"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=word):
            OffloadAdamW(params, **options)
    with pytest.raises(heddle.Unsupported, match=r"parameter 0 is torch.float16"):
        AdamW([torch.zeros(3, dtype=torch.float16)])
    with pytest.raises(heddle.Unsupported, match="strides"):
        AdamW([torch.zeros(3).expand(2, 3)])
    optimizer = OffloadAdamW(params, fused=True)
    with pytest.raises(heddle.Unsupported):
        optimizer.add_param_group({"params": [torch.zeros(2)], "amsgrad": True})
    assert len(optimizer.param_groups) == 1
    give_gradients(params, 0)
    params[3].grad = params[3].grad.to_sparse()
    before = bits_of(params)
    with pytest.raises(heddle.Unsupported, match="gradient of parameter 3 is sparse"):
        optimizer.step()
    assert equal(bits_of(params), before)
    assert not optimizer.state


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_gradients_that_are_not_finite_skip_the_step_where_asked(value):
    params = parameters()
    optimizer = AdamW(params, skip_nonfinite=True)
    run(params, optimizer, 1)
    before, states_before = bits_of(params), copy.deepcopy(optimizer.state_dict())
    give_gradients(params, 1)
    params[3].grad[17] = value
    optimizer.step()
    assert equal(bits_of(params), before)
    assert optimizer.skipped_steps == 1
    assert str(optimizer.state_dict()) == str(states_before)
    plain = parameters()
    give_gradients(plain, 1)
    plain[3].grad[17] = value
    AdamW(plain).step()
    assert plain[3].isnan().nonzero().tolist() == [[17]]


def test_a_copy_steps_as_the_one_that_it_is_of():
    params = parameters()
    optimizer = OffloadAdamW(params, 1e-2, state_dtype="bf16", max_grad_norm=0.5, gpu_fraction=0.5)
    run(params, optimizer, 2)
    copied, again = copy.deepcopy((params, optimizer))
    run(params, optimizer, 2, first=2)
    assert equal(bits_of(run(copied, again, 2, first=2)), bits_of(params))


def test_clipping_is_that_of_torch():
    ours, theirs = parameters(), parameters()
    give_gradients(ours, 0)
    give_gradients(theirs, 0)
    AdamW(ours, 1e-2, eps=1e-2, max_grad_norm=0.5).step()
    torch.nn.utils.clip_grad_norm_(theirs, 0.5)
    torch.optim.AdamW(theirs, 1e-2, eps=1e-2).step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_parameters_in_bf16_lose_no_small_updates():
    """Each of 200 steps is a fortieth of the distance to the next bf16."""
    param = torch.nn.Parameter(torch.ones(512, dtype=torch.bfloat16))
    optimizer = AdamW([param], lr=1e-4, weight_decay=0)
    for _ in range(200):
        param.grad = torch.ones_like(param)
        optimizer.step()
    torch.testing.assert_close(param.float(), torch.full((512,), 0.98), atol=2e-3, rtol=0)


def test_states_in_bf16_keep_their_mean():
    """Each step takes a thousandth off, less than half a unit of bf16: rounded to nearest it would stay."""
    param = torch.nn.Parameter(torch.zeros(4096))
    optimizer = OffloadAdamW([param], lr=0, betas=(0.9, 0.999), state_dtype="bf16")
    param.grad = torch.ones_like(param)
    optimizer.step()
    param.grad = torch.zeros_like(param)
    for _ in range(300):
        optimizer.step()
    square = optimizer.state[param]["exp_avg_sq"].float()
    assert abs(float(square.mean()) / (1e-3 * 0.999**300) - 1) < 0.01


def test_the_dynamic_code_is_that_of_bitsandbytes():
    for signed in (True, False):
        values = [0.0, 1.0]
        for decade in range(7):
            edges = torch.linspace(0.1, 1, 2 ** (decade + (not signed)) + 1)
            middles = (edges[:-1] + edges[1:]) / 2 * 10.0 ** (decade - 6)
            values += middles.tolist() + ((-middles).tolist() if signed else [])
        torch.testing.assert_close(states._code(signed, "cpu")[0], torch.tensor(values).sort().values)


@pytest.mark.parametrize("signed", [True, False])
def test_codes_are_as_near_as_the_code_allows(signed):
    wide = torch.randn(10000, generator=torch.Generator().manual_seed(0))
    wide[:256] = 0
    wide = wide if signed else wide.square()
    codes, scale = torch.empty(10000, dtype=torch.uint8), torch.empty(40)
    states.narrow_(codes, scale, wide, signed)
    error = (states.widened(codes, scale, signed) - wide).abs()
    largest = scale.repeat_interleave(256)[:10000]
    gap = 0.9 / (64 if signed else 128)  # in the largest decade
    assert (error <= largest * gap / 2 * 1.001).all()  # and none where all are 0
    near = wide.abs() > largest / 10
    assert (error[near] / wide[near].abs()).max() <= (0.071 if signed else 0.036)


def test_parameters_of_any_order_of_dimensions():
    made = []
    for cls in (torch.optim.AdamW, AdamW):
        param = torch.nn.Parameter(torch.arange(60.0).view(3, 4, 5).permute(2, 0, 1))
        param.grad = torch.arange(60.0).view(5, 3, 4)
        optimizer = cls([param], lr=0.1)
        optimizer.step()
        made.append((param.detach(), optimizer.state[param]["exp_avg"]))
    torch.testing.assert_close(made[1], made[0])


class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(80, 60)

    def forward(self, x, labels):
        return {"loss": (self.linear(x) - labels).square().mean()}


def examples():
    generator = torch.Generator().manual_seed(0)
    return [
        {"x": torch.randn(80, generator=generator), "labels": torch.randn(60, generator=generator)}
        for _ in range(16)
    ]


def test_trainer_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path):
    import transformers

    def trained(resume):
        torch.manual_seed(0)
        model = Regression()
        optimizer = OffloadAdamW(model.parameters(), lr=1e-2, state_dtype="int8")
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.8**step)
        settings = {"max_steps": 4, "save_steps": 2, "per_device_train_batch_size": 2, "use_cpu": True}
        trainer = transformers.Trainer(
            model,
            transformers.TrainingArguments(str(tmp_path), report_to=[], disable_tqdm=True, **settings),
            train_dataset=examples(),
            optimizers=(optimizer, scheduler),
        )
        trainer.train(resume_from_checkpoint=resume)
        return list(model.state_dict().values())

    whole = trained(None)
    assert equal(trained(str(tmp_path / "checkpoint-2")), whole)


def test_accelerate_prepares_it():
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, made = Regression(), []
    for cls in (torch.optim.AdamW, AdamW8bit):
        ours = copy.deepcopy(model)
        prepared, optimizer = accelerator.prepare(ours, cls(ours.parameters(), lr=1e-2))
        for example in examples()[:6]:
            with accelerator.accumulate(prepared):
                accelerator.backward(prepared(**example)["loss"])
                accelerator.clip_grad_norm_(prepared.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        made.append(ours.linear.weight)
    assert (made[0] - model.linear.weight).abs().mean() > 0.01
    assert (made[1] - made[0]).abs().mean() < 1e-3
