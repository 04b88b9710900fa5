"""Memory of training: which tensors a model's blocks keep for their backward, copy to the host, or make
again.

>>> memory = heddle.memory.checkpoint(model, peak="40 GB")  # then train as before
>>> print(memory.plan.table())  # from the third step on

The gradients have the same bits as without. See docs/training.md.
"""

from heddle.errors import InvalidArgument
from heddle.memory.managed import Managed, choice_of
from heddle.memory.plan import Goal, Plan

__all__ = ["Managed", "Plan", "checkpoint", "choice_of", "offload", "plan"]


def checkpoint(model, *, peak=None, budget=None, slowdown=None, plan=None, blocks=None):
    """Trains a model in less memory: for each block, and in it for each tensor, it chooses between keeping
    it, copying it to the host, and making it again.

    Give one goal: `peak`, of the device's memory, in bytes or as "40 GB"; `budget`, from 0 (the least memory)
    to 1 (all is kept); or `slowdown` (0.03: the lowest peak at which a step takes at most 3 % longer); or
    `plan`, as `plan()` makes it. `blocks` names the modules, or their classes, where the model's lists of
    blocks are not the right ones.

    The first step examines, the second measures, both in little memory; from then on the plan holds. Returns
    a `Managed`, which has the plan, and removes it. Raises InvalidArgument where the model checkpoints by
    itself, and Unsupported, with the least peak, at the step from which the plan holds, where no plan reaches
    the goal."""
    if plan is not None:
        if (peak, budget, slowdown) != (None, None, None):
            raise InvalidArgument("[heddle.memory] give a plan, or a goal of a new one: not both")
        return Managed(model, plan.goal, blocks, plan=plan)
    return Managed(model, Goal.of(peak, budget, slowdown), blocks)


def offload(model, *, peak=None, budget=None, slowdown=None, blocks=None):
    """As `checkpoint`, but nothing is made again: what does not stay on the device is copied to the host."""
    if (peak, budget, slowdown) == (None, None, None):
        slowdown = 0.03
    return Managed(model, Goal.of(peak, budget, slowdown), blocks, may_recompute=False)


def plan(model, step, *, peak=None, budget=None, slowdown=None, blocks=None):
    """The plan of a model, which stays as it was. `step` is called twice: it runs a forward and a backward,
    with a batch of the largest size, and nothing else."""
    with Managed(model, Goal.of(peak, budget, slowdown), blocks) as managed:
        return managed.measure(step)
