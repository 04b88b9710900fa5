"""A layer with power attention learns to repeat what it saw, then answers position by position.

python examples/power_attention.py
"""

import torch

import heddle


class Layer(torch.nn.Module):
    """Power attention with gates between two projections."""

    def __init__(self, width, heads, head_dim):
        super().__init__()
        self.heads, self.head_dim = heads, head_dim
        self.qkv = torch.nn.Linear(width, 3 * heads * head_dim, bias=False)
        self.gate = torch.nn.Linear(width, heads)
        self.out = torch.nn.Linear(heads * head_dim, width, bias=False)
        torch.nn.init.constant_(self.gate.bias, 4.0)  # keeps nearly everything at first

    def forward(self, x, state=None):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, self.head_dim)).unbind(2)
        log_gates = torch.nn.functional.logsigmoid(self.gate(x))
        y, state = heddle.power_attention(q, k, v, log_gates, chunk=16, state=state, return_state=True)
        return x + self.out(y.flatten(2)), state


class Model(torch.nn.Module):
    def __init__(self, tokens=10, width=32, length=64):
        super().__init__()
        self.tokens = torch.nn.Embedding(tokens, width)
        self.positions = torch.nn.Embedding(length, width)
        self.layer = Layer(width, heads=2, head_dim=16)
        self.head = torch.nn.Linear(width, tokens)

    def forward(self, tokens, begin=0, state=None):
        places = torch.arange(begin, begin + tokens.shape[1])
        y, state = self.layer(self.tokens(tokens) + self.positions(places), state)
        return self.head(y), state


def main():
    torch.manual_seed(1)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(50):
        text = torch.randint(10, (8, 32)).repeat(1, 2)  # 32 tokens, twice
        scores, _ = model(text)
        # Position 32 + i is asked for the token that it has seen 32 positions before.
        loss = torch.nn.functional.cross_entropy(scores[:, 32:].flatten(0, 1), text[:, :32].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 0 or step % 10 == 9:
            print(f"step {step}: loss {losses[-1]:.2f}", flush=True)
    assert losses[-1] < losses[0] / 2

    # The state stands for all positions before: one position at a time gives what all at once give.
    with torch.no_grad():
        text = torch.randint(10, (1, 32)).repeat(1, 2)
        whole, _ = model(text)
        state, parts = None, []
        for i in range(text.shape[1]):
            scores, state = model(text[:, i : i + 1], i, state)
            parts.append(scores)
        difference = (whole - torch.cat(parts, 1)).abs().max().item()
        print(f"largest difference, position by position: {difference:.1e}")
        torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-3, rtol=1e-3)


if __name__ == "__main__":
    main()
