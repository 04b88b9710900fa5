"""Copies between a device and the host that run while the device works, and the memory on the host that they
use.

A lane runs its copies one after the other. Nothing waits for a copy but the device's own work, and only where
it is about to read or to give up what the copy writes or reads.
"""

import contextlib
import functools
import sys
import weakref

import torch

from heddle.display import bytes_text
from heddle.errors import Unsupported

ALIGNMENT = 512  # bytes
SEGMENT = 64 << 20  # bytes: the least that the arena asks of the system at once


class Lane:
    """Copies on a stream of their own. A ticket is the end of a copy; None ended before it was asked for."""

    def __init__(self, device):
        self.device = device
        self.stream = torch.cuda.Stream(device)

    def start(self, to, source, after=()):
        """Begins a copy when all that the caller's stream has been given, and the tickets, are done."""
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        for ticket in after:
            if ticket is not None:
                self.stream.wait_event(ticket)
        with torch.cuda.stream(self.stream):
            to.copy_(source, non_blocking=True)
            return self.stream.record_event()

    def wait(self, ticket):
        """The caller's stream goes on after the copy."""
        if ticket is not None:
            torch.cuda.current_stream(self.device).wait_event(ticket)


class HostLane:
    """Copies between tensors of the host, at once."""

    def start(self, to, source, after=()):
        to.copy_(source)

    def wait(self, ticket):
        pass


class Piece:
    """Some of an arena's memory. `after` are the copies that last used it."""

    __slots__ = ("after", "begin", "memory", "segment", "size")

    def __init__(self, segment, begin, size):
        self.segment, self.begin, self.size, self.after = segment, begin, size, ()
        self.memory = segment.memory[begin : begin + size]


class _Segment:
    def __init__(self, size, is_pinned):
        self.memory = torch.empty(size, dtype=torch.uint8)
        self.gaps = [(0, size, ())]  # begin, size, copies that last used it
        if is_pinned:
            self._pin()

    def _pin(self):
        self.memory.zero_()  # by all threads: the system gives the pages now
        runtime = torch.cuda.cudart()
        address, size = self.memory.data_ptr(), self.memory.numel()
        status = runtime.cudaHostRegister(address, size, 0)
        if int(status) != 0:
            raise Unsupported(
                f"[heddle.memory] the system did not lock {bytes_text(size)} of the host's memory for copies "
                f"(cudaHostRegister: {status}); keep more on the device, or raise its limit"
            )
        weakref.finalize(self, runtime.cudaHostUnregister, address)


def available():
    """Bytes of the host's memory that are free, or can be made so."""
    with contextlib.suppress(OSError, StopIteration), open("/proc/meminfo") as file:
        return int(next(line for line in file if line.startswith("MemAvailable")).split()[1]) << 10
    return sys.maxsize


class Arena:
    """Memory of the host, page-locked for a GPU, from which pieces are taken and to which they are given
    back."""

    def __init__(self, is_pinned):
        self.is_pinned, self.segments, self.used, self.peak = is_pinned, [], 0, 0

    @property
    def size(self):
        return sum(each.memory.numel() for each in self.segments)

    def reserve(self, size):
        """Has room for so many bytes, the new ones in one piece. Raises Unsupported if the host has less."""
        more = size - self.size
        if more <= 0:
            return
        there = available()
        if more > there:
            raise Unsupported(
                f"[heddle.memory] the plan offloads {bytes_text(size)}: {bytes_text(there)} of the host's "
                "memory are free; keep more on the device (a higher peak), or make more again (checkpoint)"
            )
        self.segments.append(_Segment(_rounded(max(more, SEGMENT)), self.is_pinned))

    def take(self, size):
        size = _rounded(size)
        for segment in self.segments:
            for at, (begin, room, after) in enumerate(segment.gaps):
                if room >= size:
                    rest = [(begin + size, room - size, after)] if room > size else []
                    segment.gaps[at : at + 1] = rest
                    return self._taken(segment, begin, size, after)
        self.segments.append(_Segment(max(size, SEGMENT), self.is_pinned))
        return self.take(size)

    def _taken(self, segment, begin, size, after):
        piece = Piece(segment, begin, size)
        piece.after = after
        self.used += size
        self.peak = max(self.peak, self.used)
        return piece

    def give_back(self, piece):
        gaps = piece.segment.gaps
        self.used -= piece.size
        at = next((at for at, gap in enumerate(gaps) if gap[0] > piece.begin), len(gaps))
        gaps.insert(at, (piece.begin, piece.size, piece.after))
        for left in (at, at - 1):
            if 0 <= left < len(gaps) - 1 and sum(gaps[left][:2]) == gaps[left + 1][0]:
                (begin, size, after), (_, more, later) = gaps[left : left + 2]
                both = {*after, *later}
                gaps[left : left + 2] = [
                    (begin, size + more, tuple(each for each in both if not each.query()))
                ]


def _rounded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


class Copies:
    """Moves tensors to the host and back, each way on a lane of its own."""

    def __init__(self, arena, leaving, coming):
        self.arena, self.leaving, self.coming = arena, leaving, coming

    def out(self, tensor):
        """Begins to copy a dense tensor to the host; (the piece that it goes to, a ticket). The tensor's
        memory must not change until the ticket was waited for."""
        piece = self.arena.take(tensor.numel() * tensor.element_size())
        return piece, self.leaving.start(_bytes_in(piece, tensor), _line(tensor), piece.after)

    def back(self, piece, like, after):
        """Begins to copy a piece back, after a ticket, into a new tensor; what `arrive` takes."""
        size, stride, dtype, device = like
        tensor = torch.empty_strided(size, stride, dtype=dtype, device=device)
        return tensor, self.coming.start(_line(tensor), _bytes_in(piece, tensor), (after,))

    def arrive(self, coming):
        tensor, ticket = coming
        self.coming.wait(ticket)
        return tensor

    def wait(self, leaving):
        self.leaving.wait(leaving)

    def give_back(self, piece, leaving, coming):
        """Gives up a piece, and the memory on the device that copies of it read and write."""
        self.leaving.wait(leaving)
        tickets = (leaving, coming and coming[1])
        self.coming.wait(tickets[1])
        piece.after = tuple(each for each in tickets if each is not None)
        self.arena.give_back(piece)


def _line(tensor):
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def _bytes_in(piece, tensor):
    return piece.memory[: tensor.numel() * tensor.element_size()].view(tensor.dtype)


@functools.cache
def copies_of(device):
    """The copies of a device, which all its models share."""
    if device.type == "cuda":
        return Copies(Arena(is_pinned=True), Lane(device), Lane(device))
    return Copies(Arena(is_pinned=False), HostLane(), HostLane())


@functools.cache
def rate_of(device):
    """Bytes in a millisecond that a copy moves, the slower way."""
    size = (256 << 20) if device.type == "cuda" else (8 << 20)
    copies = copies_of(device)
    there = torch.empty(size, dtype=torch.uint8, device=device)
    piece = copies.arena.take(size)
    rates = [_rate(piece.memory, there, device), _rate(there, piece.memory, device)]
    copies.arena.give_back(piece)
    return min(rates)


def _rate(to, source, device):
    import time

    took = []
    for _ in range(3):
        _synchronize(device)
        begin = time.perf_counter()
        to.copy_(source, non_blocking=True)
        _synchronize(device)
        took.append(time.perf_counter() - begin)
    return to.numel() / (min(took) * 1e3)


def _synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)
