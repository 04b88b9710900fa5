"""Time: bursts in a new order each round, calls without a pause, and calls as the host makes them.

Needs torch alone: bench loads this file without the package.
"""

import contextlib
import random
import statistics
import time

BURST_MS = 4.0  # that a sample of a burst takes at least
MOST_CALLS = 200  # in a sample


def is_gpu(device):
    return str(device).startswith("cuda")


def wait(device):
    if is_gpu(device):
        import torch

        torch.cuda.synchronize()


def clock(device):
    """The host's clock; with one thread on a CPU the process's own time, which others do not lengthen."""
    if not is_gpu(device):
        import torch

        if torch.get_num_threads() == 1:
            return time.process_time
    return time.perf_counter


def _on_clock(run, calls, device, submit_s=0.0):
    """Milliseconds a call. On a GPU a kernel that sleeps precedes them in the queue while the
    host submits them, so that no call waits for the host."""
    if not is_gpu(device):
        now = clock(device)
        begin = now()
        for _ in range(calls):
            run()
        return (now() - begin) / calls * 1e3
    import torch

    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    if submit_s:
        torch.cuda._sleep(int(2e9 * (2 * submit_s * calls + 3e-4)))  # cycles, at 2 GHz at most
    begin.record()
    for _ in range(calls):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / calls


def _submit_s(run, device):
    """Seconds of the host for one call."""
    wait(device)
    begin = time.perf_counter()
    for _ in range(2):
        run()
    taken = (time.perf_counter() - begin) / 2
    wait(device)
    return max(taken, 1e-5)


def bursts(cases, device, rounds=5, calls=0):
    """Milliseconds of each of {name: function}: a list of `rounds` samples, taken in turn in a random order.
    `calls`: of a sample; 0: as many as take BURST_MS."""
    plan = {}
    for name, run in cases.items():
        run()
        submit = _submit_s(run, device)
        once = _on_clock(run, 1, device)
        plan[name] = (calls or max(1, min(MOST_CALLS, int(BURST_MS / max(once, 1e-4)))), submit)
    times = {name: [] for name in cases}
    order = list(cases)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            each, submit = plan[name]
            times[name].append(_on_clock(cases[name], each, device, submit))
    return times


def sustained(run, device="cuda", seconds=0.5):
    """Milliseconds a call while the device works without a pause."""
    once = _on_clock(run, 3, device)
    return _on_clock(run, max(3, int(seconds * 1e3 / once)), device)


def from_host(cases, device, rounds=5, calls=0):
    """Milliseconds from call to call as the host makes them, interpreter included."""
    plan = {}
    for name, run in cases.items():
        for _ in range(20 if is_gpu(device) else 3):
            run()
        plan[name] = calls or max(3, min(300, int(5e-3 / _submit_s(run, device))))
    times = {name: [] for name in cases}
    order, now = list(cases), clock(device)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            run = cases[name]
            wait(device)
            begin = now()
            for _ in range(plan[name]):
                run()
            wait(device)
            times[name].append((now() - begin) / plan[name] * 1e3)
    return times


def spread(samples):
    """Half of the distance between the quartiles, as a part of the median."""
    if len(samples) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2 / middle


@contextlib.contextmanager
def peak_bytes(device):
    """A list that holds, after the block, the most bytes that it had in memory at once; empty on a CPU."""
    found = []
    if not is_gpu(device):
        yield found
        return
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    yield found
    torch.cuda.synchronize()
    found.append(torch.cuda.max_memory_allocated() - before)


class Yardstick:
    """Known work next to each row: a copy of as many bytes, or a product of torch. It shows what the device
    does at that moment, so that rows of two runs can be compared."""

    def __init__(self, device, tiny):
        self.device, self.side = device, 256 if tiny else 4096 if is_gpu(device) else 1024

    def _dtype(self):
        import torch

        return torch.bfloat16 if is_gpu(self.device) else torch.float32

    def copy(self, size):
        """Reads size / 2 bytes and writes as many."""
        import torch

        source = torch.zeros(max(1, size // 2), dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    def product(self, side=0):
        import torch

        side = side or self.side
        a, b = (torch.randn(side, side, device=self.device).to(self._dtype()) for _ in range(2))
        made = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=made)

    def ceilings(self):
        """Measures the most that the device does: GB/s of a copy, and TFLOP/s of torch's product."""
        large = is_gpu(self.device)
        size = 1 << 30 if large else 64 << 20
        side = 8192 if large else self.side
        cases = {"copy": self.copy(size), "product": self.product(side)}
        times = bursts(cases, self.device, rounds=9 if large else 3)
        copy, product = (min(times[name]) for name in ("copy", "product"))
        dtype = str(self._dtype()).removeprefix("torch.")
        return {
            "copy": {
                "value": round(size / copy / 1e6, 1),
                "unit": "GB/s",
                "of": f"torch copies {size >> 20} MB",
            },
            "product": {
                "value": round(2 * side**3 / product / 1e9, 3),
                "unit": "TFLOP/s",
                "of": f"torch multiplies {side} x {side}, {dtype}",
            },
        }
