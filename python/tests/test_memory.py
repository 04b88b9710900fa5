"""heddle.memory on a CPU: a plan changes no bit of a gradient, whatever a block does, and copies may take as
long as they like."""

import copy
import io
import itertools
import random
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import heddle
from heddle import memory
from heddle.memory import copies
from heddle.memory.copies import Arena, Copies
from heddle.memory.managed import Managed
from heddle.memory.plan import Goal

WIDTH, ROWS = 128, 160  # tensors of a block are large enough to be offloaded: 64 KB
STEPS = 4  # two that measure, two by the plan


def hidden_write(x):
    """A kernel that torch's dispatcher does not see writes into its input, as Triton's do."""
    y = x * 1.0
    y.detach().numpy()[...] *= 2
    return y


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return hidden_write(x)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def in_place(x):
    y = x * 2
    y += 1
    return y.relu_()


def views(x):
    left, right = (x * 1.5).chunk(2, -1)
    return torch.cat([left * right, right.sigmoid()], -1).transpose(0, 1).contiguous().transpose(0, 1)


MIDDLES = {
    "gelu": F.gelu,
    "dropout": lambda x: F.dropout(F.gelu(x), 0.3),
    "in_place": in_place,
    "views": views,
    "hidden write": Twice.apply,
    "checkpoint": lambda x: checkpoint(F.gelu, x, use_reentrant=False),
    "reentrant": lambda x: checkpoint(F.gelu, x, use_reentrant=True),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.2)[0],
}


class Block(nn.Module):
    def __init__(self, middle):
        super().__init__()
        self.norm, self.up, self.down = (
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 2 * WIDTH),
            nn.Linear(2 * WIDTH, WIDTH),
        )
        self.middle = middle
        self.register_buffer("shift", torch.linspace(-1, 1, WIDTH))

    def forward(self, x):
        return x + self.down(MIDDLES[self.middle](self.up(self.norm(x) + self.shift)))


def model_of(middle="gelu", blocks=3):
    torch.manual_seed(0)
    return nn.ModuleDict(
        {"first": nn.Linear(WIDTH, WIDTH), "blocks": nn.Sequential(*(Block(middle) for _ in range(blocks)))}
    )


def forward(model, x):
    return model["blocks"](model["first"](x)).square().mean()


def train(model, passes=1, autocast=False, steps=STEPS):
    """Losses and gradients of steps."""
    torch.manual_seed(1)
    x, found = torch.randn(ROWS, WIDTH), []
    for _ in range(steps):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = sum(forward(model, x * (1 + each)) for each in range(passes))
        with torch.no_grad():
            forward(model, x)
        loss.backward()
        found.append([loss.detach(), *(each.grad.clone() for each in model.parameters())])
    return found


