#!/usr/bin/env python3
"""A policy that is trained on its own answers, which heddle's engine makes with the weights of the moment.

    python examples/rollouts.py

REINFORCE: answers with more even tokens than the others of their batch become likelier. The policy is tiny
and begins with random weights, so that nothing is downloaded.
"""

import torch
import transformers

import heddle

PROMPTS, TOKENS, STEPS = 64, 8, 10


def main():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    policy = transformers.LlamaForCausalLM(config)
    policy.generation_config.eos_token_id = None  # each answer has as many tokens
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)
    prompts = torch.randint(64, (PROMPTS, 4)).tolist()

    # The engine has packed weights of its own; it reads those of the policy here, and in update_weights().
    with heddle.from_transformers(policy, max_context=16, max_sequences=PROMPTS) as engine:
        for step in range(STEPS):
            answers = engine.generate_tokens(prompts, max_tokens=TOKENS, temperature=1.0)
            ids = torch.tensor([[token.id for token in answer] for answer in answers])
            rewards = (ids % 2 == 0).float().mean(1)
            print(f"step {step}: {rewards.mean():.2f} of the tokens are even")

            whole = torch.cat([torch.tensor(prompts), ids], 1)
            logits = policy(whole[:, :-1]).logits[:, -TOKENS:]
            likely = logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0].sum(1)
            loss = -((rewards - rewards.mean()) * likely).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            # Later answers are of the new weights. Nothing is compiled again, and no file is written.
            engine.update_weights(policy.state_dict())


if __name__ == "__main__":
    main()
