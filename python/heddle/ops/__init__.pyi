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

    y = f(x), element by element: SiLU, GELU exact or by tanh, ReLU.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        kind = 'silu': one of 'silu', 'gelu', 'gelu_tanh', 'relu'; ActivationKind
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.activation(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def activation_backward(
    x: T,
    dy: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """dx = dy * f'(x), element by element

    The gradient of activation: dx = dy * f'(x), element by element.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        dy: [M, N]; float32, float16 or bfloat16
    Outputs:
        dx: [M, N]; float32, float16 or bfloat16
    Attributes:
        kind = 'silu': one of 'silu', 'gelu', 'gelu_tanh', 'relu'; ActivationKind
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> dy = torch.randn(5, 37)
        >>> dx = heddle.ops.activation_backward(x, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def adamw(
    param: T,
    grad: T,
    m: T,
    v: T,
    *,
    lr: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-08,
    weight_decay: float = 0.01,
    grad_scale: float = 1.0,
    step: int = 1,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """a step of AdamW: new param, m and v, also in their places

    A step of AdamW (Loshchilov and Hutter, 2019), element by element, as torch.optim.AdamW takes it. With g =
      grad_scale * grad and
    t = step, counted from 1:
      m' = beta1 * m + (1 - beta1) * g,  v' = beta2 * v + (1 - beta2) * g^2
      param' = param * (1 - lr * weight_decay) - lr / (1 - beta1^t) * m' / (sqrt(v' / (1 - beta2^t)) + eps)
    The outputs may take the places of param, m and v.

    Inputs:
        param: [M, N]; float32, float16 or bfloat16
        grad: [M, N]; float32, float16 or bfloat16
        m: [M, N]: the mean of gradients, usually f32; float32, float16 or bfloat16
        v: [M, N]: the mean of their squares; float32, float16 or bfloat16
    Outputs:
        new_param: [M, N]; float32, float16 or bfloat16
        new_m: [M, N]; float32, float16 or bfloat16
        new_v: [M, N]; float32, float16 or bfloat16
    Attributes:
        lr = 0.001: float; learning rate
        beta1 = 0.9: float; 0 to 1
        beta2 = 0.999: float; 0 to 1
        eps = 1e-08: float; at least 0
        weight_decay = 0.01: float; taken off the parameter itself, times lr
        grad_scale = 1: float; multiplies the gradient
        step = 1: int; counted from 1
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> param = torch.randn(5, 37)
        >>> grad = torch.randn(5, 37)
        >>> m = torch.randn(5, 37)
        >>> v = torch.randn(5, 37)
        >>> new_param, new_m, new_v = heddle.ops.adamw(param, grad, m, v)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def add(a: T, b: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = a + b, and on request a rounded copy of y

    y = a + b, element by element, and on request a second output in another element type.

    Inputs:
        a: [M, N]; float32, float16 or bfloat16
        b: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
        copy: optional [M, N] or absent: y again, rounded to its own element type; float32, float16 or
          bfloat16
    Gradient: of a, b.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> a = torch.randn(5, 37)
        >>> b = torch.randn(5, 37)
        >>> y = heddle.ops.add(a, b)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def add_backward(dy: T, dcopy: T | None = None, *, out: T | dict[str, T] | None = None) -> T:
    """dx of add: dy, plus dcopy where it is given

    The gradient of add, of a and b alike: dx = dy, plus the gradient of the copy where there is one.

    Inputs:
        dy: [M, N]; float32, float16 or bfloat16
        dcopy: optional [M, N] or absent; float32, float16 or bfloat16
    Outputs:
        dx: [M, N]; float32, float16 or bfloat16
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> dy = torch.randn(5, 37)
        >>> dx = heddle.ops.add_backward(dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def argmax(x: T, dim: int = -1, *, out: T | dict[str, T] | None = None) -> T:
    """y = index of the largest element of each row, lowest first; NaN counts as the largest

    y = index of the largest element of each row, the lowest one of equals.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M]; int32
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.argmax(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    Causal attention with grouped heads over pages, split over the KV range: what one split knows of its rows.
      It may
    slide: then a row sees the last `window` positions.
    Positions before this step are read from the pages, those of this step from k and v, rounded as the pages
      round
    them: how a prompt was cut into steps does not change what later steps see.
    Latent attention (DeepSeek-AI, 2024: "DeepSeek-V2"): queries have a second part that meets the values,
      which stand
    for keys and values of all heads: a score is q k + latent v.
    Scores may have a bias of each head and position, such as that of ALiBi (Press et al., 2022: "Train Short,
      Test Long").
    A tile is (block of heads, row block, split) of the attention plan (ir/attention_plan.h); attention_merge
      joins the splits.

    Inputs:
        step: [bytes], the host part of the step record; uint8
        state: [bytes], the device part; uint8
        q: [M, heads * head_dim]; float32, float16 or bfloat16
        k: [M, kv_heads * head_dim]; float32, float16 or bfloat16
        v: [M, kv_heads * value_dim]; float32, float16 or bfloat16
        keys: [pages, kv_heads, page_size, head_dim]; float32, float16 or bfloat16
        values: [pages, kv_heads, page_size, value_dim]; float32, float16 or bfloat16
        latent: optional [M, heads * value_dim]; float32, float16 or bfloat16
        bias: optional [H, .]; float32
    Outputs:
        part: [M, H, C, E]; float32, float16 or bfloat16
        stats: [M, heads, splits, 2]: max of the scores, sum of exp(score - max); float32
    Attributes:
        heads = 0: int
        kv_heads = 0: int
        block_heads = 1: int; query heads of a tile, all of one kv head
        scale = 1: float; factor of the scores
        softcap = 0: float; c: scores become c tanh(score / c); 0: they stay
        window = 0: int; positions that a row sees, itself and those before it; 0: all
        block_rows = 1: int
        max_blocks = 1: int
        max_splits = 1: int
        split_unit = 256: int
        chunk = 64: int; positions that are on chip at a time
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

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    Joins the splits of attention, in ascending order: y = the mean of the parts, each weighed by its total
      times
    exp(its max - the largest max). Which splits of a row are live follows from the attention plan.

    Inputs:
        step: [bytes], the host part of the step record; uint8
        state: [bytes], the device part; uint8
        part: [M, heads, splits, head_dim]; float32, float16 or bfloat16
        stats: [M, heads, splits, 2]; float32
    Outputs:
        y: [M, heads * head_dim]; float32, float16 or bfloat16
    Attributes:
        block_rows = 1: int
        max_blocks = 1: int
        max_splits = 1: int
        split_unit = 256: int
        window = 0: int
    """

def attention_sink(
    sinks: T,
    part: T,
    stats: T,
    *,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """gives each head's sink a share of its attention

    Gives each head's sink a share of its attention: a score without a value, which joins the softmax of the
      first split
    (Xiao et al., 2023: "Efficient Streaming Language Models with Attention Sinks"; OpenAI, 2025: gpt-oss).
      The op
    stands between attention and its merge, and changes what attention made: give it the first split of `part`
      and
    `stats`, and these as `y` and `new_stats` again.

    Inputs:
        sinks: [heads]: scores; float32
        part: [M, heads, 1, value_dim], as attention makes it; float32, float16 or bfloat16
        stats: [M, heads, 1, 2]; float32
    Outputs:
        y: [M, heads, 1, value_dim]; float32, float16 or bfloat16
        new_stats: [M, heads, 1, 2]; float32
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> sinks = torch.randn(2)
        >>> part = torch.randn(5, 2, 1, 65)
        >>> stats = torch.randn(5, 2, 1, 2)
        >>> y, new_stats = heddle.ops.attention_sink(sinks, part, stats, out=(torch.randn(5, 2, 1, 65),
          torch.randn(5, 2, 1, 2),))

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def bias(x: T, bias: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = x + bias, the same bias for every row

    y = x + bias: a row added to every row.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        bias: [N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Gradient: of x, bias.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> bias = torch.randn(37)
        >>> y = heddle.ops.bias(x, bias)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def bmm(a: T, b: T, *, out: T | dict[str, T] | None = None) -> T:
    """y[i] = a[i] b[i], of matrices of floats in rows or in columns

    y[i] = a[i] b[i]: products of pairs of matrices of floats, as they lie in memory. Sums are as those of
      matmul.

    Inputs:
        a: [B, M, K]; float32, float16 or bfloat16
        b: [B, K, N]; float32, float16 or bfloat16
    Outputs:
        y: [B, M, N]; float32, float16 or bfloat16
    Gradient: of a, b.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> a = torch.randn(3, 37, 9)
        >>> b = torch.randn(3, 9, 65)
        >>> y = heddle.ops.bmm(a, b)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def chunk_sum(x: T, *, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """sums of x from the begin of each chunk on

    y[t] = sum of x from the begin of the chunk of position t to t itself: log gates become those of a whole
      chunk.

    Inputs:
        x: [B, T, H]; float32
    Outputs:
        y: [B, T, H]; float32
    Attributes:
        chunk = 0: int; positions of a chunk; 0: all
    Gradient: of x.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(2, 5, 2)
        >>> y = heddle.ops.chunk_sum(x, chunk=3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def chunk_sum_backward(dy: T, *, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """sums of dy from each position to the end of its chunk

    The gradient of chunk_sum: dx[t] = sum of dy from t to the end of its chunk.

    Inputs:
        dy: [B, T, H]; float32
    Outputs:
        dx: [B, T, H]; float32
    Attributes:
        chunk = 0: int; positions of a chunk; 0: all
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> dy = torch.randn(2, 5, 2)
        >>> dx = heddle.ops.chunk_sum_backward(dy, chunk=3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def clamp(x: T, *, low: float = -1.0, high: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """y = x, at least low and at most high

    y = x within [low, high], element by element: projections that some models keep in range (clip_qkv,
      MosaicML, 2023).

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        low = -1: float; at most high
        high = 1: float; at least low
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.clamp(x, low=-0.3, high=0.3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def clamped_gate(x: T, *, alpha: float = 1.702, limit: float = 7.0, out: T | dict[str, T] | None = None) -> T:
    """y = (up + 1) gate sigmoid(alpha gate), of clamped pairs

    y = (up + 1) gate sigmoid(alpha gate), where the columns of x are pairs (gate, up) side by side, gate is
      at most
    `limit` and up lies within +-limit (OpenAI, 2025: gpt-oss).

    Inputs:
        x: [M, 2N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        alpha = 1.702: float; slope of the sigmoid
        limit = 7: float; positive
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 74)
        >>> y = heddle.ops.clamped_gate(x, limit=0.5)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def column_sum(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = sum of the rows of x

    y[n] = sum over m of x[m, n], the rows added one after the other.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [N]; float32, float16 or bfloat16
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(37, 5)
        >>> y = heddle.ops.column_sum(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def copy(x: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = x in the element type of y

    y = x, converted to the element type of y.

    Inputs:
        x: [M, N]; float32, float16, bfloat16 or int32
    Outputs:
        y: [M, N]; float32, float16, bfloat16 or int32
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.zeros(3, 19, dtype=torch.int32)
        >>> y = heddle.ops.copy(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The loss of a classifier, row by row. With z = softcap * tanh(logits / softcap), or the logits themselves
      where softcap is 0,
    lse = log(sum of exp(z)), and s = label_smoothing:
      loss = lse - (1 - s) * z[target] - s * mean(z) + z_loss * lse^2
    Rows whose target is ignore_index have loss 0. A target that is neither that nor a column
    makes the loss NaN; a call from Python on a CPU refuses it.

    Inputs:
        logits: [M, V]; float32, float16 or bfloat16
        target: [M]; int32 or int64
    Outputs:
        loss: [M]; float32
        lse: [M], of ignored rows too; float32
    Attributes:
        ignore_index = -100: int; a target that counts for nothing
        label_smoothing = 0: float; 0 to 1: the part of the loss that all columns share
        softcap = 0: float; 0: none
        z_loss = 0: float; weight of lse^2; 0: none
    Gradient: of logits.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> logits = torch.randn(5, 37)
        >>> target = torch.zeros(5, dtype=torch.int64)
        >>> loss, lse = heddle.ops.cross_entropy(logits, target)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of cross_entropy, in place of the logits if the caller wants. With p = exp(z - lse) and s =
      label_smoothing:
      dz = dloss * ((1 + 2 * z_loss * lse) * p - (1 - s) * [column is target] - s / V) + dlse * p
      dlogits = dz * (1 - tanh(logits / softcap)^2), or dz where softcap is 0
    The loss of ignored rows has no gradient; a target that is no column makes its row NaN.

    Inputs:
        logits: [M, V]; float32, float16 or bfloat16
        target: [M]; int32 or int64
        lse: [M]; float32
        dloss: [M]; float32
        dlse: optional [M] or absent; float32
    Outputs:
        dlogits: [M, V]; float32, float16 or bfloat16
    Attributes:
        ignore_index = -100: int; a target that counts for nothing
        label_smoothing = 0: float; 0 to 1: the part of the loss that all columns share
        softcap = 0: float; 0: none
        z_loss = 0: float; weight of lse^2; 0: none
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> logits = torch.randn(5, 37)
        >>> target = torch.zeros(5, dtype=torch.int64)
        >>> lse = torch.randn(5)
        >>> dloss = torch.randn(5)
        >>> dlogits = heddle.ops.cross_entropy_backward(logits, target, lse, dloss)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    Rows of a table: y[i] = table[token of row i] * scale, or table[position of row i] * scale.

    Inputs:
        state: [bytes], the device part of the step record; uint8
        table: [V, D]; float32, float16 or bfloat16
    Outputs:
        y: [M, D]; float32, float16 or bfloat16
        copy: optional [M, D] or absent: y again, rounded to its own element type; float32, float16 or
          bfloat16
    Attributes:
        by_position = 0: int
        scale = 1: float
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

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    The gradient of embedding: dtable[v] = scale * sum of dy[i] over the rows i that took row v, added in the
      order of
    i. A row of the table that nobody took gets 0; a row i that asked for one outside of the table adds
      nothing.

    Inputs:
        state: [bytes], the device part of the step record; uint8
        table: [V, D]: its sizes alone count; float32, float16 or bfloat16
        dy: [M, D]; float32, float16 or bfloat16
        dcopy: optional [M, D] or absent: of the forward's copy; float32, float16 or bfloat16
    Outputs:
        dtable: [V, D]; float32
    Attributes:
        by_position = 0: int
        scale = 1: float
    """

def expert_bias(step: T, choice: T, x: T, bias: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x + the bias of the expert each row chose

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    y = x + the bias of each entry's expert: entry n of token t is row t C + n, with C choices per token. Rows
      of dead
    tokens keep what they had.

    Inputs:
        step: [bytes], the host part of the step record; uint8
        choice: [T, C]: experts; int32
        x: [T C, D]; float32, float16 or bfloat16
        bias: [E D]: of one expert after another; float32, float16 or bfloat16
    Outputs:
        y: [T C, D]; float32, float16 or bfloat16
    """

def expert_linear(step: T, choice: T, x: T, w: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x w^T, w that of the expert each row chose; takes epilogues

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    y = x w^T, where each row of y, an *entry* (a token and one of its experts), uses the matrix of its
      expert.
    Entry n of token t is row t C + n, with C choices per token. Epilogues in its chain may look only at the
    fragment's columns.

    A tile is a *slot*. There are as many slots as experts or, if these are fewer, as many as entries; then
      the
    first entry of an expert stands for all of its entries. Each tile finds its expert and its entries in
    `choice` (op route), so one program serves every choice, and so does its proof: all slots may write any
      row
    of y, and `reference` checks that no two write the same. A slot without entries is dead and loads nothing.
    All workers share the rows of every expert. A GPU's loader waits until its consumers have the routes
      before
    it loads panels (OpTraits::streams_by_data).

    Inputs:
        step: [bytes], the host part of the step record; uint8
        choice: [T, C]: experts; int32
        x: [T, K]: a row for each token, or [T C, K]: for each entry; float32, float16 or bfloat16
        w: [N, K] of each expert; float32, float16 or bfloat16
    Outputs:
        y: [T C, N]; what the last epilogue leaves; float32, float16 or bfloat16
    """

def expert_sum(x: T, share: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = the outputs of a token's experts, each by its share

    Adds the outputs of a token's experts, weighted by its shares: y[t] = sum over c of share[t, c] x[t C +
      c],
    in the order of c.

    Inputs:
        x: [T C, D]; float32, float16 or bfloat16
        share: [T, C]; float32
    Outputs:
        y: [T, D]; float32, float16 or bfloat16
    Gradient: none.
    X may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(15, 37)
        >>> share = torch.randn(5, 3)
        >>> y = heddle.ops.expert_sum(x, share)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    Attention of whole sequences in one pass over the keys (Dao et al., 2022: "FlashAttention"), called by
      itself. Tensors lie
    as [batch, position, head, element], with any strides: those of torch's scaled_dot_product_attention are
    x.transpose(1, 2).
      x = scale q k;  x = softcap tanh(x / softcap);  x += bias - slope |p - j|
      y = sum over the keys j that the query sees of softmax(x)_j v_j
      lse = log of the sum of exp(x); a sink is one more term of that sum, without a value
    Which keys a query sees: attention_mask.h. A query that sees none gets y = 0 and lse = -inf (its sink, if
      there is one).
    A score below -1e38 counts as unseen, so a bias may hold -inf or the lowest finite value.
    y_in and lse_in are what a call has given for the same queries and other keys: y and lse are then those of
      all these keys. An
    earlier result counts as one more key, with the score lse_in and the value y_in; where lse_in is -inf
      there was none.
    Block lists: queries in blocks of block_q see the keys in those blocks of block_k that their list names,
      and that the mask lets
    them see. Block i of the queries of a head names kv_num_blocks[i] blocks of keys, each once, in any order:
      the first so many of
    kv_indices[i]. The same as FlexAttention's BlockMask, with all blocks in one list.
    Several sequences of different lengths follow one another, without gaps, in a batch of 1: sequence n has
      the queries
    [cu_seqlens_q[n], cu_seqlens_q[n + 1]) and the keys [cu_seqlens_k[n], cu_seqlens_k[n + 1]).

    Inputs:
        q: [B, S, H, D]; float32, float16 or bfloat16
        k: [B, T, G, D]; H is a multiple of G; float32, float16 or bfloat16
        v: [B, T, G, E]; float32, float16 or bfloat16
        bias: optional [B or 1, H or 1, S, T]; float32, float16 or bfloat16
        sinks: optional [H]; float32, float16 or bfloat16
        alibi_slopes: optional [H]; float32
        cu_seqlens_q: optional [N + 1]; int32
        cu_seqlens_k: optional [N + 1]; with cu_seqlens_q; int32
        y_in: optional [B, S, H, E], of any float; float32, float16 or bfloat16
        lse_in: optional [B, H, S]; with y_in; float32
        kv_num_blocks: optional [B or 1, H or 1, Q]; int32
        kv_indices: optional [B or 1, H or 1, Q, M]; with kv_num_blocks; int32
    Outputs:
        y: [B, S, H, E]; float32, float16 or bfloat16
        lse: [B, H, S]; float32
    Attributes:
        scale = 0: float; 0: 1 / sqrt(D)
        causal = False: bool; a query sees no key after its own
        window_left = -1: int; keys before its own that a query sees; -1: all
        window_right = -1: int; keys after its own; -1: all
        softcap = 0: float; 0: none
        q_offset = 0: int; queries stand this much later
        block_q = 128: int; queries of a block that has a list
        block_k = 128: int; keys of a block in a list
    Gradient: of q, k, v, bias, sinks, y_in, lse_in.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> q = torch.randn(1, 67, 1, 16)
        >>> k = torch.randn(1, 40, 1, 16)
        >>> v = torch.randn(1, 40, 1, 16)
        >>> y, lse = heddle.ops.flash_attention(q, k, v, causal=True)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of flash_attention by its queries, keys and values. With p = exp(x - lse) for the score x of
      a query and a key,
    slope = 1 - tanh(.)^2 of the cap, and delta from flash_attention_delta:
      ds = p (dy v - delta);  dv = sum of p dy;  dq = scale * sum of ds slope k;  dk = scale * sum of ds slope
        q
    Every sum has one order: the same inputs give the same bits.

    Inputs:
        q: [B, S, H, D]; float32, float16 or bfloat16
        k: [B, T, G, D]; float32, float16 or bfloat16
        v: [B, T, G, E]; float32, float16 or bfloat16
        dy: [B, S, H, E]; float32, float16 or bfloat16
        lse: [B, H, S]; float32
        delta: [B, H, S]; float32
        bias: optional [B or 1, H or 1, S, T]; float32, float16 or bfloat16
        alibi_slopes: optional [H]; float32
        cu_seqlens_q: optional [N + 1]; int32
        cu_seqlens_k: optional [N + 1]; with cu_seqlens_q; int32
        kv_num_blocks: optional [B or 1, H or 1, Q], with kv_indices; int32
        kv_indices: optional [B or 1, H or 1, Q, M]; int32
        q_num_blocks: optional [B or 1, H or 1, K], from flash_attention_query_blocks; int32
        q_indices: optional [B or 1, H or 1, K, Q]; int32
    Outputs:
        dq: [B, S, H, D]; float32, float16 or bfloat16
        dk: [B, T, G, D]; float32, float16 or bfloat16
        dv: [B, T, G, E]; float32, float16 or bfloat16
    Attributes:
        scale = 0: float; this and what follows as in flash_attention
        causal = False: bool; a query sees no key after its own
        window_left = -1: int; keys before its own that a query sees; -1: all
        window_right = -1: int; keys after its own; -1: all
        softcap = 0: float; 0: none
        q_offset = 0: int; queries stand this much later
        block_q = 128: int; queries of a block that has a list
        block_k = 128: int; keys of a block in a list
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> q = torch.randn(1, 67, 1, 16)
        >>> k = torch.randn(1, 40, 1, 16)
        >>> v = torch.randn(1, 40, 1, 16)
        >>> dy = torch.randn(1, 67, 1, 16)
        >>> lse = torch.randn(1, 1, 67)
        >>> delta = torch.randn(1, 1, 67)
        >>> dq, dk, dv = heddle.ops.flash_attention_backward(q, k, v, dy, lse, delta, causal=True)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of flash_attention by its bias: ds = p (dy v - delta), as flash_attention_backward has it,
      summed over the
    batches and heads that share a bias, in their order.

    Inputs:
        q: [B, S, H, D]; float32, float16 or bfloat16
        k: [B, T, G, D]; float32, float16 or bfloat16
        v: [B, T, G, E]; float32, float16 or bfloat16
        bias: [B or 1, H or 1, S, T]; float32, float16 or bfloat16
        dy: [B, S, H, E]; float32, float16 or bfloat16
        lse: [B, H, S]; float32
        delta: [B, H, S]; float32
        alibi_slopes: optional [H]; float32
        kv_num_blocks: optional [B or 1, H or 1, Q], with kv_indices; int32
        kv_indices: optional [B or 1, H or 1, Q, M]; int32
    Outputs:
        dbias: [., ., S, T]; float32, float16 or bfloat16
    Attributes:
        scale = 0: float; this and what follows as in flash_attention
        causal = False: bool; a query sees no key after its own
        window_left = -1: int; keys before its own that a query sees; -1: all
        window_right = -1: int; keys after its own; -1: all
        softcap = 0: float; 0: none
        q_offset = 0: int; queries stand this much later
        block_q = 128: int; queries of a block that has a list
        block_k = 128: int; keys of a block in a list
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> q = torch.randn(2, 6, 2, 8)
        >>> k = torch.randn(2, 11, 1, 8)
        >>> v = torch.randn(2, 11, 1, 8)
        >>> bias = torch.randn(1, 1, 6, 11)
        >>> dy = torch.randn(2, 6, 2, 8)
        >>> lse = torch.randn(2, 2, 6)
        >>> delta = torch.randn(2, 2, 6)
        >>> dbias = heddle.ops.flash_attention_bias_backward(q, k, v, bias, dy, lse, delta, causal=True)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def flash_attention_delta(y: T, dy: T, dlse: T | None = None, *, out: T | dict[str, T] | None = None) -> T:
    """sum of y * dy for each head of each row, less dlse

    delta = sum of y dy over the elements of a head, less dlse: what all scores of a query have in common in
      the gradient of
    flash_attention.

    Inputs:
        y: [B, S, H, E]; float32, float16 or bfloat16
        dy: [B, S, H, E]; float32, float16 or bfloat16
        dlse: optional [B, H, S]; float32
    Outputs:
        delta: [B, H, S]; float32
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> y = torch.randn(2, 5, 2, 8)
        >>> dy = torch.randn(2, 5, 2, 8)
        >>> delta = heddle.ops.flash_attention_delta(y, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of flash_attention by the earlier result that it continues: of one more key with the score
      lse_in and the value y_in.
      w = exp(lse_in - lse);  dy_in = w dy;  dlse_in = w (dy y_in - delta)
    Both are 0 where lse_in is -inf.

    Inputs:
        y_in: [B, S, H, E]; float32, float16 or bfloat16
        lse_in: [B, H, S]; float32
        dy: [B, S, H, E]; float32, float16 or bfloat16
        lse: [B, H, S], with the earlier keys; float32
        delta: [B, H, S], from flash_attention_delta; float32
    Outputs:
        dy_in: [B, S, H, E]; float32, float16 or bfloat16
        dlse_in: [B, H, S]; float32
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> y_in = torch.randn(2, 5, 2, 8)
        >>> lse_in = torch.randn(2, 2, 5)
        >>> dy = torch.randn(2, 5, 2, 8)
        >>> lse = torch.randn(2, 2, 5)
        >>> delta = torch.randn(2, 2, 5)
        >>> dy_in, dlse_in = heddle.ops.flash_attention_earlier_backward(y_in, lse_in, dy, lse, delta)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The block lists of flash_attention as its gradient by keys needs them: the blocks of queries that list a
      block of keys.

    Inputs:
        k: [B, T, G, D]: its positions are counted; its elements are not read; float32, float16 or bfloat16
        kv_num_blocks: [B or 1, H or 1, Q]; int32
        kv_indices: [B or 1, H or 1, Q, M]; int32
    Outputs:
        q_num_blocks: [B or 1, H or 1, K]; int32
        q_indices: [B or 1, H or 1, K, Q]: ascending; 0 after the last; int32
    Attributes:
        block_k = 128: int; keys of a block
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> k = torch.randn(2, 70, 1, 8)
        >>> kv_num_blocks = torch.zeros(1, 2, 3, dtype=torch.int32)
        >>> kv_indices = torch.zeros(1, 2, 3, 4, dtype=torch.int32)
        >>> q_num_blocks, q_indices = heddle.ops.flash_attention_query_blocks(k, kv_num_blocks, kv_indices,
          block_k=24)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def flash_attention_sinks_backward(sinks: T, lse: T, delta: T, *, out: T | dict[str, T] | None = None) -> T:
    """the gradient of flash_attention by its sinks

    The gradient of flash_attention by its sinks: of each head less the sum of exp(sink - lse) delta over all
      queries.

    Inputs:
        sinks: [H]; float32, float16 or bfloat16
        lse: [B, H, S]; float32
        delta: [B, H, S], from flash_attention_delta; float32
    Outputs:
        dsinks: [H]; float32, float16 or bfloat16
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> sinks = torch.randn(2)
        >>> lse = torch.randn(3, 2, 5)
        >>> delta = torch.randn(3, 2, 5)
        >>> dsinks = heddle.ops.flash_attention_sinks_backward(sinks, lse, delta)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def gate_rows(x: T, gate: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = x, each row times the sigmoid of its gate

    y[m] = sigmoid(gate[m]) x[m]: each row by a gate of its own, as Qwen's mixtures weigh their shared expert.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        gate: [M, 1], before the sigmoid; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Gradient: of x, gate.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> gate = torch.randn(5, 1)
        >>> y = heddle.ops.gate_rows(x, gate)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def gate_rows_backward(
    x: T,
    gate: T,
    dy: T,
    *,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dx and dgate of gate_rows

    The gradient of gate_rows. With s = sigmoid(gate[m]), of each row:
      dx = s * dy
      dgate = s * (1 - s) * sum of x * dy

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        gate: [M, 1], before the sigmoid; float32, float16 or bfloat16
        dy: [M, N]; float32, float16 or bfloat16
    Outputs:
        dx: [M, N]; float32, float16 or bfloat16
        dgate: [M, 1]; float32, float16 or bfloat16
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> gate = torch.randn(5, 1)
        >>> dy = torch.randn(5, 37)
        >>> dx, dgate = heddle.ops.gate_rows_backward(x, gate, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def gated_activation(
    x: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = f(gate) * up, of pairs (gate, up) side by side

    y = f(gate) * up, where the columns of x are pairs (gate, up) side by side: SwiGLU, GeGLU (Shazeer, 2020).

    Inputs:
        x: [M, 2N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        kind = 'silu': one of 'silu', 'gelu', 'gelu_tanh', 'relu'; ActivationKind
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 74)
        >>> y = heddle.ops.gated_activation(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def gated_activation_backward(
    x: T,
    dy: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """dx of pairs (gate, up): dy * up * f'(gate), dy * f(gate)

    The gradient of gated_activation, of pairs (gate, up) side by side: dgate = dy * up * f'(gate), dup = dy *
      f(gate).

    Inputs:
        x: [M, 2N]; float32, float16 or bfloat16
        dy: [M, N]; float32, float16 or bfloat16
    Outputs:
        dx: [M, 2N]; float32, float16 or bfloat16
    Attributes:
        kind = 'silu': one of 'silu', 'gelu', 'gelu_tanh', 'relu'; ActivationKind
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 74)
        >>> dy = torch.randn(5, 37)
        >>> dx = heddle.ops.gated_activation_backward(x, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def gated_product(
    gate: T,
    up: T,
    *,
    kind: Literal["silu", "gelu", "gelu_tanh", "relu"] = "silu",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = f(gate) * up, of two matrices

    y = f(gate) * up, where gate and up are matrices by themselves: SwiGLU, GeGLU (Shazeer, 2020).

    Inputs:
        gate: [M, N]; float32, float16 or bfloat16
        up: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        kind = 'silu': one of 'silu', 'gelu', 'gelu_tanh', 'relu'; ActivationKind
    Gradient: of gate, up.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> gate = torch.randn(5, 37)
        >>> up = torch.randn(5, 37)
        >>> y = heddle.ops.gated_product(gate, up)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of gated_product: dgate = dy * up * f'(gate), dup = dy * f(gate).

    Inputs:
        gate: [M, N]; float32, float16 or bfloat16
        up: [M, N]; float32, float16 or bfloat16
        dy: [M, N]; float32, float16 or bfloat16
    Outputs:
        dgate: [M, N]; float32, float16 or bfloat16
        dup: [M, N]; float32, float16 or bfloat16
    Attributes:
        kind = 'silu': one of 'silu', 'gelu', 'gelu_tanh', 'relu'; ActivationKind
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> gate = torch.randn(5, 37)
        >>> up = torch.randn(5, 37)
        >>> dy = torch.randn(5, 37)
        >>> dgate, dup = heddle.ops.gated_product_backward(gate, up, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def gather_rows(step: T, x: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = the rows of x whose logits are wanted

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    The rows whose logits are wanted: y[i] = x[wanted row i of the step].

    Inputs:
        step: [bytes], the host part of the step record; uint8
        x: [T, D]; float32, float16 or bfloat16
    Outputs:
        y: [M, D]; float32, float16 or bfloat16
    """

def head_linear(x: T, w: T, *, heads: int = 1, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x w^T with rows of the weight of each head's own

    This op takes a packed weight, which only a program has: use matmul for a product of plain tensors.

    y = x w^T head by head: the elements of each head of x times the head's own rows of a packed weight, which
      lie one
    below the other.

    Inputs:
        x: [M, heads * K]; float32, float16 or bfloat16
        w: [N, K]; N / heads rows of each head; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        heads = 1: int
    """

def head_norm(
    x: T,
    weight: T,
    *,
    head_dim: int,
    heads: int,
    centred: int = 0,
    eps: float = 1e-05,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = x with each of its leading heads normalised

    Norm of each head: the leading `heads` heads of a row are normalised one by one, as rms_norm does a row
      or, if
    `centred`, as layer_norm without a bias does; columns after them are passed through (queries and keys,
      Henry et
    al., 2020).

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        weight: [heads * head_dim]: of each column; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        head_dim: int; elements of a head
        heads: int; leading heads of a row that are normalised
        centred = 0: int; 1: less the mean, as layer_norm
        eps = 1e-05: float; added to the mean of squares
    Gradient: of x, weight.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(1, 96)
        >>> weight = torch.randn(48)
        >>> y = heddle.ops.head_norm(x, weight, head_dim=24, heads=2)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def head_norm_backward(
    x: T,
    weight: T,
    dy: T,
    *,
    head_dim: int,
    heads: int,
    centred: int = 0,
    eps: float = 1e-05,
    part_rows: int = 0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dx of head_norm, and dweight in parts of some rows

    The gradient of head_norm. With z = (x - mean) * s, s = 1 / sqrt(mean((x - mean)^2) + eps) and g = weight
      * dy, of
    each head of a row, the means of x and g being 0 unless `centred`:
      dx = s * (g - mean(g) - z * mean(g * z)); dx = dy in columns after the heads
      dweight = sum of dy * z over the rows: here in parts of `part_rows` rows (ir/parts.h), that column_sum
        adds up

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        weight: [W], W = heads * head_dim; float32, float16 or bfloat16
        dy: [M, N]; float32, float16 or bfloat16
    Outputs:
        dx: [M, N]; float32, float16 or bfloat16
        dweight_parts: [P, W], P = M / part_rows, rounded up; float32
    Attributes:
        head_dim: int; elements of a head
        heads: int; leading heads of a row that are normalised
        centred = 0: int; 1: less the mean, as layer_norm
        eps = 1e-05: float; added to the mean of squares
        part_rows = 0: int; 0: what suits x
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(1, 128)
        >>> weight = torch.randn(128)
        >>> dy = torch.randn(1, 128)
        >>> dx, dweight_parts = heddle.ops.head_norm_backward(x, weight, dy, head_dim=64, heads=2,
          part_rows=16)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    Puts the new keys and values of a step, or one of them, into their pages; what it is given is passed on
      unchanged.

    Inputs:
        step: [bytes], the host part of the step record; uint8
        state: [bytes], the device part; uint8
        x: [M, N]; holds keys and values of all kv heads in columns of their own; float32, float16 or bfloat16
    Outputs:
        keys: [pages, kv_heads, page_size, head_dim]; float32, float16 or bfloat16
        values: optional [P, H, S, D]; float32, float16 or bfloat16
    Attributes:
        key_column = 0: int
        value_column = 0: int
    """

def layer_norm(
    x: T,
    weight: T,
    bias: T | None = None,
    *,
    eps: float = 1e-05,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = (x - mean) / sqrt(variance + eps) * weight + bias, row by row

    y = (x - mean) / sqrt(variance + eps) * weight + bias, over the last dimension (Ba et al., 2016).

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
        weight: [D]; float32, float16 or bfloat16
        bias: optional [D] or absent; float32, float16 or bfloat16
    Outputs:
        y: [M, D]; float32, float16 or bfloat16
    Attributes:
        eps = 1e-05: float; added to the variance
    Gradient: of x, weight, bias.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> weight = torch.randn(37)
        >>> y = heddle.ops.layer_norm(x, weight)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def layer_norm_backward(
    x: T,
    weight: T,
    dy: T,
    dsum: T | None = None,
    *,
    eps: float = 1e-05,
    part_rows: int = 0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T]:
    """dx of layer_norm, and dweight and dbias in parts of some rows

    The gradient of layer_norm. With s = 1 / sqrt(variance + eps), z = (x - mean) * s and g = weight * dy, of
      each row:
      dx = s * (g - mean(g) - z * mean(g * z))
      dweight = sum of dy * z, dbias = sum of dy over the rows: here in parts of `part_rows` rows
        (ir/parts.h), that column_sum adds up

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
        weight: [D]; float32, float16 or bfloat16
        dy: [M, D]; float32, float16 or bfloat16
        dsum: optional [M, D] or absent: added to dx, where x is a sum that is used elsewhere too; float32,
          float16 or bfloat16
    Outputs:
        dx: [M, D]; float32, float16 or bfloat16
        dweight_parts: [P, D], P = M / part_rows, rounded up; float32
        dbias_parts: [P, D]; float32
    Attributes:
        eps = 1e-05: float; added to the variance
        part_rows = 0: int; 0: what suits x
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> weight = torch.randn(37)
        >>> dy = torch.randn(5, 37)
        >>> dx, dweight_parts, dbias_parts = heddle.ops.layer_norm_backward(x, weight, dy, part_rows=16)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def layer_norm_residual(
    x: T,
    residual: T,
    weight: T,
    bias: T | None = None,
    *,
    eps: float = 1e-05,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """sum = x + residual, y = layer_norm of sum, row by row

    sum = x + residual, y = layer_norm(sum): the norm at the head of a block, and the residual stream that
      goes on. The norm
    takes the sum as it is stored.

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
        residual: [M, D]; float32, float16 or bfloat16
        weight: [D]; float32, float16 or bfloat16
        bias: optional [D] or absent; float32, float16 or bfloat16
    Outputs:
        y: [M, D]; float32, float16 or bfloat16
        sum: [M, D]; float32, float16 or bfloat16
    Attributes:
        eps = 1e-05: float; added to the variance
    Gradient: of x, residual, weight, bias.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> residual = torch.randn(5, 37)
        >>> weight = torch.randn(37)
        >>> y, sum = heddle.ops.layer_norm_residual(x, residual, weight)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def linear(x: T, w: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """y = x w^T with a packed weight; takes a prologue and epilogues

    This op takes a packed weight, which only a program has: use matmul for a product of plain tensors.

    y = x w^T: rows of x times rows of a packed weight. Prologue and epilogues make a chain around it.

    Inputs:
        x: [M, K]; made by the prologue where there is one; float32, float16 or bfloat16
        w: [N, K]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; what the last epilogue leaves; float32, float16 or bfloat16
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

    y = a b: the product of two matrices as they lie in memory, of activations or of codes with scales
      (ir/tensor.h).
    Sums are in FP32; their order depends only on K and N. Narrow elements are multiplied as bf16, or as f16
      if the other matrix is f16.

    Inputs:
        a: [M, K]; float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8 or int4
        b: [K, N]; float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8 or int4
        a_scales: optional [., .]; float32
        a_zeros: optional [., .]; float32
        b_scales: optional [., .]; float32
        b_zeros: optional [., .]; float32
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        allow_tf32 = False: bool; products of f32 may have 10 bits of fraction, with sums in f32
    Gradient: of a, b.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> a = torch.randn(70, 9)
        >>> b = torch.randn(9, 1)
        >>> y = heddle.ops.matmul(a, b)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def mma_sympow(x: T, v: T, *, power: int = 2, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """s = phi(x)' v for each chunk of rows, phi the symmetric power

    s = phi(x)' v: the state of each chunk of rows, the sum of phi(x) times v over its positions
      (sympow_columns.h). phi is
    never in memory. Chunk c of head h of batch b has rows [c N, c N + N) of s[b, h], where N is the number of
      columns of phi.

    Inputs:
        x: [B, T, H, K]; float32, float16 or bfloat16
        v: [B, T, H, E]; float32, float16 or bfloat16
    Outputs:
        s: [B, H, chunks * N, E]; float32, float16 or bfloat16
    Attributes:
        power = 2: int; or 4
        chunk = 0: int; positions that have one state; 0: all
    Gradient: of x, v.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(2, 5, 2, 8)
        >>> v = torch.randn(2, 5, 2, 9)
        >>> s = heddle.ops.mma_sympow(x, v, chunk=3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def multiply(a: T, b: T, *, out: T | dict[str, T] | None = None) -> T:
    """y = a * b, element by element

    y = a * b, element by element.

    Inputs:
        a: [M, N]; float32, float16 or bfloat16
        b: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Gradient: of a, b.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> a = torch.randn(5, 37)
        >>> b = torch.randn(5, 37)
        >>> y = heddle.ops.multiply(a, b)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    y = x with each row times the gain of its position: gains[min(position / period, G - 1)]. Llama 4 (2025)
      lets queries
    grow this way far into a text.

    Inputs:
        state: [bytes], the device part of the step record; uint8
        x: [M, N]; float32, float16 or bfloat16
        gains: [G]; float32
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        period = 1: int; positions for which a gain holds
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

    Power attention inside chunks of positions, with what a state gives of the chunks before (Buckman, Gelada
      and Zhang,
    2024: "Symmetric power transformers"). For positions j <= i of one chunk, and sums l of log gates from its
      begin:
      weight a_ij = exp(l_i - l_j) (scale <q_i, k_j>)^power
      part of the past f_i = exp(l_i) scale^power, which multiplies row i of `past`: phi(q_i) times the
        chunk's state
      y_i = f_i past_i + sum of a_ij v_j over j;   total_i = f_i past_i[E] + sum of a_ij over j
    normalise: y_i is divided by total_i + eps, and `past` has its part of the total in column E.
    With one chunk and no past it is power attention in its quadratic form.

    Inputs:
        q: [B, T, H, K]; float32, float16 or bfloat16
        k: [B, T, H, K]; float32, float16 or bfloat16
        v: [B, T, H, E]; float32, float16 or bfloat16
        l: optional [B, T, H]: inclusive sums of log gates in each chunk; float32
        past: optional [B, T, H, P]: P at least E, or E + 1; float32, float16 or bfloat16
    Outputs:
        y: [B, T, H, E]; float32, float16 or bfloat16
        total: [B, T, H]; float32
    Attributes:
        power = 2: int; 2 or 4
        scale = 1: float; multiplies scores before the power
        chunk = 0: int; positions of a chunk; 0: all
        normalise = False: bool; divide by the sum of weights
        eps = 0: float; added to that sum
    Gradient: of q, k, v, l, past.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> q = torch.randn(1, 1, 1, 8)
        >>> k = torch.randn(1, 1, 1, 8)
        >>> v = torch.randn(1, 1, 1, 1)
        >>> y, total = heddle.ops.power_attention(q, k, v, scale=0.35355338, eps=8)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of power_attention that belongs to rows of queries: dq, and the rows' part of the sums of log
      gates.

    Inputs:
        q: [B, T, H, K]; float32, float16 or bfloat16
        k: [B, T, H, K]; float32, float16 or bfloat16
        v: [B, T, H, E]; float32, float16 or bfloat16
        y: [B, T, H, E]; float32, float16 or bfloat16
        total: [B, T, H]; float32
        dy: [B, T, H, E]; float32, float16 or bfloat16
        dtotal: [B, T, H]; float32
        l: optional [B, T, H]; float32
        past: optional [B, T, H, P]; float32, float16 or bfloat16
    Outputs:
        dq: [B, T, H, K]; float32, float16 or bfloat16
        dl_rows: [B, T, H]: l_i as the gate of row i; float32
    Attributes:
        power = 2: int; 2 or 4
        scale = 1: float; multiplies scores before the power
        chunk = 0: int; positions that share a state; 0: all
        normalise = False: bool; divide by the sum of weights
        eps = 0: float; added to that sum
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> q = torch.randn(1, 66, 1, 32)
        >>> k = torch.randn(1, 66, 1, 32)
        >>> v = torch.randn(1, 66, 1, 16)
        >>> y = torch.randn(1, 66, 1, 16)
        >>> total = torch.randn(1, 66, 1)
        >>> dy = torch.randn(1, 66, 1, 16)
        >>> dtotal = torch.randn(1, 66, 1)
        >>> dq, dl_rows = heddle.ops.power_attention_backward(q, k, v, y, total, dy, dtotal, scale=0.17677669,
          chunk=66, normalise=True, eps=8)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of power_attention that belongs to keys: dk, dv, and the gradient of the sums of log gates,
      which is the
    rows' part less the keys' part.

    Inputs:
        q: [B, T, H, K]; float32, float16 or bfloat16
        k: [B, T, H, K]; float32, float16 or bfloat16
        v: [B, T, H, E]; float32, float16 or bfloat16
        y: [B, T, H, E]; float32, float16 or bfloat16
        total: [B, T, H]; float32
        dy: [B, T, H, E]; float32, float16 or bfloat16
        dtotal: [B, T, H]; float32
        dl_rows: [B, T, H]; float32
        l: optional [B, T, H]; float32
    Outputs:
        dk: [B, T, H, K]; float32, float16 or bfloat16
        dv: [B, T, H, E]; float32, float16 or bfloat16
        dl: [B, T, H]; float32
    Attributes:
        power = 2: int; 2 or 4
        scale = 1: float; multiplies scores before the power
        chunk = 0: int; positions that share a state; 0: all
        normalise = False: bool; divide by the sum of weights
        eps = 0: float; added to that sum
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> q = torch.randn(1, 7, 1, 8)
        >>> k = torch.randn(1, 7, 1, 8)
        >>> v = torch.randn(1, 7, 1, 8)
        >>> y = torch.randn(1, 7, 1, 8)
        >>> total = torch.randn(1, 7, 1)
        >>> dy = torch.randn(1, 7, 1, 8)
        >>> dtotal = torch.randn(1, 7, 1)
        >>> dl_rows = torch.randn(1, 7, 1)
        >>> dk, dv, dl = heddle.ops.power_attention_keys_backward(q, k, v, y, total, dy, dtotal, dl_rows,
          scale=0.35355338, chunk=3, eps=8)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of power_attention with respect to `past`: row i is f_i times the gradient of the row's sums.

    Inputs:
        past: [B, T, H, P]; float32, float16 or bfloat16
        y: [B, T, H, E]; float32, float16 or bfloat16
        total: [B, T, H]; float32
        dy: [B, T, H, E]; float32, float16 or bfloat16
        dtotal: [B, T, H]; float32
        l: optional [B, T, H]; float32
    Outputs:
        dpast: [B, T, H, P]; float32, float16 or bfloat16
    Attributes:
        power = 2: int; 2 or 4
        scale = 1: float; multiplies scores before the power
        normalise = False: bool; divide by the sum of weights
        eps = 0: float; added to that sum
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> past = torch.randn(1, 50, 2, 16)
        >>> y = torch.randn(1, 50, 2, 8)
        >>> total = torch.randn(1, 50, 2)
        >>> dy = torch.randn(1, 50, 2, 8)
        >>> dtotal = torch.randn(1, 50, 2)
        >>> dpast = heddle.ops.power_attention_past_backward(past, y, total, dy, dtotal, power=4,
          scale=0.35355338, eps=8)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def quantize(
    x: T,
    *,
    code: Literal["e4m3", "e5m2", "i8"] = "e4m3",
    by: Literal["row", "block"] = "row",
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """x = scale * code: codes of 8 bits, and scales of rows or blocks

    Rounds rows to codes of 8 bits with scales: x = scale * code. A scale is that of a row, or of 128
      neighbours in a row (`by`), and
    makes the largest of them the largest code.

    Inputs:
        x: [M, K]; float32, float16 or bfloat16
    Outputs:
        codes: [M, K]; float8_e4m3fn, float8_e5m2 or int8
        scales: [M, G], G = 1, or K / 128, rounded up; float32
    Attributes:
        code = 'e4m3': one of 'e4m3', 'e5m2', 'i8'; the type of codes
        by = 'row': one of 'row', 'block'; a scale of each row, or of each 128 neighbours
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 67)
        >>> codes, scales = heddle.ops.quantize(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def quantize_both(
    x: T,
    *,
    code: Literal["e4m3", "e5m2", "i8"] = "e4m3",
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T, T, T]:
    """codes of 8 bits with scales of 1 x 128 blocks, of x and of x transposed

    Rounds a matrix to codes of 8 bits in both layouts, as products of training want it, in one read: x =
      scale * code with scales of
    1 x 128 elements of x, and the same of x transposed.

    Inputs:
        x: [M, K], both multiples of 4; float32, float16 or bfloat16
    Outputs:
        codes: [M, K]; float8_e4m3fn, float8_e5m2 or int8
        scales: [M, G], G = K / 128, rounded up; float32
        transposed: [K, M]; float8_e4m3fn, float8_e5m2 or int8
        transposed_scales: [K, H], H = M / 128, rounded up; float32
    Attributes:
        code = 'e4m3': one of 'e4m3', 'e5m2', 'i8'; the type of codes
    Gradient: none.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(4, 4)
        >>> codes, scales, transposed, transposed_scales = heddle.ops.quantize_both(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def reduce(
    x: T,
    *,
    kind: Literal["sum", "max", "mean"] = "sum",
    variant: Literal["shuffle", "improved", "naive"] = "shuffle",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = sum, maximum or mean of each row of x

    y = sum, maximum or mean of each row. A maximum over a NaN is NaN.

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
    Outputs:
        y: [M]; float32, float16 or bfloat16
    Attributes:
        kind = 'sum': one of 'sum', 'max', 'mean'; what is made of a row
        variant = 'shuffle': one of 'shuffle', 'improved', 'naive'; the kernel on a GPU
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.reduce(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def reduce_dim(
    x: T,
    *,
    kind: Literal["sum", "max", "mean"] = "sum",
    result: Literal["input", "f32"] = "input",
    out: T | dict[str, T] | None = None,
) -> T:
    """y = sum, maximum or mean of x over its last dimension but one

    y[g, d] = sum, maximum or mean of x[g, m, d] over m: a reduction over any dimension, or over several
      neighbouring ones as one.

    Inputs:
        x: [G, M, D]; float32, float16 or bfloat16
    Outputs:
        y: [G, D]; float32, float16 or bfloat16
    Attributes:
        kind = 'sum': one of 'sum', 'max', 'mean'; what is made of a row
        result = 'input': one of 'input', 'f32'; the dtype of y where no y is given
    Gradient: of x.
    G may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(2, 64, 8)
        >>> y = heddle.ops.reduce_dim(x, result='f32')

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def reduce_dim_backward(
    x: T,
    dy: T,
    *,
    kind: Literal["sum", "max", "mean"] = "sum",
    out: T | dict[str, T] | None = None,
) -> T:
    """dx = the gradient of reduce_dim

    The gradient of reduce_dim: dx[g, m, d] is dy[g, d] for a sum, a part of it for a mean. For a maximum the
      elements that are the
    largest share it; where one is NaN, all get NaN.

    Inputs:
        x: [G, M, D]; its values count for a maximum alone; float32, float16 or bfloat16
        dy: [G, D]; float32, float16 or bfloat16
    Outputs:
        dx: [G, M, D]; float32, float16 or bfloat16
    Attributes:
        kind = 'sum': one of 'sum', 'max', 'mean'; what is made of a row
    Gradient: none.
    G may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 7, 3)
        >>> dy = torch.randn(5, 3)
        >>> dx = heddle.ops.reduce_dim_backward(x, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rms_norm(x: T, weight: T, *, eps: float = 1e-05, out: T | dict[str, T] | None = None) -> T:
    """y = x / sqrt(mean(x^2) + eps) * weight, row by row

    Root mean square norm: y = x / sqrt(mean(x^2) + eps) * weight, over the last dimension (Zhang and
      Sennrich,
    2019).

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
        weight: [D]; float32, float16 or bfloat16
    Outputs:
        y: [M, D]; float32, float16 or bfloat16
    Attributes:
        eps = 1e-05: float; added to the mean of squares
    Gradient: of x, weight.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> weight = torch.randn(37)
        >>> y = heddle.ops.rms_norm(x, weight)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rms_norm_backward(
    x: T,
    weight: T,
    dy: T,
    dsum: T | None = None,
    *,
    eps: float = 1e-05,
    part_rows: int = 0,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """dx of rms_norm, and dweight in parts of some rows

    The gradient of rms_norm. With s = 1 / sqrt(mean(x^2) + eps) and g = weight * dy, of each row:
      dx = s * (g - x * s^2 * mean(g * x))
      dweight = sum of dy * x * s over the rows: here in parts of `part_rows` rows (ir/parts.h), that
        column_sum adds up

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
        weight: [D]; float32, float16 or bfloat16
        dy: [M, D]; float32, float16 or bfloat16
        dsum: optional [M, D] or absent: added to dx, where x is a sum that is used elsewhere too; float32,
          float16 or bfloat16
    Outputs:
        dx: [M, D]; float32, float16 or bfloat16
        dweight_parts: [P, D], P = M / part_rows, rounded up; float32
    Attributes:
        eps = 1e-05: float; added to the mean of squares
        part_rows = 0: int; 0: what suits x
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> weight = torch.randn(37)
        >>> dy = torch.randn(5, 37)
        >>> dx, dweight_parts = heddle.ops.rms_norm_backward(x, weight, dy, part_rows=16)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rms_norm_residual(
    x: T,
    residual: T,
    weight: T,
    *,
    eps: float = 1e-05,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> tuple[T, T]:
    """sum = x + residual, y = rms_norm of sum, row by row

    sum = x + residual, y = rms_norm(sum): the norm at the head of a block, and the residual stream that goes
      on. The norm
    takes the sum as it is stored.

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
        residual: [M, D]; float32, float16 or bfloat16
        weight: [D]; float32, float16 or bfloat16
    Outputs:
        y: [M, D]; float32, float16 or bfloat16
        sum: [M, D]; float32, float16 or bfloat16
    Attributes:
        eps = 1e-05: float; added to the mean of squares
    Gradient: of x, residual, weight.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> residual = torch.randn(5, 37)
        >>> weight = torch.randn(37)
        >>> y, sum = heddle.ops.rms_norm_residual(x, residual, weight)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rope(q: T, cos: T, sin: T, *, interleaved: bool = False, out: T | dict[str, T] | None = None) -> T:
    """y = heads q with their pairs of elements turned by cos and sin

    Rotary positions (Su et al., 2021) as Hugging Face has them: heads turn by the cosines and sines of their
      positions, which
    are given for each element of a head. Of elements a and b that turn together,
      a' = a cos[a] - b sin[a],  b' = b cos[b] + a sin[b].
    These are i and i + R / 2 (half-split), or 2i and 2i + 1 (interleaved). Elements past R are passed
      through.

    Inputs:
        q: [B, H, S, D]: queries or keys, with any strides; float32, float16 or bfloat16
        cos: [C, S, R], where C is 1 or B; float32, float16 or bfloat16
        sin: [C, S, R]; float32, float16 or bfloat16
    Outputs:
        y: [B, H, S, D]; float32, float16 or bfloat16
    Attributes:
        interleaved = False: bool; elements 2i and 2i + 1 turn together, and not i and i + R / 2
    Gradient: of q.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> q = torch.randn(2, 3, 5, 8)
        >>> cos = torch.randn(2, 5, 8)
        >>> sin = torch.randn(2, 5, 8)
        >>> y = heddle.ops.rope(q, cos, sin)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rope_backward(
    dy: T,
    cos: T,
    sin: T,
    *,
    interleaved: bool = False,
    out: T | dict[str, T] | None = None,
) -> T:
    """dq = dy with its pairs of elements turned back by cos and sin

    The gradient of rope: dq is dy turned back.
      da = dy[a] cos[a] + dy[b] sin[b],  db = dy[b] cos[b] - dy[a] sin[a]

    Inputs:
        dy: [B, H, S, D]; float32, float16 or bfloat16
        cos: [C, S, R], where C is 1 or B; float32, float16 or bfloat16
        sin: [C, S, R]; float32, float16 or bfloat16
    Outputs:
        dq: [B, H, S, D]; float32, float16 or bfloat16
    Attributes:
        interleaved = False: bool; elements 2i and 2i + 1 turn together, and not i and i + R / 2
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> dy = torch.randn(2, 3, 5, 8)
        >>> cos = torch.randn(2, 5, 8)
        >>> sin = torch.randn(2, 5, 8)
        >>> dq = heddle.ops.rope_backward(dy, cos, sin)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rope_rows(
    x: T,
    table: T,
    *,
    head_dim: int,
    rotary_dim: int,
    heads: int,
    interleaved: int = 1,
    out: T | dict[str, T] | None = None,
) -> T:
    """y = x with the pairs of its leading heads turned by their position

    Rotary positions (Su et al., 2021): pairs of a head's first `rotary_dim` elements turn by the angles of
      the
    row. Partners are elements 2i and 2i + 1 (interleaved), or i and i + rotary_dim / 2 (half-split). Columns
    past the rotated heads and elements past rotary_dim are passed through.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        table: [M, R]: (cos, sin) of each pair; float32
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        head_dim: int; elements of a head
        rotary_dim: int; R, elements of a head that turn: an even number
        heads: int; leading heads of a row that turn
        interleaved = 1: int; 1: elements 2i and 2i + 1 turn together; 0: i and i + R / 2
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(19, 2)
        >>> table = torch.randn(19, 2)
        >>> y = heddle.ops.rope_rows(x, table, head_dim=2, rotary_dim=2, heads=1, interleaved=0)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rope_rows_backward(
    dy: T,
    table: T,
    *,
    head_dim: int,
    rotary_dim: int,
    heads: int,
    interleaved: int = 1,
    out: T | dict[str, T] | None = None,
) -> T:
    """dx = dy with the pairs of its leading heads turned back

    The gradient of rope_rows: the rotation the other way. Columns that rope_rows passes through are passed
      through.

    Inputs:
        dy: [M, N]; float32, float16 or bfloat16
        table: [M, R]: (cos, sin) of each pair; float32
    Outputs:
        dx: [M, N]; float32, float16 or bfloat16
    Attributes:
        head_dim: int; elements of a head
        rotary_dim: int; R, elements of a head that turn: an even number
        heads: int; leading heads of a row that turn
        interleaved = 1: int; 1: elements 2i and 2i + 1 turn together; 0: i and i + R / 2
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> dy = torch.randn(19, 2)
        >>> table = torch.randn(19, 2)
        >>> dx = heddle.ops.rope_rows_backward(dy, table, head_dim=2, rotary_dim=2, heads=1, interleaved=0)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def rope_table(state: T, inv_freq: T, *, scale: float = 1.0, out: T | dict[str, T] | None = None) -> NoReturn:
    """table = (cos, sin) of each row's position by frequency

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    Rotary angles of a step: row m of the table holds the pairs (cos, sin) of position(m) * inv_freq[i]. The
      angle
    is one f32 product, as transformers computes it.

    Inputs:
        state: [bytes], the device part of the step record; uint8
        inv_freq: [P]; float32
    Outputs:
        table: [M, 2P]; float32
    Attributes:
        scale = 1: float; on both: the attention scaling of some variants
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

    Chooses the experts of each token, and the share of each: the best of its scores, in falling order.

    Inputs:
        logits: [T, E]; float32, float16 or bfloat16
        bias: optional [E], added to the scores that choose (not to the shares), or none; float32, float16 or
          bfloat16
    Outputs:
        choice: [T, C]: experts; int32
        share: [T, C]: of their outputs; float32
    Attributes:
        sigmoid = 0: int; scores are 1: sigmoid(logits); 0: softmax(logits)
        normalise = 0: int; 1: shares are divided by their sum
        groups = 1: int; groups of neighbouring experts
        groups_kept = 1: int; groups whose experts can be chosen: those with the largest
        scores_of_group = 1: int; sum of so many (1 or 2) largest scores
        scale = 1: float; factor of the shares
    Gradient: none.
    T may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> logits = torch.randn(2, 6)
        >>> choice, share = heddle.ops.route(logits, normalise=1, groups=3, groups_kept=2, out=(torch.zeros(2,
          3, dtype=torch.int32), None,))

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def router(x: T, w: T, *, out: T | dict[str, T] | None = None) -> NoReturn:
    """logits of experts: x w^T in FP32, whatever the weight's dtype

    This op takes a packed weight, which only a program has: use matmul for a product of plain tensors.

    The logits that choose experts: y = x w^T in FP32. A linear multiplies rows as narrow as its weight, which
      is enough to
    choose another expert where two are close; here rows keep all their bits.

    Inputs:
        x: [T, K]; float32, float16 or bfloat16
        w: [E, K]; float32, float16 or bfloat16
    Outputs:
        y: [T, E]; float32
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

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    Chooses the next token of each sequence whose last row is wanted, and moves the state on. Scores are the
      logits
    after the steps of transformers' generate, in its order: repetition penalty over the seen tokens,
      temperature,
    top-k, top-p, min-p; temperature 0 takes the largest score, lowest token first. Scores equal to the last
      one
    that top-k or top-p keeps are kept too. The random number is Philox of (seed, draws): it depends on the
      sequence
    alone, not on what else is in the batch.
    If a score is NaN or plus infinity, or all are minus infinity, there is no token to choose: kNoToken.
    What sample_parts makes of the same logits is optional: with it a GPU need not read all of them here.
    A sequence with one row goes on by itself: token, position and start are those of its next step.

    Inputs:
        step: [bytes], the host part of the step record; uint8
        logits: [M, V], of the wanted rows; float32
        best: optional [M, S, kParts], optional, as the next two are; float32
        sorted: optional [M, S, kSize]; float32
        blocks: optional [M, S, kPlanes, kBlocks]; float32
    Outputs:
        state: [.]; uint8
    """

def sample_parts(
    step: T,
    logits: T,
    state: T,
    *,
    out: tuple[T | None, ...] | dict[str, T] | None = None,
) -> NoReturn:
    """what the choice of a token needs of slices of its scores

    This op is a part of a program, because it reads the step record: use a graph, or heddle.load for a model.

    Describes each slice of a row's scores (score_slices.h) for sample, so that many tiles read the scores
      instead of its one: the
    best and, if the sequence draws, the sum of weights. If the sequence drops tokens (StepSequence::drops),
      it also sorts the
    slice's scores in descending order. Scores are the logits after the repetition penalty.

    Inputs:
        step: [bytes], the host part of the step record; uint8
        logits: [M, V], of the wanted rows; float32
        state: [bytes], the device part; uint8
    Outputs:
        best: [M, S, kParts]; float32
        sorted: [M, S, kSize]; float32
        blocks: [M, S, kPlanes, kBlocks]; float32
    """

def scale(x: T, *, factor: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """y = factor * x

    y = factor * x, element by element: the multipliers of residuals and logits that some models have.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        factor = 1: float; multiplies x
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.scale(x, factor=0.22)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    y = (scales of a * a) (scales of b * b), of fp8. There is one scale for all of a, one for each row, or one
      for each row and 128 k;
    one for all of b, for each column, or for 128 k and one or 128 columns. Sums are in f32.

    Inputs:
        a: [M, K]; float8_e4m3fn or float8_e5m2
        b: [K, N]; float8_e4m3fn or float8_e5m2
        scale_a: [1, 1], [M, 1], or [M, K / 128], rounded up; float32
        scale_b: [1, 1], [1, N], [K / 128, N], or [K / 128, N / 128], rounded up; float32
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        fast_sums = False: bool; sums may have the 14 bits of fraction that products of fp8 add with
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> a = torch.randn(5, 96).to(torch.float8_e4m3fn)
        >>> b = torch.randn(96, 48).to(torch.float8_e4m3fn)
        >>> scale_a = torch.randn(5, 1)
        >>> scale_b = torch.randn(1, 48)
        >>> y = heddle.ops.scaled_mm(a, b, scale_a, scale_b)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def softcap(x: T, *, cap: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """y = cap * tanh(x / cap)

    y = cap * tanh(x / cap), element by element: values bend towards +-cap (Gemma 2, 2024).

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; float32, float16 or bfloat16
    Attributes:
        cap = 1: float; positive
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.softcap(x, cap=0.3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def softcap_backward(x: T, dy: T, *, cap: float = 1.0, out: T | dict[str, T] | None = None) -> T:
    """dx = dy * (1 - tanh(x / cap)^2)

    The gradient of softcap: dx = dy * (1 - tanh(x / cap)^2), element by element.

    Inputs:
        x: [M, N]; float32, float16 or bfloat16
        dy: [M, N]; float32, float16 or bfloat16
    Outputs:
        dx: [M, N]; float32, float16 or bfloat16
    Attributes:
        cap = 1: float; positive
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> dy = torch.randn(5, 37)
        >>> dx = heddle.ops.softcap_backward(x, dy, cap=0.3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def softmax(x: T, dim: int = -1, *, out: T | dict[str, T] | None = None) -> T:
    """y = softmax of x, row by row

    y = exp(x - max) / sum of exp(x - max), over the last dimension.

    Inputs:
        x: [M, D]; float32, float16 or bfloat16
    Outputs:
        y: [M, D]; float32, float16 or bfloat16
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.softmax(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def softmax_backward(y: T, dy: T, *, out: T | dict[str, T] | None = None) -> T:
    """dx = y * (dy - sum of dy * y), row by row

    The gradient of softmax, from what it has written: dx = y * (dy - sum of dy * y), row by row.

    Inputs:
        y: [M, D]; float32, float16 or bfloat16
        dy: [M, D]; float32, float16 or bfloat16
    Outputs:
        dx: [M, D]; float32, float16 or bfloat16
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> y = torch.randn(5, 37)
        >>> dy = torch.randn(5, 37)
        >>> dx = heddle.ops.softmax_backward(y, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    States before each chunk from what each chunk adds: s_0 = s0, s_(g+1) = exp(l at the end of chunk g) s_g +
      u_g; `last` is
    the state after all. Rows of a head lie chunk by chunk, as mma_sympow writes them.

    Inputs:
        u: [B, H, chunks * N, E]; float32, float16 or bfloat16
        l: optional [B, T, H]: inclusive sums of log gates in each chunk; float32
        s0: optional [B, H, N, E]; zeros; float32, float16 or bfloat16
    Outputs:
        s: [B, H, chunks * N, E]; float32, float16 or bfloat16
        last: [B, H, N, E]; float32
    Attributes:
        chunks = 1: int; a head has so many
        chunk = 0: int; positions of a chunk of l; 0: all
    Gradient: of u, l, s0.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> u = torch.randn(1, 1, 64, 1)
        >>> s, last = heddle.ops.state_scan(u)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of state_scan: r_chunks = dlast, r_g = ds_g + decay_g r_(g+1), du_g = r_(g+1), ds0 = r_0.
      part[g, p] is the
    part of rows [64 p, 64 p + 64) in <s_g, r_(g+1)>, from which state_scan_gates makes dl.

    Inputs:
        s: [B, H, chunks * N, E]; float32, float16 or bfloat16
        ds: [B, H, chunks * N, E]; float32, float16 or bfloat16
        dlast: [B, H, N, E]; float32
        l: optional [B, T, H]; float32
    Outputs:
        du: [B, H, chunks * N, E]; float32, float16 or bfloat16
        ds0: [B, H, N, E]; float32
        part: [B, H, chunks, P]; float32
    Attributes:
        chunks = 1: int; chunks of a sequence
        chunk = 0: int; positions of a chunk of l; 0: all
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> s = torch.randn(1, 1, 64, 1)
        >>> ds = torch.randn(1, 1, 64, 1)
        >>> dlast = torch.randn(1, 1, 64, 1)
        >>> du, ds0, part = heddle.ops.state_scan_backward(s, ds, dlast)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def state_scan_gates(part: T, l: T, *, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """dl of state_scan, at the ends of chunks

    The gradient of state_scan with respect to sums of log gates: at the end of chunk g, decay_g times the sum
      of part[g];
    zero elsewhere.

    Inputs:
        part: [B, H, chunks, P]; float32
        l: [B, T, H]; float32
    Outputs:
        dl: [B, T, H]; float32
    Attributes:
        chunk = 0: int; positions of a chunk; 0: all
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> part = torch.randn(2, 2, 2, 4)
        >>> l = torch.randn(2, 5, 2)
        >>> dl = heddle.ops.state_scan_gates(part, l, chunk=3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The terms of a chunk's state, for mma_sympow: v times the decay from the position to the chunk's end.
    normalise: a column of decays follows, whose product with phi is the total of the state, and seven of
      zeros.

    Inputs:
        v: [B, T, H, E]; float32, float16 or bfloat16
        l: optional [B, T, H]: inclusive sums of log gates in each chunk; float32
    Outputs:
        s: [B, T, H, P]; P = E, or E + 8; float32, float16 or bfloat16
    Attributes:
        chunk = 0: int; positions of a chunk; 0: all
        normalise = False: bool; a column of decays and seven of zeros follow
    Gradient: of v, l.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> v = torch.randn(1, 3, 1, 8)
        >>> s = heddle.ops.state_values(v, normalise=True)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of state_values: dv and dl. The gates' sum at a chunk's end is in the decay of all of its
      positions.

    Inputs:
        v: [B, T, H, E]; float32, float16 or bfloat16
        ds: [B, T, H, P]; float32, float16 or bfloat16
        l: optional [B, T, H]; float32
    Outputs:
        dv: [B, T, H, E]; float32, float16 or bfloat16
        dl: [B, T, H]; float32
    Attributes:
        chunk = 0: int; positions of a chunk; 0: all
        normalise = False: bool; a column of decays and seven of zeros follow
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> v = torch.randn(1, 3, 1, 8)
        >>> ds = torch.randn(1, 3, 1, 16)
        >>> dv, dl = heddle.ops.state_values_backward(v, ds, normalise=True)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def sympow(x: T, *, power: int = 2, out: T | dict[str, T] | None = None) -> T:
    """y = phi(x), the symmetric power of rows: <phi(q), phi(k)> = <q, k>^power

    y = phi(x), the symmetric power of each row: <phi(q), phi(k)> = <q, k>^power. sympow_columns.h orders its
      columns.

    Inputs:
        x: [M, K]; K a multiple of 8; float32, float16 or bfloat16
    Outputs:
        y: [M, N]; N = sympow_width(power, K); float32, float16 or bfloat16
    Attributes:
        power = 2: int; or 4
    Gradient: of x.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 8)
        >>> y = heddle.ops.sympow(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def sympow_backward(x: T, dy: T, *, power: int = 2, out: T | dict[str, T] | None = None) -> T:
    """dx = J' dy, J the Jacobian of the symmetric power at x

    The gradient of sympow: dx = J' dy, where J is the Jacobian of phi at x.

    Inputs:
        x: [M, K]; float32, float16 or bfloat16
        dy: [M, N]; float32, float16 or bfloat16
    Outputs:
        dx: [M, K]; float32, float16 or bfloat16
    Attributes:
        power = 2: int; or 4
    Gradient: none.
    M may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 8)
        >>> dy = torch.randn(5, 64)
        >>> dx = heddle.ops.sympow_backward(x, dy)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def sympow_mma(x: T, s: T, *, power: int = 2, chunk: int = 0, out: T | dict[str, T] | None = None) -> T:
    """y = phi(x) s, phi the symmetric power, s a state for each chunk of rows

    y = phi(x) s: the symmetric power of each row of x (sympow_columns.h), times the state of the row's chunk.
      phi is never
    in memory. Chunk c of head h of batch b has rows [c N, c N + N) of s[b, h], where N is the number of
      columns of phi.

    Inputs:
        x: [B, T, H, K]; float32, float16 or bfloat16
        s: [B, H, chunks * N, E]; float32, float16 or bfloat16
    Outputs:
        y: [B, T, H, E]; float32, float16 or bfloat16
    Attributes:
        power = 2: int; or 4
        chunk = 0: int; positions that have one state; 0: all
    Gradient: of x, s.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(2, 5, 2, 8)
        >>> s = torch.randn(2, 2, 128, 9)
        >>> y = heddle.ops.sympow_mma(x, s, chunk=3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
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

    The gradient of y = phi(x) s with respect to x: dx = J' (s dy), where J is the Jacobian of phi at the row.
      Neither phi nor
    s dy is in memory. mma_sympow has the same gradient, with its own ds and v as s and dy.

    Inputs:
        x: [B, T, H, K]; float32, float16 or bfloat16
        s: [B, H, chunks * N, E]; float32, float16 or bfloat16
        dy: [B, T, H, E]; float32, float16 or bfloat16
    Outputs:
        dx: [B, T, H, K]; float32, float16 or bfloat16
    Attributes:
        power = 2: int; or 4
        chunk = 0: int; positions that have one state; 0: all
    Gradient: none.
    B may be any number of leading dimensions.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(2, 5, 2, 8)
        >>> s = torch.randn(2, 2, 128, 9)
        >>> dy = torch.randn(2, 5, 2, 9)
        >>> dx = heddle.ops.sympow_mma_backward(x, s, dy, chunk=3)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

def transpose(x: T, *, tile_size: int = 0, out: T | dict[str, T] | None = None) -> T:
    """y[n, m] = x[m, n]

    y[n, m] = x[m, n], converted to the element type of y.

    Inputs:
        x: [M, N]; float32, float16, bfloat16 or int32
    Outputs:
        y: [N, M]; float32, float16, bfloat16 or int32
    Attributes:
        tile_size = 0: int; rows and columns of a worker's tile, which change no value; 0: heddle chooses
    Gradient: of x.
    Example:
        >>> import heddle.ops, torch
        >>> x = torch.randn(5, 37)
        >>> y = heddle.ops.transpose(x)

    Raises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.
    """

mm = matmul
