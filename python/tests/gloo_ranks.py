"""Processes of gloo, of test_context_parallel_gloo.py: `gloo_ranks.py COUNT FILE` forks what was imported
once, and writes a line of JSON for each check and rank: its name, the rank, what it said."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.functional import scaled_dot_product_attention

import heddle
from heddle import attention
from heddle.parallel.ranks import ranks_of
from heddle.parallel.shards import deal

DOCUMENTS = (0, 50, 51, 130, 203)


def tensors(length=203, heads=6, groups=2, dim=16):
    made = torch.Generator().manual_seed(3)
    return [torch.randn(1, h, length, dim, generator=made) for h in (heads, groups, groups)]


def one_process():
    """Result and gradients of attention in one process."""
    given = [each.requires_grad_() for each in tensors()]
    starts = torch.tensor(DOCUMENTS, dtype=torch.int32)
    q, k, v = (each.transpose(1, 2) for each in given)
    y = heddle.ops.flash_attention(q, k, v, causal=True, cu_seqlens_q=starts, cu_seqlens_k=starts)[0]
    y = y.transpose(1, 2)
    return y.detach(), torch.autograd.grad(y.sin().sum(), given)


def compare(method, balance, exact):
    def check(rank, mesh):
        own = tensors()
        with attention.context_parallel(
            mesh,
            buffers=own,
            buffer_seq_dims=[2] * 3,
            method=method,
            balance=balance,
            cu_seqlens=DOCUMENTS,
            timeout=60,
        ) as parallel:
            local = [each.detach().requires_grad_() for each in own]
            y = scaled_dot_product_attention(*local, is_causal=True, enable_gqa=True)
            gradients = torch.autograd.grad(y.sin().sum(), local)
            made = [parallel.unshard(each, 2) for each in (y, *gradients)]
        wanted, of_inputs = one_process()
        if exact:
            assert torch.equal(made[0], wanted)
        for each, one in zip(made, (wanted, *of_inputs), strict=True):
            torch.testing.assert_close(each, one, rtol=1e-4, atol=1e-5)
        assert all(torch.equal(a, b) for a, b in zip(own, tensors(), strict=True))

    return check


def check_ring_in_half_precision(rank, mesh):
    shards = deal(203, mesh.size())
    own = [shards.shard(each, 2, rank).bfloat16() for each in tensors()]
    y = attention.ring_attention(*own, mesh.get_group(), causal=True)
    q, k, v = (each.bfloat16().transpose(1, 2) for each in tensors())
    wanted = heddle.ops.flash_attention(q, k, v, causal=True)[0].transpose(1, 2)
    torch.testing.assert_close(y, shards.shard(wanted, 2, rank), rtol=2e-2, atol=2e-2)


def check_one_error(rank, mesh):
    q = torch.randn(1, 2, 8, 16 if rank != 1 else 12)
    k = torch.randn(1, 2, 8, 16)
    try:
        attention.ring_attention(q, k, k, mesh)
    except heddle.InvalidArgument as error:
        return str(error)
    return "no error"


def check_mean_loss(rank, mesh):
    summed = torch.tensor(float(rank), requires_grad=True)
    mean = attention.mean_loss(summed, rank + 1, mesh)
    mean.backward()
    count = mesh.size()
    assert abs(mean.item() - (count - 1) / (count + 1)) < 1e-6
    assert abs(summed.grad.item() - 2 / (count * (count + 1))) < 1e-7


def check_that_nobody_waits_for_ever(rank, mesh):
    """The last one: connections are gone after it."""
    if rank == 0:
        time.sleep(1)
        return
    began, error = time.monotonic(), None
    try:
        attention.ring_attention(*(torch.randn(1, 1, 4, 8) for _ in range(3)), mesh, timeout=0.3)
    except (heddle.DeadlineExceeded, heddle.DeviceError) as raised:
        error = raised
    assert f"rank {rank} of {mesh.size()}" in str(error)
    assert time.monotonic() - began < 5


CHECKS = {
    "allgather": compare("allgather", "zigzag", True),
    "allgather documents": compare("allgather", "documents", True),
    "ring": compare("ring", "zigzag", False),
    "ulysses": compare("ulysses", "contiguous", True),
    "half precision": check_ring_in_half_precision,
    "one error": check_one_error,
    "mean loss": check_mean_loss,
    "nobody waits": check_that_nobody_waits_for_ever,
}


def run(rank, count, file, names):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=count)
    mesh = dist.device_mesh.init_device_mesh("cpu", (count,), mesh_dim_names=("cp",))
    assert ranks_of(mesh, "test") is ranks_of(mesh.get_group(), "test")
    for name in names:
        try:
            said = CHECKS[name](rank, mesh) or "ok"
        except BaseException as error:
            said = f"failed: {type(error).__name__}: {error}"
        sys.stdout.write(json.dumps([name, rank, said]) + "\n")
        sys.stdout.flush()


def main():
    count, file, names = int(sys.argv[1]), sys.argv[2], sys.argv[3:] or list(CHECKS)
    for rank in range(1, count):
        if os.fork() == 0:
            run(rank, count, file, names)
            os._exit(0)
    run(0, count, file, names)
    for _ in range(1, count):
        os.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
