"""Ranks that are threads of one process, on a transport that is as late as it may be."""

import queue
import random
import threading
import time

import torch

from heddle.errors import DeadlineExceeded


class Threads:
    """Has the methods of heddle.parallel.ranks.Ranks. A message is read when its receiver waits, after a
    random delay, and its target is not a number before."""

    def __init__(self, rank, boxes, seed):
        self.rank, self.size, self.agreed = rank, len(boxes), {}
        self._boxes, self._random = boxes, random.Random(seed + rank)

    def exchange(self, sends, receives, name, limit=300.0):
        sends = [each for each in sends if each[1].numel()]
        receives = [each for each in receives if each[1].numel()]
        for _, target in receives:
            target.fill_(torch.nan if target.is_floating_point() else 0)
        read = []
        for peer, tensor in sends:
            assert tensor.is_contiguous()
            read.append(threading.Event())
            self._boxes[self.rank][peer].put((tensor, read[-1]))

        def wait():
            for peer, target in receives:
                time.sleep(self._random.random() * 2e-4)
                try:
                    tensor, done = self._boxes[peer][self.rank].get(timeout=limit)
                except queue.Empty:
                    raise DeadlineExceeded(f"[{name}] rank {self.rank} waited for rank {peer}") from None
                assert tensor.shape == target.shape, (name, tensor.shape, target.shape)
                target.copy_(tensor)
                done.set()
            for done in read:
                if not done.wait(limit):
                    raise DeadlineExceeded(f"[{name}] nobody read what rank {self.rank} sent")

        return wait


def run(count, function, seed=0):
    """Returns what function(ranks) returns, or raises, on each of `count` threads."""
    boxes = [[queue.SimpleQueue() for _ in range(count)] for _ in range(count)]
    made = [None] * count

    def run_one(rank):
        try:
            made[rank] = function(Threads(rank, boxes, seed))
        except Exception as error:
            made[rank] = error

    threads = [threading.Thread(target=run_one, args=(rank,)) for rank in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads), "ranks hang"
    return made


def results(count, function, seed=0):
    """Returns it, and raises an error of a rank."""
    made = run(count, function, seed)
    for each in made:
        if isinstance(each, BaseException):
            raise each
    return made
