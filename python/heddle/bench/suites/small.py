"""Tensors of at most 1 MB, where the time is that of the host: Python, checks, a launch."""

from dataclasses import replace

from heddle import ops
from heddle.bench.suites.rows import of_rows, transpose
from heddle.bench.suites.tensors import randn, size_of
from heddle.bench.work import BOTH, FORWARD, Amount, Work


def made_by_host(work, backward):
    work = replace(
        work, from_host=True, goal_of="peer", goal={FORWARD: 1.0, BOTH: 1.0} if backward else {FORWARD: 1.0}
    )
    work.peers = {name: run for name, run in work.peers.items() if name == "torch"}
    work.amounts = {FORWARD: Amount(), BOTH: Amount()} if backward else {FORWARD: Amount()}
    return work


def mm(device, m, n, k):
    def exact(a, b):
        return a @ b.t()

    return Work(
        name=f"mm {m} x {n} x {k}",
        ours=lambda a, b: ops.mm(a, b.t()),
        exact=exact,
        peers={"torch": exact},
        inputs=lambda m, n, k: [randn(device, m, k), randn(device, n, k)],
        shape=(m, n, k),
        amounts={FORWARD: Amount(bytes=(m * k + n * k) * size_of(device))},
    )


def works(peers, device, tiny):
    for rows, columns in ((4, 256),) if tiny else ((4, 4096), (128, 2048)):
        for work in of_rows(peers, device, rows, columns, rows):
            yield made_by_host(work, backward=work.op != "copy")
    yield made_by_host(transpose(peers, device, 64 if tiny else 512), backward=False)
    yield made_by_host(mm(device, *((8, 16, 32) if tiny else (128, 512, 512))), backward=True)
