"""LoRA adapters of PEFT: heddle.load(adapter=..) has the merged model's logits, or says what is wrong."""

import json
import shutil
import warnings

import numpy
import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

import gguf_files
import heddle
from tiny import tiny

OPTIONS = {"device": "cpu", "threads": 1, "max_context": 64}
IDS = [3, 17, 5, 99, 42, 7]
LLAMA = ["q_proj", "v_proj", "down_proj", "lm_head"]


def trained(family, dtype=torch.float32, **settings):
    """A base model, and one with an adapter whose matrices are all drawn."""
    base = tiny(family, dtype)
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GPT-2's matrices are transposed, which PEFT finds out
        torch.manual_seed(3)
        made = peft.get_peft_model(base, peft.LoraConfig(**settings))
        for name, parameter in made.named_parameters():
            if "lora_" in name:
                parameter.data.normal_(0, 0.2)
    return made.eval()


def saved(tmp_path, family, dtype=torch.float32, **settings):
    """Folders of a base model and an adapter; the logits of the merged model."""
    made = trained(family, dtype, **settings)
    made.save_pretrained(tmp_path / "adapter")
    with torch.no_grad():
        plain = made.merge_and_unload()
        logits = plain(torch.tensor([IDS])).logits[0].float().numpy()
    tiny(family, dtype).save_pretrained(tmp_path / "base")
    return logits


def logits_of(tmp_path, **options):
    with heddle.load(tmp_path / "base", adapter=tmp_path / "adapter", **OPTIONS, **options) as model:
        return model.logits(IDS)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("llama", {"r": 4, "lora_alpha": 12, "target_modules": LLAMA}),
        ("qwen3", {"r": 3, "use_rslora": True, "target_modules": "all-linear"}),
        (
            "qwen2",
            {"r": 2, "target_modules": r"model\.layers\.[01]\.(mlp\.(up|gate)_proj|self_attn\.k_proj)"},
        ),
        ("gpt2", {"r": 4, "target_modules": ["c_attn", "c_proj", "c_fc"], "fan_in_fan_out": True}),
        (
            "mistral",
            {
                "r": 2,
                "lora_alpha": 5,
                "target_modules": ["q_proj", "o_proj"],
                "rank_pattern": {"o_proj": 7, r"layers\.0\.self_attn\.q_proj": 1},
                "alpha_pattern": {r"model.layers.1.*q_proj": 31},
            },
        ),
    ],
    ids=["llama", "qwen3", "qwen2", "gpt2", "mistral"],
)
def test_logits_are_those_of_the_merged_model(tmp_path, family, settings):
    wanted = saved(tmp_path, family, **settings)
    numpy.testing.assert_allclose(logits_of(tmp_path), wanted, atol=2e-4 * numpy.abs(wanted).max())
    with heddle.load(tmp_path / "base", **OPTIONS) as model:
        assert numpy.abs(model.logits(IDS) - wanted).max() > 0.1  # the adapter matters


def test_a_weight_is_rounded_once(tmp_path):
    saved(tmp_path, "llama", torch.bfloat16, r=4, lora_alpha=6, target_modules=["q_proj"])
    merged = tiny("llama", torch.bfloat16)
    factors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    for layer in range(2):
        at = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        weight = merged.model.layers[layer].self_attn.q_proj.weight.data
        a, b = (factors[f"{at}.lora_{part}.weight"].float() for part in "AB")
        weight.copy_((weight.float() + 1.5 * (b @ a)).to(torch.bfloat16))
    made = logits_of(tmp_path)
    with heddle.from_transformers(merged, **OPTIONS) as model:
        assert numpy.abs(made - model.logits(IDS)).max() <= 2.0**-8 * numpy.abs(made).max()


def test_names_of_modules_are_names_too(tmp_path):
    wanted = saved(tmp_path, "llama", r=4, target_modules=LLAMA)
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    tensors = load_file(file)
    for change in (
        lambda name: name.replace("A.weight", "A.default.weight").replace("B.weight", "B.default.weight"),
        lambda name: name.removeprefix("base_model.model."),
    ):
        save_file({change(name): tensor for name, tensor in tensors.items()}, file)
        numpy.testing.assert_allclose(logits_of(tmp_path), wanted, atol=2e-4 * numpy.abs(wanted).max())


def test_tensors_in_memory_take_an_adapter(tmp_path):
    wanted = saved(tmp_path, "llama", r=4, target_modules=["q_proj"])
    base = tiny("llama")
    config = heddle.model.config_with_class(base)
    given = {"tensors": base.state_dict(), "model_config": config, "adapter": tmp_path / "adapter"}
    with heddle.load(**given, **OPTIONS) as model:
        numpy.testing.assert_allclose(model.logits(IDS), wanted, atol=2e-4 * numpy.abs(wanted).max())
        name = "model.layers.0.self_attn.q_proj.weight"
        with pytest.raises(heddle.InvalidArgument, match="an adapter is merged into"):
            model.update_weights({name: base.state_dict()[name]})


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapted")
    saved(folder, "llama", r=4, target_modules=["q_proj"])
    return folder


def config_with(**changes):
    def change(folder):
        file = folder / "adapter_config.json"
        config = {**json.loads(file.read_text()), **changes}
        file.write_text(json.dumps({name: value for name, value in config.items() if value is not ...}))

    return change


def tensors_with(change):
    def changed(folder):
        tensors = load_file(folder / "adapter_model.safetensors")
        change(tensors)
        save_file(tensors, folder / "adapter_model.safetensors")

    return changed


