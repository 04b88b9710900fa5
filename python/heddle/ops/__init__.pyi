# Written by python/tools/make_stubs.py from the fields of the ops; do not edit.
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from heddle.ops.info import OpInfo as OpInfo
from heddle.ops.info import info as info

class Tensor(Protocol):
    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any: ...

T = TypeVar("T", bound=Tensor)  # torch.Tensor, numpy.ndarray
NAMES: tuple[str, ...]

def activation(
    x: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = f(x): SiLU, GELU (exact, tanh) or ReLU

    x: [M, N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def activation_backward(
    x: T,
    dy: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """dx = dy * f'(x), element by element

    x: [M, N], float32 | float16 | bfloat16
    dy: [M, N], float32 | float16 | bfloat16
    returns dx: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def add(a: T, b: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = a + b, and on request a rounded copy of y

    a: [M, N], float32 | float16 | bfloat16
    b: [M, N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16; copy: [M, N], float32 | float16 | bfloat16; optional

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def add_backward(dy: T, dcopy: T | None = None, *, out: T | dict[str, T] | None = None) -> T:
    """dx of add: dy, plus dcopy where it is given

    dy: [M, N], float32 | float16 | bfloat16
    dcopy: [M, N], float32 | float16 | bfloat16; optional
    returns dx: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def argmax(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = index of the largest element of each row, lowest first

    x: [M, N], float32 | float16 | bfloat16
    returns y: [M], int32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def attention(
    step: T,
    state: T,
    q: T,
    k: T,
    v: T,
    keys: T,
    values: T,
    latent: T | None = None,
    *,
    heads: int = 0,
    kv_heads: int = 0,
    block_heads: int = 1,
    scale: float = 1.0,
    softcap: float = 0.0,
    window: int = 0,
    block_rows: int = 1,
    max_blocks: int = 1,
    max_splits: int = 1,
    split_unit: int = 256,
    chunk: int = 64,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> NoReturn:
    """causal attention of row blocks over splits of the KV range

    step: [.], uint8
    state: [.], uint8
    q: [M, .], float32 | float16 | bfloat16
    k: [M, .], float32 | float16 | bfloat16
    v: [M, .], float32 | float16 | bfloat16
    keys: [P, G, S, D], float32 | float16 | bfloat16
    values: [P, G, S, E], float32 | float16 | bfloat16
    latent: [M, .], float32 | float16 | bfloat16; optional
    returns part: [M, H, C, E], float32 | float16 | bfloat16; stats: [M, H, C, .], float32

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def attention_merge(
    step: T,
    state: T,
    part: T,
    stats: T,
    *,
    block_rows: int = 1,
    max_blocks: int = 1,
    max_splits: int = 1,
    split_unit: int = 256,
    window: int = 0,
    out: T | dict[str, T] | None = None,
) -> NoReturn:
    """joins the splits of attention in a fixed order

    step: [.], uint8
    state: [.], uint8
    part: [M, H, C, D], float32 | float16 | bfloat16
    stats: [M, H, C, .], float32
    returns y: [M, .], float32 | float16 | bfloat16

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def attention_sink(
    sinks: T,
    part: T,
    stats: T,
    *,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """gives each head's sink a share of its attention

    sinks: [H], float32
    part: [M, H, C, D], float32 | float16 | bfloat16
    stats: [M, H, C, .], float32
    returns y: [M, H, C, D], float32 | float16 | bfloat16; new_stats: [M, H, C, .], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def bias(x: T, bias: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = x + bias, the same bias for every row

    x: [M, N], float32 | float16 | bfloat16
    bias: [N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def clamped_gate(
    x: T,
    *,
    alpha: float = 1.7020000219345093,
    limit: float = 7.0,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = (up + 1) gate sigmoid(alpha gate), of clamped pairs

    x: [M, 2N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def column_sum(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = sum of the rows of x

    x: [M, N], float32 | float16 | bfloat16
    returns y: [N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def copy(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = x in the element type of y

    x: [M, N], float32 | float16 | bfloat16 | int32
    returns y: [M, N], float32 | float16 | bfloat16 | int32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def embedding(
    state: T,
    table: T,
    *,
    by_position: int = 0,
    scale: float = 1.0,
    out: T | dict[str, T] | None = None,
) -> NoReturn:
    """y = rows of a table, by token or by position

    state: [.], uint8
    table: [V, D], float32 | float16 | bfloat16
    returns y: [M, D], float32 | float16 | bfloat16; copy: [M, D], float32 | float16 | bfloat16; optional

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def embedding_backward(
    state: T,
    table: T,
    dy: T,
    dcopy: T | None = None,
    *,
    by_position: int = 0,
    scale: float = 1.0,
    out: T | dict[str, T] | None = None,
) -> NoReturn:
    """dtable of embedding: the rows of dy, each added to the row it took

    state: [.], uint8
    table: [V, D], float32 | float16 | bfloat16
    dy: [M, D], float32 | float16 | bfloat16
    dcopy: [M, D], float32 | float16 | bfloat16; optional
    returns dtable: [V, D], float32

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def expert_bias(step: T, choice: T, x: T, bias: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x + the bias of the expert each row chose

    step: [.], uint8
    choice: [T, C], int32
    x: [X, D], float32 | float16 | bfloat16
    bias: [.], float32 | float16 | bfloat16
    returns y: [Y, D], float32 | float16 | bfloat16

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def expert_linear(step: T, choice: T, x: T, w: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x w^T, w that of the expert each row chose; takes epilogues

    step: [.], uint8
    choice: [T, C], int32
    x: [X, K], float32 | float16 | bfloat16
    w: [N, K], float32 | float16 | bfloat16
    returns y: [Y, N], float32 | float16 | bfloat16

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def expert_sum(x: T, share: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = the outputs of a token's experts, each by its share

    x: [X, D], float32 | float16 | bfloat16
    share: [T, C], float32
    returns y: [T, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def gate_rows(x: T, gate: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = x, each row times the sigmoid of its gate

    x: [M, N], float32 | float16 | bfloat16
    gate: [M, .], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def gate_rows_backward(
    x: T,
    gate: T,
    dy: T,
    *,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dx and dgate of gate_rows

    x: [M, N], float32 | float16 | bfloat16
    gate: [M, .], float32 | float16 | bfloat16
    dy: [M, N], float32 | float16 | bfloat16
    returns dx: [M, N], float32 | float16 | bfloat16; dgate: [M, .], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def gated_activation(
    x: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = f(gate) * up, of pairs (gate, up) side by side

    x: [M, 2N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def gated_activation_backward(
    x: T,
    dy: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """dx of pairs (gate, up): dy * up * f'(gate), dy * f(gate)

    x: [M, 2N], float32 | float16 | bfloat16
    dy: [M, N], float32 | float16 | bfloat16
    returns dx: [M, 2N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def gather_rows(step: T, x: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = the rows of x whose logits are wanted

    step: [.], uint8
    x: [T, D], float32 | float16 | bfloat16
    returns y: [M, D], float32 | float16 | bfloat16

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def head_linear(x: T, w: T, *, heads: int = 1, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x w^T with rows of the weight of each head's own

    x: [M, .], float32 | float16 | bfloat16
    w: [N, K], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises Unsupported: it takes a packed weight, which only a program has: use matmul for a product of plain
      tensors.
    """

def head_norm(
    x: T,
    weight: T,
    *,
    head_dim: int = 0,
    heads: int = 0,
    centred: int = 0,
    eps: float = 9.999999747378752e-06,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = x with each of its leading heads normalised

    x: [M, N], float32 | float16 | bfloat16
    weight: [.], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def head_norm_backward(
    x: T,
    weight: T,
    dy: T,
    *,
    head_dim: int = 0,
    heads: int = 0,
    centred: int = 0,
    eps: float = 9.999999747378752e-06,
    part_rows: int = 16,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dx of head_norm, and dweight in parts of some rows

    x: [M, N], float32 | float16 | bfloat16
    weight: [W], float32 | float16 | bfloat16
    dy: [M, N], float32 | float16 | bfloat16
    returns dx: [M, N], float32 | float16 | bfloat16; dweight_parts: [P, W], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def kv_append(
    step: T,
    state: T,
    x: T,
    *,
    key_column: int = 0,
    value_column: int = 0,
    out: T | dict[str, T] | None = None,
) -> NoReturn:
    """stores the new keys and values of a step in their pages

    step: [.], uint8
    state: [.], uint8
    x: [M, N], float32 | float16 | bfloat16
    returns keys: [P, H, S, D], float32 | float16 | bfloat16; values: [P, H, S, D], float32 | float16 |
      bfloat16; optional

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def layer_norm(
    x: T,
    weight: T,
    bias: T | None = None,
    *,
    eps: float = 9.999999747378752e-06,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = (x - mean) / sqrt(variance + eps) * weight + bias, row by row

    x: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    bias: [D], float32 | float16 | bfloat16; optional
    returns y: [M, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def layer_norm_backward(
    x: T,
    weight: T,
    dy: T,
    *,
    eps: float = 9.999999747378752e-06,
    part_rows: int = 16,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """dx of layer_norm, and dweight and dbias in parts of some rows

    x: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    dy: [M, D], float32 | float16 | bfloat16
    returns dx: [M, D], float32 | float16 | bfloat16; dweight_parts: [P, D], float32; dbias_parts: [P, D],
      float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def linear(x: T, w: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x w^T with a packed weight; takes a prologue and epilogues

    x: [M, K], float32 | float16 | bfloat16
    w: [N, K], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises Unsupported: it takes a packed weight, which only a program has: use matmul for a product of plain
      tensors.
    """

def matmul(
    a: T,
    b: T,
    a_scales: T | None = None,
    a_zeros: T | None = None,
    b_scales: T | None = None,
    b_zeros: T | None = None,
    *,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = a b, of matrices in rows or in columns, floats or codes with scales

    a: [M, K], float32 | float16 | bfloat16 | float8_e4m3fn | float8_e5m2 | int8 | int4
    b: [K, N], float32 | float16 | bfloat16 | float8_e4m3fn | float8_e5m2 | int8 | int4
    a_scales: [., .], float32; optional
    a_zeros: [., .], float32; optional
    b_scales: [., .], float32; optional
    b_zeros: [., .], float32; optional
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def multiply(a: T, b: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = a * b, element by element

    a: [M, N], float32 | float16 | bfloat16
    b: [M, N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def position_gain(
    state: T,
    x: T,
    gains: T,
    *,
    period: int = 1,
    out: T | dict[str, T] | None = None,
) -> NoReturn:
    """y = x, each row times the gain of its position

    state: [.], uint8
    x: [M, N], float32 | float16 | bfloat16
    gains: [.], float32
    returns y: [M, N], float32 | float16 | bfloat16

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def reduce(x: T, *, kind: Literal["sum", "max", "mean"] = "sum", out: T | dict[str, T] | None = None) -> T:
    """y = sum, maximum or mean of each row of x

    x: [M, D], float32 | float16 | bfloat16
    returns y: [M], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def rms_norm(
    x: T,
    weight: T,
    *,
    eps: float = 9.999999747378752e-06,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = x / sqrt(mean(x^2) + eps) * weight, row by row

    x: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    returns y: [M, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def rms_norm_backward(
    x: T,
    weight: T,
    dy: T,
    *,
    eps: float = 9.999999747378752e-06,
    part_rows: int = 16,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dx of rms_norm, and dweight in parts of some rows

    x: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    dy: [M, D], float32 | float16 | bfloat16
    returns dx: [M, D], float32 | float16 | bfloat16; dweight_parts: [P, D], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def rope(
    x: T,
    table: T,
    *,
    head_dim: int = 0,
    rotary_dim: int = 0,
    heads: int = 0,
    interleaved: int = 1,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = x with the pairs of its leading heads turned by their position

    x: [M, N], float32 | float16 | bfloat16
    table: [M, R], float32
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def rope_backward(
    dy: T,
    table: T,
    *,
    head_dim: int = 0,
    rotary_dim: int = 0,
    heads: int = 0,
    interleaved: int = 1,
    out: T | dict[str, T] | None = None,
) -> T:
    """dx = dy with the pairs of its leading heads turned back

    dy: [M, N], float32 | float16 | bfloat16
    table: [M, R], float32
    returns dx: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def rope_table(state: T, inv_freq: T, *, scale: float = 1.0, out: T | dict[str, T] | None = None) -> NoReturn:
    """table = (cos, sin) of each row's position by frequency

    state: [.], uint8
    inv_freq: [P], float32
    returns table: [M, 2P], float32

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def route(
    logits: T,
    bias: T | None = None,
    *,
    sigmoid: int = 0,
    normalise: int = 0,
    groups: int = 1,
    groups_kept: int = 1,
    scores_of_group: int = 1,
    scale: float = 1.0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """which experts a token takes, and their shares

    logits: [T, E], float32 | float16 | bfloat16
    bias: [E], float32 | float16 | bfloat16; optional
    returns choice: [T, C], int32; share: [T, C], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def router(x: T, w: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """logits of experts: x w^T in FP32, whatever the weight's dtype

    x: [T, K], float32 | float16 | bfloat16
    w: [E, K], float32 | float16 | bfloat16
    returns y: [T, E], float32

    Raises Unsupported: it takes a packed weight, which only a program has: use matmul for a product of plain
      tensors.
    """

def sample(
    step: T,
    logits: T,
    best: T | None = None,
    sorted: T | None = None,
    blocks: T | None = None,
    *,
    out: T | dict[str, T] | None = None,
) -> NoReturn:
    """chooses each sequence's next token and moves the state on

    step: [.], uint8
    logits: [M, V], float32
    best: [M, S, .], float32; optional
    sorted: [M, S, .], float32; optional
    blocks: [M, S, ., .], float32; optional
    returns state: [.], uint8

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def sample_parts(
    step: T,
    logits: T,
    state: T,
    *,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> NoReturn:
    """what the choice of a token needs of slices of its scores

    step: [.], uint8
    logits: [M, V], float32
    state: [.], uint8
    returns best: [M, S, .], float32; sorted: [M, S, .], float32; blocks: [M, S, ., .], float32

    Raises Unsupported: it is a part of a program, because it reads the step record: use a graph, or
      heddle.load for a model.
    """

def scale(x: T, *, factor: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """y = factor * x

    x: [M, N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def softcap(x: T, *, cap: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """y = cap * tanh(x / cap)

    x: [M, N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def softcap_backward(x: T, dy: T, *, cap: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """dx = dy * (1 - tanh(x / cap)^2)

    x: [M, N], float32 | float16 | bfloat16
    dy: [M, N], float32 | float16 | bfloat16
    returns dx: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def softmax(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = softmax of x, row by row

    x: [M, D], float32 | float16 | bfloat16
    returns y: [M, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def softmax_backward(y: T, dy: T, *, out: T | dict[str, T] | None = None) -> T:
    """dx = y * (dy - sum of dy * y), row by row

    y: [M, D], float32 | float16 | bfloat16
    dy: [M, D], float32 | float16 | bfloat16
    returns dx: [M, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def transpose(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y[n, m] = x[m, n]

    x: [M, N], float32 | float16 | bfloat16 | int32
    returns y: [N, M], float32 | float16 | bfloat16 | int32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """
