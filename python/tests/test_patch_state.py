"""Patched models: what was read once is not taken for what is there, and what others do stays theirs."""

import copy
import subprocess
import sys
import threading

import numpy
import pytest
import torch
import torch.nn.utils.parametrize as parametrize

import heddle
from heddle.patching import attention, classes, content, masks
from tiny import take_every_size, tiny, tokens

IDS = tokens()
HOW = {"max_new_tokens": 6, "attention_mask": torch.ones_like(IDS), "eos_token_id": None, "do_sample": False}


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pair(family="llama", **changes):
    plain, patched = tiny(family, **changes), tiny(family, **changes)
    heddle.patch(patched, generate="megakernel")
    return plain, patched


def reasons(model):
    return [row.reason for row in heddle.patched(model).of("generate") if row.reason]


def fused_step(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, fused=True)
    model(IDS, labels=IDS).loss.backward()
    optimizer.step()


def by_numpy(model):
    weight = model.lm_head.weight.detach().numpy()
    weight[:] = weight[:, ::-1].copy()


def by_dlpack(model):
    torch.from_dlpack(model.lm_head.weight.detach()).neg_()


WRITES = {
    "a fused optimizer": fused_step,
    "data": lambda model: model.lm_head.weight.data.neg_(),
    "one element": lambda model: model.model.norm.weight.data[5:6].fill_(50),
    "rows that change places": lambda model: model.lm_head.weight.data.copy_(
        model.lm_head.weight.data.flip(0)
    ),
    "other memory": lambda model: setattr(model.lm_head.weight, "data", model.lm_head.weight.data.flip(0)),
    "NumPy": by_numpy,
    "DLPack": by_dlpack,
}


def test_writes_that_raise_no_version_are_seen():
    plain, patched = pair()
    last = patched.generate(IDS, **HOW)
    for name, write in WRITES.items():
        for model in (plain, patched):
            write(model)
        expected = plain.generate(IDS, **HOW)
        assert not torch.equal(expected, last), name
        assert torch.equal(patched.generate(IDS, **HOW), expected), name
        last = expected
    assert reasons(patched) == []


def each_layer(change):
    return lambda model: [change(layer) for layer in model.model.layers]


SETTINGS = {
    "is a ReLU, where": each_layer(lambda layer: setattr(layer.mlp, "act_fn", torch.nn.ReLU())),
    "another variance_epsilon": each_layer(
        lambda layer: setattr(layer.input_layernorm, "variance_epsilon", 30.0)
    ),
    "another scaling": each_layer(lambda layer: setattr(layer.self_attn, "scaling", 0.01)),
    "another attention_scaling": lambda model: setattr(model.model.rotary_emb, "attention_scaling", 5.0),
    "inv_freq has other numbers": lambda model: model.model.rotary_emb.inv_freq.data.mul_(3),
    "has the weights bias": lambda model: setattr(
        model.lm_head, "bias", torch.nn.Parameter(torch.linspace(0, 9, 128))
    ),
    "another layer_idx": lambda model: setattr(model.model, "layers", model.model.layers[::-1]),
}


@pytest.mark.parametrize("before", [False, True])
def test_settings_that_neither_weights_nor_config_say_are_seen(before):
    for reason, change in SETTINGS.items():
        plain, patched = pair()
        if before:
            patched.generate(IDS, **HOW)
        for model in (plain, patched):
            change(model)
        assert torch.equal(patched.generate(IDS, **HOW), plain.generate(IDS, **HOW)), reason
        assert reason in "".join(reasons(patched))


def test_a_scale_in_a_buffer_is_seen():
    plain, patched = pair("gemma2")
    for model in (plain, patched):
        model.model.embed_tokens.embed_scale.data.mul_(4)
    assert torch.equal(patched.generate(IDS, **HOW), plain.generate(IDS, **HOW))
    assert "embed_scale has other numbers" in "".join(reasons(patched))


@pytest.mark.parametrize("rope", ["linear", "dynamic"])
def test_ropes_that_follow_the_length_are_no_change(rope):
    _, patched = pair(
        rope_parameters={"rope_type": rope, "factor": 2.0, "rope_theta": 1e4}, max_position_embeddings=32
    )
    patched(tokens(1, 60))
    patched.generate(IDS, **HOW)
    assert reasons(patched) == []


def test_outputs_that_were_asked_for_once_leave_the_engine_on():
    _, patched = pair()
    patched(IDS, output_hidden_states=True)
    patched.generate(IDS, **HOW)
    assert reasons(patched) == []
    torch.nn.modules.module.register_module_forward_hook(lambda *_: None).remove()
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    patched.generate(IDS, **HOW)
    handle.remove()
    assert reasons(patched) == ["torch has a hook for the modules of all models"]


