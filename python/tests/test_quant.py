"""heddle.quant: every code point of each format, layers and folders in codes, errors that are fed back."""

import itertools
import json
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import heddle
from heddle.quant import (
    FORMATS,
    QuantLinear,
    allocate_bits,
    format_named,
    gptq,
    quantize_,
    quantize_folder,
)
from heddle.quant.__main__ import main
from heddle.quant.formats import E2M1, Whole
from heddle.quant.knapsack import choose
from heddle.quant.select import quantization_config, units
from tiny import tiny

NAMES = ("int4", "int4/32", "int8", "fp8", "mxfp4", "nvfp4")
STORYTELLER = str(Path(__file__).parents[2] / "models" / "storyteller")
IDS = [3, 17, 5, 99, 42, 7]


def points_of(format):
    """All values of the codes of a format."""
    if format.name.startswith("int"):
        return torch.arange(-(2 ** (format.bits - 1)), 2 ** (format.bits - 1)).float()
    if format.name == "fp8":
        every = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn).float()
        return every[torch.isfinite(every)].unique()
    return torch.tensor(E2M1).unique()


@pytest.mark.parametrize("name", NAMES)
def test_each_number_goes_to_its_nearest_point(name):
    format = format_named(name)
    points = points_of(format)
    assert torch.equal(format.nearest(points), points)
    middle = (points[1:] + points[:-1]) / 2
    between = torch.stack([points[:-1], points[1:]], -1)
    # A tie goes to one of both, the same one for either sign.
    tie = format.nearest(middle)
    assert ((tie == between[:, 0]) | (tie == between[:, 1])).all()
    if not name.startswith("int"):
        assert torch.equal(tie, -format.nearest(-middle))
    step = (points[1:] - points[:-1]) * 1e-3
    assert torch.equal(format.nearest(middle - step), between[:, 0])
    assert torch.equal(format.nearest(middle + step), between[:, 1])
    # Numbers beyond saturate.
    assert format.nearest(torch.tensor([1e30, -1e30])).tolist() == [points.max(), points.min()]


