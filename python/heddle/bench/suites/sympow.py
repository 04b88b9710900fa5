"""Products with symmetric powers, and power attention on them."""

import functools

import torch

import heddle
from heddle import ops
from heddle.bench.suites.tensors import randn, size_of
from heddle.bench.timing import is_gpu
from heddle.bench.work import BACKWARD, BOTH, FORWARD, Amount, Work

CHUNK = 1024
EPS = 1e-6


@functools.cache
def width_of(dim, power=2):
    """Columns of the symmetric power, as the op lays them out."""
    return ops.sympow(torch.zeros(1, dim), power=power).shape[-1]


def in_chunks(x, chunk):
    """[b, t, h, d] as [b, h, chunk number, row, d]."""
    return x.unflatten(1, (-1, chunk)).permute(0, 3, 1, 2, 4)


def from_chunks(y):
    return y.permute(0, 2, 3, 1, 4).flatten(1, 2)


def quadratic(q, k, v):
    """Power attention as it is defined, power 2: [t, t] scores."""
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    weights = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).square().tril()
    y = weights @ v / (weights.float().sum(-1, keepdim=True) + EPS).to(v.dtype)
    return y.transpose(1, 2)


def chunked(q, k, v):
    """Computes the same in chunks by torch: the outer product of a row with itself is its power of two."""
    chunk = min(CHUNK, q.shape[1])
    q, k, v = (in_chunks(each, chunk) for each in (q * q.shape[-1] ** -0.5, k, v))
    v = torch.cat((v, torch.ones_like(v[..., :1])), -1)

    def squared(x):
        return (x[..., :, None] * x[..., None, :]).flatten(-2)

    weights = (q @ k.transpose(-1, -2)).square().tril()
    added = squared(k).transpose(-1, -2) @ v
    before = (added.float().cumsum(2) - added.float()).to(v.dtype)
    y = weights @ v + squared(q) @ before
    return from_chunks(y[..., :-1] / (y[..., -1:] + EPS))


def attention(peers, device, batch, length, heads, dim, chunk=CHUNK):
    width = dim * (dim + 1) // 2
    # Scores and values inside a chunk (half of them are masked), and two products with the state.
    flops = batch * heads * length * (2.0 * chunk * dim + 4.0 * width * dim)
    return Work(
        name=f"power_attention {batch} x {length} x {heads} x {dim} power 2",
        ours=lambda q, k, v: heddle.power_attention(q, k, v, chunk=min(chunk, q.shape[1])),
        exact=quadratic,
        peers=peers.of(chunked),
        inputs=lambda *shape: [randn(device, *shape) for _ in range(3)],
        shape=(batch, length, heads, dim),
        check_shape=(1, min(length, 2 * CHUNK), 2, dim),
        amounts={FORWARD: Amount(flops=flops), BOTH: Amount(flops=3.5 * flops)},
    )


def mma(peers, device, length, heads, dim, columns, chunk=CHUNK):
    """phi(x) s, chunk by chunk."""
    width = width_of(dim)

    def by_matmul(x, s):
        size = min(chunk, x.shape[1])
        phi = ops.sympow(x.flatten(0, 2)).unflatten(0, x.shape[:3])
        return from_chunks(in_chunks(phi, size) @ s.unflatten(2, (-1, width)))

    def exact(x, s):
        size = min(chunk, x.shape[1])
        phi = ops.sympow(x.flatten(0, 2).float()).unflatten(0, x.shape[:3])
        return from_chunks(in_chunks(phi.to(x.dtype), size) @ s.unflatten(2, (-1, width)))

    def inputs(length, heads):
        chunks = -(-length // chunk)
        return [randn(device, 1, length, heads, dim), randn(device, 1, heads, chunks * width, columns)]

    flops = 2.0 * length * heads * width * columns
    return Work(
        name=f"sympow_mma 1 x {length} x {heads} x {dim} E {columns}",
        ours=lambda x, s: ops.sympow_mma(x, s, power=2, chunk=min(chunk, x.shape[1])),
        exact=exact,
        peers=peers.only(torch=by_matmul),
        inputs=inputs,
        shape=(length, heads),
        check_shape=(min(length, 2 * chunk), 2),
        amounts={
            FORWARD: Amount(bytes=length * heads * (dim + columns) * size_of(device), flops=flops),
            BACKWARD: Amount(flops=2 * flops),
        },
    )


def works(peers, device, tiny):
    if tiny or not is_gpu(device):
        length = 64 if tiny else 2048
        yield attention(peers, device, 1, length, 2, 16, chunk=min(length, 512))
        yield mma(peers, device, length, 2, 16, 16, chunk=min(length, 512))
        return
    yield attention(peers, device, 1, 65536, 8, 64)
    for columns in (64, 128):
        yield mma(peers, device, 65536, 8, 64, columns)