@pytest.mark.parametrize("inference", [False, True])
def test_a_mask_that_is_rewritten_is_read_again(monkeypatch, inference):
    take_every_size(monkeypatch)
    plain, first, second = tiny("llama"), tiny("llama"), tiny("llama", seed=3)
    reads = []
    real = masks._read
    monkeypatch.setattr(masks, "_read", lambda *given: reads.append(1) or real(*given))
    for model in (first, second):
        heddle.patch(model, norm=False, mlp=False)
    with torch.inference_mode(inference), torch.no_grad():
        mask = torch.ones(1, 1, 12, 12, dtype=torch.bool).tril()
        for model, wanted in ((first, plain), (second, tiny("llama", seed=3)), (first, plain)):
            for row in (slice(None), slice(0, 3)):
                mask.numpy()[:] = numpy.tri(12, dtype=bool)
                mask.numpy()[0, 0, 6:, row] = row.stop is None
                mask.numpy()[0, 0, :6, 6:] = False
                reads.clear()
                expected = wanted(IDS, attention_mask=mask).logits
                assert torch.allclose(model(IDS, attention_mask=mask).logits, expected, atol=1e-4)
                assert len(reads) <= 1  # for all layers
        reads.clear()
        model(IDS, attention_mask=mask)
        assert reads == []
    assert heddle.patched(first).calls("attention") == 10


def test_digests_tell_bytes_and_places_apart():
    x = torch.arange(4099, dtype=torch.float32).bfloat16()
    for digest in (content.digest, lambda given: [content._sums(each) for each in given]):
        known = [x, x.flip(0), x[1:], x[:-1], -x, x.view(torch.int16) ^ 1]
        changed = x.clone()
        changed.view(torch.uint8)[-1] ^= 1
        swapped = x.clone()
        swapped[[7, 8]] = swapped[[8, 7]]
        made = [str(digest([each])) for each in (*known, changed, swapped, torch.empty(0))]
        assert len(set(made)) == len(made)
        assert digest([x.clone()]) == digest([x])


def in_child(code, *arguments):
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_a_saved_model_runs_in_another_process(tmp_path):
    _, patched = pair()
    with torch.no_grad():
        expected = patched(IDS).logits.sum().item()
    torch.save(patched, tmp_path / "model.pt")
    torch.save(patched.config, tmp_path / "config.pt")
    code = """
import sys, torch
model = torch.load(sys.argv[1], weights_only=False)
ids = torch.tensor(eval(sys.argv[2]))
with torch.no_grad():
    print(model(ids).logits.sum().item())
mask = torch.ones_like(ids)
model.generate(ids, attention_mask=mask, max_new_tokens=2, do_sample=False, eos_token_id=None)
import heddle
print(heddle.patched(model).calls("norm") > 0, heddle.patched(model).calls("generate"))
heddle.unpatch(model)
print(heddle.is_patched(model), model.config._attn_implementation)
"""
    logits, norm, engine, patched_still, name = in_child(
        code, str(tmp_path / "model.pt"), str(IDS.tolist())
    ).split()
    assert abs(float(logits) - expected) < 1e-2
    assert (norm, engine, patched_still, name) == ("True", "1", "False", "sdpa")


def test_models_that_share_a_config_are_patched_one_by_one(monkeypatch):
    take_every_size(monkeypatch)
    first = tiny("llama")
    second, third = type(first)(first.config).eval(), type(first)(first.config).eval()
    for model in (first, second):
        heddle.patch(model)
    heddle.unpatch(first)
    with torch.no_grad():
        expected = copy.deepcopy(third)(IDS).logits
        assert torch.equal(third(IDS).logits, expected)
        second(IDS)
    assert second.config._attn_implementation == "heddle"
    assert heddle.patched(second).calls("attention") == 2
    heddle.unpatch(second)
    assert first.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("of", ["device", "dtype"])
def test_defaults_of_torch_do_not_matter(monkeypatch, of):
    take_every_size(monkeypatch)
    plain, patched = tiny("llama"), tiny("llama")
    ids, mask = IDS, torch.ones_like(IDS)
    mask[0, :4] = 0
    packed = torch.block_diag(*torch.ones(3, 4, 4)).bool().tril()[None, None]
    with torch.no_grad():
        expected = [plain(ids, attention_mask=each).logits for each in (mask, packed)]
        try:
            torch.set_default_device("meta") if of == "device" else torch.set_default_dtype(torch.float64)
            heddle.patch(patched, generate="megakernel")
            got = [patched(ids, attention_mask=each).logits for each in (mask, packed)]
            patched.generate(ids, **HOW)
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)
    for each, wanted, seen in zip(got, expected, (mask.bool(), torch.ones(2, 12).bool()), strict=True):
        assert torch.allclose(each[seen], wanted[seen], atol=1e-4)
    calls = heddle.patched(patched)
    assert {part: calls.calls(part, heddle=False) for part in ("norm", "attention", "generate")} == {
        "norm": 0,
        "attention": 0,
        "generate": 0,
    }


