"""Four steps of training a patched model have the losses of the unpatched one: SFT, adapters, preferences."""

import itertools
import math

import pytest
import tokenizers
import torch
import transformers

import heddle
from heddle.patching import kinds
from tiny import take_every_size, tiny

WORDS = ["red", "old", "big", "shy", "wet", "odd"]
TEXTS = [f"the {a} fox and the {b} hen." for a, b in itertools.combinations(WORDS, 2)]
PAIRS = [
    {"prompt": f"say {word}: ", "chosen": f"{word}, and the sun.", "rejected": f"no {word} at all."}
    for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"]
]


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    take_every_size(monkeypatch)


@pytest.fixture(scope="module")
def tokenizer():
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>", "<unk>"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=128, special_tokens=special)
    made.train_from_iterator([*TEXTS, *(text for pair in PAIRS for text in pair.values())], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def settings(folder, **more):
    return {
        "output_dir": str(folder),
        "max_steps": 4,
        "per_device_train_batch_size": 2,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
        "seed": 3,
        **more,
    }


def adapters():
    import peft

    return peft.LoraConfig(
        r=4, lora_dropout=0.0, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM"
    )


def sft(model, tokenizer, folder, **more):
    import datasets
    import trl

    peft_config = adapters() if more.pop("lora", False) else None
    return trl.SFTTrainer(
        model=model,
        args=trl.SFTConfig(**settings(folder, **more)),
        train_dataset=datasets.Dataset.from_dict({"text": TEXTS}),
        processing_class=tokenizer,
        peft_config=peft_config,
    )


def dpo(model, tokenizer, folder, **more):
    import datasets
    import trl

    return trl.DPOTrainer(
        model=model,
        args=trl.DPOConfig(**settings(folder, **more)),
        train_dataset=datasets.Dataset.from_list(PAIRS),
        processing_class=tokenizer,
        peft_config=adapters(),
    )


TRAININGS = {
    "sft": (sft, {"gradient_checkpointing": False}),
    "sft, LoRA, checkpoints": (sft, {"lora": True, "gradient_checkpointing": True}),
    "dpo, LoRA": (dpo, {"gradient_checkpointing": False}),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_losses_are_those_of_the_unpatched_model(name, tokenizer, tmp_path):
    make, more = TRAININGS[name]
    losses, weights = [], []
    for is_patched in (False, True):
        model = tiny("llama", vocab_size=len(tokenizer))
        if is_patched:
            heddle.patch(model)
        torch.manual_seed(1)
        trainer = make(model, tokenizer, tmp_path / str(is_patched), **more)
        seen = []
        step = trainer.training_step

        def watched(*arguments, step=step, seen=seen, **keywords):
            loss = step(*arguments, **keywords)
            seen.append(loss.item())
            return loss

        trainer.training_step = watched
        trainer.train()
        losses.append(seen)
        weights.append({n: p.detach().clone() for n, p in trainer.model.named_parameters()})
        if is_patched:
            report = heddle.patched(trainer.model)
            # Five norms in each step; a checkpoint's layers run twice, and DPO has a reference model too.
            assert report.calls("norm") >= 4 * 5
            assert report.calls("norm", heddle=False) == 0
    expected, got = losses
    assert len(expected) == len(set(expected)) == 4
    assert all(map(math.isfinite, expected))
    assert max(abs(a - b) for a, b in zip(got, expected, strict=True)) < 1e-5, (got, expected)
    for parameter, weight in weights[0].items():
        assert torch.allclose(weights[1][parameter], weight, atol=1e-3), parameter


def trained(model, ids):
    """Gradients of a step, and the shapes of what it kept for them."""
    kept = []

    def note(tensor):
        kept.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = model(input_ids=ids, labels=ids).loss
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return gradients, kept


def watch(model):
    for layer in model.model.layers:
        layer.mlp.down_proj.register_forward_hook(lambda *_: None)


def add_bias(model):
    for layer in model.model.layers:
        layer.mlp.down_proj.bias = torch.nn.Parameter(torch.zeros(layer.mlp.down_proj.out_features))


@pytest.mark.parametrize(("change", "forgets"), [(None, True), (watch, False), (add_bias, False)])
def test_the_product_of_a_gated_mlp_is_not_kept(monkeypatch, change, forgets):
    monkeypatch.setattr(kinds, "_FORGETFUL", ("cpu",))
    monkeypatch.setattr(kinds, "_LEAST_FORGOTTEN", 1)
    model = tiny("llama", intermediate_size=48).train()
    if change:
        change(model)
    ids = torch.randint(0, model.config.vocab_size, (2, 9))
    heddle.patch(model)
    made, kept = trained(model, ids)
    monkeypatch.setattr(kinds, "_FORGETFUL", ())
    expected, all_kept = trained(model, ids)
    assert all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))
    assert len(all_kept) - len(kept) == (len(model.model.layers) if forgets else 0)
