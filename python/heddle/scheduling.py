"""Schedulers written in Python. They see the tiles of a program and give each to a worker, in an order.

>>> def in_turn(work):
...     return work.deal(range(len(work.tiles)))
>>> heddle.Megakernel(calls, heddle.MegakernelConfig(scheduler=in_turn))
"""

from dataclasses import dataclass
from operator import index

from heddle import _heddle
from heddle.errors import InvalidArgument, did_you_mean


@dataclass(frozen=True)
class WorkTile:
    """A part of a call that one worker runs at once."""

    call: int  # index in Work.calls
    at: tuple[int, int, int, int]  # its coordinates: the rows and columns, say, as the op cuts them
    home: int | None  # the worker that must run it; None: any
    cost: float  # nanoseconds, estimated
    memory_bound: bool  # it waits for memory longer than it computes


@dataclass(frozen=True)
class WorkCall:
    name: str
    op: str
    after: tuple[int, ...]  # calls whose results or memory it needs; a tile may need a part of them only
    tiles: range  # indices in Work.tiles


@dataclass(frozen=True)
class Work:
    """The work to schedule. Calls come after those in `after`; tiles are in the order of calls."""

    calls: tuple[WorkCall, ...]
    tiles: tuple[WorkTile, ...]
    workers: int
    message: float  # nanoseconds until other workers know that a tile is done, estimated

    def deal(self, order):
        """Gives tiles, in this order, to their homes; those without one to the workers in turn."""
        streams = [[] for _ in range(self.workers)]
        turn = 0
        for tile in order:
            home = self.tiles[tile].home
            if home is None:
                home = turn % self.workers
                turn += 1
            streams[home].append(tile)
        return streams


@dataclass(frozen=True)
class LevelBatchedScheduler:
    """Names the scheduler "level_batched": level by level of calls, which is the default."""

    name = "level_batched"


@dataclass(frozen=True)
class BackwardScheduler:
    """Names the scheduler "backward": tiles on which most still depends come first."""

    name = "backward"


def check_scheduler(scheduler):
    """Returns what names a scheduler or is one: a function of Work, or a class of such functions."""
    named = (LevelBatchedScheduler, BackwardScheduler)
    if isinstance(scheduler, named) or scheduler in named:
        return scheduler.name
    if isinstance(scheduler, str):
        names = tuple(_heddle.schedulers())
        if scheduler not in names:
            near = did_you_mean(scheduler, names) or f"; they are {', '.join(names)}"
            raise InvalidArgument(f"[scheduler] {scheduler!r} is no scheduler{near}")
    elif not callable(scheduler):
        raise InvalidArgument(
            f"[scheduler] is {scheduler!r}; must be one of heddle.schedulers() or a function of heddle.Work"
        )
    return scheduler


def _described(calls, tiles, workers, message):
    tiles = tuple(WorkTile(*tile) for tile in tiles)
    made, begin = [], 0
    for number, call in enumerate(calls):
        end = begin
        while end < len(tiles) and tiles[end].call == number:
            end += 1
        made.append(WorkCall(*call, tiles=range(begin, end)))
        begin = end
    return Work(tuple(made), tiles, workers, message)


def run(scheduler, calls, tiles, workers, message):
    """Asks a scheduler for the tiles of each worker. heddle checks that they are complete and can run."""
    name = getattr(scheduler, "__qualname__", None) or type(scheduler).__qualname__
    policy = scheduler() if isinstance(scheduler, type) else scheduler
    streams = policy(_described(calls, tiles, workers, message))
    try:
        streams = [[index(tile) for tile in stream] for stream in streams]
    except TypeError as error:
        raise InvalidArgument(
            f"[scheduler] {name} returns {str(streams)[:60]}; must be a list of numbers of tiles for each"
            " worker"
        ) from error
    for worker, stream in enumerate(streams):
        for tile in stream:
            if not 0 <= tile < len(tiles):
                raise InvalidArgument(
                    f"[scheduler] {name} gives worker {worker} the tile {tile}; tiles are 0 to"
                    f" {len(tiles) - 1}"
                )
    return streams
