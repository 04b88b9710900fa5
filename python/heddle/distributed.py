"""Gradients of DistributedDataParallel in fewer bytes on the wire.

>>> state = heddle.distributed.compress(ddp_model, "int8")  # then train as before

It pays where processes are joined by a slow link, and costs time where the link is fast. See
docs/training.md.
"""

import torch
import torch.distributed as dist

import heddle.ops
from heddle.errors import InvalidArgument

# torch gave it another name.
_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor

__all__ = ["METHODS", "CompressState", "compress", "compress_hook"]

BLOCK = 256  # elements that share a scale
METHODS = ("int8", "e4m3", "topk")
CODES = {"int8": ("i8", torch.int8), "e4m3": ("e4m3", torch.float8_e4m3fn)}


def compress(model, method="int8", *, process_group=None, **options):
    """Has a DistributedDataParallel exchange compressed gradients. Returns the `CompressState`, whose options
    are the others."""
    state = CompressState(model, method, process_group=process_group, **options)
    model.register_comm_hook(state, compress_hook)
    return state


class CompressState:
    """The way in which gradients are compressed, and each parameter's losses so far on this rank.

    method: "int8" or "e4m3", codes of 8 bits with a scale for each 256 elements; or "topk", the share `ratio`
    of the elements that are largest, with their places. error_feedback: what a step loses is added to the
    next one's gradient. The first `start_iter` steps, and buckets of fewer than `min_bytes`, are exchanged as
    they are.

    `sent_bytes` and `plain_bytes` count what this rank sent, and what a ring of f32 would have. `nonfinite`
    counts buckets with an infinity or NaN, which comes out as NaN on all ranks and leaves no error."""

    def __init__(
        self,
        model,
        method="int8",
        *,
        error_feedback=True,
        start_iter=100,
        min_bytes=1 << 16,
        ratio=0.01,
        process_group=None,
    ):
        if method not in METHODS:
            raise InvalidArgument(
                f"[heddle.distributed] method = {method!r}; must be one of {', '.join(METHODS)}"
            )
        if not 0 < ratio <= 1:
            raise InvalidArgument(f"[heddle.distributed] ratio = {ratio}; must be above 0 and at most 1")
        self.method, self.error_feedback, self.ratio = method, error_feedback, ratio
        self.start_iter, self.min_bytes, self.process_group = start_iter, min_bytes, process_group
        self.step, self.sent_bytes, self.plain_bytes = 0, 0, 0
        named = getattr(model, "module", model).named_parameters()
        self.names = {param: name for name, param in named}
        self._errors = {}  # {parameter: f32, flat}: DDP makes other buckets of them after the first step
        self._nonfinite = None  # a tensor, so that nobody waits for a GPU

    @property
    def nonfinite(self):
        return 0 if self._nonfinite is None else int(self._nonfinite)

    def state_dict(self):
        """This rank's step and errors, by the names of parameters."""
        errors = {self.names[param]: each.clone() for param, each in self._errors.items()}
        return {"method": self.method, "step": self.step, "errors": errors}

    def load_state_dict(self, saved):
        params = {name: param for param, name in self.names.items()}
        for name, error in saved["errors"].items():
            if name not in params or params[name].numel() != error.numel():
                raise InvalidArgument(
                    f"[heddle.distributed] the saved error of {name} has {error.numel()} elements; "
                    + (f"must have {params[name].numel()}" if name in params else "the model has no such one")
                )
        self.step = saved["step"]
        self._errors = {
            params[name]: error.to(params[name].device, copy=True) for name, error in saved["errors"].items()
        }

    def _take(self, bucket):
        """The bucket's gradients with what was lost before, flat in f32."""
        flat = bucket.buffer().float()
        if self.error_feedback and self._errors:
            lost = [self._errors.get(param) for param in bucket.parameters()]
            for (begin, end), error in zip(_places(bucket), lost, strict=True):
                if error is not None:
                    if flat.data_ptr() == bucket.buffer().data_ptr():
                        flat = flat.clone()
                    flat[begin:end] += error
        return flat

    def _keep(self, bucket, lost):
        if self.error_feedback:
            lost = torch.where(lost.isfinite(), lost, 0.0)
            for (begin, end), param in zip(_places(bucket), bucket.parameters(), strict=True):
                self._errors[param] = lost[begin:end]

    def _count(self, bucket, sent, world):
        self.sent_bytes += sent
        self.plain_bytes += 2 * (world - 1) * 4 * bucket.buffer().numel() // world


