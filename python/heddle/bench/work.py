"""A piece of work that is measured: what heddle calls, what the peers call, and how much it is."""

from collections.abc import Callable
from dataclasses import dataclass, field

FORWARD, BACKWARD, BOTH = "forward", "backward", "forward and backward"


@dataclass(frozen=True)
class Amount:
    """Bytes that are read and written at least, or floating-point operations; one of them is the limit."""

    bytes: int = 0
    flops: float = 0


@dataclass
class Work:
    """`inputs(*shape)` makes the tensors of a call. `exact` is the definition by torch, for any dtype: its
    result in float32 is right, and its error in the tensors' own dtype is what is allowed, nearly. It is
    computed on tensors of `check_shape`. A function of `peers` that raises is left out, with its reason.
    """

    name: str
    ours: Callable
    exact: Callable
    peers: dict
    inputs: Callable
    shape: tuple
    amounts: dict  # Amount by part: FORWARD, BACKWARD, BOTH
    check_shape: tuple = ()
    from_host: bool = False  # as the host makes the calls; else the device's time
    sustain: bool = False
    count_memory: bool = False
    sets: int = 1  # bytes of tensors, taken in turn, so that no cache holds them
    rounding: float = 0  # error that the work may have besides, where it rounds more than its dtype
    gradients: tuple = field(default=())  # numbers of the tensors that get one; empty: all floats
    goal: dict = field(default_factory=dict)  # least ratio by part
    goal_of: str = "peer"  # to the fastest one, or to a "copy" of as many bytes
    kind: str = ""  # works of one kind share a bar

    @property
    def op(self):
        return self.name.split(" ")[0]


def leaves_of(work, tensors):
    """The tensors as leaves that want gradients, and the positions of those."""
    wanted = work.gradients or [i for i, each in enumerate(tensors) if each.is_floating_point()]
    made = [each.detach().clone().requires_grad_(i in wanted) for i, each in enumerate(tensors)]
    return made, list(wanted)


def gradients(work, function, tensors, dy):
    import torch

    made, wanted = leaves_of(work, tensors)
    y = function(*made)
    return torch.autograd.grad(y, [made[i] for i in wanted], dy.to(y.dtype))


def calls_of(work, part, function, tensors):
    """A function without arguments that does `part` of the work."""
    import torch

    if part == FORWARD:

        def forward():
            with torch.no_grad():
                return function(*tensors)

        return forward
    made, wanted = leaves_of(work, tensors)
    sources = [made[i] for i in wanted]
    if part == BOTH:
        dy = torch.ones_like(function(*made))
        return lambda: torch.autograd.grad(function(*made), sources, dy)
    y = function(*made)
    dy = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, sources, dy, retain_graph=True)