def equal(one, other):
    return all(torch.equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("middle", MIDDLES)
def test_gradients_keep_their_bits(middle):
    model = model_of(middle)
    wanted = train(model)
    for budget in (0.0, 0.5, 1.0):
        with memory.checkpoint(model, budget=budget) as managed:
            assert equal(train(model), wanted), budget
        assert managed.plan.peak <= managed.plan.peak_of_all
    assert managed.plan.peak == managed.plan.peak_of_all
    with memory.offload(model, budget=0.0) as managed:
        assert equal(train(model), wanted)
    assert managed.plan.host_bytes > 0
    assert all(option.again_ms == 0 for option in managed.plan.options)
    assert type(model["blocks"][0]) is Block


@pytest.mark.parametrize("middle", ["gelu", "dropout"])
@pytest.mark.parametrize("passes", [1, 2])
def test_autocast_and_two_forwards_before_a_backward(middle, passes):
    model = model_of(middle)
    wanted = train(model, passes, autocast=True)
    with memory.checkpoint(model, budget=0.0) as managed:
        assert equal(train(model, passes, autocast=True), wanted)
    assert len(managed.plan.names) == 3 * passes


class LateCopy:
    def __init__(self, to, source, after):
        self.to, self.source, self.after = to, source, after
        self.owner, self.is_done = None, False  # who holds the device's memory, where that is to be checked

    def query(self):
        return self.is_done


def alone(tensor):
    """A tensor in the same memory that does not hold the one that it is a view of."""
    return torch.empty(0, dtype=tensor.dtype).set_(
        tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
    )


class LateLane:
    """Runs its copies in order, but only when they are waited for, or at odd times."""

    def __init__(self, seed, faults):
        self.random, self.waiting, self.faults, self.started = random.Random(seed), [], faults, 0

    def start(self, to, source, after=()):
        to.view(torch.uint8).fill_(0xFF)  # NaN for whoever reads too early
        ticket = LateCopy(alone(to), alone(source), [each for each in after if each is not None])
        ticket.lane = self
        self.waiting.append(ticket)
        self.started += 1
        return ticket

    def sometimes(self):
        if self.waiting and self.random.random() < 0.2:
            self.wait(self.random.choice(self.waiting))

    def wait(self, ticket):
        while ticket is not None and not ticket.is_done:
            each = self.waiting.pop(0)
            for before in each.after:
                before.lane.wait(before)
            if each.owner is not None and each.owner() is None:
                self.faults.append("the device's memory of a copy went before the copy ended")
            each.to.copy_(each.source)
            each.is_done = True


class LateCopies(Copies):
    def __init__(self, seed=0):
        self.faults = []
        super().__init__(Arena(is_pinned=False), LateLane(seed, self.faults), LateLane(seed + 1, self.faults))

    def out(self, tensor):
        piece, ticket = super().out(tensor)
        ticket.owner = weakref.ref(tensor)
        self.leaving.sometimes()
        return piece, ticket

    def back(self, piece, like, after):
        tensor, ticket = super().back(piece, like, after)
        ticket.owner = weakref.ref(tensor)
        self.coming.sometimes()
        return tensor, ticket


def late(model, seed=0, recompute=True):
    return Managed(model, Goal(budget=0.0), may_recompute=recompute, copies=LateCopies(seed))


@pytest.mark.parametrize("recompute", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_copies_may_be_late(seed, recompute):
    model = model_of(MIDDLE_OF_SEED[seed], blocks=4)
    wanted = train(model, passes=2)
    with late(model, seed, recompute) as managed:
        assert equal(train(model, passes=2), wanted)
    used = managed._given_copies
    assert used.leaving.started > 0
    assert used.coming.started > 0
    assert not used.faults
    assert used.arena.used == 0


MIDDLE_OF_SEED = ("gelu", "dropout", "in_place")


@pytest.mark.parametrize("missing", ["arrive", "wait"])
def test_a_missing_wait_is_seen(missing, monkeypatch):
    model = model_of(blocks=4)
    wanted = train(model)
    unwaited = {"arrive": lambda self, coming: coming[0], "wait": lambda self, leaving: None}
    monkeypatch.setattr(LateCopies, missing, unwaited[missing])
    with late(model, recompute=False) as managed:
        is_right = equal(train(model), wanted)
    assert not is_right or managed._given_copies.faults


def test_a_second_backward_and_none():
    model = model_of(blocks=4)
    x = torch.randn(ROWS, WIDTH)

    def grads():
        loss = forward(model, x)
        parameters = list(model.parameters())
        first = torch.autograd.grad(loss, parameters, retain_graph=True)
        return [*first, *torch.autograd.grad(loss, parameters)]

    wanted = grads()
    with late(model) as managed:
        for _ in range(STEPS):
            assert equal([grads()], [wanted])
        for _ in range(3):
            forward(model, x)  # its graph goes without a backward
        assert equal([grads()], [wanted])
    assert managed._given_copies.arena.used == 0
    assert not managed._given_copies.faults


def test_gradients_of_gradients():
    model = model_of(blocks=2)
    x = torch.randn(ROWS, WIDTH)

    def grads():
        (first,) = torch.autograd.grad(forward(model, x), [model["first"].weight], create_graph=True)
        return torch.autograd.grad(
            first.square().sum(), list(model["blocks"].parameters()), allow_unused=True
        )

    wanted = [each for each in grads() if each is not None]
    with memory.checkpoint(model, budget=0.0):
        for _ in range(STEPS):
            assert equal([[each for each in grads() if each is not None]], [wanted])


class Changes(nn.Module):
    """Changes its input after an op saved it, as soon as `changes` is set."""

    changes = False

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.up(x).sigmoid()
        z = self.down(y)
        if Changes.changes:
            y.mul_(2)
        return x + z


@pytest.mark.parametrize("when", [0, 3])
def test_a_tensor_changed_in_place_raises_as_torch_does(when, monkeypatch):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Sequential(Changes(), Changes()))
    x = torch.randn(ROWS, WIDTH)
    with memory.checkpoint(model, budget=0.0):
        for _ in range(when):
            model(x).sum().backward()
        monkeypatch.setattr(Changes, "changes", True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            model(x).sum().backward()


def test_a_parameter_changed_before_the_backward_raises_as_torch_does():
    model = model_of()
    x = torch.randn(ROWS, WIDTH)
    with memory.checkpoint(model, budget=0.0):
        for step in range(STEPS):
            loss = forward(model, x)
            if step == STEPS - 1:
                with torch.no_grad():
                    model["blocks"][0].up.weight.mul_(2)
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    loss.backward()
            else:
                loss.backward()


def test_an_error_in_a_block_leaves_the_plan_in_order(monkeypatch):
    model = model_of()
    wanted = train(model)
    with late(model) as managed:
        train(model)
        monkeypatch.setitem(MIDDLES, "gelu", lambda x: (_ for _ in ()).throw(ValueError("planted")))
        with pytest.raises(ValueError, match="planted"):
            forward(model, torch.randn(ROWS, WIDTH))
        monkeypatch.undo()
        assert equal(train(model), wanted)
    assert managed._given_copies.arena.used == 0


def test_a_block_that_changes_its_calls_is_measured_again():
    model = model_of()
    with memory.checkpoint(model, budget=0.0) as managed:
        train(model)
        before = managed.plan
        for block in model["blocks"]:
            block.middle = "views"
        changed = train(model, steps=STEPS + 2)
        assert managed.plan is not before
    assert equal(changed, train(model, steps=STEPS + 2))


def test_a_larger_batch_gets_a_new_plan():
    model = model_of()
    wanted = {}
    for rows in (ROWS, ROWS // 2, ROWS * 2):
        torch.manual_seed(rows)
        wanted[rows] = torch.randn(rows, WIDTH)
    with memory.checkpoint(model, budget=0.0) as managed:
        train(model)
        first = managed.plan
        for rows in (ROWS // 2, ROWS * 2, ROWS):
            forward(model, wanted[rows]).backward()
    assert managed.plan.peak > 1.9 * first.peak


def test_plan_leaves_the_model_and_can_be_taken():
    model = model_of()
    wanted = train(model)
    x = torch.randn(ROWS, WIDTH)
    plan = memory.plan(model, lambda: forward(model, x).backward(), budget=0.3)
    assert type(model["blocks"][0]) is Block
    assert [each.kept + each.offloaded > 0 for each in plan.options] == [True] * 3
    text = plan.table()
    assert "blocks.0" in text
    assert "predicted: peak" in text
    rows = plan.frontier(10)
    assert len(rows) == 10
    for (_, less), (_, more) in itertools.pairwise(rows):
        assert less.peak <= more.peak
        assert less.ms >= more.ms
    with memory.checkpoint(model, plan=plan) as managed:
        assert managed.plan is plan
        assert equal(train(model), wanted)


def test_copies_and_files_have_no_plan():
    model = model_of()
    keys = list(model.state_dict())
    wanted = train(model)
    with memory.checkpoint(model, budget=0.0):
        train(model)
        assert list(model.state_dict()) == keys
        assert isinstance(model["blocks"][0], Block)
        assert type(model["blocks"][0]).__name__ == "Block"
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
            assert type(other["blocks"][0]) is Block
            assert equal(train(other), wanted)


def test_wrong_calls_are_named():
    model = model_of()
    with pytest.raises(heddle.InvalidArgument, match="give one of peak"):
        memory.checkpoint(model)
    with pytest.raises(heddle.Unsupported, match="repeats no block"):
        memory.checkpoint(nn.Linear(2, 2), budget=0.0)
    with pytest.raises(heddle.InvalidArgument, match="not all of these are modules"):
        memory.checkpoint(model, budget=0.0, blocks=["Layer"])
    with pytest.raises(heddle.InvalidArgument, match="did not run the blocks' forward"):
        memory.plan(model, lambda: None, budget=0.0)
    with memory.checkpoint(model, budget=0.0, blocks=["Block"]) as managed:
        with pytest.raises(heddle.InvalidArgument, match="has a plan already"):
            memory.checkpoint(model, budget=0.0)
        train(model, steps=2)
    least = memory.plan(model, lambda: forward(model, torch.randn(ROWS, WIDTH)).backward(), budget=0.0)
    with memory.checkpoint(model, peak=least.least // 2) as managed:
        with pytest.raises(heddle.Unsupported, match=r"the least peak is .* a smaller batch"):
            train(model)
        assert managed.plan is None


def test_too_little_memory_on_the_host_is_named(monkeypatch):
    model = model_of()
    monkeypatch.setattr(copies, "available", lambda: 1000)
    refusal = pytest.raises(heddle.Unsupported, match=r"offloads .* 1 KB of the host's memory are free")
    with late(model, recompute=False), refusal:
        train(model)


def tiny_llama():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=2
    )
    return transformers.LlamaForCausalLM(config).train()


def grads_of(model):
    ids = torch.arange(192).view(2, 96) % 64
    model.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    return [each.grad.clone() for each in model.parameters() if each.grad is not None]


def test_transformers_models_and_their_own_checkpointing():
    model = tiny_llama()
    wanted = grads_of(model)
    with memory.checkpoint(model, budget=0.0) as managed:
        assert managed.names == tuple(f"model.layers.{each}" for each in range(3))
        for _ in range(STEPS):
            assert equal([grads_of(model)], [wanted])
        model.gradient_checkpointing_enable()
        with pytest.raises(heddle.InvalidArgument, match="gradient_checkpointing is on"):
            grads_of(model)


def test_adapters_on_a_frozen_model():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(target_modules=["q_proj", "down_proj"], r=4, init_lora_weights=False)
    model = peft.get_peft_model(tiny_llama(), config)
    wanted = grads_of(model)
    assert len(wanted) == 3 * 2 * 2
    with memory.checkpoint(model, budget=0.0) as managed:
        for _ in range(STEPS):
            assert equal([grads_of(model)], [wanted])
        assert managed.plan.peak < managed.plan.peak_of_all
