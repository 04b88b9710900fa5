"""heddle.explain: each module's path, whether it is patched or not, and its plan of memory."""

import torch

import heddle
from tiny import take_every_size, tiny, tokens


def rows_of(model, end):
    return [row for row in heddle.explain(model) if row.name.endswith(end)]


def test_a_model_that_is_not_patched_says_so():
    model = tiny("llama")
    (row,) = rows_of(model, "input_layernorm")
    assert (row.name, row.modules, row.cls) == ("model.layers.*.input_layernorm", 2, "LlamaRMSNorm")
    assert (row.path, row.calls, row.is_heddle) == ("torch", None, False)
    assert row.reason.startswith("not patched")
    assert not heddle.is_patched(model)


def test_calls_are_counted_by_path_and_reason(monkeypatch):
    take_every_size(monkeypatch)
    model, ids = tiny("llama"), tokens()
    heddle.patch(model)
    model(input_ids=ids, labels=ids)
    assert [(row.path, row.calls) for row in rows_of(model, "mlp")] == [("heddle gated_product", 2)]
    assert [(row.path, row.calls) for row in rows_of(model, "loss_function")] == [
        ("heddle linear_cross_entropy", 1)
    ]
    monkeypatch.undo()
    model(input_ids=ids, labels=ids)
    other = next(row for row in rows_of(model, "mlp") if not row.is_heddle)
    assert (other.path, other.calls) == ("torch", 2)
    assert "so few values" in other.reason
    assert "tokens" in other.pays


def test_a_patch_of_some_parts_leaves_others_out():
    model = tiny("llama")
    heddle.patch(model, mlp=False)
    (row,) = rows_of(model, "mlp")
    assert (row.path, row.reason) == ("torch", "the patch left it out")
    heddle.unpatch(model)


def test_blocks_with_a_plan_say_what_they_keep():
    model, ids = tiny("llama").train(), tokens()
    with heddle.memory.checkpoint(model, budget=0.0):
        (row,) = rows_of(model, "layers.*")
        assert (row.modules, row.path) == (2, "heddle.memory: the first two steps measure")
        for _ in range(3):
            model(input_ids=ids, labels=ids).loss.backward()
        assert all("keeps" in row.path for row in rows_of(model, "layers.*") + rows_of(model, "layers.1"))
    assert not [row for row in heddle.explain(model) if "memory" in row.path]


def test_a_model_without_parts_for_heddle():
    said = heddle.explain(torch.nn.Linear(2, 2))
    assert len(said) == 0
    assert repr(said) == "heddle has nothing for the modules of this model"


def test_the_table_has_a_line_of_heads_and_all_rows():
    said = heddle.explain(tiny("llama"))
    text = repr(said)
    assert text.splitlines()[0].startswith("modules")
    assert all(row.cls in text for row in said)
    assert all(row.cls in said._repr_html_() for row in said)
