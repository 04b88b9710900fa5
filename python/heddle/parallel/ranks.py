"""The processes of a group: what they send to one another, and errors that all of them raise together."""

import datetime
import functools
import hashlib
import weakref

import torch
import torch.distributed as dist

from heddle.errors import DeadlineExceeded, DeviceError, Error, InvalidArgument, Unsupported

LIMIT = 300.0  # seconds that a rank waits for another
MESSAGE = 1024  # bytes
KINDS = (None, InvalidArgument, Unsupported)
_known = weakref.WeakKeyDictionary()


def ranks_of(group, name):
    """The ranks of a ProcessGroup, of a DeviceMesh of one dimension, or (None) of all processes. An object
    with the methods of Ranks stands for itself."""
    if hasattr(group, "exchange"):
        return group
    if not dist.is_available() or not dist.is_initialized():
        raise InvalidArgument(f"[{name}] torch.distributed is not initialised; call init_process_group first")
    if hasattr(group, "get_group"):
        if group.ndim != 1:
            raise InvalidArgument(
                f"[{name}] the mesh has {group.ndim} dimensions; must have one, as mesh['cp'] has"
            )
        group = group.get_group()
    group = group or dist.group.WORLD
    if not isinstance(group, dist.ProcessGroup):
        raise InvalidArgument(
            f"[{name}] group is {group!r}; must be a ProcessGroup or DeviceMesh with this rank"
        )
    if group not in _known:
        _known[group] = Ranks(group)
    return _known[group]


class Ranks:
    """`rank` of `size`, in a ProcessGroup."""

    def __init__(self, group):
        self._group = weakref.ref(group)
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.agreed = {}  # by name, what was agreed on, and the own number: numbers of all ranks

    def exchange(self, sends, receives, name, limit=LIMIT):
        """Begins to send tensors, [(rank, tensor)], and to receive into others; returns a function that waits
        for all. Between two ranks, messages come in order. Tensors are contiguous; empty ones stay."""
        own = (
            [each for peer, each in side if peer == self.rank and each.numel()] for side in (sends, receives)
        )
        for source, target in zip(*own, strict=True):
            target.copy_(source)
        group = self._group()
        works = []
        for function, side in ((dist.isend, sends), (dist.irecv, receives)):
            for peer, tensor in side:
                if peer != self.rank and tensor.numel():
                    where = dist.get_global_rank(group, peer)
                    works.append((peer, dist.P2POp(function, tensor, where, group)))
        if not works:
            return lambda: None
        on_host = works[0][1].tensor.device.type == "cpu"
        lost = functools.partial(self._lost, name, limit)
        try:
            begun = dist.batch_isend_irecv([each for _, each in works])
        except RuntimeError as error:
            raise lost(None, error) from error
        # A backend may have one work for all.
        peers = [peer for peer, _ in works] if len(begun) == len(works) else [None] * len(begun)

        def wait():
            for peer, work in zip(peers, begun, strict=True):
                try:  # on a GPU the stream waits, and the limit is that of the ProcessGroup
                    work.wait(datetime.timedelta(seconds=limit)) if on_host else work.wait()
                except RuntimeError as error:
                    raise lost(peer, error) from error

        return wait

    def _lost(self, name, limit, peer, error):
        said = str(error).lower()
        late = "timed out" in said or "timeout" in said
        kind, did = (DeadlineExceeded, f"waited {limit:g} s for") if late else (DeviceError, "lost")
        whom = "others" if peer is None else f"rank {peer}"
        return kind(
            f"[{name}] rank {self.rank} of {self.size} {did} {whom}: a rank ended, or made another call"
        )


def everyones(ranks, tensor, name, limit=LIMIT):
    """The tensor of each rank, [ranks, ...]."""
    made = tensor.new_empty(ranks.size, *tensor.shape)
    made[ranks.rank] = tensor
    others = [rank for rank in range(ranks.size) if rank != ranks.rank]
    sends = [(rank, made[ranks.rank]) for rank in others]
    ranks.exchange(sends, [(rank, made[rank]) for rank in others], name, limit)()
    return made


def agree(ranks, name, check, text, number=0, device="cpu", limit=LIMIT, once=False):
    """Has all ranks go on, or all raise the same error. `check`: a function that raises what is wrong with
    this rank's arguments; `text`: of what must be the same on all. Returns the `number` of each rank.

    Tensors on a GPU make the host wait. With `once`, ranks ask each other there once for each `text`, from
    which the numbers of all must follow."""
    kind, said = 0, text
    try:
        check()
    except Error as error:
        kind, said = (2 if isinstance(error, Unsupported) else 1), str(error)
    except Exception as error:
        kind, said = 1, f"[{name}] {type(error).__name__}: {error}"
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    once = once and torch.device(device).type != "cpu"
    if kind == 0 and once and (name, digest, number) in ranks.agreed:
        return ranks.agreed[name, digest, number]
    head = bytes([kind]) + int(number).to_bytes(8, "little") + digest
    own = (head + said.encode()[: MESSAGE - len(head)]).ljust(MESSAGE, b"\0")
    messages = everyones(ranks, torch.frombuffer(bytearray(own), dtype=torch.uint8).to(device), name, limit)
    read = [bytes(each.tolist()) for each in messages.cpu()]
    texts = [each[25:].rstrip(b"\0").decode(errors="ignore") for each in read]
    for rank, each in enumerate(read):
        if each[0]:
            raise KINDS[each[0]](f"{texts[rank]} (rank {rank} of {ranks.size})")
    for rank, each in enumerate(read):
        if each[9:25] != read[0][9:25]:
            raise InvalidArgument(
                f"[{name}] ranks differ: rank 0 has {texts[0]}; rank {rank} has {texts[rank]}; must be the"
                " same"
            )
    numbers = tuple(int.from_bytes(each[1:9], "little") for each in read)
    if once:
        ranks.agreed[name, digest, number] = numbers
    return numbers
