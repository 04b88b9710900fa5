#!/usr/bin/env python3
"""A model of transformers with heddle's ops in it, trained by adapters of peft for a few steps.

    python examples/patch_lora.py

The model is tiny and has random weights, so that nothing is downloaded. The table at the end says which of
its parts ran in heddle, and why the others did not.
"""

import peft
import torch
import transformers

import heddle

TEXT = b"She sells sea shells by the sea shore. "


def main():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=256,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = transformers.LlamaForCausalLM(config)

    # Parts change for this model alone. Weights stay where they are, and projections what they are.
    print(heddle.patch(model), end="\n\n")

    # So adapters go where they always go, before or after it.
    adapters = peft.LoraConfig(
        r=16, target_modules=["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj", "lm_head"]
    )
    model = peft.get_peft_model(model, adapters).train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=3e-3)
    tokens = torch.frombuffer(bytearray(TEXT * 3), dtype=torch.uint8).long().repeat(5, 1)
    for step in range(7):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 2 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    print()
    print(heddle.patched(model), end="\n\n")

    # A second copy of the model, without heddle.
    with torch.no_grad():
        patched = model(input_ids=tokens).logits
        heddle.unpatch(model)
        print(f"logits differ by {(model(input_ids=tokens).logits - patched).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
