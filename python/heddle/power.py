"""Power attention in chunks, around heddle's ops."""

from heddle import ops
from heddle.errors import InvalidArgument, named

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from typing import Literal, TypeVar, overload

    T = TypeVar("T", bound=ops.Tensor)

    @overload
    def power_attention(
        q: T,
        k: T,
        v: T,
        log_gates: T | None = None,
        *,
        power: Literal[2, 4] = 2,
        scale: float | None = None,
        chunk: int | None = 1024,
        normalise: bool = True,
        eps: float = 1e-6,
        state: T | None = None,
        return_state: Literal[False] = False,
    ) -> T: ...
    @overload
    def power_attention(
        q: T,
        k: T,
        v: T,
        log_gates: T | None = None,
        *,
        power: Literal[2, 4] = 2,
        scale: float | None = None,
        chunk: int | None = 1024,
        normalise: bool = True,
        eps: float = 1e-6,
        state: T | None = None,
        return_state: Literal[True],
    ) -> tuple[T, T]: ...


@named
def power_attention(
    q,
    k,
    v,
    log_gates=None,
    *,
    power=2,
    scale=None,
    chunk=1024,
    normalise=True,
    eps=1e-6,
    state=None,
    return_state=False,
):
    """Causal attention whose weights are powers of scores, in time that grows with the length alone.

    Position i weighs position j <= i by
        a_ij = exp(sum of log_gates over j < t <= i) * (scale <q_i, k_j>)^power
    y_i = sum of a_ij v_j, divided by the sum of a_ij + eps if `normalise`. Inside a chunk it is computed so.
    What came before is in a state [b, h, N, e]: sums of phi(k_j) v_j', read by phi(q_i), where phi is the
    symmetric power (heddle.ops.sympow). Results depend on `chunk` by rounding alone.

    q, k: [b, t, h, d], d a multiple of 8; v: [b, t, h, e]; log_gates: float32 [b, t, h], at most 0;
    power: 2 or 4; scale: 1 / sqrt(d) unless given. `state`: float32, what a call for the positions before
    returned with `return_state`, which makes the result (y, state). Normalised, it has e + 8 columns.
    """
    for name, value in (("q", q), ("k", k), ("v", v)):
        if len(getattr(value, "shape", ())) != 4:
            raise InvalidArgument(
                f"[power_attention] {name} is of type {type(value).__name__} and sizes"
                f" {list(getattr(value, 'shape', ()))}; must be a tensor [b, t, h, d]"
            )
    if chunk is not None and (not hasattr(chunk, "__index__") or chunk < 0):
        raise InvalidArgument(
            f"[power_attention] chunk is {chunk!r}; must be a whole number of positions, or 0 for all"
        )
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    length, chunk = q.shape[1], chunk or 0
    chunks = -(-length // chunk) if chunk else 1
    shape = {"power": power, "chunk": chunk}
    weights = {**shape, "scale": scale, "normalise": normalise, "eps": eps}
    sums = None if log_gates is None else ops.chunk_sum(log_gates, chunk=chunk)
    if chunks == 1 and state is None and not return_state:
        return ops.power_attention(q, k, v, sums, **weights)[0]
    added = ops.mma_sympow(k, ops.state_values(v, sums, chunk=chunk, normalise=normalise), **shape)
    before, last = ops.state_scan(added, sums, state, chunks=chunks, chunk=chunk)
    y, _ = ops.power_attention(q, k, v, sums, ops.sympow_mma(q, before, **shape), **weights)
    return (y, last) if return_state else y
