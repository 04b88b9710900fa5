"""Measures a step: the memory that each block takes besides what its plan holds, and times."""

import functools
import time

import torch

from heddle.memory.options import Profile


class Meter:
    """Memory and time of a device. On a CPU, of which torch counts no memory, only time."""

    def __init__(self, device):
        self.device, self.is_cuda = device, device.type == "cuda"

    def memory(self):
        """(bytes now, the most since the last reset)."""
        if not self.is_cuda:
            return 0, 0
        stats = torch._C._cuda_memoryStats(self.device.index or 0)["allocated_bytes"][
            "all"
        ]  # 30 us of CUDA's 100
        return stats["current"], stats["peak"]

    def reset(self):
        if self.is_cuda:
            torch.cuda.reset_peak_memory_stats(self.device)

    def mark(self):
        if self.is_cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(self.device))
            return event
        return time.perf_counter()

    def ms(self, begin, end):
        if self.is_cuda:
            end.synchronize()
            return begin.elapsed_time(end)
        return (end - begin) * 1e3


class Watch:
    """Observes the runs of one step. All that it notes of memory is besides what runs hold, and above the
    memory that there was at its begin."""

    def __init__(self, meter):
        self.meter = meter
        meter.reset()
        self.base = meter.memory()[0]
        self.profiles, self.marks = {}, {}  # by slot
        self.head_peak = 0
        self._held, self._slots = {}, {}  # by run
        self._is_head = False
        self._times = {}  # marks of each event of a backward

    def begin(self, run, slot):
        self._slots[run] = slot
        self.profiles[slot], self._times[slot] = Profile(), []
        self.marks[slot] = [self.meter.mark()]
        self._sample()

    def end(self, run):
        self.marks[self._slots[run]].append(self.meter.mark())
        self._hold(run)
        self._sample()
        self._is_head = True

    def finish(self):
        """Reads the times."""
        for slot, times in self._times.items():
            past = [self.meter.ms(times[0], each) for each in times]
            self.profiles[slot].shares = [each / max(past[-1], 1e-9) for each in past]
        self._held.clear()
        self._slots.clear()

    def is_over(self, slot):
        return len(self.marks.get(slot, ())) == 4

    def _hold(self, run):
        self._held[run] = sum(
            each.bytes for each in run.values if each.tensor is not None or each.coming is not None
        )

    def _sample(self):
        """(besides, at most since the last event; besides, now)."""
        now, most = self.meter.memory()
        held = sum(self._held.values())
        self.meter.reset()
        return max(0, most - self.base - held), max(0, now - self.base - held)

    def called(self, run, call):
        self._hold(run)
        most, _ = self._sample()
        self.profiles[self._slots[run]].forward.append((call, most, frozenset(run.living())))

    def taking(self, run, saved):
        self._event(run, saved.place)

    def taken(self, run, saved):
        self._hold(run)
        self.meter.reset()

    def released(self, run, saved):
        if run not in self._slots:
            return
        self._event(run, ~saved.place)
        self._hold(run)
        if not run.saved or all(each is saved for each in run.saved):
            self.marks[self._slots[run]].append(self.meter.mark())

    def _event(self, run, place):
        if self._is_head:
            self._is_head = False
            self.head_peak = max(self.head_peak, self._peek())
        marks = self.marks[self._slots[run]]
        if len(marks) == 2:
            marks.append(self.meter.mark())
        most, now = self._sample()
        self.profiles[self._slots[run]].backward.append((place, most, now))
        self._times[self._slots[run]].append(self.meter.mark())

    def _peek(self):
        return max(0, self.meter.memory()[1] - self.base - sum(self._held.values()))


@functools.cache
def meter_of(device):
    return Meter(device)
