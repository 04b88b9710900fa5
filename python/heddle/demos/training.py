"""Demos of models: decoding in one program, offloaded optimizers, plans of memory, shapes in buckets, FP8,
mixtures of experts, 2:4 sparsity."""

import copy

import torch

import heddle
from heddle import buckets, float8, optim, quant
from heddle.demos.claim import holds


def _llama(quick):
    try:
        import transformers
    except ImportError:
        raise heddle.PackageMissing("[demos] needs transformers: pip install transformers") from None
    width = 64 if quick else 512
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=256,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2 if quick else 8,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)  # so that tokens follow from more than rounding
    return model


def fusion(quick):
    """transformers' generate decodes in heddle's program, with the same tokens."""
    model, ids = _llama(quick), torch.arange(3, 12)[None]
    given = {"max_new_tokens": 12 if quick else 100, "do_sample": False}
    wanted = model.generate(ids, **given)
    heddle.patch(model, generate="megakernel")
    made = model.generate(ids, **given)
    (row,) = heddle.patched(model).of("generate")
    text = f"{made.shape[1] - ids.shape[1]} tokens by {row.path}"
    holds(torch.equal(made, wanted) and row.calls == 1, f"{text}: others than transformers'")
    return f"{text}, those of transformers"


def optimizer(quick):
    """Updates on the host and on the device have the same bits for every split, and states of few bytes."""
    size = 50_000 if quick else 20_000_000
    begin, grad = torch.randn(size), torch.randn(size)
    results, sizes = [], {}
    for share in (0.0, 0.3, 1.0):
        param = torch.nn.Parameter(begin.clone())
        made = optim.OffloadAdamW([param], lr=1e-3, gpu_fraction=share)
        for _ in range(3):
            param.grad = grad
            made.step()
        results.append(param.detach())
    for dtype in ("fp32", "bf16", "int8"):
        param = torch.nn.Parameter(begin.clone())
        made = optim.OffloadAdamW([param], state_dtype=dtype)
        param.grad = grad
        made.step()
        tensors = [each for each in made.state[param].values() if isinstance(each, torch.Tensor)]
        sizes[dtype] = sum(each.numel() * each.element_size() for each in tensors if each.dim()) / size
    wanted = torch.nn.Parameter(begin.clone())
    torch_optimizer = torch.optim.AdamW([wanted], lr=1e-3)
    for _ in range(3):
        wanted.grad = grad
        torch_optimizer.step()
    error = float((results[0] - wanted.detach()).abs().max())
    said = ", ".join(f"{dtype} {each:.1f}" for dtype, each in sizes.items())
    text = f"bytes of states a parameter: {said}; {error:.0e} from torch's AdamW"
    same = all(torch.equal(each, results[0]) for each in results)
    holds(same and error < 1e-6 and sizes["int8"] < 2.2, text)
    return f"{text}; every split, the same bits"


def memory(quick):
    """A plan trains in less memory, and gradients have the same bits."""
    model = _llama(quick).train()
    other = copy.deepcopy(model)
    ids = torch.randint(3, 256, (2, 64 if quick else 200), generator=torch.Generator().manual_seed(0))

    def step(which):
        which.zero_grad()
        which(input_ids=ids, labels=ids).loss.backward()

    step(other)
    with heddle.memory.checkpoint(model, budget=0.0) as managed:
        for _ in range(3):
            step(model)
        least = managed.plan
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    same = all(torch.equal(one.grad, two.grad) for one, two in pairs)
    holds(same, "gradients differ")
    with heddle.memory.checkpoint(model, budget=1.0) as managed:
        for _ in range(3):
            step(model)
        all_kept = managed.plan
    text = f"peak of blocks {all_kept.peak / 1e6:.2f} -> {least.peak / 1e6:.2f} MB as planned"
    holds(least.peak < all_kept.peak, text)
    return f"{text}; gradients have the same bits"


def shapes(quick):
    """Few lengths stand for many, with little padding, and outputs are those of the inputs alone."""
    generator = torch.Generator().manual_seed(0)
    count = 200 if quick else 5000
    lengths = (torch.randn(count, generator=generator).exp() * 60 + 5).long().tolist()
    edges = buckets.bucket_edges(lengths, 16)
    layer = torch.nn.Linear(8, 8)
    module = buckets.bucketed(
        layer, {"S": edges}, dims={"input": {1: "S"}}, pad={"input": 0}, outputs={1: "S"}
    )
    worst = 0.0
    with torch.no_grad():
        for length in lengths[:50]:
            x = torch.randn(1, length, 8, generator=generator)
            worst = max(worst, float((module(x) - layer(x)).abs().max()))
    text = f"{len(set(lengths))} lengths in {len(edges.edges)} buckets, {edges.padding:.1%} padding"
    holds(edges.padding <= 0.1 and worst < 1e-6, f"{text}; outputs are {worst:.0e} apart")
    return f"{text}; outputs as without"


