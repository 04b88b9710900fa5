"""Folders in codes have the logits of the same values, which numpy or torch expands here, bit for bit."""

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


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = torch.cat([E2M1, -E2M1])
# The codes of bitsandbytes, as its files have them.
NF4 = torch.tensor([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
])  # fmt: skip
FP4 = torch.tensor([0, 0.0625, 8, 12, 4, 6, 2, 3]) / 12
FP4 = torch.cat([FP4, -FP4])


def nvfp4(rng, rows, cols, dtype, divides=True):
    """Every code and every finite scale; the whole matrix has a divisor of its scales, or a factor."""
    codes = rng.integers(0, 16, (rows, cols))
    scales = torch.from_numpy(rng.integers(0, 0x7F, (rows, cols // 16)).astype(numpy.uint8))
    scales = scales.view(torch.float8_e4m3fn)
    all_ = torch.tensor([3000.0 if divides else 1 / 3000.0])
    scale = scales.float() / all_ if divides else scales.float() * all_
    values = E2M1[torch.from_numpy(codes)] * scale.repeat_interleave(16, 1)
    packed = torch.from_numpy((codes[:, ::2] | codes[:, 1::2] << 4).astype(numpy.uint8))
    if divides:
        parts = {"weight_packed": packed, "weight_scale": scales, "weight_global_scale": all_}
        return parts | {"input_global_scale": torch.ones(1)}, values.bfloat16()
    parts = {"weight": packed, "weight_scale": scales, "weight_scale_2": all_.reshape(())}
    return parts | {"input_scale": torch.ones(())}, values.bfloat16()


def bitsandbytes(rng, rows, cols, dtype, kind="nf4", nested=True, block=64):
    codes = rng.integers(0, 16, rows * cols)
    table = {"nf4": NF4, "fp4": FP4}[kind]
    state = {
        "quant_type": kind,
        "blocksize": block,
        "dtype": str(dtype).removeprefix("torch."),
        "shape": [rows, cols],
    }
    blocks = -(-codes.size // block)
    absmax = torch.from_numpy(rng.uniform(0.02, 0.2, blocks).astype(numpy.float32))
    parts = {"weight.quant_map": table.clone()}
    if nested:
        bytes_ = torch.from_numpy(rng.integers(0, 256, blocks).astype(numpy.uint8))
        map_ = torch.from_numpy(numpy.sort(rng.uniform(-1, 1, 256)).astype(numpy.float32))
        outer = torch.from_numpy(rng.uniform(0.02, 0.2, -(-blocks // 8)).astype(numpy.float32))
        absmax = map_[bytes_.long()] * outer.repeat_interleave(8)[:blocks] + torch.tensor(0.07)
        parts |= {"weight.absmax": bytes_, "weight.nested_absmax": outer, "weight.nested_quant_map": map_}
        state |= {"nested_blocksize": 8, "nested_dtype": "float32", "nested_offset": 0.07}
    else:
        parts["weight.absmax"] = absmax
    parts["weight"] = torch.from_numpy((codes[::2] << 4 | codes[1::2]).astype(numpy.uint8)).unsqueeze(1)
    text = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
    parts[f"weight.quant_state.bitsandbytes__{kind}"] = text
    values = table[torch.from_numpy(codes)] * absmax.repeat_interleave(block)[: codes.size]
    return parts, values.to(dtype).reshape(rows, cols)


def compressed(form="int-quantized", **weights):
    weights = {"num_bits": 8, "type": "int"} | weights
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": groups}


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32}
BITSANDBYTES = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}
FORMATS = {
    "gptq": (gptq, {}, GPTQ),
    "gptq_act_order": (gptq, {"act_order": True}, {**GPTQ, "desc_act": True}),
    "gptq_8": (gptq, {"bits": 8}, {**GPTQ, "bits": 8}),
    "gptq_rows": (gptq, {"group": -1}, {**GPTQ, "group_size": -1}),
    "gptq_v2": (gptq, {"form": "gptq_v2"}, {**GPTQ, "checkpoint_format": "gptq_v2"}),
    "awq": (awq, {}, {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}),
    "int8": (int8, {}, compressed(strategy="channel")),
    "int8_groups": (int8, {"group": 32, "zeros": True}, compressed(strategy="group", group_size=32)),
    "nvfp4": (nvfp4, {}, compressed("nvfp4-pack-quantized", num_bits=4, type="float", group_size=16)),
    "nvfp4_modelopt": (nvfp4, {"divides": False}, {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    "nf4": (bitsandbytes, {}, BITSANDBYTES),
    "nf4_plain": (bitsandbytes, {"nested": False, "block": 128}, BITSANDBYTES),
    "fp4": (bitsandbytes, {"kind": "fp4"}, BITSANDBYTES),
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
    if name.startswith("nvfp4") and dtype is torch.float16:
        pytest.skip("NVFP4 has values in bfloat16")
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


STATE = "weight.quant_state.bitsandbytes__nf4"


def state(**keys):
    text = {
        "blocksize": 64,
        "dtype": "float16",
        "shape": [64, 64],
        "nested_blocksize": 8,
        "nested_offset": 0.0,
    }
    return torch.tensor(list(json.dumps(text | keys).encode()), dtype=torch.uint8)


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
    ("nvfp4", lacks("weight_scale"), r"q_proj.weight_packed of NVFP4 has no scales next to it"),
    (
        "nvfp4",
        has("weight_scale", lambda t: t[:, :1]),
        r"q_proj.weight_packed of NVFP4 has no scales next to it",
    ),
    ("nvfp4", has("weight_packed", lambda t: t[:, :7]), r"must have rows of whole groups of 16 codes"),
    ("nvfp4", has("weight_global_scale", lambda t: t * 0), r"a divisor of its scales that is 0"),
    ("nvfp4_modelopt", has("weight_scale_2", lambda _: torch.ones(2)), r"it must be one F32"),
    ("nf4", lacks("weight.absmax"), r"q_proj.weight of bitsandbytes has no absmax next to it that fits"),
    ("nf4", has("weight.absmax", lambda t: t[1:]), r"absmax next to it that fits; it must be U8 \[64\]"),
    ("nf4", has("weight", lambda t: t[1:]), r"has 2047 bytes; a shape of \[64, 64\] makes it 2048"),
    ("nf4", lacks("weight.nested_quant_map"), r"has no nested_absmax F32 \[8\] and nested_quant_map"),
    ("nf4_plain", lacks("weight.quant_map"), r"has no quant_map of 16 F32 next to it"),
    ("nf4", lacks("weight"), r"quant_state.bitsandbytes__nf4 has no codes next to it"),
    ("nf4", has(STATE, lambda t: t[:9]), r"q_proj.weight.quant_state.bitsandbytes__nf4"),
    ("nf4", has(STATE, lambda _: state(shape=[64, -1])), r"shape = .*: must be"),
    ("nf4", has(STATE, lambda _: state(shape=[2**39, 2**39])), r"has too many elements"),
    ("nf4", has(STATE, lambda _: state(blocksize=0)), r"blocksize = 0: must be a whole number"),
    ("nf4", has(STATE, lambda _: state(dtype="int8")), r"it may be bfloat16, float16 or float32"),
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
        ("awq", "quant_method", "hqq", r"quant_method may be fp8, fbgemm_fp8, gptq, awq, bitsandbytes"),
        ("nvfp4", "format", "mxfp6-pack-quantized", r"mxfp4-pack-quantized or mixed-precision"),
        ("nvfp4_modelopt", "quant_algo", "W4A8_AWQ", r"it may be NVFP4 or FP8"),
        ("nf4", "load_in_8bit", True, r"weights may have 4 bits"),
    ],
)
def test_other_forms_are_refused(name, key, value, says, tmp_path):
    coded, _ = write(tmp_path, name, torch.float16)
    config = json.loads((coded / "config.json").read_text())
    config["quantization_config"][key] = value
    (coded / "config.json").write_text(json.dumps(config))
    with pytest.raises(heddle.Error, match=says):
        logits(coded)
