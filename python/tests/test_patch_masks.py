"""Masks of patched attention: which arguments of flash_attention stand for them, and the numbers then."""

import contextlib
import copy

import pytest
import torch
from transformers import StaticCache

import heddle
from heddle.patching import masks
from tiny import gradients, take_every_size, tiny, tokens

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gpt2")
each_family = pytest.mark.parametrize("family", FAMILIES)
LENGTH = 12
WINDOW = {"sliding_window": 4}
WINDOWS = {
    "mistral": WINDOW,
    "qwen2": {**WINDOW, "use_sliding_window": True, "max_window_layers": 0},
    "qwen3": {**WINDOW, "use_sliding_window": True, "max_window_layers": 0},
    "gemma3_text": WINDOW,
}


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    take_every_size(monkeypatch)


@pytest.fixture
def forms(monkeypatch):
    """Returns what stood for the masks that were asked for."""
    seen = []

    def plan_of(*arguments):
        plan = real(*arguments)
        seen.append(plan.form)
        return plan

    real = masks.plan_of
    monkeypatch.setattr(masks, "plan_of", plan_of)
    return seen


def causal(queries, keys, first=0):
    """[1, 1, queries, keys]: query i is at key first + i."""
    return (torch.arange(queries)[:, None] + first >= torch.arange(keys))[None, None]


