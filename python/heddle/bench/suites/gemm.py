"""Products of matrices: squares in all ways to lie, and those of Llama's layers for few and many rows."""

from heddle import ops
from heddle.bench.suites.tensors import randn, size_of
from heddle.bench.timing import is_gpu
from heddle.bench.work import BACKWARD, FORWARD, Amount, Work

CACHE = 128 << 20  # bytes that no L2 cache holds
# [out, in] of the layers' weights
LLAMA = {
    "1B": ((3072, 2048), (2048, 2048), (16384, 2048), (2048, 8192)),
    "8B": ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)),
    "70B": ((10240, 8192), (57344, 8192), (8192, 28672)),
}
GOALS = {16: 0.90, 128: 0.92, 512: 0.95, 1024: 0.97}


def product(peers, device, m, n, k, kind="nt", label="", gradient=False, goal=1.0):
    """x [m, k] times w; "nt" is x @ w.T with w [n, k], a layer of a model."""

    def inputs(m, n, k):
        x = randn(device, k, m) if kind[0] == "t" else randn(device, m, k)
        w = randn(device, n, k) if kind[1] == "t" else randn(device, k, n)
        return [x, w]

    def operands(x, w):
        return (x.t() if kind[0] == "t" else x), (w.t() if kind[1] == "t" else w)

    def exact(x, w):
        left, right = operands(x, w)
        return left @ right

    flops = 2.0 * m * n * k
    moved = (m * k + n * k + m * n) * size_of(device)
    found = {FORWARD: Amount(bytes=moved, flops=flops)}
    if gradient:
        found[BACKWARD] = Amount(bytes=2 * moved, flops=2 * flops)
    weights = n * k * size_of(device)
    few = m <= 1024 and is_gpu(device)
    return Work(
        name=f"mm {m} x {n} x {k} {kind}{label}",
        ours=lambda x, w: ops.mm(*operands(x, w)),
        exact=exact,
        peers=peers.only(torch=exact),  # cuBLAS on a GPU
        inputs=inputs,
        shape=(m, n, k),
        amounts=found,
        sustain=is_gpu(device) and m == n == k,
        sets=1 + CACHE // weights if few and weights < CACHE else 1,
        goal={FORWARD: goal, BACKWARD: goal},
    )


def works(peers, device, tiny):
    if tiny or not is_gpu(device):
        side = 64 if tiny else 1024
        for kind in ("nn", "nt", "tn", "tt"):
            yield product(peers, device, side, side, side, kind, gradient=kind == "nt")
        return
    for side, goal in ((8192, 1.0), (4096, 0.98)):
        for kind in ("nt", "nn", "tn", "tt"):
            yield product(peers, device, side, side, side, kind, gradient=kind == "nt", goal=goal)
    for model, weights in LLAMA.items():
        for rows, goal in GOALS.items():
            for n, k in weights:
                yield product(peers, device, rows, n, k, label=f" {model}", goal=goal)