def test_a_tie_goes_to_the_even_code():
    assert format_named("int4").nearest(torch.tensor([0.5, 1.5, -2.5])).tolist() == [0, 2, -2]
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    assert format_named("nvfp4").nearest(ties).tolist() == [0, 1, 1, 2, 2, 4, 4]
    assert format_named("fp8").nearest(torch.tensor([17.0, 19.0, 464.0])).tolist() == [16, 20, 448]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_packed_is_unpacked(name, dtype):
    format = format_named(name)
    every = points_of(format)
    points = every.repeat(-(-2048 // len(every)))[:2048].reshape(8, 256)
    generator = torch.Generator().manual_seed(0)
    groups = 256 // (format.group or 256)
    whole = Whole(torch.bfloat16 if "fp4" in name else dtype, 3.7 if name == "nvfp4" else 1.0)
    scales = format.storable(torch.rand(8, groups, generator=generator) + 1e-3, whole)
    got_points, got_scales = format.unpack(format.pack(points, scales, whole), 256, whole)
    assert torch.equal(got_points, points)
    assert torch.equal(got_scales, scales)
    assert torch.equal(torch.signbit(got_points), torch.signbit(points)) or name == "int4"


def test_scales_of_mxfp4_are_all_powers_of_two():
    format = format_named("mxfp4")
    scales = torch.ldexp(torch.ones(255), torch.arange(-127, 128))
    parts = format.pack(torch.zeros(255, 32), scales[:, None], None)
    assert parts["weight_scale"].flatten().tolist() == list(range(255))
    assert torch.equal(format.storable(scales, None), scales)
    assert format.storable(torch.tensor([3.0, 4.0, 0.0]), None).tolist() == [4, 4, 2.0**-127]


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_those_of_the_format(name):
    weight = torch.randn(64, 512, generator=torch.Generator().manual_seed(1)).bfloat16()
    format = format_named(name)
    codes = format.encode(weight)
    error = float((codes.values.float() - weight.float()).norm() / weight.float().norm())
    # Normal numbers lose a tenth in 4 bits with a scale for 128, and less than a fortieth in 8.
    assert error < {"int4": 0.12, "int4/32": 0.1, "int8": 0.012, "fp8": 0.03}.get(name, 0.13)
    assert format.bytes(weight.shape, weight.dtype) == sum(
        part.numel() * part.element_size() for part in codes.parts.values()
    )
    # A zero row has zero values, and numbers near the ends of the dtype stay finite.
    for edge in (0.0, 1e-38, 3e38):
        values = format.encode(torch.full((1, 512), edge).bfloat16()).values.float()
        assert torch.isfinite(values).all()
        assert (values - edge).abs().max() <= max(edge, 1e-37) * 0.15, edge


WRONG = (
    ({"config": "int3"}, r"no format int3; there are int4, int8, fp8, mxfp4, nvfp4"),
    ({"config": "fp8", "group": 64}, r"fp8 has groups of whole rows; --group is for int4 and int8"),
    ({"config": "int4", "group": 12}, r"the group is 12; must be 0, a whole row, or a multiple of 8"),
    ({"config": "int4", "skip": ("nothing",)}, r"--skip nothing is no layer's name"),
    ({"config": {"2": "int4"}}, r"2 is no nn.Linear of the model"),
)


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(heddle.InvalidArgument, match=words):
        quantize_(nn.Sequential(nn.Linear(128, 8), nn.ReLU()), **call)


def test_what_does_not_fit_is_named_and_changes_nothing():
    model = nn.Sequential(nn.Linear(128, 8), nn.Linear(96, 8))
    with pytest.raises(heddle.InvalidArgument, match=r"\[1\] has 96 columns.* take --group 32.*--skip 1"):
        quantize_(model, "int4")
    assert type(model[0]) is nn.Linear
    assert quantize_(model, "int4", skip=("1",)) is model
    assert [type(layer) for layer in model] == [QuantLinear, nn.Linear]
    for bad in (float("nan"), float("inf")):
        model = nn.Sequential(nn.Linear(128, 8))
        model[0].weight.data[3, 5] = bad
        with pytest.raises(heddle.InvalidArgument, match=rf"\[0\] has {bad} at \[3, 5\]"):
            quantize_(model, "int4")
    with pytest.raises(heddle.Unsupported, match=r"no layer to quantise.* it has Conv1d"):
        quantize_(nn.Sequential(nn.Conv1d(4, 4, 1)))


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_multiplies_with_its_codes(name):
    model = nn.Sequential(nn.Linear(128, 40)).bfloat16()
    weight = model[0].weight.detach().clone()
    quantize_(model, name)
    values = format_named(name).encode(weight).values
    assert torch.equal(model[0].dequantize(), values)
    x = torch.randn(3, 128).bfloat16().requires_grad_()
    y = model(x)
    assert torch.equal(y, nn.functional.linear(x, values, model[0].bias))
    y.sum().backward()
    assert x.grad is not None
    assert model[0].bias.grad is not None
    assert set(model.state_dict()) >= {"0.bias", "0.weight_scale"}


def test_layers_that_are_multiplied_as_one_are_a_unit():
    names = [
        f"m.0.{end}" for end in ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    ]
    names += [f"m.experts.{expert}.up_proj" for expert in range(2)]
    assert [len(unit) for unit in units(names)] == [3, 1, 2, 1, 2]
    mixed = quantization_config({"a.q_proj": FORMATS["int4"], "b.q_proj": FORMATS["fp8"]}, ["lm_head"])
    assert mixed["format"] == "mixed-precision"
    assert [each["targets"] for each in mixed["config_groups"].values()] == [
        [r"re:^a\.q_proj$"],
        [r"re:^b\.q_proj$"],
    ]


# --- errors that are fed back ---


def slowly(format, weight, hessian):
    """As the method is defined: after each column the rest is what lessens the error most, by the inverse of
    the Hessian that is left."""
    columns = weight.shape[1]
    h = hessian.double().clone()
    h += gptq.DAMPING * h.diagonal().mean() * torch.eye(columns)
    left, values, group = weight.double().clone(), torch.zeros_like(weight), format.group or columns
    for at in range(columns):
        if at % group == 0:
            scales = format.choose_scales(
                left[:, at : at + group].float(), Whole(weight.dtype), hessian.diagonal()[at : at + group]
            )
        values[:, at] = format.round(left[:, at].float(), scales, Whole(weight.dtype))[1]
        inverse = torch.linalg.inv(h[at:, at:])
        error = left[:, at] - values[:, at]
        left[:, at:] -= error[:, None] * inverse[0] / inverse[0, 0]
    return values


def inputs(rows, columns, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randn(columns, columns, generator=generator) / columns**0.5
    return torch.randn(rows, columns, generator=generator) @ (torch.eye(columns) + mixed)


@pytest.mark.parametrize(("group", "columns"), [(16, 48), (0, 40), (136, 272), (24, 192)])
def test_fed_back_errors_are_those_of_the_definition(group, columns):
    format = format_named("int4", group)
    weight, x = torch.randn(6, columns, generator=torch.Generator().manual_seed(2)), inputs(512, columns)
    hessian = gptq.Hessian(columns)
    hessian.add(x[:100]), hessian.add(x[100:])
    torch.testing.assert_close(hessian.matrix, x.T @ x, rtol=1e-4, atol=1e-3)
    codes = gptq.encode(format, weight, hessian.matrix, Whole(weight.dtype))
    assert torch.equal(codes.values, slowly(format, weight, hessian.matrix))
    plain = format.encode(weight).values
    assert ((weight - codes.values) @ x.T).norm() < 0.9 * ((weight - plain) @ x.T).norm()


def test_no_codes_of_a_small_layer_are_better_by_much():
    """All 16^4 codes of four columns."""
    format, every = format_named("int4", 0), torch.cartesian_prod(*[torch.arange(-8.0, 8)] * 4)
    fed_back, nearest = [], []
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        weight, mixed = torch.randn(1, 4, generator=generator), torch.randn(4, 4, generator=generator)
        x = inputs(64, 4, seed) @ mixed
        codes = gptq.encode(format, weight, x.T @ x, Whole(torch.float32), damping=1e-9)
        scale = codes.parts["weight_scale"].float()

        def error(values, x=x, weight=weight):
            return ((values - weight) @ x.T).norm(dim=-1)

        least = float(error(every * scale).min())
        fed_back.append(float(error(codes.values)) / least)
        nearest.append(float(error(format.nearest(weight / scale) * scale)) / least)
    assert min(fed_back) > 1 - 1e-5
    assert sum(fed_back) < 0.9 * sum(nearest)


def test_without_correlation_the_nearest_code_is_best():
    weight, format = torch.randn(4, 32), format_named("int4", 16)
    codes = gptq.encode(format, weight, torch.eye(32), Whole(torch.float32))
    assert torch.equal(codes.values, format.encode(weight).values)
    dead = torch.eye(32)
    dead[5, 5] = 0  # an input that is always zero
    assert torch.isfinite(gptq.encode(format, weight, dead, Whole(torch.float32)).values).all()


# --- folders ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of two layers whose rows hold two groups of 128."""
    path = tmp_path_factory.mktemp("quant") / "model"
    model = tiny("llama", torch.bfloat16, hidden_size=256, intermediate_size=256, head_dim=64)
    model.save_pretrained(path)
    return path


def logits(path, **more):
    with heddle.load(path, device="cpu", threads=1, max_context=64, **more) as model:
        return model.logits(IDS)


def floats_of(folder, made, out):
    """Writes the folder with each layer's values, by quantize_ of the same model."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    model = quantize_(model, dict(made))
    for name, layer in list(model.named_modules()):
        if isinstance(layer, QuantLinear):
            plain = nn.Linear(
                layer.in_features, layer.out_features, layer.bias is not None, dtype=torch.bfloat16
            )
            plain.weight.data = layer.dequantize()
            model.set_submodule(name, plain)
    del model.config.quantization_config
    model.save_pretrained(out)


MIXED = {"q_proj": "int4", "k_proj": "int4", "v_proj": "int4", "o_proj": "int8", "gate_proj": "fp8",
         "up_proj": "fp8", "down_proj": "mxfp4"}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*weights")
@pytest.mark.parametrize("name", [*NAMES, "mixed", "mixed_groups"])
def test_a_folder_in_codes_has_the_logits_of_its_values(name, folder, tmp_path):
    config = name
    if name.startswith("mixed"):
        ends = MIXED if name == "mixed" else {**MIXED, "o_proj": "nvfp4", "down_proj": "int4/32"}
        from transformers import AutoConfig

        layers = AutoConfig.from_pretrained(folder).num_hidden_layers
        config = {
            f"model.layers.{number}.{'self_attn' if end[0] in 'qkvo' else 'mlp'}.{end}": format
            for number in range(layers)
            for end, format in ends.items()
        }
        config["model.layers.0.self_attn.o_proj"] = None  # stays as it is
        config = {key: value for key, value in config.items() if value}
    made = quantize_folder(folder, tmp_path / "codes", config)
    tensors = load_file(tmp_path / "codes" / "model.safetensors")
    assert sum(t.numel() * t.element_size() for t in tensors.values()) == made["bytes"]
    floats_of(folder, made["formats"], tmp_path / "floats")
    wanted = logits(tmp_path / "floats")
    assert numpy.isfinite(wanted).all()
    assert numpy.array_equal(logits(tmp_path / "codes"), wanted)
    assert numpy.array_equal(logits(tmp_path / "codes", weights="codes"), wanted)


def test_save_pretrained_writes_such_a_folder(folder, tmp_path):
    from transformers import AutoModelForCausalLM

    model = quantize_(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16), "int4")
    model.save_pretrained(tmp_path / "saved")
    quantize_folder(folder, tmp_path / "written", "int4")
    saved, written = (load_file(tmp_path / each / "model.safetensors") for each in ("saved", "written"))
    assert set(saved) == set(written)
    assert all(torch.equal(saved[key], written[key]) for key in saved)
    of = [json.loads((tmp_path / each / "config.json").read_text()) for each in ("saved", "written")]
    assert of[0]["quantization_config"] == of[1]["quantization_config"]


# --- a format for each layer ---


def test_the_knapsack_is_exact():
    generator = numpy.random.default_rng(0)
    for _ in range(60):
        options = [
            [(int(generator.integers(1, 12)), float(generator.integers(0, 20)) / 4) for _ in range(count)]
            for count in generator.integers(1, 5, generator.integers(1, 6))
        ]
        limit = int(generator.integers(3, 45))
        found, sums = choose(options, limit), []
        for taken in itertools.product(*options):
            sums.append((sum(size for size, _ in taken), sum(cost for _, cost in taken)))
        fit = [cost for size, cost in sums if size <= limit]
        if not fit:
            assert found is None
            continue
        taken = [each[index] for each, index in zip(options, found, strict=True)]
        assert sum(size for size, _ in taken) <= limit
        assert sum(cost for _, cost in taken) == min(fit)


def model_and_data(folder):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    return model, torch.randint(3, 128, (8, 24), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("score", ["fisher", "output"])
def test_a_mixture_spends_its_bytes_where_errors_cost_most(score, folder, tmp_path):
    """The second layer adds nothing to what is left of the first."""
    model, data = model_and_data(folder)
    for layer in (model.model.layers[1].self_attn.o_proj, model.model.layers[1].mlp.down_proj):
        layer.weight.data.zero_()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = allocate_bits(model, 6.2, data, formats=("int4", "int8"), score=score)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert found.bytes <= found.budget
    assert set(found.divergences) == {"mixed", "int4/128"}
    if score == "fisher":
        assert not found.is_uniform
        assert "divergence" in str(found)
        # The second layer has no effect, so it is in four bits.
        assert {format.bits for name, format in found.formats.items() if ".1." in name} == {4}
    made = quantize_folder(folder, tmp_path / "mixed", found.formats)
    stored = load_file(tmp_path / "mixed" / "model.safetensors")
    of_layers = [t for n, t in stored.items() if n.rpartition(".")[0] in found.formats]
    assert sum(t.numel() * t.element_size() for t in of_layers) == found.bytes
    assert made["formats"] == found.formats


def test_where_no_mixture_is_better_it_says_uniform(folder):
    model, data = model_and_data(folder)
    found = allocate_bits(model, 8.2, data, formats=("int8",))
    assert found.is_uniform
    assert str(found).startswith("uniform int8, 8.0")
    for call, says in (
        ({"budget": 3}, r"budget is 3.0\d bits a weight; the smallest formats take 4.1"),
        ({"budget": 5, "score": "taylor"}, r"score is 'taylor'; must be fisher or output"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=says):
            allocate_bits(model, data=data, **call)


# --- the command ---


def test_the_command_feeds_errors_back_through_the_model(tmp_path):
    text, out = tmp_path / "text.jsonl", tmp_path / "out"
    told = "Once upon a time, a girl named Ada lived in a village. She was kind."
    text.write_text(json.dumps({"text": told}) + "\n")
    words = [STORYTELLER, "--out", str(out)]
    assert (
        main([*words, "--method", "gptq", "--calibrate", str(text), "--skip", "layers.[1-4].*", "--json"])
        == 0
    )
    with pytest.raises(heddle.FileError, match="exists; --out must be a new or empty folder"):
        main(words)
    for wrong, says in (
        (["--method", "gptq"], "--method gptq needs --calibrate FILE"),
        (["--bits", "4.5"], "--bits 4.5 needs --calibrate FILE"),
        (["--bits", "4", "--format", "fp8"], "give --format or --bits, not both"),
        (["--bits", "4.5", "--group", "32"], "chooses groups itself"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=says):
            main([STORYTELLER, "--out", str(tmp_path / "new"), *wrong])
    assert not list(tmp_path.glob("new*"))
    with heddle.load(out, device="cpu", threads=1, weights="codes", progress=False) as model:
        assert "lived in a" in model.generate("Once upon a time, a girl named", max_tokens=6)
