"""Folders in GPTQ, AWQ and int8 have the logits of the same values, which numpy expands here, bit for bit."""

import json
import warnings

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file

import heddle
from tiny import tiny

OPTIONS = {"device": "cpu", "threads": 1, "max_context": 64}
IDS = [3, 17, 5, 99, 42, 7]
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # the row in each place of a word, the lowest first


def words(codes, bits, order=None):
    """Codes along the last axis, the first in the lowest bits of a word."""
    per = 32 // bits
    order = order or range(per)
    split = codes.astype(numpy.uint32).reshape(*codes.shape[:-1], -1, per)
    made = sum(split[..., place] << (bits * number) for number, place in enumerate(order))
    return torch.from_numpy(made.astype(numpy.uint32).view(numpy.int32).copy())


def expand(codes, zeros, scales, groups):
    """(code - zero) * scale of each column's group; codes [rows, cols], zeros and scales [rows, groups]."""
    less = codes.astype(numpy.float32) - zeros[:, groups].astype(numpy.float32)
    return torch.from_numpy(less * scales[:, groups].float().numpy()).to(scales.dtype)


def draw(rng, rows, cols, groups, bits, dtype):
    codes = rng.integers(0, 2**bits, (rows, cols))
    codes.flat[: 2**bits] = numpy.arange(2**bits)
    zeros = rng.integers(0, 2**bits, (rows, groups))
    zeros.flat[:16] = numpy.arange(16)
    scales = torch.from_numpy(rng.normal(0, 1.0 / 2**bits, (rows, groups)).astype(numpy.float32)).to(dtype)
    return codes, zeros, scales