def _batches(steps, vocabulary):
    """Tokens, and those after them: of a table, three times of four."""
    generator = torch.Generator().manual_seed(0)
    after = torch.randperm(vocabulary, generator=generator)
    batches = []
    for _ in range(steps):
        x = torch.randint(vocabulary, (4, 48), generator=generator)
        other = torch.randint(vocabulary, x.shape, generator=generator)
        batches.append((x, torch.where(torch.rand(x.shape, generator=generator) < 0.75, after[x], other)))
    return batches


def _network(vocabulary, width):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Embedding(vocabulary, width),
        torch.nn.Linear(width, 4 * width),
        torch.nn.SiLU(),
        torch.nn.Linear(4 * width, vocabulary),
    )


def _loss(model, x, wanted):
    return torch.nn.functional.cross_entropy(model(x).flatten(0, 1), wanted.flatten())


def _train(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for batch in batches:
        optimizer.zero_grad()
        _loss(model, *batch).backward()
        optimizer.step()


def sparsity(quick):
    """Two of four weights become zero and stay zero in training, which makes up for them."""
    steps, vocabulary, width = (60, 32, 64) if quick else (300, 64, 128)
    batches = _batches(2 * steps + 20, vocabulary)
    held = [torch.cat(each) for each in zip(*batches[-20:], strict=True)]
    model, losses = _network(vocabulary, width), {}
    _train(model, batches[:steps])
    losses["dense"] = float(_loss(model, *held).detach())
    seen = {"sparsegpt": [x for x, _ in batches[:8]], "magnitude": None}
    for method, data in seen.items():
        pruned = quant.prune_2_4_(copy.deepcopy(model), data, method=method)
        losses[method] = float(_loss(pruned, *held).detach())
    zeros = [pruned[at].weight == 0 for at in (1, 3)]
    _train(pruned, batches[steps:-20])
    losses["magnitude, trained"] = float(_loss(pruned, *held).detach())
    same = all(torch.equal(pruned[at].weight == 0, each) for at, each in zip((1, 3), zeros, strict=True))
    said = ", ".join(f"{name} {each:.4f}" for name, each in losses.items())
    text = f"half of the weights are zero; held-out loss {said}"
    rises = {name: each - losses["dense"] for name, each in losses.items()}
    holds(same and all(each.float().mean() == 0.5 for each in zeros), text)
    holds(max(rises["sparsegpt"], rises["magnitude, trained"]) < rises["magnitude"] / 2, text)
    return text


def fp8(quick):
    """Training in FP8 reaches the loss of training without."""
    steps, vocabulary, width = (150, 32, 64) if quick else (1000, 128, 256)
    batches = _batches(steps, vocabulary)
    losses = {}
    for recipe in (None, *float8.RECIPES):
        model = _network(vocabulary, width)
        if recipe:
            config = float8.Float8Config(recipe, "e5m2", always=True)
            float8.convert_to_float8_training(model, config=config)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        with float8.Float8Trainer(model) as trainer:
            found = []
            for batch in batches:
                found.append(float(trainer.training_step(*batch)))
                trainer.optimizer_step(optimizer)
        losses[recipe] = sum(found[-50:]) / 50
    wanted = losses.pop(None)
    worst = max(abs(each / wanted - 1) for each in losses.values())
    said = ", ".join(f"{name} {each:.4f}" for name, each in losses.items())
    text = f"loss after {steps} steps {wanted:.4f}; in FP8 (here emulated): {said}"
    holds(worst < 0.005, text)
    return text


def mixtures(quick):
    """A mixture of experts has the gradients of a loop over experts, and the same bits each run."""
    tokens, experts, width, taken = (64, 8, 32, 2) if quick else (4096, 64, 256, 8)
    torch.manual_seed(0)
    index = torch.rand(tokens, experts).topk(taken).indices
    given = [torch.randn(tokens, width), torch.rand(tokens, taken)]
    given += [
        torch.randn(experts, 2 * width, width) / width**0.5,
        torch.randn(experts, width, width) / width**0.5,
    ]

    def loop(x, shares, gate_up, down):
        y = torch.zeros_like(x)
        for expert in range(experts):
            token, choice = torch.where(index == expert)
            gate, up = (x[token] @ gate_up[expert].T).chunk(2, -1)
            rows = (torch.nn.functional.silu(gate) * up) @ down[expert].T
            y = y.index_add(0, token, rows * shares[token, choice, None])
        return y

    def run(function):
        leaves = [each.clone().requires_grad_() for each in given]
        y = function(*leaves)
        y.square().mean().backward()
        return [y.detach(), *(leaf.grad for leaf in leaves)]

    def grouped(x, shares, *weights):
        return heddle.moe.grouped_mlp(x, index, shares, *weights)

    made, again, wanted = run(grouped), run(grouped), run(loop)
    errors = [float((one - two).norm() / two.norm()) for one, two in zip(made, wanted, strict=True)]
    text = f"{experts} experts, {tokens} tokens: {max(errors):.0e} from a loop over experts"
    holds(max(errors) < 1e-5 and all(map(torch.equal, made, again)), text)
    return f"{text}, the same bits twice"
