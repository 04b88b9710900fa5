#!/usr/bin/env python3
"""A model of transformers trained by TRL's SFTTrainer, without heddle.patch and with it: tokens a second.

    python examples/patch_sft.py

The model has random weights and few layers, so that nothing is downloaded. The table says from which sizes
each part pays on this machine: a CPU leaves most of such a small model to torch.
"""

import itertools
import statistics
import tempfile
import time

import datasets
import tokenizers
import torch
import transformers
import trl

import heddle

LINES = [f"{who} sells {what} by the sea. " for who in ("She", "He", "Nobody") for what in ("shells", "sand")]
TEXTS = [line * 16 for line in LINES]
STEPS, BATCH = 8, 8


class Clock(transformers.TrainerCallback):
    """When each step ended."""

    def __init__(self):
        self.ends = []

    def on_step_end(self, *_, **__):
        self.ends.append(time.perf_counter())

    def median(self):
        """Seconds a step. The first one, which loads libraries and makes kernels, is not counted."""
        return statistics.median(b - a for a, b in itertools.pairwise(self.ends))


def tokenizer():
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<pad>", "<s>", "</s>", "<unk>"]
    made.train_from_iterator(TEXTS, tokenizers.trainers.BpeTrainer(vocab_size=128, special_tokens=special))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def model_of(words):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(words),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            pad_token_id=words.pad_token_id,
        )
    )


def train(model, words, folder):
    """(the last loss, tokens a second)"""
    settings = trl.SFTConfig(
        output_dir=folder,
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        bf16=False,
        use_cpu=not torch.cuda.is_available(),
        gradient_checkpointing=False,
    )
    trainer = trl.SFTTrainer(
        model=model,
        args=settings,
        train_dataset=datasets.Dataset.from_dict({"text": TEXTS * 11}),
        processing_class=words,
        callbacks=[clock := Clock()],
    )
    trainer.train()
    last = next(entry for entry in reversed(trainer.state.log_history) if "loss" in entry)
    return last["loss"], last["num_tokens"] / STEPS / clock.median()


def main():
    words = tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        loss, rate = train(model_of(words), words, folder)
        model = model_of(words)
        print(heddle.patch(model), end="\n\n")
        patched_loss, patched_rate = train(model, words, folder)
    print(heddle.patched(model), end="\n\n")
    print(f"without heddle: loss {loss:.4f}, {rate:,.0f} tokens/s")
    print(f"with heddle:    loss {patched_loss:.4f}, {patched_rate:,.0f} tokens/s")


if __name__ == "__main__":
    main()