def padded(side):
    """Arguments of a batch whose first row is padded by five tokens on one side."""
    mask = torch.ones(2, LENGTH, dtype=torch.long)
    mask[0, :5] = 0
    if side == "right":
        mask = mask.flip(1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return {"input_ids": tokens(2, LENGTH), "attention_mask": mask, "position_ids": positions}


def packed():
    """Arguments of three sequences in one row."""
    positions = torch.cat([torch.arange(n) for n in (5, 1, 6)])[None]
    return {"input_ids": tokens(1, LENGTH), "position_ids": positions, "use_cache": False}


def one_of_ones_own():
    """Later tokens see each other: no query's keys are a range."""
    mask = causal(LENGTH, LENGTH).clone()
    mask[..., 8:, 2:5] = False
    mask[..., 6:, 6:] = True
    return {"input_ids": tokens(2, LENGTH), "attention_mask": mask.expand(2, 1, -1, -1)}


CASES = {
    "left padding": (lambda: padded("left"), "sequences"),
    "right padding": (lambda: padded("right"), "bias"),
    "packed sequences": (packed, "sequences"),
    "a mask of one's own": (one_of_ones_own, "bias"),
}
each_case = pytest.mark.parametrize(("arguments", "form"), CASES.values(), ids=CASES)


def labels_of(arguments):
    """No label where the batch is padded."""
    seen = arguments.get("attention_mask")
    ids = arguments["input_ids"]
    return ids if seen is None or seen.dim() != 2 else ids.masked_fill(seen == 0, -100)


def run(model, arguments):
    """The loss, the logits of tokens that are no padding, and all gradients."""
    model.zero_grad(set_to_none=True)
    labels = labels_of(arguments)
    output = model(**arguments, labels=labels)
    output.loss.backward()
    found = {name: p.grad.float().clone() for name, p in model.named_parameters()}
    return output.loss.detach(), output.logits.detach()[labels != -100], found


def counted(model):
    report = heddle.patched(model)
    return report.calls("attention"), report.calls("attention", heddle=False)


@each_family
@each_case
def test_a_masked_model_computes_the_same(family, arguments, form, forms):
    model, arguments = tiny(family), arguments()
    loss, logits, expected = run(model, arguments)
    heddle.patch(model)
    got_loss, got_logits, got = run(model, arguments)
    assert counted(model) == (2, 0)
    assert set(forms) == {form}
    assert abs(got_loss - loss) < 1e-5
    assert (got_logits - logits).abs().max() < 5e-5
    for name, gradient in expected.items():
        assert torch.allclose(got[name], gradient, atol=2e-6, rtol=2e-4), name


@each_family
@each_case
def test_gradients_under_a_mask_are_within_twice_the_noise_of_bf16(family, arguments, form):
    rounded, arguments = tiny(family, torch.bfloat16).train(), arguments()
    _, _, reference = run(copy.deepcopy(rounded).float(), arguments)
    _, _, eager = run(rounded, arguments)
    heddle.patch(rounded)
    _, _, patched = run(rounded, arguments)
    assert counted(rounded) == (2, 0)
    for name, gradient in reference.items():
        noise = (eager[name] - gradient).norm()
        assert (patched[name] - gradient).norm() <= 2 * noise + 1e-6, name


@each_family
@pytest.mark.parametrize("side", ["left", "right", "neither"])
def test_gradients_under_a_mask_are_as_near_on_a_gpu(family, side):
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("torch sees no GPU of capability 9.0")
    length = 160
    seen = torch.ones(2, length, dtype=torch.long, device="cuda")
    seen[0, :37] = 0
    seen = seen.flip(1) if side == "right" else seen
    arguments = {"input_ids": tokens(2, length).cuda() % 100 + 3}
    if side == "neither":
        window = causal(length, length) & ~causal(length, length, -50)
        arguments["attention_mask"] = window.expand(2, 1, -1, -1).cuda()
    else:
        arguments |= {"attention_mask": seen, "position_ids": (seen.cumsum(1) - 1).clamp(min=0)}
    sizes = {"n_positions": 256} if family == "gpt2" else {"max_position_embeddings": 256}
    rounded = tiny(family, torch.bfloat16, **sizes).cuda().train()
    _, _, reference = run(copy.deepcopy(rounded).float(), arguments)
    _, _, eager = run(rounded, arguments)
    heddle.patch(rounded)
    _, _, patched = run(rounded, arguments)
    assert counted(rounded) == (2, 0)
    for name, gradient in reference.items():
        noise = (eager[name] - gradient).norm()
        assert (patched[name] - gradient).norm() <= 2 * noise + 1e-6, name


@pytest.mark.parametrize("family", WINDOWS)
@pytest.mark.parametrize("padding", [False, True])
def test_a_window_is_a_window(family, padding, forms):
    model = tiny(family, **WINDOWS[family])
    arguments = padded("left") if padding else {"input_ids": tokens(2, LENGTH)}
    loss, logits, expected = run(model, arguments)
    heddle.patch(model)
    got_loss, got_logits, got = run(model, arguments)
    assert counted(model) == (2, 0)
    assert set(forms) == {"sequences" if padding else "window"}
    assert abs(got_loss - loss) < 1e-5
    assert (got_logits - logits).abs().max() < 5e-5
    for name, gradient in expected.items():
        assert torch.allclose(got[name], gradient, atol=2e-6, rtol=2e-4), name


@each_family
@pytest.mark.parametrize("padding", [False, True])
def test_a_static_cache_is_read_up_to_its_last_token(family, padding, forms):
    model = tiny(family)
    arguments = padded("left") if padding else {"input_ids": tokens(2, LENGTH)}
    seen, ids = arguments.get("attention_mask"), arguments["input_ids"]

    def steps():
        """Logits of a prompt, of several tokens after it, and of one."""
        cache, found = StaticCache(config=model.config, max_cache_len=20), []
        for begin, end in ((0, 7), (7, 11), (11, 12)):
            more = {} if seen is None else {"attention_mask": seen[:, :end]}
            if padding:
                more["position_ids"] = arguments["position_ids"][:, begin:end]
            with torch.no_grad():
                found.append(model(ids[:, begin:end], past_key_values=cache, use_cache=True, **more).logits)
        logits = torch.cat(found, 1)
        return logits if seen is None else logits[seen == 1]

    expected = steps()
    heddle.patch(model)
    assert (steps() - expected).abs().max() < 5e-5
    assert counted(model) == (6, 0)
    prompt_and_more = {"sequences"} if padding else {"window"}
    assert set(forms) - {"bias"} == prompt_and_more
    assert forms[-1] == "bias"  # a single query


@each_family
def test_numbers_that_are_added_have_a_gradient(family, forms):
    model, ids = tiny(family), tokens(2, LENGTH)
    torch.manual_seed(0)
    hidden = torch.zeros(()).where(causal(LENGTH, LENGTH), float("-inf"))

    def gradient():
        added = torch.randn(2, 4, LENGTH, LENGTH, generator=torch.Generator().manual_seed(0)).requires_grad_()
        logits = model(ids, attention_mask=added + hidden).logits
        logits.square().mean().backward()
        return logits.detach(), added.grad

    expected = gradient()
    heddle.patch(model)
    got = gradient()
    assert counted(model) == (2, 0)
    assert set(forms) == {"bias"}
    for one, other in zip(got, expected, strict=True):
        assert torch.allclose(one, other, atol=5e-5, rtol=1e-3)


def test_layers_read_a_mask_once_and_again_when_it_changes(monkeypatch):
    reads = []
    real = masks._read
    monkeypatch.setattr(masks, "_read", lambda *arguments: reads.append(1) or real(*arguments))
    model, mask = tiny("llama"), causal(LENGTH, LENGTH).repeat(2, 1, 1, 1)
    ids = tokens(2, LENGTH)
    changed = mask.clone()
    changed[..., 6:, 5] = False
    expected = [model(ids, attention_mask=each).logits for each in (mask, changed)]
    heddle.patch(model)
    assert torch.allclose(model(ids, attention_mask=mask).logits, expected[0], atol=5e-5)
    assert len(reads) == 1
    mask.copy_(changed)
    assert torch.allclose(model(ids, attention_mask=mask).logits, expected[1], atol=5e-5)
    assert len(reads) == 2
    before = len(masks._SEEN)
    del mask
    assert len(masks._SEEN) == before - 1
    with torch.inference_mode():  # nothing says there whether a mask changed
        mask = causal(LENGTH, LENGTH).repeat(2, 1, 1, 1)
        for wanted in expected:
            assert torch.allclose(model(ids, attention_mask=mask).logits, wanted, atol=5e-5)
            mask.copy_(changed)


def random_mask(generator):
    """Windows, caches and padding of any sizes, whole rows without a key among them."""

    def number(low, high):
        return int(torch.randint(low, high + 1, (), generator=generator))

    batch, keys = number(1, 3), number(1, 14)
    queries = number(1, keys)
    mask = causal(queries, keys, number(0, keys - queries)).repeat(batch, 1, 1, 1)
    if number(0, 1):
        mask &= ~causal(queries, keys, keys - queries - number(1, keys))
    for row in mask:
        if number(0, 1):
            row[..., : number(0, keys)] = False
        if number(0, 4) == 0:
            row[..., number(0, keys) :] = False
    return mask


def test_any_mask_has_a_plan_that_hides_the_same():
    generator = torch.Generator().manual_seed(3)
    forms = set()
    for _ in range(150):
        mask = random_mask(generator)
        (batch, _, queries, keys), heads, groups, width = mask.shape, 4, 2, 8
        q, k, v = (
            torch.randn(batch, rows, count, width, generator=generator)
            for rows, count in ((queries, heads), (keys, groups), (keys, groups))
        )
        plan = masks.plan_of(mask, batch, keys)
        forms.add(plan.form)
        assert 0 <= plan.share <= 1
        y, _ = heddle.ops.flash_attention(*plan.tensors(q, k, v), **plan.attributes)
        expected = torch.nn.functional.scaled_dot_product_attention(
            *(each.transpose(1, 2) for each in (q, k, v)), attn_mask=mask, enable_gqa=True
        )
        assert torch.allclose(y.view_as(q), expected.transpose(1, 2), atol=1e-5)
    assert forms == {"window", "sequences", "bias"}


def test_a_mask_that_hides_little_is_left_to_torch(monkeypatch):
    monkeypatch.undo()
    model = tiny("llama", hidden_size=1024, num_attention_heads=16, num_hidden_layers=1, head_dim=64)
    ids = tokens(1, 272)
    window = causal(272, 272) & ~causal(272, 272, -64)
    later = torch.ones(1, 1, 272, 272, dtype=torch.bool)
    heddle.patch(model)
    with torch.no_grad():
        for mask in (window, later):
            model(ids, attention_mask=mask)
    assert counted(model) == (1, 1)
    reasons = [row.reason for row in heddle.patched(model).of("attention") if row.reason]
    assert reasons == ["its mask hides too few keys: torch is as fast"]


def test_what_is_no_mask_has_a_reason():
    model, ids = tiny("llama"), tokens(2, LENGTH)
    heddle.patch(model)
    attention = model.model.layers[0].self_attn
    from heddle.patching.attention import attend

    query, key = torch.randn(2, 4, 6, 16), torch.randn(2, 2, 6, 16)
    for mask, options, reason in (
        (torch.ones(2, 1, 1, 6, dtype=torch.bool), {}, "its mask has rows or columns for all"),
        (torch.ones(6, 6, dtype=torch.bool), {}, "its mask has other sizes"),
        (torch.ones(2, 1, 6, 6).double(), {}, "its mask is no tensor of bool or float"),
        (None, {"dropout": 0.5}, "the call has dropout"),
    ):
        with contextlib.suppress(RuntimeError):  # torch's own word on it
            attend(attention, query, key, key, mask, **options)
        assert any(reason == row.reason for row in heddle.patched(model).of("attention")), reason
    assert gradients(model, ids)[0] > 0
    elsewhere = tiny("llama", torch.bfloat16, hidden_size=256, head_dim=64).to("meta")
    heddle.patch(elsewhere)
    elsewhere(torch.ones(2, 160, dtype=torch.long, device="meta"))
    assert any(
        "heddle does not run on meta" in row.reason for row in heddle.patched(elsewhere).of("attention")
    )