def test_a_verdict_is_of_one_patch(monkeypatch):
    model = tiny("llama")
    cls = type(model.model.norm)
    with monkeypatch.context() as patch:
        patch.setattr(cls, "forward", lambda self, hidden_states: hidden_states * 0)
        assert not any(row.is_heddle for row in heddle.patch(model).of("norm"))
    assert any(row.is_heddle for row in heddle.patch(model).of("norm"))
    # A class that gets another forward later has it.
    monkeypatch.setattr(cls, "forward", lambda self, hidden_states: hidden_states * 0)
    assert model(IDS).logits.abs().max() == 0
    (row,) = heddle.patched(model).of("norm")
    assert row.reason.endswith("has replaced its forward since")


def test_threads_generate_while_weights_change():
    plain, patched = pair()
    expected, failed = plain.generate(IDS, **HOW), []

    def run():
        for _ in range(3):
            try:
                patched.generate(IDS, **HOW)
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in (2.0, 3.0, 1.0):
        patched.model.norm.weight.data.copy_(plain.model.norm.weight * value)
        patched.generate(IDS, **HOW)
    for thread in threads:
        thread.join()
    assert failed == []
    assert torch.equal(patched.generate(IDS, **HOW), expected)


class Double(torch.nn.Module):
    def forward(self, weight):
        return 2 * weight


def parametrized(model):
    parametrize.register_parametrization(model.model.norm, "weight", Double())


def class_above(model):
    class Loud(type(model.model.norm)):
        def forward(self, hidden_states, factor=3):
            return super().forward(hidden_states) * factor

    model.model.norm.__class__ = Loud


def kept_forward(model):
    norm = model.model.norm
    own = norm.forward
    norm.forward = lambda hidden_states: own(hidden_states) * 2


def weight_normed(model):
    torch.nn.utils.parametrizations.weight_norm(model.lm_head)
    torch.nn.utils.parametrizations.weight_norm(model.model.layers[0].mlp.down_proj)


@pytest.mark.parametrize("change", [parametrized, class_above, kept_forward, weight_normed])
@pytest.mark.parametrize("then", [heddle.unpatch, heddle.patch])
def test_what_others_did_since_stays(change, then):
    plain, patched = pair()
    for model in (plain, patched):
        change(model)
    expected = plain(IDS).logits
    assert torch.allclose(patched(IDS).logits, expected, atol=1e-4)
    assert torch.equal(patched.generate(IDS, **HOW), plain.generate(IDS, **HOW))
    then(patched)
    assert torch.allclose(patched(IDS).logits, expected, atol=1e-4)
    assert torch.allclose(copy.deepcopy(patched)(IDS).logits, expected, atol=1e-4)
    heddle.unpatch(patched)
    for own, made in zip(plain.modules(), patched.modules(), strict=True):
        assert [cls.__name__ for cls in type(own).__mro__] == [cls.__name__ for cls in type(made).__mro__]
        assert own.__dict__.keys() == made.__dict__.keys()
    assert classes.original_of(patched.model.norm) is None


def test_a_parametrization_is_removed_from_a_patched_model():
    plain, patched = pair()
    for model in (plain, patched):
        parametrized(model)
        parametrize.remove_parametrizations(model.model.norm, "weight")
    assert classes.original_of(patched.model.norm) is type(plain.model.norm)
    assert torch.equal(patched.generate(IDS, **HOW), plain.generate(IDS, **HOW))


def test_continuous_batching_gets_a_function_that_it_knows(monkeypatch):
    take_every_size(monkeypatch)
    model = tiny("llama")
    if not hasattr(model, attention.Batching.METHOD):
        pytest.skip("this transformers has no continuous batching")
    seen = []
    monkeypatch.setattr(
        type(model),
        attention.Batching.METHOD,
        lambda self, **_: seen.append(self.config._attn_implementation),
    )
    heddle.patch(model)
    model.init_continuous_batching(generation_config=None)
    with torch.no_grad():
        model(IDS)
    assert seen == ["sdpa"]
    assert heddle.patched(model).calls("attention") == 2
    heddle.unpatch(model)
    assert attention.Batching.METHOD not in model.__dict__
