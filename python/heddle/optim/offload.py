"""AdamW with its states on the host, where most of the update is done."""

import time

import torch

from heddle.errors import InvalidArgument
from heddle.optim import states, update
from heddle.optim.adamw import AdamW

AUTO = 0.25  # the device's share of the first step where it is measured


class OffloadAdamW(AdamW):
    """AdamW with states on the host, in page-locked memory where parameters lie on a GPU. Parameters and
    gradients stay where they are.

    `state_dtype`: "fp32" (8 bytes a parameter), "bf16" (4, rounded up or down at random, with the chances
    that keep the mean), or "int8" (2, as AdamW8bit). A bf16 parameter has 2 bytes more, its residual.

    `gpu_fraction`, 0 to 1, is the share of the elements that the GPU updates, on states that are copied there
    and back; the host updates the others meanwhile. "auto" follows from the rates of the step before, and is
    0 on a CPU. The bits are the same for every share. `threads` of the host; None: as many as torch's."""

    offloads = True
    _options = (*AdamW._options, "state_dtype", "gpu_fraction", "threads", "_measured")

    def __init__(
        self, params, lr=1e-3, *more, state_dtype="fp32", gpu_fraction="auto", threads=None, **named
    ):
        if state_dtype not in states.DTYPES:
            raise InvalidArgument(
                f"[heddle.optim] state_dtype = {state_dtype!r}; must be one of {', '.join(states.DTYPES)}"
            )
        is_share = isinstance(gpu_fraction, int | float) and 0 <= gpu_fraction <= 1
        if gpu_fraction != "auto" and not is_share:
            raise InvalidArgument(
                f'[heddle.optim] gpu_fraction = {gpu_fraction!r}; must be from 0 to 1, or "auto"'
            )
        if threads is not None and threads < 1:
            raise InvalidArgument(f"[heddle.optim] threads = {threads}; must be 1 or more")
        self.state_dtype, self.gpu_fraction, self.threads = state_dtype, gpu_fraction, threads
        self._measured = AUTO
        self._staged = {}  # {address of a parameter: its page-locked copies}
        super().__init__(params, lr, *more, **named)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._staged = {}

    def _update(self, parts, numbers):
        on_cpu = [part for part in parts if part.param.device.type == "cpu"]
        ours, theirs = self._split(on_cpu, 0.0 if self.gpu_fraction == "auto" else self.gpu_fraction)
        update.on_host(ours, numbers, self.threads)
        update.on_device(theirs, numbers)
        for device in {part.param.device for part in parts} - {torch.device("cpu")}:
            with torch.cuda.device(device):
                self._update_away([part for part in parts if part.param.device == device], numbers)

    def _split(self, parts, share):
        """The host's elements, and the device's: the last ones, from a block's begin on."""
        left = round(sum(map(len, parts)) * (1 - share))
        ours, theirs = [], []
        for part in parts:
            here = len(part) if left >= len(part) else left // states.BLOCK * states.BLOCK
            left -= min(left, len(part))
            whole = part.flat()
            if here:
                ours.append(whole.cut(0, here))
            if here < len(whole):
                theirs.append(whole.cut(here, len(whole)))
        return ours, theirs

    def _update_away(self, parts, numbers):
        """Parts on a GPU. Copies to the host go first, then the device's share; meanwhile the host works."""
        share = self._measured if self.gpu_fraction == "auto" else self.gpu_fraction
        ours, theirs = self._split(parts, share)
        staged = []
        for part in ours:
            copies = self._stage(part)
            event = torch.cuda.Event()
            event.record()
            staged.append((part, copies, event))
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for part in theirs:
            device = part.param.device
            there = {name: each.to(device, non_blocking=True) for name, each in part.state.items()}
            away = update.Part(part.param, part.grad, there, part.first, part.seed)
            update.on_device([away], numbers)
            for name, each in there.items():
                part.state[name].copy_(each, non_blocking=True)
        end.record()
        began = time.perf_counter()
        for part, (param, grad), event in staged:
            event.synchronize()
            update.on_host(
                [update.Part(param, grad, part.state, part.first, part.seed)], numbers, self.threads
            )
            part.param.copy_(param, non_blocking=True)
        took = (time.perf_counter() - began) * 1e3
        end.synchronize()  # the states are on the host
        self._measure(sum(map(len, ours)) / took, sum(map(len, theirs)) / begin.elapsed_time(end))

    def _stage(self, part):
        """Page-locked copies of a part's parameter and gradient, which are on their way."""
        key, there = part.param.data_ptr(), (part.param, part.grad)
        room = self._staged.get(key)
        if room is None or len(room[0]) < len(part) or room[1].dtype != part.grad.dtype:
            room = [torch.empty(len(part), dtype=each.dtype, pin_memory=True) for each in there]
            self._staged[key] = room
        copies = [each[: len(part)] for each in room]
        for copy, each in zip(copies, there, strict=True):
            copy.copy_(each, non_blocking=True)
        return copies

    def _measure(self, host, device):
        """Elements a millisecond of both: the share with which they end together."""
        if host and device:
            self._measured = device / (host + device)
