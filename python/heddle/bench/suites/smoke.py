"""A few rows of each kind, for a first look and for CI."""

from heddle.bench.suites import attention, gemm, rows, small
from heddle.bench.timing import is_gpu


def works(peers, device, tiny):
    large = is_gpu(device) and not tiny
    shape = (64, 256) if tiny else (32768, 4096) if large else (2048, 2048)
    some = ("copy", "softmax", "rms_norm", "gated_product")
    yield from rows.of_rows(peers, device, *shape, min(shape[0], 512), only=some)
    side = 64 if tiny else 8192 if large else 512
    yield gemm.product(peers, device, side, side, side)
    yield attention.plain(
        peers, device, *((1, 64, 2, 64) if tiny else (2, 8192, 16, 128) if large else (1, 512, 4, 64))
    )
    yield from list(small.works(peers, device, tiny))[:3]
