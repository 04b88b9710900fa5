"""linear_cross_entropy: time, and memory at its peak."""

import torch
from torch.nn import functional as F

import heddle
from heddle.bench.suites.tensors import dtype_of, randn
from heddle.bench.timing import is_gpu
from heddle.bench.work import BOTH, FORWARD, Amount, Work


def exact(x, weight, target):
    return F.cross_entropy((x @ weight.T).float(), target)


def works(peers, device, tiny):
    rows, width, classes = (
        (16, 32, 256) if tiny else (8192, 4096, 131072) if is_gpu(device) else (256, 512, 8192)
    )

    def inputs(rows, width, classes):
        # Logits of about one, as those of a model that has begun to learn.
        weight = randn(device, classes, width, dtype=torch.float32) * width**-0.5
        target = torch.randint(classes, (rows,), device=device)
        return [randn(device, rows, width), weight.to(dtype_of(device)), target]

    flops = 2.0 * rows * width * classes
    yield Work(
        name=f"linear_cross_entropy {rows} x {width} x {classes}",
        ours=heddle.linear_cross_entropy,
        exact=exact,
        peers=peers.of(exact) | peers.only(liger=peers.liger("LigerFusedLinearCrossEntropyFunction")),
        inputs=inputs,
        shape=(rows, width, classes),
        check_shape=(min(rows, 512), width, min(classes, 32768)),
        amounts={FORWARD: Amount(flops=flops), BOTH: Amount(flops=3 * flops)},
        count_memory=True,
        goal={FORWARD: 1.0, BOTH: 1.0},
    )