def _places(bucket):
    """Where each parameter's gradient lies in the bucket's buffer."""
    first = bucket.buffer().storage_offset()
    for grad in bucket.gradients():
        begin = grad.storage_offset() - first
        yield begin, begin + grad.numel()


def compress_hook(state, bucket):
    """The hook of DDP: gives the mean of all ranks' gradients, the same bits on each. Sums go in the order of
    ranks. It exchanges bucket after bucket, on the stream that the backward runs on."""
    group = state.process_group or dist.group.WORLD
    buffer, world = bucket.buffer(), dist.get_world_size(group)
    step = state.step
    if bucket.is_last():
        state.step += 1
    if step < state.start_iter or buffer.numel() * buffer.element_size() < state.min_bytes:
        state._count(bucket, 2 * (world - 1) * buffer.numel() * buffer.element_size() // world, world)
        buffer /= world
        dist.all_reduce(buffer, group=group)
        return _done(buffer)
    flat = state._take(bucket)
    mean, lost, sent = (_by_largest if state.method == "topk" else _by_codes)(state, flat, group)
    state._keep(bucket, lost)
    state._count(bucket, sent, world)
    is_bad = ~mean.isfinite().all()
    state._nonfinite = is_bad.int() if state._nonfinite is None else state._nonfinite + is_bad
    return _done(buffer.copy_(mean))


def _done(buffer):
    future = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
    future.set_result(buffer)
    return future


def _coded(blocks, method):
    """Blocks of f32 as bytes: codes, then scales."""
    codes, scales = heddle.ops.quantize(blocks, code=CODES[method][0], by="row")
    return codes, scales


def _packed(codes, scales, parts):
    return torch.cat(
        [codes.view(torch.uint8).view(parts, -1), scales.contiguous().view(torch.uint8).view(parts, -1)], 1
    )


def _unpacked(packed, method):
    """f32 of each part."""
    blocks = packed.shape[1] // (BLOCK + 4)
    codes = packed[:, : blocks * BLOCK].contiguous().view(CODES[method][1])
    scales = packed[:, blocks * BLOCK :].contiguous().view(torch.float32)
    return (codes.float().view(-1, blocks, BLOCK) * scales[:, :, None]).view(len(packed), -1)


def _by_codes(state, flat, group):
    """Each rank adds up its part of all, and hands round the mean, in codes both times."""
    world, rank, method = dist.get_world_size(group), dist.get_rank(group), state.method
    count = len(flat)
    padded = torch.nn.functional.pad(flat, (0, -count % (world * BLOCK)))
    sent = _packed(*_coded(padded.view(-1, BLOCK), method), world)
    lost = padded - _unpacked(sent, method).view(-1)
    got = torch.empty_like(sent)
    dist.all_to_all_single(got, sent, group=group)
    parts = _unpacked(got, method)
    mean = parts[0]
    for part in parts[1:]:
        mean += part
    mean /= world
    mine = _packed(*_coded(mean.view(-1, BLOCK), method), 1)
    # The mean's own loss is this rank's, which has to give `world` times as much to make up for it.
    lost.view(world, -1)[rank] += (mean - _unpacked(mine, method)[0]) * world
    all_parts = torch.empty_like(sent)
    _gather(all_parts, mine, group=group)
    whole = _unpacked(all_parts, method).view(-1)[:count]
    return whole, lost[:count], 2 * (world - 1) * mine.numel()


def _by_largest(state, flat, group):
    """All ranks' largest elements, with their places."""
    world = dist.get_world_size(group)
    count = max(1, int(state.ratio * len(flat)))
    places = flat.abs().topk(count, sorted=False).indices
    sent = torch.stack([flat[places].view(torch.int32), places.int()])
    got = sent.new_empty(world, *sent.shape)
    _gather(got, sent[None], group=group)
    mean = torch.zeros_like(flat)
    for values, at in got:
        mean[at.long()] += values.view(torch.float32) / world
    lost = flat.clone()
    lost[places] = 0
    return mean, lost, (world - 1) * sent.numel() * 4
