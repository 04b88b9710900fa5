#!/usr/bin/env python3
"""A small model trained on one sequence that several processes share, next to the same training in one.

    torchrun --nproc-per-node=2 examples/context_parallel.py

Losses are the same but for rounding. Without torchrun it is one process.
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

from heddle import attention

LENGTH, HEADS, DIM, WORDS, STEPS = 301, 4, 16, 32, 5
DOCUMENTS = [0, 90, 91, 200, LENGTH]  # packed one after another


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        width = HEADS * DIM
        self.words, self.places = torch.nn.Embedding(WORDS, width), torch.nn.Embedding(LENGTH, width)
        self.inner, self.outer = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, WORDS)

    def forward(self, tokens, positions):
        x = self.words(tokens) + self.places(positions)
        heads = self.inner(x).unflatten(-1, (3, HEADS, DIM)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.outer(x + y.transpose(1, 2).flatten(2))


def train(group):
    """The loss of each step."""
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        tokens = torch.randint(WORDS, (1, LENGTH), generator=torch.Generator().manual_seed(1))
        labels, positions = attention.shift_labels(tokens, DOCUMENTS), torch.arange(LENGTH).unsqueeze(0)
        with attention.context_parallel(
            group,
            buffers=[tokens, labels, positions],
            buffer_seq_dims=[1, 1, 1],
            cu_seqlens=DOCUMENTS,
            balance="documents",
        ):
            logits = model(tokens, positions)
            summed = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
            loss = attention.mean_loss(summed, (labels != -100).sum(), group)
            loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=group)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def main():
    if "RANK" not in os.environ:
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="0")
    dist.init_process_group("gloo")
    shared = train(dist.group.WORLD)
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    losses = train(alone)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} processes:", *(f"{each:.5f}" for each in shared))
        print("1 process:  ", *(f"{each:.5f}" for each in losses))
    assert all(abs(a - b) < 1e-4 for a, b in zip(shared, losses, strict=True))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
