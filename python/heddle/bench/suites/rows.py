"""Rows and single elements: norms, softmax, activations, rope, sums, losses, transposition."""

import torch
from torch.nn import functional as F

from heddle import ops
from heddle.bench.suites.tensors import randn, size_of
from heddle.bench.work import BACKWARD, FORWARD, Amount, Work

EPS = 1e-5
HEAD = 128


def turned(x, table):
    """Pairs (i, i + HEAD / 2) of each head turned by the angles of a row. table: cosine, sine, cosine, ..."""
    heads = x.unflatten(1, (-1, 2, HEAD // 2))
    first, second = heads[:, :, 0], heads[:, :, 1]
    cosine, sine = table[:, None, 0::2].to(x.dtype), table[:, None, 1::2].to(x.dtype)
    return torch.stack((first * cosine - second * sine, second * cosine + first * sine), 2).flatten(1)


def table_of(device, rows):
    angles = torch.rand(rows, HEAD // 2, device=device) * 6.28
    return torch.stack((angles.cos(), angles.sin()), 2).flatten(1)


def layer_norm(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias, EPS)


def rms_norm(x, weight):
    return F.rms_norm(x, weight.shape, weight, EPS)


def rms_norm_residual(x, residual, weight):
    return rms_norm(x + residual, weight)


def layer_norm_residual(x, residual, weight, bias):
    return layer_norm(x + residual, weight, bias)


def gated_product(gate, up):
    return F.silu(gate) * up


def gated_activation(x):
    return F.silu(x[:, 0::2]) * x[:, 1::2]


def amounts(size, forward, backward=0):
    """`forward` and `backward`: how many tensors of `size` bytes are read or written."""
    made = {FORWARD: Amount(bytes=int(size * forward))}
    if backward:
        made[BACKWARD] = Amount(bytes=int(size * backward))
    return made


def matrices(device, count, vectors=0):
    """inputs(rows, columns): `count` matrices and `vectors` rows of weights."""

    def inputs(rows, columns):
        made = [randn(device, rows, columns) for _ in range(count)]
        return made + [randn(device, columns) for _ in range(vectors)]

    return inputs


def elementwise(peers, device):
    """(name, heddle, torch, peers, inputs, tensors moved forward and backward, goals)"""
    yield "copy", ops.copy, lambda x: x.clone(), {}, matrices(device, 1), 2, 0, (1.0, 0)
    yield (
        "softmax",
        ops.softmax,
        lambda x: F.softmax(x, -1),
        peers.only(liger=peers.liger("LigerSoftmaxFunction"), quack=peers.quack("softmax")),
        matrices(device, 1),
        2,
        3,
        (0.98, 0.95),
    )
    yield (
        "rms_norm",
        lambda x, w: ops.rms_norm(x, w, eps=EPS),
        rms_norm,
        peers.only(
            liger=peers.liger("LigerRMSNormFunction", EPS, 0.0, "llama", False),
            quack=peers.quack("rmsnorm", eps=EPS),
        ),
        matrices(device, 1, 1),
        2,
        3,
        (0.98, 0.94),
    )
    yield (
        "rms_norm_residual",
        lambda x, r, w: ops.rms_norm_residual(x, r, w, eps=EPS)[0],
        rms_norm_residual,
        {},
        matrices(device, 2, 1),
        4,
        0,
        (0.98, 0),
    )
    yield (
        "layer_norm",
        lambda x, w, b: ops.layer_norm(x, w, b, eps=EPS),
        layer_norm,
        peers.only(liger=peers.liger("LigerLayerNormFunction", EPS)),
        matrices(device, 1, 2),
        2,
        3,
        (0.98, 0.94),
    )
    yield (
        "layer_norm_residual",
        lambda x, r, w, b: ops.layer_norm_residual(x, r, w, b, eps=EPS)[0],
        layer_norm_residual,
        {},
        matrices(device, 2, 2),
        4,
        0,
        (0, 0),
    )
    yield from gated(peers, device)
    yield (
        "activation",
        lambda x: ops.activation(x, kind="silu"),
        F.silu,
        {},
        matrices(device, 1),
        2,
        3,
        (0.97, 0.97),
    )


def gated(peers, device):
    yield (
        "gated_activation",
        lambda x: ops.gated_activation(x, kind="silu"),
        gated_activation,
        {},
        matrices(device, 1),
        1.5,
        2.5,
        (0, 0),
    )
    yield (
        "gated_product",
        lambda g, u: ops.gated_product(g, u, kind="silu"),
        gated_product,
        peers.only(liger=peers.liger("LigerSiLUMulFunction")),
        matrices(device, 2),
        3,
        5,
        (0.97, 0.97),
    )


def of_rows(peers, device, rows, columns, check_rows, only=(), has_goal=True):
    size = rows * columns * size_of(device)
    for name, ours, exact, others, inputs, forward, backward, goals in elementwise(peers, device):
        if only and name not in only:
            continue
        yield Work(
            name=f"{name} {rows} x {columns}",
            ours=ours,
            exact=exact,
            peers=peers.of(exact) | others,
            inputs=inputs,
            shape=(rows, columns),
            check_shape=(check_rows, columns),
            amounts=amounts(size, forward, backward),
            goal={
                part: goal for part, goal in zip((FORWARD, BACKWARD), goals, strict=True) if goal and has_goal
            },
            goal_of="copy",
        )


def rope(peers, device, rows, columns):
    def inputs(rows, columns):
        return [randn(device, rows, columns), table_of(device, rows)]

    moved = Amount(bytes=2 * rows * columns * size_of(device) + rows * HEAD * 4)  # the table is f32
    return Work(
        name=f"rope {rows} x {columns}",
        ours=lambda x, t: ops.rope_rows(
            x, t, head_dim=HEAD, rotary_dim=HEAD, heads=x.shape[1] // HEAD, interleaved=0
        ),
        exact=turned,
        peers=peers.of(turned),
        inputs=inputs,
        shape=(rows, columns),
        check_shape=(min(rows, 512), columns),
        amounts={FORWARD: moved, BACKWARD: moved},
        gradients=(0,),
        goal={FORWARD: 0.97, BACKWARD: 0.97},
        goal_of="copy",
    )


def head_norm(peers, device, rows, heads, others):
    """The norm of each head of queries and keys; `others` heads, of the values, pass through."""
    columns = heads * HEAD

    def exact(x, weight):
        normed = F.rms_norm(x[:, :columns].unflatten(1, (-1, HEAD)), (HEAD,), None, EPS)
        return torch.cat((normed.flatten(1) * weight, x[:, columns:]), 1)

    def inputs(rows, columns):
        return [randn(device, rows, columns), randn(device, heads * HEAD)]

    return Work(
        name=f"head_norm {rows} x {heads + others} x {HEAD}",
        ours=lambda x, w: ops.head_norm(x, w, head_dim=HEAD, heads=heads, eps=EPS),
        exact=exact,
        peers=peers.of(exact),
        inputs=inputs,
        shape=(rows, columns + others * HEAD),
        check_shape=(min(rows, 512), columns + others * HEAD),
        amounts=amounts(rows * (columns + others * HEAD) * size_of(device), 2, 3),
        goal={FORWARD: 0.98, BACKWARD: 0.94},
        goal_of="copy",
    )


def cross_entropy(peers, device, rows, classes):
    def inputs(rows, classes):
        return [randn(device, rows, classes), torch.randint(classes, (rows,), device=device)]

    def exact(logits, target):
        return F.cross_entropy(logits.float(), target, reduction="none")

    size = rows * classes * size_of(device)
    return Work(
        name=f"cross_entropy {rows} x {classes}",
        ours=lambda logits, target: ops.cross_entropy(logits, target)[0],
        exact=exact,
        peers=peers.of(exact, quack=peers.quack("cross_entropy", reduction="none")),
        inputs=inputs,
        shape=(rows, classes),
        check_shape=(min(rows, 256), classes),
        amounts=amounts(size, 1, 2),
        goal={FORWARD: 0.95, BACKWARD: 0.95},
        goal_of="copy",
    )


def sums(peers, device, rows, columns):
    size = rows * columns * size_of(device)
    for name, ours, exact in (
        ("reduce", ops.reduce, lambda x: x.sum(-1)),
        ("column_sum", ops.column_sum, lambda x: x.sum(0)),
    ):
        yield Work(
            name=f"{name} {rows} x {columns}",
            ours=ours,
            exact=exact,
            peers=peers.of(exact),
            inputs=matrices(device, 1),
            shape=(rows, columns),
            amounts=amounts(size, 1),
            goal={FORWARD: 0.97},
            goal_of="copy",
        )


def middle_sums(peers, device, groups, rows, columns):
    def exact(x):
        return x.sum(1)

    return Work(
        name=f"reduce_dim {groups} x {rows} x {columns}",
        ours=ops.reduce_dim,
        exact=exact,
        peers=peers.of(exact),
        inputs=lambda *shape: [randn(device, *shape)],
        shape=(groups, rows, columns),
        amounts=amounts(groups * rows * columns * size_of(device), 1),
        goal={FORWARD: 0.97} if columns >= 1024 else {},
        goal_of="copy",
    )


def adamw(peers, device, rows, columns):
    """A step of f32 parameters by gradients in the model's dtype; `exact` in steps of torch."""

    def exact(param, grad, m, v):
        m, v = m.lerp(grad.float(), 0.1), v.lerp(grad.float().square(), 1e-3)
        return param * (1 - 1e-5) - 1e-3 / 0.1 * m / ((v / 1e-3).sqrt() + 1e-8)

    def inputs(rows, columns):
        param, m, v = (randn(device, rows, columns, dtype=torch.float32) for _ in range(3))
        return [param, randn(device, rows, columns), m, v.square()]

    return Work(
        name=f"adamw {rows} x {columns}",
        ours=lambda *tensors: ops.adamw(*tensors)[0],
        exact=exact,
        peers=peers.of(exact),
        inputs=inputs,
        shape=(rows, columns),
        check_shape=(min(rows, 512), columns),
        amounts=amounts(rows * columns, 24 + size_of(device)),
    )


def quantize(peers, device, rows, columns):
    """Codes of fp8 with a scale of each row."""

    def exact(x):
        scale = x.float().abs().amax(1, keepdim=True) / 448
        return (x.float() / scale).to(torch.float8_e4m3fn)

    return Work(
        name=f"quantize {rows} x {columns}",
        ours=lambda x: ops.quantize(x)[0],
        exact=exact,
        peers=peers.of(exact),
        inputs=matrices(device, 1),
        shape=(rows, columns),
        check_shape=(min(rows, 512), columns),
        amounts=amounts(rows * columns, 1 + size_of(device)),
        rounding=1e-3,  # codes that are next to each other, where a quotient is a tie nearly
    )


def transpose(peers, device, side):
    def exact(x):
        return x.t().contiguous()

    return Work(
        name=f"transpose {side} x {side}",
        ours=ops.transpose,
        exact=exact,
        peers=peers.of(exact),
        inputs=matrices(device, 1),
        shape=(side, side),
        amounts=amounts(side * side * size_of(device), 2),
        goal={FORWARD: 0.88},
        goal_of="copy",
    )


def works(peers, device, tiny):
    large = not tiny and str(device).startswith("cuda")
    rows, columns = (64, 256) if tiny else (32768, 4096) if large else (4096, 2048)
    yield from of_rows(peers, device, rows, columns, min(rows, 512))
    yield rope(peers, device, rows, columns)
    yield head_norm(peers, device, min(rows, 32768), *((1, 1) if tiny else (40, 8)))
    yield from sums(peers, device, rows, columns)
    for groups, columns_left in ((8, columns), (rows * columns // 1024, 16), (1, 8)):
        yield middle_sums(peers, device, groups, rows * columns // groups // columns_left, columns_left)
    if large:
        yield from of_rows(peers, device, 1024, 1 << 17, 64, only=("softmax",))
        # Narrow rows, of which a warp has several, and rows that are no words of 16 bytes.
        norms = ("softmax", "rms_norm", "layer_norm")
        for narrow in (64, 128, 512):
            yield from of_rows(peers, device, rows * columns // narrow, narrow, 512, only=norms)
        yield from of_rows(peers, device, 131072, 1001, 512, only=norms, has_goal=False)
    yield adamw(peers, device, *((rows, columns) if tiny else (8192, 8192) if large else (1024, 1024)))
    yield quantize(peers, device, rows, columns)
    yield transpose(peers, device, 256 if tiny else 16384 if large else 2048)
    yield cross_entropy(peers, device, *((32, 512) if tiny else (8192, 131072) if large else (256, 32768)))