def cut(folder):
    file = folder / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-9])


Q = "base_model.model.model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (config_with(use_dora=True), ["adapter_config.json", "use_dora = true"]),
        (config_with(modules_to_save=["lm_head"]), ["modules_to_save"]),
        (config_with(bias="all"), ['bias = "all"']),
        (config_with(peft_type="IA3"), ['peft_type = "IA3"', "LORA"]),
        (config_with(init_lora_weights="pissa"), ['init_lora_weights = "pissa"']),
        (config_with(target_parameters=["mlp.experts"]), ["target_parameters"]),
        (config_with(r=0), ["r = 0", "from 1"]),
        (config_with(r=8), ["q_proj.lora_A.weight", "is [4, 64]", "[8, 64]"]),
        (config_with(rank_pattern={"q_proj": 0}), ["rank_pattern has 0", "q_proj"]),
        (config_with(rank_pattern={"(q": 4}), ["rank_pattern", "(q"]),
        (config_with(alpha_pattern={"q_proj": "x"}), ["alpha_pattern"]),
        (config_with(target_modules=["k_proj"]), ["model.layers.0.self_attn.q_proj", "target_modules"]),
        (config_with(target_modules=["q_proj", "k_proj"]), ["no tensors of", "k_proj"]),
        (config_with(target_modules=".*k_proj"), ["q_proj", "target_modules does not choose"]),
        (config_with(target_modules=...), ["target_modules"]),
        (config_with(target_modules=3), ["adapter_config.json", "target_modules = 3"]),
        (config_with(rank_pattern=[3]), ["adapter_config.json", "rank_pattern"]),
        (tensors_with(lambda t: t.pop(Q + ".lora_A.weight")), [Q + ".lora_B.weight", "lora_A"]),
        (
            tensors_with(lambda t: t.update({Q + ".lora_A.weight": torch.zeros(4, 32)})),
            ["[4, 32]", "[4, 64]"],
        ),
        (
            tensors_with(lambda t: t.update({Q + ".lora_B.weight": torch.full((64, 4), torch.nan)})),
            [Q + ".lora_B.weight", "nan"],
        ),
        (
            tensors_with(
                lambda t: t.update(
                    {
                        Q.replace(".0.", ".7.") + f".lora_{p}.weight": t[Q + f".lora_{p}.weight"].clone()
                        for p in "AB"
                    }
                )
            ),
            ["layers.7.self_attn.q_proj", "does not read"],
        ),
        (tensors_with(lambda t: t.update({Q + ".lora_magnitude_vector": torch.zeros(64)})), ["DoRA"]),
        (tensors_with(lambda t: t.update({Q + ".lora_embedding_A": torch.zeros(4, 64)})), ["embedding"]),
        (
            tensors_with(lambda t: t.update({Q + ".bias": torch.zeros(64)})),
            [Q + ".bias", "no matrix of LoRA"],
        ),
        (tensors_with(lambda t: t.clear()), ["no tensors"]),
        (cut, ["adapter_model.safetensors"]),
        (lambda folder: (folder / "adapter_model.safetensors").unlink(), ["no adapter_model.safetensors"]),
        (lambda folder: (folder / "adapter_config.json").unlink(), ["no adapter_config.json"]),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, adapted, change, parts):
    shutil.copytree(adapted / "adapter", tmp_path / "adapter")
    change(tmp_path / "adapter")
    with pytest.raises(heddle.Error) as refused:
        heddle.load(adapted / "base", adapter=tmp_path / "adapter", **OPTIONS)
    message = str(refused.value)
    assert "\n" not in message
    assert all(part in message for part in parts), message


def test_files_of_gguf_take_none(adapted, tmp_path):
    gguf_files.write(tmp_path / "model.gguf", tiny("llama"), "llama")
    with pytest.raises(heddle.Unsupported, match="not into GGUF"):
        heddle.load(tmp_path / "model.gguf", adapter=adapted / "adapter", **OPTIONS)


def with_weights(folder, config, tensors):
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))


def test_codes_are_expanded_where_an_adapter_changes_them(tmp_path):
    saved(tmp_path, "llama", r=4, target_modules=["q_proj"])
    base = tiny("llama", torch.bfloat16)
    coded, floats = {}, {}
    for name, tensor in base.state_dict().items():
        coded[name] = floats[name] = tensor
        if "_proj." in name:
            scale = torch.tensor([0.0137])
            coded[name] = (tensor.float() / scale).to(torch.float8_e4m3fn)
            coded[name + "_scale_inv"] = scale
            floats[name] = (coded[name].float() * scale).to(torch.bfloat16)
    config = {**base.config.to_dict(), "dtype": "bfloat16"}
    with_weights(tmp_path / "floats", config, floats)
    with_weights(tmp_path / "coded", {**config, "quantization_config": {"quant_method": "fp8"}}, coded)
    given = {"adapter": tmp_path / "adapter", **OPTIONS}
    with heddle.load(tmp_path / "floats", **given) as model:
        wanted = model.logits(IDS)
    with pytest.warns(UserWarning, match="an adapter is merged into them"):
        model = heddle.load(tmp_path / "coded", weights="codes", **given)
    with model:
        # Matrices without an adapter stay codes, whose products are rounded at other places.
        assert numpy.abs(model.logits(IDS) - wanted).max() <= 0.02 * numpy.abs(wanted).max()
    with heddle.load(tmp_path / "coded", weights="floats", **given) as model:
        assert numpy.array_equal(model.logits(IDS), wanted)
