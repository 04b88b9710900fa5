"""Faults that others' patches of transformers' models had, as reported by their users: one test for each.

A patched model is compared with one that was never patched.
"""

import contextlib
import copy
import io
import pickle

import pytest
import torch

import heddle
from heddle.patching import classes
from tiny import FAMILIES, WITH_NORM, gradients, take_every_size, tiny, tokens

each_family = pytest.mark.parametrize("family", FAMILIES)
each_norm = pytest.mark.parametrize("family", WITH_NORM)
some_families = pytest.mark.parametrize("family", ["llama", "gpt2", "gemma3_text"])


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    take_every_size(monkeypatch)


def pair(family, dtype=torch.float32, **changes):
    """Two models with the same weights, the second one patched."""
    plain, patched = tiny(family, dtype, **changes), tiny(family, dtype, **changes)
    report = heddle.patch(patched)
    assert any(row.is_heddle and row.modules for row in report)
    return plain, patched


def norm_of(model):
    return next(m for m in model.modules() if classes.original_of(m) and hasattr(m, "weight"))


def assert_close(got, expected, bound=3e-5):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert torch.allclose(got, expected, atol=bound, rtol=bound), (got - expected).abs().max()


def assert_same_gradients(plain, patched, run):
    """`run(model)` gives a loss; it and the gradients of all parameters agree."""
    found = []
    for model in (plain, patched):
        model.zero_grad(set_to_none=True)
        torch.manual_seed(5)
        loss = run(model)
        loss.backward()
        found.append((loss.detach(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    (expected, wanted), (got, made) = found
    assert_close(got, expected)
    assert made.keys() == wanted.keys()
    assert made
    for name, gradient in wanted.items():
        assert torch.allclose(made[name], gradient, atol=2e-5, rtol=1e-3), name


def lora(model, **options):
    import peft

    names = ["c_attn"] if model.config.model_type == "gpt2" else ["q_proj", "v_proj", "down_proj"]
    options = {
        "target_modules": names,
        "r": 4,
        "task_type": "CAUSAL_LM",
        "init_lora_weights": False,
        **options,
    }
    torch.manual_seed(3)
    made = peft.get_peft_model(model, peft.LoraConfig(**options))
    return made


def took_heddle(model):
    report = heddle.patched(model)
    return report.calls("norm") + report.calls("mlp") > 0


@each_family
@pytest.mark.parametrize("cache", [None, "static"])
def test_01_left_padding_does_not_change_texts(family, cache):
    plain, patched = pair(family)
    prompts = [tokens(1, 9, seed=4)[0], tokens(1, 4, seed=5)[0]]
    padded = torch.zeros(2, 9, dtype=torch.long)
    for row, prompt in zip(padded, prompts, strict=True):
        row[9 - len(prompt) :] = prompt
    settings = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": None}
    if cache:
        settings["cache_implementation"] = cache
    together = patched.generate(padded, attention_mask=(padded != 0).long(), **settings)
    assert torch.equal(together, plain.generate(padded, attention_mask=(padded != 0).long(), **settings))
    for row, prompt in zip(together, prompts, strict=True):
        alone = patched.generate(prompt[None], attention_mask=torch.ones(1, len(prompt)), **settings)[0]
        assert torch.equal(row[9:], alone[len(prompt) :])
    assert took_heddle(patched)


@each_family
def test_02_a_later_token_does_not_change_earlier_logits(family):
    _, patched = pair(family)
    ids = tokens(1, 10)
    changed = ids.clone()
    changed[0, 6] = (changed[0, 6] + 1) % 100 + 3
    with torch.no_grad():
        first, second = patched(ids).logits, patched(changed).logits
    assert torch.equal(first[:, :6], second[:, :6])
    assert not torch.equal(first[:, 6:], second[:, 6:])


@each_family
def test_03_an_attention_has_the_mask_that_goes_with_it(family):
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    plain, patched = pair(family)
    name, own = patched.config._attn_implementation, plain.config._attn_implementation
    assert name == ("heddle" if own == "sdpa" else own)
    assert name == "eager" or name in list(ALL_ATTENTION_FUNCTIONS)
    assert name in list(ALL_MASK_ATTENTION_FUNCTIONS)
    # Also where the cache is static, so that there are more keys than positions.
    ids, settings = tokens(1, 6), {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None}
    expected = plain.generate(ids, **settings)
    for cache in ("dynamic", "static"):
        assert torch.equal(patched.generate(ids, cache_implementation=cache, **settings), expected)
    assert "heddle" not in patched.config.to_json_string()


@pytest.mark.parametrize("window", [4, 0, None])
@pytest.mark.parametrize("training", [False, True])
def test_04_a_sliding_window_is_kept(window, training):
    plain, patched = (model.train(training) for model in pair("mistral", sliding_window=window))
    ids = tokens(2, 14)
    # A cache of no places is no cache in transformers either.
    expected = plain(ids, use_cache=window != 0).logits
    assert_close(patched(ids, use_cache=window != 0).logits, expected)
    full = tiny("mistral").train(training)(ids).logits
    if window == 4:
        assert not torch.allclose(full, expected, atol=1e-3)


@each_family
def test_05_packed_sequences_do_not_see_each_other(family):
    _, patched = pair(family)
    parts = [tokens(1, 5, seed=2), tokens(1, 7, seed=3)]
    positions = torch.cat([torch.arange(5), torch.arange(7)])[None]
    with torch.no_grad():
        packed = patched(torch.cat(parts, 1), position_ids=positions, use_cache=False).logits
        alone = torch.cat([patched(part).logits for part in parts], 1)
    assert_close(packed, alone)


@each_norm
def test_06_a_gradient_that_is_shared_is_not_spoilt(family):
    _, patched = pair(family)
    norm = norm_of(patched)
    x = torch.randn(3, norm.weight.shape[0], requires_grad=True)
    given = torch.randn_like(x)
    kept = given.clone()
    y = norm(x)
    first = torch.autograd.grad(y, x, given, retain_graph=True)[0]
    second = torch.autograd.grad(y, x, given, retain_graph=True)[0]
    assert torch.equal(given, kept)
    assert torch.equal(first, second)
    twice = torch.autograd.grad(y + y, x, given)[0]
    assert_close(twice, 2 * first)
    own = torch.autograd.grad(classes.original_of(norm).forward(norm, x), x, given)[0]
    assert_close(first, own)


@each_family
def test_07_a_patched_model_is_printed_copied_pickled_and_saved(family, tmp_path):
    import transformers

    plain, patched = pair(family)
    ids = tokens()
    expected = patched(ids).logits
    assert repr(patched) == repr(plain)
    assert patched.state_dict().keys() == plain.state_dict().keys()
    assert torch.equal(copy.deepcopy(patched)(ids).logits, expected)
    file = io.BytesIO()
    torch.save(patched, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(patched)), torch.load(file, weights_only=False)):
        assert heddle.is_patched(other)
        assert torch.equal(other(ids).logits, expected)
        before = heddle.patched(patched)
        other(ids)
        assert heddle.patched(patched) == before  # a copy counts for itself
        heddle.unpatch(other)
        assert torch.equal(other(ids).logits, plain(ids).logits)
    patched.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(loaded) is type(plain)
    assert not heddle.is_patched(loaded)
    assert torch.equal(loaded(ids).logits, plain(ids).logits)
    assert loaded.config.architectures == [type(plain).__name__]


@pytest.mark.parametrize("family", ["gemma2", "gemma3_text"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_08_gemmas_norm_is_one_plus_weight_with_its_casts(family, dtype):
    _, patched = pair(family, dtype)
    norm = norm_of(patched)
    x = torch.randn(64, norm.weight.shape[0]).to(dtype)
    with torch.no_grad():
        got, own = norm(x), classes.original_of(norm).forward(norm, x)
        assert got.dtype == own.dtype == dtype
        # One rounding of the same number in f32: others are next to it where that number is on the edge.
        assert_close(got, own, 1e-6 if dtype == torch.float32 else 8e-3)
        if dtype == torch.bfloat16:
            assert (got == own).float().mean() > 0.999
        norm.weight.fill_(-1)
        assert norm(x).abs().max() == 0
        norm.weight.zero_()
        assert norm(x).abs().max() > 0


def output_dtypes(model, run):
    seen = []
    hooks = [
        module.register_forward_hook(
            lambda module, _, out, name=name: (
                seen.append((name, out.dtype)) if isinstance(out, torch.Tensor) else None
            )
        )
        for name, module in model.named_modules()
    ]
    run()
    for hook in hooks:
        hook.remove()
    return seen


@each_family
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_09_every_module_returns_the_dtype_that_it_returned(family, dtype):
    plain, patched = pair(family, dtype)
    ids = tokens(4, 16)
    contexts = [contextlib.nullcontext(), torch.autocast("cpu", torch.bfloat16)]
    if dtype == torch.float32:  # torch has no layer_norm of f16 with weights in bf16
        contexts.append(torch.autocast("cpu", torch.float16))
    for context in contexts:
        with torch.no_grad(), context:
            expected, got = (output_dtypes(model, lambda m=model: m(ids)) for model in (plain, patched))
        assert got == expected
    # On a GPU autocast takes a power in f32, so that GPT-2's activation returns f32.
    reasons = [row.reason for row in heddle.patched(patched).of("mlp")]
    assert any("autocast" in reason for reason in reasons) == (family in ("gpt2", "gemma2", "gemma3_text"))


@each_norm
def test_09_norms_with_f32_weights_and_bf16_activations(family):
    _, patched = pair(family)
    norm = norm_of(patched)
    x = torch.randn(5, norm.weight.shape[0]).bfloat16()
    own = classes.original_of(norm).forward(norm, x)
    assert norm(x).dtype == own.dtype
    assert_close(norm(x), own, 1e-6 if own.dtype == torch.float32 else 8e-3)


@some_families
def test_09_scaled_gradients(family):
    plain, patched = pair(family)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)

    def run(model):
        with torch.autocast("cpu", torch.float16):
            return scaler.scale(model(tokens(), labels=tokens()).loss)

    losses = []
    for model in (plain, patched):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run(model).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(run(model).detach())
    assert abs(losses[0] - losses[1]) < 2e-2 * losses[0]


@each_family
def test_10_a_disabled_adapter_is_the_base_model(family):
    plain, patched = (lora(model) for model in pair(family))
    ids = tokens()
    assert took_heddle(patched) or heddle.is_patched(patched)
    base = tiny(family)
    heddle.patch(base)
    with torch.no_grad():
        assert_close(patched(ids).logits, plain(ids).logits)
        with patched.disable_adapter():
            assert torch.equal(patched(ids).logits, base(ids).logits)
        assert not torch.equal(patched(ids).logits, base(ids).logits)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3_text"])
def test_11_an_adapter_of_the_head_gets_its_gradient(family):
    plain, patched = (lora(model, target_modules=["q_proj", "lm_head"]) for model in pair(family))
    assert_same_gradients(plain, patched, lambda model: model(tokens(), labels=tokens()).loss)
    names = [n for n, p in patched.named_parameters() if "lm_head" in n and p.grad is not None]
    assert names


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma2"])
def test_12_modules_that_are_saved_whole_are_trained(family):
    saved = ["norm", "lm_head", "embed_tokens"]
    plain, patched = (lora(model, modules_to_save=saved) for model in pair(family, tie_word_embeddings=False))
    before = heddle.patched(patched).calls("norm")
    assert_same_gradients(plain, patched, lambda model: model(tokens(), labels=tokens()).loss)
    assert heddle.patched(patched).calls("norm") > before
    trained = [n for n, p in patched.named_parameters() if p.grad is not None and "modules_to_save" in n]
    assert all(any(f"{name}.modules_to_save" in each for each in trained) for name in saved)
    # A model that is patched when it has its adapters is the same.
    late = lora(tiny(family, tie_word_embeddings=False), modules_to_save=saved)
    heddle.patch(late)
    assert torch.equal(late(tokens()).logits, patched(tokens()).logits)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("tuning", ["PrefixTuningConfig", "PromptTuningConfig"])
def test_13_tuned_prompts_are_not_bypassed(family, tuning):
    import peft

    made = []
    for model in pair(family):
        torch.manual_seed(3)
        config = getattr(peft, tuning)(task_type="CAUSAL_LM", num_virtual_tokens=3)
        made.append(peft.get_peft_model(model, config))
    assert_same_gradients(*made, lambda model: model(tokens(), labels=tokens()).loss)
    assert took_heddle(made[1])


@each_family
def test_14_accumulated_gradients_are_those_of_one_batch(family):
    plain, patched = pair(family)
    ids, labels = tokens(8, 10), tokens(8, 10)
    labels[::2, 5:] = -100
    count = (labels[:, 1:] != -100).sum()

    def whole(model):
        return model(ids, labels=labels, num_items_in_batch=count).loss

    def parts(model):
        return sum(
            model(ids[i : i + 2], labels=labels[i : i + 2], num_items_in_batch=count).loss
            for i in range(0, 8, 2)
        )

    assert_same_gradients(plain, patched, whole)
    expected = [p.grad.clone() for p in patched.parameters()]
    patched.zero_grad(set_to_none=True)
    parts(patched).backward()
    for got, gradient in zip((p.grad for p in patched.parameters()), expected, strict=True):
        assert torch.allclose(got, gradient, atol=2e-5, rtol=1e-3)


@each_family
def test_15_ignored_labels_one_row_and_smoothing(family):
    from transformers.trainer_pt_utils import LabelSmoother

    plain, patched = pair(family)
    ids = tokens()
    some = ids.clone()
    some[:, ::2] = -100
    for labels in (ids, some, torch.full_like(ids, -100)):
        expected, got = plain(ids, labels=labels).loss, patched(ids, labels=labels).loss
        assert torch.allclose(got, expected, atol=1e-5, equal_nan=True)
    assert_close(patched(ids[:1, :2], labels=ids[:1, :2]).loss, plain(ids[:1, :2], labels=ids[:1, :2]).loss)
    smoother = LabelSmoother(0.1)
    losses = [smoother(model(ids), some, shift_labels=True) for model in (plain, patched)]
    assert_close(losses[1], losses[0])


def test_15_logits_have_their_soft_cap():
    plain, patched = pair("gemma2", final_logit_softcapping=2.0)
    assert_close(patched(tokens()).logits, plain(tokens()).logits)
    assert patched(tokens()).logits.abs().max() <= 2.0


@each_family
def test_16_logits_are_there_with_and_without_labels(family):
    _, patched = pair(family)
    ids = tokens()
    for training in (False, True):
        patched.train(training)
        for labels in ({}, {"labels": ids}):
            output = patched(ids, **labels)
            assert output.logits.shape == (2, 12, 128)
            assert (output.loss is None) == (not labels)


@pytest.mark.parametrize(
    ("first", "family"),
    [("patch", "llama"), ("patch", "gpt2"), ("patch", "gemma3_text"), ("compile", "gemma3_text")],
)
def test_17_a_compiled_model_computes_the_same(first, family):
    plain, patched = tiny(family), tiny(family)
    ids = tokens()
    if first == "patch":
        heddle.patch(patched)
    torch._dynamo.reset()
    compiled = torch.compile(patched, fullgraph=True, backend="aot_eager")
    if first == "compile":
        assert_close(compiled(ids).logits, plain(ids).logits)
        heddle.patch(patched)
    expected = torch.autograd.grad(plain(ids).logits.square().mean(), list(plain.parameters()))
    got = torch.autograd.grad(compiled(ids).logits.square().mean(), list(patched.parameters()))
    for a, b in zip(got, expected, strict=True):
        assert torch.allclose(a, b, atol=1e-4, rtol=1e-3)
    assert_close(compiled(ids).logits, plain(ids).logits)


@each_family
@pytest.mark.parametrize("first", ["patch", "hook"])
def test_18_offloaded_weights(family, first):
    from accelerate import cpu_offload
    from accelerate.hooks import remove_hook_from_module

    plain, patched = tiny(family), tiny(family)
    ids = tokens(4, 16)
    expected = plain(ids).logits
    if first == "patch":
        heddle.patch(patched)
    cpu_offload(patched, execution_device="cpu")
    if first == "hook":
        heddle.patch(patched)
    with torch.no_grad():
        assert_close(patched(ids).logits, expected)
    assert took_heddle(patched)
    heddle.unpatch(patched)
    with torch.no_grad():
        assert torch.equal(patched(ids).logits, expected)
    remove_hook_from_module(patched, recurse=True)
    heddle.patch(patched)
    assert not any("replaced" in row.reason for row in heddle.patched(patched))


def test_18_layers_on_a_second_gpu():
    if torch.cuda.device_count() < 2:
        pytest.skip("there are no two GPUs")
    plain, patched = pair("llama")
    expected = plain(tokens()).logits
    patched.to("cuda:1")
    assert_close(patched(tokens().to("cuda:1")).logits.cpu(), expected, 1e-3)


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text"])
def test_19_one_head_for_keys_and_values(family):
    plain, patched = pair(family, num_key_value_heads=1)
    ids = tokens()
    assert_close(patched(ids).logits, plain(ids).logits)
    assert not torch.allclose(patched(ids).logits[:, 1:], patched(ids.flip(1)).logits[:, 1:], atol=1e-2)


@each_family
def test_20_other_models_are_left_alone(family):
    first, second = tiny(family), tiny(family)
    forwards = {type(module): type(module).forward for module in second.modules()}
    expected = second(tokens()).logits
    heddle.patch(first)
    assert all(cls.forward is forward for cls, forward in forwards.items())
    assert torch.equal(second(tokens()).logits, expected)
    heddle.patch(second)
    heddle.unpatch(first)
    assert heddle.is_patched(second)
    assert torch.equal(first(tokens()).logits, expected)
    assert torch.equal(tiny(family)(tokens()).logits, expected)


@each_family
def test_21_what_was_patched_is_counted(family):
    plain, patched = (lora(model, lora_dropout=0.05, bias="all").train() for model in pair(family))
    report = heddle.patched(patched)
    names = [name.split(".")[-1] for name, _ in plain.named_modules()]
    norms = sum("norm" in name or name.startswith("ln_") for name in names)
    assert sum(row.modules for row in report.of("norm") if row.is_heddle) == norms
    assert sum(row.modules for row in report.of("mlp")) == 2
    assert_same_gradients(plain, patched, lambda model: model(tokens(), labels=tokens()).loss)
    assert heddle.patched(patched).calls("norm") == norms
    heddle.unpatch(patched)
    heddle.patch(patched)
    again = heddle.patched(patched)
    assert sum(row.modules for row in again.of("norm") if row.is_heddle) == norms


@some_families
def test_22_nothing_outside_the_model_changes(family):
    import sys

    model = tiny(family)
    module = sys.modules[type(model).__module__]
    before, config = dict(vars(module)), model.config.to_dict()
    generation = model.generation_config.to_dict()
    heddle.patch(model)
    model.generate(tokens(1, 4), max_new_tokens=2, do_sample=False)
    assert dict(vars(module)) == before
    assert model.config.to_dict() == config
    assert model.generation_config.to_dict() == generation
    assert not any(hasattr(value, "_heddle_original") for value in vars(module).values())


@each_family
@pytest.mark.parametrize("reentrant", [False, True])
def test_23_checkpoints_recompute_the_same_dropout(family, reentrant):
    made = []
    for model in pair(family):
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model.enable_input_require_grads()
        made.append(lora(model, lora_dropout=0.3).train())
    assert_same_gradients(*made, lambda model: model(tokens(), labels=tokens()).loss)
    # A checkpoint recomputes what it computed: without one the gradients are the same.
    with_checkpoints = {n: p.grad.clone() for n, p in made[1].named_parameters() if p.grad is not None}
    made[1].get_base_model().gradient_checkpointing_disable()
    made[1].zero_grad(set_to_none=True)
    torch.manual_seed(5)
    made[1](tokens(), labels=tokens()).loss.backward()
    for name, gradient in with_checkpoints.items():
        assert_close(made[1].get_parameter(name).grad, gradient, 1e-5)


@each_norm
def test_24_a_residual_keeps_its_gradient(family):
    _, patched = pair(family)
    norm = norm_of(patched)
    x, residual = (torch.randn(4, norm.weight.shape[0], requires_grad=True) for _ in range(2))
    found = []
    for forward in (norm, lambda h: classes.original_of(norm).forward(norm, h)):
        h = x + residual
        found.append(torch.autograd.grad((h + forward(h)).square().sum(), (x, residual, norm.weight)))
    for got, expected in zip(*found, strict=True):
        assert_close(got, expected, 1e-4)


@each_family
@pytest.mark.parametrize("enabled", [False, True])
def test_25_checkpointing_is_on_where_it_was(family, enabled):
    model = tiny(family)
    if enabled:
        model.gradient_checkpointing_enable()
    flags = [getattr(m, "gradient_checkpointing", None) for m in model.modules()]
    cache = model.config.use_cache
    for change in (heddle.patch, heddle.unpatch):
        change(model)
        assert [getattr(m, "gradient_checkpointing", None) for m in model.modules()] == flags
        assert model.config.use_cache == cache
        assert model.is_gradient_checkpointing == enabled
    assert gradients(model.train(), tokens())[0] > 0
