"""Settings by which calls choose among the configurations that an op has: sizes of tiles, stages.

>>> with heddle.settings.set(heddle.PickBest, num_workers=8):
...     c = heddle.ops.matmul(a, b)  # times the configurations if nobody has
"""

import enum
from operator import index

from heddle import _heddle
from heddle.errors import InvalidArgument, named


class Policy(enum.Enum):
    """PickAny takes the configuration that was found best before, else the op's first. PickBest finds it."""

    PickAny = 0
    PickBest = 1


PickAny, PickBest = Policy.PickAny, Policy.PickBest


class _Scope:
    """Settings of one thread's calls, inside a `with`."""

    def __init__(self, values):
        self._values, self._before = values, []

    def __enter__(self) -> None:
        self._before.append(_heddle.swap_settings(self._values))
        return self

    def __exit__(self, *_: object) -> None:
        _heddle.swap_settings(self._before.pop())


def _number(name, value, least):
    try:
        value = index(value)
    except TypeError:
        value = None
    if value is None or not least <= value < 2**31:
        raise InvalidArgument(f"[settings] {name} must be a whole number of {least} or more")
    return value


def set_nvtx(on: bool = True) -> None:
    """Puts a range of NVTX around each call of an op, "heddle.rms_norm", for Nsight Systems and Nsight
    Compute. They are there by themselves in a process that Nsight Systems started, and with HEDDLE_NVTX=1.
    Raises Unsupported where neither torch with CUDA nor the package nvtx is there."""
    from heddle import ranges

    ranges.start() if on else ranges.stop()


@named
def set(
    policy: Policy,
    *,
    num_workers: int = 1,
    max_configs: int = 0,
    allow_failure: bool = True,
    allow_reorder: bool = False,
) -> _Scope:
    """Settings of this thread's calls, for a `with`.

    `num_workers`: how many configurations are compiled at once.
    `max_configs`: PickBest tries that many at most, the likely best first; 0: all.
    `allow_failure`: one that does not compile or run is left out; otherwise it ends the call with an error.
    `allow_reorder`: one that adds terms in another order, so that the last bits differ, may win.
    """
    if not isinstance(policy, Policy):
        raise InvalidArgument(f"[settings] policy is {policy!r}; must be heddle.PickAny or heddle.PickBest")
    workers, most = _number("num_workers", num_workers, 1), _number("max_configs", max_configs, 0)
    return _Scope((policy.value, workers, most, int(bool(allow_failure)), int(bool(allow_reorder))))
