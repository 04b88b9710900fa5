"""Losses of patched models whose logits nobody reads: they are never all in memory."""

import pytest
import torch

import heddle
from heddle.patching import logits as deferred
from tiny import take_every_size, tiny, tokens


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    take_every_size(monkeypatch)


def pair(family, **changes):
    """A model, and its patched copy."""
    models = tiny(family, **changes), tiny(family, **changes)
    heddle.patch(models[1], norm=False, mlp=False, attention=False)
    return models


def step(model, ids, **keywords):
    """The loss, and the gradients by name."""
    model.zero_grad()
    loss = model(ids, **keywords).loss
    loss.backward()
    return loss.detach(), {name: each.grad for name, each in model.named_parameters()}


def agree(plain, patched, ids, bound=2e-5, **keywords):
    (loss, expected), (got_loss, got) = step(plain, ids, **keywords), step(patched, ids, **keywords)
    assert torch.allclose(got_loss, loss, rtol=bound, equal_nan=True)
    for name, each in expected.items():
        assert torch.allclose(got[name], each, atol=bound * float(each.abs().max())), name


def ignored(ids):
    labels = ids.clone()
    labels[0, :5] = -100
    return labels


def calls(model):
    return {row.path: row.calls for row in heddle.patched(model).of("cross_entropy") if row.calls}


def made_logits(monkeypatch):
    """A list that gets the shapes of logits that are made."""
    shapes, make = [], deferred.Deferred.make

    def watched(self):
        shapes.append(self.shape)
        return make(self)

    monkeypatch.setattr(deferred.Deferred, "make", watched)
    return shapes


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2", "gemma2", "gemma3_text"])
@pytest.mark.parametrize("ways", [{}, {"num_items_in_batch": 7}, {"num_items_in_batch": torch.tensor(7)}])
def test_the_loss_needs_no_logits(family, ways, monkeypatch):
    plain, patched = pair(family)
    shapes = made_logits(monkeypatch)
    agree(plain, patched, ids := tokens(), labels=ignored(ids), **ways)
    assert not shapes
    assert calls(patched) == {"heddle linear_cross_entropy": 1}


def test_factors_of_the_logits_are_a_part_of_the_loss(monkeypatch):
    import transformers

    shapes = made_logits(monkeypatch)
    for scale in (0.0625, 0.3):  # a power of two is exact in the head's input
        config = transformers.CohereConfig(
            vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4,
            num_key_value_heads=2, logit_scale=scale, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        )  # fmt: skip
        torch.manual_seed(0)
        plain = transformers.CohereForCausalLM(config).eval()
        patched = transformers.CohereForCausalLM(config).eval()
        patched.load_state_dict(plain.state_dict())
        heddle.patch(patched, norm=False, mlp=False, attention=False)
        agree(plain, patched, ids := tokens(), labels=ids)
        assert bool(shapes) == (scale == 0.3)


def test_logits_that_somebody_reads_are_those_of_torch():
    plain, patched = pair("gemma2")
    ids = tokens()
    expected, got = plain(ids, labels=ids), patched(ids, labels=ids)
    assert isinstance(got.logits, deferred.Deferred)
    assert got.logits.shape == expected.logits.shape
    assert got.logits.dtype == torch.float32
    assert not got.logits.is_made
    with torch.no_grad():
        assert torch.equal(got.logits.argmax(-1), expected.logits.argmax(-1))
    assert torch.allclose(got.logits, expected.logits, atol=2e-5)
    # A loss of somebody else has its gradient.
    for model in (plain, patched):
        model.zero_grad()
        (model(ids).logits.square().mean() + model(ids, labels=ids).loss).backward()
    for mine, theirs in zip(patched.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(mine.grad, theirs.grad, atol=2e-5 * float(theirs.grad.abs().max()))


def test_logits_are_made_at_once_without_a_gradient():
    _, patched = pair("llama")
    with torch.no_grad():
        out = patched(tokens(), labels=tokens())
    assert type(out.logits) is torch.Tensor
    assert calls(patched) == {"heddle cross_entropy": 1}


def test_logits_after_a_step_of_the_optimizer_are_refused():
    _, patched = pair("llama")
    out = patched(tokens(), labels=tokens())
    out.loss.backward()
    torch.optim.SGD(patched.parameters(), lr=0.1).step()
    with pytest.raises(heddle.InvalidArgument, match="read them before optimizer"):
        out.logits.sum()


def test_changes_in_place_are_those_of_the_logits():
    plain, patched = pair("llama")
    found = []
    for model in (plain, patched):
        made = model(tokens()).logits
        made[..., 3] = 0
        made /= 2
        found.append(made + 0)
    assert torch.allclose(found[1], found[0], atol=2e-5)


def test_kept_rows_and_shifted_labels():
    plain, patched = pair("llama")
    ids = tokens()
    for keywords in (
        {"logits_to_keep": 4, "labels": ids[:, -4:]},
        {"labels": ids, "shift_labels": ids.roll(1)},
    ):
        agree(plain, patched, ids, **keywords)
    assert calls(patched) == {"heddle linear_cross_entropy": 2}


def test_in_autocast_the_logits_are_of_its_dtype():
    plain, patched = pair("llama")
    ids = tokens()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected, got = plain(ids, labels=ids), patched(ids, labels=ids)
    assert got.logits.dtype == expected.logits.dtype == torch.bfloat16
    assert torch.allclose(got.loss, expected.loss, rtol=2e-2)
    assert torch.allclose(got.logits.float(), expected.logits.float(), atol=0.1)


@pytest.mark.parametrize("what", ["bias", "class", "hook"])
def test_a_head_that_is_no_plain_linear_makes_its_logits(what):
    model = tiny("llama")
    if what == "bias":
        model.lm_head.bias = torch.nn.Parameter(torch.randn(128))
    elif what == "class":

        class Other(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x) * 2

        model.lm_head.__class__ = Other
    expected = model(ids := tokens(), labels=tokens()).loss
    heddle.patch(model)
    if what == "hook":
        model.lm_head.register_forward_hook(lambda *_: None)
    assert torch.allclose(model(ids, labels=tokens()).loss, expected, atol=1e-5)
    assert "heddle cross_entropy" in calls(model)
    if what != "hook":
        assert "with the logits in memory: the head" in " ".join(repr(heddle.patched(model)).split())


def test_unpatching_gives_the_head_back():
    model = tiny("llama")
    heddle.patch(model)
    assert type(model.lm_head) is not torch.nn.Linear
    heddle.unpatch(model)
    assert type(model.lm_head) is torch.nn.Linear
    assert type(model(tokens()).logits) is torch.Tensor
