# Written by python/tools/make_stubs.py from the fields of the ops; do not edit.
from typing import Any, Literal, NoReturn, Protocol, TypeVar

from heddle.ops.info import OpInfo as OpInfo
from heddle.ops.info import info as info
from heddle.ops.reductions import amax as amax
from heddle.ops.reductions import mean as mean
from heddle.ops.reductions import sum as sum

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

def adamw(
    param: T,
    grad: T,
    m: T,
    v: T,
    *,
    lr: float = 0.0010000000474974513,
    beta1: float = 0.8999999761581421,
    beta2: float = 0.9990000128746033,
    eps: float = 9.99999993922529e-09,
    weight_decay: float = 0.009999999776482582,
    grad_scale: float = 1.0,
    step: int = 1,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """a step of AdamW: new param, m and v, also in their places

    param: [M, N], float32 | float16 | bfloat16
    grad: [M, N], float32 | float16 | bfloat16
    m: [M, N], float32 | float16 | bfloat16
    v: [M, N], float32 | float16 | bfloat16
    returns new_param: [M, N], float32 | float16 | bfloat16; new_m: [M, N], float32 | float16 | bfloat16;
      new_v: [M, N], float32 | float16 | bfloat16

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
    bias: T | None = None,
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
    bias: [H, .], float32; optional
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

def bmm(a: T, b: T, *, out: T | dict[str, T] | None = None) -> T:
    """y[i] = a[i] b[i], of matrices of floats in rows or in columns

    a: [B, M, K], float32 | float16 | bfloat16
    b: [B, K, N], float32 | float16 | bfloat16
    returns y: [B, M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def chunk_sum(x: T, *, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """sums of x from the begin of each chunk on

    x: [B, T, H], float32
    returns y: [B, T, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def chunk_sum_backward(dy: T, *, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """sums of dy from each position to the end of its chunk

    dy: [B, T, H], float32
    returns dx: [B, T, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def clamp(x: T, *, low: float = -1.0, high: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """y = x, at least low and at most high

    x: [M, N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
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

def cross_entropy(
    logits: T,
    target: T,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float = 0.0,
    z_loss: float = 0.0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """loss = -log softmax of logits at target, and log sum of exp, row by row

    logits: [M, V], float32 | float16 | bfloat16
    target: [M], int32 | int64
    returns loss: [M], float32; lse: [M], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def cross_entropy_backward(
    logits: T,
    target: T,
    lse: T,
    dloss: T,
    dlse: T | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    softcap: float = 0.0,
    z_loss: float = 0.0,
    out: T | dict[str, T] | None = None,
) -> T:
    """dlogits of cross_entropy, also in place of logits

    logits: [M, V], float32 | float16 | bfloat16
    target: [M], int32 | int64
    lse: [M], float32
    dloss: [M], float32
    dlse: [M], float32; optional
    returns dlogits: [M, V], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
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

def flash_attention(
    q: T,
    k: T,
    v: T,
    bias: T | None = None,
    sinks: T | None = None,
    alibi_slopes: T | None = None,
    cu_seqlens_q: T | None = None,
    cu_seqlens_k: T | None = None,
    y_in: T | None = None,
    lse_in: T | None = None,
    kv_num_blocks: T | None = None,
    kv_indices: T | None = None,
    *,
    scale: float = 0.0,
    causal: bool = False,
    window_left: int = -1,
    window_right: int = -1,
    softcap: float = 0.0,
    q_offset: int = 0,
    block_q: int = 128,
    block_k: int = 128,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """attention of whole sequences, in one pass over the keys; lse: log of the sum of exp(score)

    q: [B, S, H, D], float32 | float16 | bfloat16
    k: [B, T, G, D], float32 | float16 | bfloat16
    v: [B, T, G, E], float32 | float16 | bfloat16
    bias: [., ., S, T], float32 | float16 | bfloat16; optional
    sinks: [H], float32 | float16 | bfloat16; optional
    alibi_slopes: [H], float32; optional
    cu_seqlens_q: [N], int32; optional
    cu_seqlens_k: [N], int32; optional
    y_in: [B, S, H, E], float32 | float16 | bfloat16; optional
    lse_in: [B, H, S], float32; optional
    kv_num_blocks: [., ., Q], int32; optional
    kv_indices: [., ., Q, M], int32; optional
    returns y: [B, S, H, E], float32 | float16 | bfloat16; lse: [B, H, S], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def flash_attention_backward(
    q: T,
    k: T,
    v: T,
    dy: T,
    lse: T,
    delta: T,
    bias: T | None = None,
    alibi_slopes: T | None = None,
    cu_seqlens_q: T | None = None,
    cu_seqlens_k: T | None = None,
    kv_num_blocks: T | None = None,
    kv_indices: T | None = None,
    q_num_blocks: T | None = None,
    q_indices: T | None = None,
    *,
    scale: float = 0.0,
    causal: bool = False,
    window_left: int = -1,
    window_right: int = -1,
    softcap: float = 0.0,
    q_offset: int = 0,
    block_q: int = 128,
    block_k: int = 128,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """the gradient of flash_attention by q, k and v; the same bits always

    q: [B, S, H, D], float32 | float16 | bfloat16
    k: [B, T, G, D], float32 | float16 | bfloat16
    v: [B, T, G, E], float32 | float16 | bfloat16
    dy: [B, S, H, E], float32 | float16 | bfloat16
    lse: [B, H, S], float32
    delta: [B, H, S], float32
    bias: [., ., S, T], float32 | float16 | bfloat16; optional
    alibi_slopes: [H], float32; optional
    cu_seqlens_q: [N], int32; optional
    cu_seqlens_k: [N], int32; optional
    kv_num_blocks: [., ., Q], int32; optional
    kv_indices: [., ., Q, M], int32; optional
    q_num_blocks: [., ., K], int32; optional
    q_indices: [., ., K, Q], int32; optional
    returns dq: [B, S, H, D], float32 | float16 | bfloat16; dk: [B, T, G, D], float32 | float16 | bfloat16;
      dv: [B, T, G, E], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def flash_attention_bias_backward(
    q: T,
    k: T,
    v: T,
    bias: T,
    dy: T,
    lse: T,
    delta: T,
    alibi_slopes: T | None = None,
    kv_num_blocks: T | None = None,
    kv_indices: T | None = None,
    *,
    scale: float = 0.0,
    causal: bool = False,
    window_left: int = -1,
    window_right: int = -1,
    softcap: float = 0.0,
    q_offset: int = 0,
    block_q: int = 128,
    block_k: int = 128,
    out: T | dict[str, T] | None = None,
) -> T:
    """the gradient of flash_attention by its bias

    q: [B, S, H, D], float32 | float16 | bfloat16
    k: [B, T, G, D], float32 | float16 | bfloat16
    v: [B, T, G, E], float32 | float16 | bfloat16
    bias: [., ., S, T], float32 | float16 | bfloat16
    dy: [B, S, H, E], float32 | float16 | bfloat16
    lse: [B, H, S], float32
    delta: [B, H, S], float32
    alibi_slopes: [H], float32; optional
    kv_num_blocks: [., ., Q], int32; optional
    kv_indices: [., ., Q, M], int32; optional
    returns dbias: [., ., S, T], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def flash_attention_delta(y: T, dy: T, dlse: T | None = None, *, out: T | dict[str, T] | None = None) -> T:
    """sum of y * dy for each head of each row, less dlse

    y: [B, S, H, E], float32 | float16 | bfloat16
    dy: [B, S, H, E], float32 | float16 | bfloat16
    dlse: [B, H, S], float32; optional
    returns delta: [B, H, S], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def flash_attention_earlier_backward(
    y_in: T,
    lse_in: T,
    dy: T,
    lse: T,
    delta: T,
    *,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """the gradient of flash_attention by an earlier result that it continues

    y_in: [B, S, H, E], float32 | float16 | bfloat16
    lse_in: [B, H, S], float32
    dy: [B, S, H, E], float32 | float16 | bfloat16
    lse: [B, H, S], float32
    delta: [B, H, S], float32
    returns dy_in: [B, S, H, E], float32 | float16 | bfloat16; dlse_in: [B, H, S], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def flash_attention_query_blocks(
    k: T,
    kv_num_blocks: T,
    kv_indices: T,
    *,
    block_k: int = 128,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """the blocks of queries that list each block of keys

    k: [B, T, G, D], float32 | float16 | bfloat16
    kv_num_blocks: [., ., Q], int32
    kv_indices: [., ., Q, M], int32
    returns q_num_blocks: [., ., K], int32; q_indices: [., ., K, Q], int32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def flash_attention_sinks_backward(sinks: T, lse: T, delta: T, *, out: T | dict[str, T] | None = None) -> T:
    """the gradient of flash_attention by its sinks

    sinks: [H], float32 | float16 | bfloat16
    lse: [B, H, S], float32
    delta: [B, H, S], float32
    returns dsinks: [H], float32 | float16 | bfloat16

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

def gated_product(
    gate: T,
    up: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = f(gate) * up, of two matrices

    gate: [M, N], float32 | float16 | bfloat16
    up: [M, N], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def gated_product_backward(
    gate: T,
    up: T,
    dy: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dgate = dy * up * f'(gate), dup = dy * f(gate)

    gate: [M, N], float32 | float16 | bfloat16
    up: [M, N], float32 | float16 | bfloat16
    dy: [M, N], float32 | float16 | bfloat16
    returns dgate: [M, N], float32 | float16 | bfloat16; dup: [M, N], float32 | float16 | bfloat16

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
    part_rows: int = 0,
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
    dsum: T | None = None,
    *,
    eps: float = 9.999999747378752e-06,
    part_rows: int = 0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """dx of layer_norm, and dweight and dbias in parts of some rows

    x: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    dy: [M, D], float32 | float16 | bfloat16
    dsum: [M, D], float32 | float16 | bfloat16; optional
    returns dx: [M, D], float32 | float16 | bfloat16; dweight_parts: [P, D], float32; dbias_parts: [P, D],
      float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def layer_norm_residual(
    x: T,
    residual: T,
    weight: T,
    bias: T | None = None,
    *,
    eps: float = 9.999999747378752e-06,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """sum = x + residual, y = layer_norm of sum, row by row

    x: [M, D], float32 | float16 | bfloat16
    residual: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    bias: [D], float32 | float16 | bfloat16; optional
    returns y: [M, D], float32 | float16 | bfloat16; sum: [M, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
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
    allow_tf32: bool = False,
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

def mma_sympow(x: T, v: T, *, power: int = 2, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """s = phi(x)' v for each chunk of rows, phi the symmetric power

    x: [B, T, H, K], float32 | float16 | bfloat16
    v: [B, T, H, E], float32 | float16 | bfloat16
    returns s: [B, H, C, E], float32 | float16 | bfloat16

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

def power_attention(
    q: T,
    k: T,
    v: T,
    l: T | None = None,
    past: T | None = None,
    *,
    power: int = 2,
    scale: float = 1.0,
    chunk: int = 0,
    normalise: bool = False,
    eps: float = 0.0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """causal attention in chunks with weights (scale <q, k>)^power and gates

    q: [B, T, H, K], float32 | float16 | bfloat16
    k: [B, T, H, K], float32 | float16 | bfloat16
    v: [B, T, H, E], float32 | float16 | bfloat16
    l: [B, T, H], float32; optional
    past: [B, T, H, P], float32 | float16 | bfloat16; optional
    returns y: [B, T, H, E], float32 | float16 | bfloat16; total: [B, T, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def power_attention_backward(
    q: T,
    k: T,
    v: T,
    y: T,
    total: T,
    dy: T,
    dtotal: T,
    l: T | None = None,
    past: T | None = None,
    *,
    power: int = 2,
    scale: float = 1.0,
    chunk: int = 0,
    normalise: bool = False,
    eps: float = 0.0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dq of power_attention, and the rows' part of dl

    q: [B, T, H, K], float32 | float16 | bfloat16
    k: [B, T, H, K], float32 | float16 | bfloat16
    v: [B, T, H, E], float32 | float16 | bfloat16
    y: [B, T, H, E], float32 | float16 | bfloat16
    total: [B, T, H], float32
    dy: [B, T, H, E], float32 | float16 | bfloat16
    dtotal: [B, T, H], float32
    l: [B, T, H], float32; optional
    past: [B, T, H, P], float32 | float16 | bfloat16; optional
    returns dq: [B, T, H, K], float32 | float16 | bfloat16; dl_rows: [B, T, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def power_attention_keys_backward(
    q: T,
    k: T,
    v: T,
    y: T,
    total: T,
    dy: T,
    dtotal: T,
    dl_rows: T,
    l: T | None = None,
    *,
    power: int = 2,
    scale: float = 1.0,
    chunk: int = 0,
    normalise: bool = False,
    eps: float = 0.0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """dk and dv of power_attention, and dl from its rows' part

    q: [B, T, H, K], float32 | float16 | bfloat16
    k: [B, T, H, K], float32 | float16 | bfloat16
    v: [B, T, H, E], float32 | float16 | bfloat16
    y: [B, T, H, E], float32 | float16 | bfloat16
    total: [B, T, H], float32
    dy: [B, T, H, E], float32 | float16 | bfloat16
    dtotal: [B, T, H], float32
    dl_rows: [B, T, H], float32
    l: [B, T, H], float32; optional
    returns dk: [B, T, H, K], float32 | float16 | bfloat16; dv: [B, T, H, E], float32 | float16 | bfloat16;
      dl: [B, T, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def power_attention_past_backward(
    past: T,
    y: T,
    total: T,
    dy: T,
    dtotal: T,
    l: T | None = None,
    *,
    power: int = 2,
    scale: float = 1.0,
    normalise: bool = False,
    eps: float = 0.0,
    out: T | dict[str, T] | None = None,
) -> T:
    """dpast of power_attention

    past: [B, T, H, P], float32 | float16 | bfloat16
    y: [B, T, H, E], float32 | float16 | bfloat16
    total: [B, T, H], float32
    dy: [B, T, H, E], float32 | float16 | bfloat16
    dtotal: [B, T, H], float32
    l: [B, T, H], float32; optional
    returns dpast: [B, T, H, P], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def quantize(
    x: T,
    *,
    code: Literal["e4m3", "e5m2", "i8"] = "e4m3",
    by: Literal["row", "block"] = "row",
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """x = scale * code: codes of 8 bits, and scales of rows or blocks

    x: [M, K], float32 | float16 | bfloat16
    returns codes: [M, K], float8_e4m3fn | float8_e5m2 | int8; scales: [M, G], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def quantize_both(
    x: T,
    *,
    code: Literal["e4m3", "e5m2", "i8"] = "e4m3",
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T, T]:
    """codes of 8 bits with scales of 1 x 128 blocks, of x and of x transposed

    x: [M, K], float32 | float16 | bfloat16
    returns codes: [M, K], float8_e4m3fn | float8_e5m2 | int8; scales: [M, G], float32; transposed: [K, M],
      float8_e4m3fn | float8_e5m2 | int8; transposed_scales: [K, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def reduce(
    x: T,
    *,
    kind: Literal["sum", "max", "mean"] = "sum",
    variant: Literal["shuffle", "improved", "naive"] = "shuffle",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = sum, maximum or mean of each row of x

    x: [M, D], float32 | float16 | bfloat16
    returns y: [M], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def reduce_dim(
    x: T,
    *,
    kind: Literal["sum", "max", "mean"] = "sum",
    result: Literal["input", "f32"] = "input",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = sum, maximum or mean of x over its last dimension but one

    x: [G, M, D], float32 | float16 | bfloat16
    returns y: [G, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def reduce_dim_backward(
    x: T,
    dy: T,
    *,
    kind: Literal["sum", "max", "mean"] = "sum",
    out: T | dict[str, T] | None = None,
) -> T:
    """dx = the gradient of reduce_dim

    x: [G, M, D], float32 | float16 | bfloat16
    dy: [G, D], float32 | float16 | bfloat16
    returns dx: [G, M, D], float32 | float16 | bfloat16

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
    dsum: T | None = None,
    *,
    eps: float = 9.999999747378752e-06,
    part_rows: int = 0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dx of rms_norm, and dweight in parts of some rows

    x: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    dy: [M, D], float32 | float16 | bfloat16
    dsum: [M, D], float32 | float16 | bfloat16; optional
    returns dx: [M, D], float32 | float16 | bfloat16; dweight_parts: [P, D], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def rms_norm_residual(
    x: T,
    residual: T,
    weight: T,
    *,
    eps: float = 9.999999747378752e-06,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """sum = x + residual, y = rms_norm of sum, row by row

    x: [M, D], float32 | float16 | bfloat16
    residual: [M, D], float32 | float16 | bfloat16
    weight: [D], float32 | float16 | bfloat16
    returns y: [M, D], float32 | float16 | bfloat16; sum: [M, D], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
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

def scaled_mm(
    a: T,
    b: T,
    scale_a: T,
    scale_b: T,
    *,
    fast_sums: bool = False,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = (scale_a * a) (scale_b * b) of fp8, with scales of all, of rows and columns, or of blocks

    a: [M, K], float8_e4m3fn | float8_e5m2
    b: [K, N], float8_e4m3fn | float8_e5m2
    scale_a: [., .], float32
    scale_b: [., .], float32
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
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

def state_scan(
    u: T,
    l: T | None = None,
    s0: T | None = None,
    *,
    chunks: int = 1,
    chunk: int = 0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """the state before each chunk, from what each chunk adds and its decay

    u: [B, H, C, E], float32 | float16 | bfloat16
    l: [B, T, H], float32; optional
    s0: [B, H, N, E], float32 | float16 | bfloat16; optional
    returns s: [B, H, C, E], float32 | float16 | bfloat16; last: [B, H, N, E], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def state_scan_backward(
    s: T,
    ds: T,
    dlast: T,
    l: T | None = None,
    *,
    chunks: int = 1,
    chunk: int = 0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """du and ds0 of state_scan, and parts of the decays' gradients

    s: [B, H, C, E], float32 | float16 | bfloat16
    ds: [B, H, C, E], float32 | float16 | bfloat16
    dlast: [B, H, N, E], float32
    l: [B, T, H], float32; optional
    returns du: [B, H, C, E], float32 | float16 | bfloat16; ds0: [B, H, N, E], float32; part: [B, H, G, P],
      float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def state_scan_gates(part: T, l: T, *, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """dl of state_scan, at the ends of chunks

    part: [B, H, G, P], float32
    l: [B, T, H], float32
    returns dl: [B, T, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def state_values(
    v: T,
    l: T | None = None,
    *,
    chunk: int = 0,
    normalise: bool = False,
    out: T | dict[str, T] | None = None,
) -> T:
    """v times the decay to the end of each chunk, and the decay alone

    v: [B, T, H, E], float32 | float16 | bfloat16
    l: [B, T, H], float32; optional
    returns s: [B, T, H, P], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def state_values_backward(
    v: T,
    ds: T,
    l: T | None = None,
    *,
    chunk: int = 0,
    normalise: bool = False,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dv and dl of state_values

    v: [B, T, H, E], float32 | float16 | bfloat16
    ds: [B, T, H, P], float32 | float16 | bfloat16
    l: [B, T, H], float32; optional
    returns dv: [B, T, H, E], float32 | float16 | bfloat16; dl: [B, T, H], float32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def sympow(x: T, *, power: int = 2, out: T | dict[str, T] | None = None) -> T:
    """y = phi(x), the symmetric power of rows: <phi(q), phi(k)> = <q, k>^power

    x: [M, K], float32 | float16 | bfloat16
    returns y: [M, N], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def sympow_backward(x: T, dy: T, *, power: int = 2, out: T | dict[str, T] | None = None) -> T:
    """dx = J' dy, J the Jacobian of the symmetric power at x

    x: [M, K], float32 | float16 | bfloat16
    dy: [M, N], float32 | float16 | bfloat16
    returns dx: [M, K], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def sympow_mma(x: T, s: T, *, power: int = 2, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """y = phi(x) s, phi the symmetric power, s a state for each chunk of rows

    x: [B, T, H, K], float32 | float16 | bfloat16
    s: [B, H, C, E], float32 | float16 | bfloat16
    returns y: [B, T, H, E], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

def sympow_mma_backward(
    x: T,
    s: T,
    dy: T,
    *,
    power: int = 2,
    chunk: int = 0,
    out: T | dict[str, T] | None = None,
) -> T:
    """dx = J' (s dy), J the Jacobian of the symmetric power at each row of x

    x: [B, T, H, K], float32 | float16 | bfloat16
    s: [B, H, C, E], float32 | float16 | bfloat16
    dy: [B, T, H, E], float32 | float16 | bfloat16
    returns dx: [B, T, H, K], float32 | float16 | bfloat16

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has no gradient.
    """

def transpose(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y[n, m] = x[m, n]

    x: [M, N], float32 | float16 | bfloat16 | int32
    returns y: [N, M], float32 | float16 | bfloat16 | int32

    Raises InvalidArgument for other dtypes, sizes, strides or attributes; it has a gradient.
    """

mm = matmul