def gptq(rng, rows, cols, dtype, bits=4, group=32, act_order=False, form="gptq"):
    group = group if group > 0 else cols
    codes, zeros, scales = draw(rng, rows, cols, cols // group, bits, dtype)
    groups = numpy.arange(cols) // group
    if act_order:
        groups = rng.permutation(groups)
    stored = zeros if form == "gptq_v2" else (zeros - 1) % 2**bits
    parts = {
        "qweight": words(codes, bits).t().contiguous(),
        "qzeros": words(stored.T, bits),
        "scales": scales.t().contiguous(),
        "g_idx": torch.from_numpy(groups.astype(numpy.int32)),
    }
    return parts, expand(codes, zeros, scales, groups)


def awq(rng, rows, cols, dtype, group=32):
    codes, zeros, scales = draw(rng, rows, cols, cols // group, 4, dtype)
    parts = {
        "qweight": words(codes.T, 4, AWQ_ORDER),
        "qzeros": words(zeros.T, 4, AWQ_ORDER),
        "scales": scales.t().contiguous(),
    }
    return parts, expand(codes, zeros, scales, numpy.arange(cols) // group)


def int8(rng, rows, cols, dtype, group=0, zeros=False):
    count = cols // group if group else 1
    codes, shift, scales = draw(rng, rows, cols, count, 8, dtype)
    codes, shift = codes - 128, shift - 128 if zeros else numpy.zeros_like(shift)
    parts = {"weight": torch.from_numpy(codes.astype(numpy.int8)), "weight_scale": scales}
    if zeros:
        parts["weight_zero_point"] = torch.from_numpy(shift.astype(numpy.int8))
    return parts, expand(codes, shift, scales, numpy.arange(cols) // (group or cols))


def compressed(**weights):
    groups = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", **weights}}}
    return {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": groups}


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32}
FORMATS = {
    "gptq": (gptq, {}, GPTQ),
    "gptq_act_order": (gptq, {"act_order": True}, {**GPTQ, "desc_act": True}),
    "gptq_8": (gptq, {"bits": 8}, {**GPTQ, "bits": 8}),
    "gptq_rows": (gptq, {"group": -1}, {**GPTQ, "group_size": -1}),
    "gptq_v2": (gptq, {"form": "gptq_v2"}, {**GPTQ, "checkpoint_format": "gptq_v2"}),
    "awq": (awq, {}, {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}),
    "int8": (int8, {}, compressed(strategy="channel")),
    "int8_groups": (int8, {"group": 32, "zeros": True}, compressed(strategy="group", group_size=32)),
}  # fmt: skip


def write(folder, name, dtype, seed=0):
    """Writes a folder in the format and one of its values, and returns both."""
    make, options, config = FORMATS[name]
    rng = numpy.random.default_rng(seed)
    model = tiny("llama", dtype, intermediate_size=128)
    state = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    coded, values = {}, {}
    for key, tensor in state.items():
        if "_proj." not in key:
            coded[key] = values[key] = tensor
            continue
        parts, values[key] = make(rng, *tensor.shape, dtype, **options)
        coded.update(
            {f"{key.removesuffix('weight')}{part}": made.contiguous() for part, made in parts.items()}
        )
    for place, tensors, more in (("coded", coded, {"quantization_config": config}), ("floats", values, {})):
        (folder / place).mkdir()
        save_file(tensors, folder / place / "model.safetensors")
        described = {**model.config.to_dict(), **more, "dtype": str(dtype).removeprefix("torch.")}
        (folder / place / "config.json").write_text(json.dumps(described))
    return folder / "coded", folder / "floats"


def logits(folder):
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        with heddle.load(folder, **OPTIONS) as model:
            return model.logits(IDS), [str(note.message) for note in notes]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", FORMATS)
def test_codes_have_the_bits_of_their_values(name, dtype, tmp_path):
    coded, floats = write(tmp_path, name, dtype)
    (got, notes), (wanted, _) = logits(coded), logits(floats)
    assert numpy.isfinite(wanted).all()
    assert numpy.array_equal(got, wanted)
    assert any("has no code in memory" in note for note in notes)


def changed(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


Q = "model.layers.0.self_attn.q_proj."


def lacks(part):
    return lambda tensors: tensors.pop(Q + part)


def has(part, change):
    """Changes a tensor, or adds one."""
    return lambda tensors: tensors.update({Q + part: change(tensors.get(Q + part)).clone()})


def with_group(order):
    order[3] = 99
    return order


WRONG = (
    ("gptq", lacks("scales"), r"q_proj.qweight has no scales and zero points"),
    ("gptq", has("scales", lambda t: t[:1]), r"q_proj.qweight has scales that do not fit"),
    ("gptq", has("qzeros", lambda t: t[:, :1]), r"q_proj.qweight has zero points that do not fit"),
    ("gptq", has("g_idx", lambda t: t[:5]), r"q_proj.qweight has a g_idx that does not fit"),
    ("gptq", has("g_idx", with_group), r"g_idx has the group 99 for column 3; must be below 2"),
    ("gptq", has("qweight", lambda t: t.long()), r"q_proj.qweight must be a matrix of I32"),
    ("gptq", has("weight", lambda _: torch.zeros(64, 64)), r"has both .*q_proj.weight and .*q_proj.qweight"),
    ("awq", has("scales", lambda t: t.int()), r"q_proj.qweight has scales that do not fit"),
    ("int8", lacks("weight_scale"), r"q_proj.weight of I8 has no scales"),
    ("int8", has("weight_scale", lambda t: t[:3]), r"q_proj.weight of I8 has scales that do not fit"),
)


@pytest.mark.parametrize(("name", "change", "says"), WRONG)
def test_parts_that_do_not_fit_are_one_line(name, change, says, tmp_path):
    coded, _ = write(tmp_path, name, torch.float16)
    changed(coded, change)
    with pytest.raises(heddle.Error, match=says) as raised:
        logits(coded)
    assert str(raised.value).startswith("[")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "key", "value", "says"),
    [
        ("gptq", "bits", 3, r"bits = 3: not supported; it may be 4 or 8"),
        ("gptq", "checkpoint_format", "marlin", r"it may be gptq or gptq_v2"),
        ("awq", "version", "gemv", r"it may be gemm"),
        ("awq", "quant_method", "bitsandbytes", r"quant_method may be fp8, fbgemm_fp8, gptq, awq or"),
    ],
)
def test_other_forms_are_refused(name, key, value, says, tmp_path):
    coded, _ = write(tmp_path, name, torch.float16)
    config = json.loads((coded / "config.json").read_text())
    config["quantization_config"][key] = value
    (coded / "config.json").write_text(json.dumps(config))
    with pytest.raises(heddle.Error, match=says):
        logits(coded)
