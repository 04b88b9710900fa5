"""Shapes drawn by a seed, so that no list of shapes decides which are fast: products of all layouts, rows of
odd widths, copies, attention of any length, and fp8. `bars` has the figures that they are held to.

The same seed and count give the same shapes on every machine.
"""

import itertools
import math
import random
from dataclasses import dataclass, replace

import torch
from torch.nn.functional import scaled_dot_product_attention

from heddle import ops
from heddle.bench.suites import attention, gemm, products, rows
from heddle.bench.suites.tensors import randn, size_of
from heddle.bench.timing import is_gpu
from heddle.bench.work import FORWARD, Amount, Work

COUNT = 4  # draws of a kind
VISITS = 2
TIME_LIMIT = 75.0  # seconds, after which nothing new begins: kernels of new shapes are compiled meanwhile
GEMM, GEMM_UNALIGNED, FP8 = "gemm", "gemm, unaligned", "fp8"
NORMS, ROWS, ELEMENTS, ATTENTION = "norms", "rows", "elements", "attention"

LAYOUTS = ("nn", "nt", "tn", "tt")
WORD = 8  # elements of 16 bits that a word of 16 bytes has
WIDTHS = (1001, 5120, 3000, 50257, 131072)
ROW_OPS = ("softmax", "rms_norm", "layer_norm", "cross_entropy")
GROUPS = (1, 4, 8)


@dataclass(frozen=True)
class Bounds:
    """Least and most of what is drawn."""

    m: tuple[int, int]  # rows of a product
    nk: tuple[int, int]  # its columns and terms
    widths: tuple[int, ...]  # columns, besides those that are drawn
    columns: tuple[int, int]
    elements: tuple[int, int]  # in a tensor
    lengths: tuple[int, int]  # tokens in a sequence
    head_sizes: tuple[int, int]
    tokens: int  # in a batch, where a sequence has fewer
    flops: float  # limit for attention forward


LARGE = Bounds(
    m=(17, 5000),
    nk=(240, 8000),
    widths=WIDTHS,
    columns=(200, 20000),
    elements=(1 << 26, 1 << 27),
    lengths=(37, 20000),
    head_sizes=(40, 256),
    tokens=16384,
    flops=4e12,
)
SMALL = Bounds(
    m=(3, 80),
    nk=(16, 160),
    widths=(37, 257),
    columns=(20, 400),
    elements=(1 << 10, 1 << 12),
    lengths=(7, 100),
    head_sizes=(16, 64),
    tokens=200,
    flops=1e8,
)


@dataclass(frozen=True)
class Product:
    """x [m, k] w [k, n]. `offset`: elements that pointers lie after a multiple of 16 bytes."""

    m: int
    n: int
    k: int
    layout: str
    offset: int = 0

    @property
    def adjacent(self):
        """Elements of a row in memory, of x, w and the result."""
        return (
            self.m if self.layout[0] == "t" else self.k,
            self.k if self.layout[1] == "t" else self.n,
            self.n,
        )

    @property
    def aligned(self):
        return self.offset == 0 and all(size % WORD == 0 for size in self.adjacent)


@dataclass(frozen=True)
class Sequences:
    """Attention of `batch` sequences, with `heads` query heads and heads / group of keys and values."""

    batch: int
    length: int
    heads: int
    group: int
    head_size: int
    causal: bool

    @property
    def flops(self):
        pairs = self.length**2 / (2 if self.causal else 1)
        return 4.0 * self.batch * self.heads * pairs * self.head_size


def near(source, bounds):
    """A number of which each order of magnitude is as likely."""
    least, most = bounds
    return min(most, max(least, round(math.exp(source.uniform(math.log(least), math.log(most))))))


def multiple(source, bounds, unit):
    least, most = bounds
    return unit * source.randint(-(-least // unit), most // unit)


def draw_product(source, bounds, layout, aligned):
    """Where `aligned`, rows in memory are multiples of 16 bytes. Otherwise those of some matrix are not, and
    in a third of the draws pointers are not either."""
    offset = 0 if aligned or source.random() >= 1 / 3 else source.randrange(1, WORD)
    while True:
        drawn = Product(
            source.randint(*bounds.m), source.randint(*bounds.nk), source.randint(*bounds.nk), layout, offset
        )
        if aligned:
            m = drawn.m if layout[0] == "n" else multiple(source, bounds.m, WORD)
            k = drawn.k if layout == "tn" else multiple(source, bounds.nk, WORD)
            drawn = replace(drawn, m=m, n=multiple(source, bounds.nk, WORD), k=k)
        if aligned or any(size % WORD for size in drawn.adjacent):
            return drawn


def draw_products(source, bounds, count, aligned):
    return [draw_product(source, bounds, LAYOUTS[i % len(LAYOUTS)], aligned) for i in range(count)]


def draw_matrix(source, bounds, columns=0):
    """[rows, columns] of as many elements as no cache holds."""
    columns = columns or near(source, bounds.columns)
    return max(1, source.randint(*bounds.elements) // columns), columns


def draw_rows(source, bounds, count):
    """(op, rows, columns): each op for each of the known widths, then an op by turns for drawn ones."""
    known = [(op, *draw_matrix(source, bounds, width)) for width in bounds.widths for op in ROW_OPS]
    return known + [(ROW_OPS[i % len(ROW_OPS)], *draw_matrix(source, bounds)) for i in range(count)]


def draw_sequences(source, bounds):
    # Alone, `near` would draw few long sequences, and `randint` few short ones.
    length = near(source, bounds.lengths) if source.random() < 0.5 else source.randint(*bounds.lengths)
    group = source.choice(GROUPS)
    head_size, causal = multiple(source, bounds.head_sizes, 8), source.random() < 0.5
    batch = near(source, (1, max(1, bounds.tokens // length)))
    kv_heads = source.randint(1, 8)
    drawn = Sequences(batch, length, kv_heads * group, group, head_size, causal)
    if drawn.flops > bounds.flops:  # fewer heads, as those of a longer sequence
        kv_heads = max(1, int(kv_heads * bounds.flops / drawn.flops))
    return replace(drawn, heads=kv_heads * group)


def draw_fp8(source, bounds):
    """(m, n, k); torch takes columns and terms in multiples of 16."""
    return (
        source.randint(*bounds.m),
        multiple(source, bounds.nk, 16),
        multiple(source, bounds.nk, 16),
    )


def after(inputs, offset):
    """Tensors whose pointers lie so many elements after a multiple of 16 bytes."""

    def moved(*shape):
        for tensor in inputs(*shape):
            room = tensor.new_empty(tensor.numel() + offset)
            yield room[offset:].view(tensor.shape).copy_(tensor)

    return lambda *shape: list(moved(*shape))


def product(peers, device, drawn):
    work = gemm.product(peers, device, drawn.m, drawn.n, drawn.k, drawn.layout)
    kind = GEMM if drawn.aligned else GEMM_UNALIGNED
    if drawn.offset:
        work = replace(
            work, name=f"{work.name} offset {drawn.offset}", inputs=after(work.inputs, drawn.offset)
        )
    return replace(work, kind=kind, goal={}, sustain=False, sets=1)


def of_row(peers, device, op, count, columns):
    """One op on a matrix of `count` rows, next to torch alone: others would compile for each shape."""
    if op == "cross_entropy":
        work = rows.cross_entropy(peers, device, count, columns)
    else:
        (work,) = rows.of_rows(peers, device, count, columns, min(count, 256), only=(op,))
    alone = {name: run for name, run in work.peers.items() if name == "torch"}
    return replace(work, kind=NORMS if op.endswith("norm") else ROWS, peers=alone, goal={})


def transposed(x):
    return x.t().contiguous()


# heddle, torch, and matrices that are read
ELEMENT_OPS = {
    "copy": (ops.copy, torch.clone, 1),
    "transpose": (ops.transpose, transposed, 1),
    "add": (ops.add, torch.add, 2),
}


def of_elements(peers, device, op, count, columns):
    ours, exact, read = ELEMENT_OPS[op]
    return Work(
        name=f"{op} {count} x {columns}",
        ours=ours,
        exact=exact,
        peers=peers.only(torch=exact),
        inputs=rows.matrices(device, read),
        shape=(count, columns),
        amounts={FORWARD: Amount(bytes=(read + 1) * count * columns * size_of(device))},
        kind=ELEMENTS,
    )


def sdpa(causal, backend=""):
    """torch's attention by one of its backends, or by the one that it chooses."""

    def attend(q, k, v):
        grouped = q.shape[1] != k.shape[1]
        return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)

    if not backend:
        return attention.heads_first(attend)
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def by_backend(q, k, v):
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return attend(q, k, v)

    return attention.heads_first(by_backend)


def of_sequences(peers, device, drawn):
    batch, length, heads, dim = drawn.batch, drawn.length, drawn.heads, drawn.head_size
    causal, kv_heads = drawn.causal, heads // drawn.group

    def change(scores, position, key):
        return scores.masked_fill(key > position, float("-inf")) if causal else scores

    by_scores = attention.by_scores(change)

    def exact(q, k, v):
        return by_scores(q, *(each.repeat_interleave(drawn.group, 2) for each in (k, v)))

    def inputs(batch, length, kv_heads):
        keys = (batch, length, kv_heads, dim)
        return [
            randn(device, *keys[:2], kv_heads * drawn.group, dim),
            randn(device, *keys),
            randn(device, *keys),
        ]

    shape = (batch, length, heads, dim)
    found = attention.amounts(shape, device, drawn.flops / (4 * batch * heads * dim))
    return Work(
        name=f"flash_attention {attention.shape_text(shape)} group {drawn.group}{' causal' * causal}",
        ours=lambda q, k, v: ops.flash_attention(q, k, v, causal=causal)[0],
        exact=exact,
        peers=peers.only(
            cudnn=sdpa(causal, "CUDNN_ATTENTION"), flash=sdpa(causal, "FLASH_ATTENTION"), torch=sdpa(causal)
        ),
        inputs=inputs,
        shape=(batch, length, kv_heads),
        # All scores are in memory there. What the length leaves of a block stays.
        check_shape=(1, length if length < 1536 else 1024 + length % 512, 1),
        amounts=found,
        kind=ATTENTION,
    )


def of_fp8(peers, device, drawn):
    return replace(products.scaled(peers, device, *drawn, "rows"), kind=FP8)


def works(peers, device, tiny, seed=0, count=COUNT):
    """Kinds by turns, so that each has some where time ends. A greater count adds to what a seed draws."""
    bounds = LARGE if is_gpu(device) and not tiny else SMALL

    def source(kind):
        return random.Random(f"{seed} {kind}")

    elements, sequences, fp8 = source(ELEMENTS), source(ATTENTION), source(FP8)
    kinds = (
        (product(peers, device, each) for each in draw_products(source(GEMM), bounds, count, True)),
        (
            product(peers, device, each)
            for each in draw_products(source(GEMM_UNALIGNED), bounds, count, False)
        ),
        (of_row(peers, device, *each) for each in draw_rows(source(ROWS), bounds, count)),
        (
            of_elements(peers, device, op, *draw_matrix(elements, bounds))
            for op in itertools.islice(itertools.cycle(ELEMENT_OPS), count)
        ),
        (of_sequences(peers, device, draw_sequences(sequences, bounds)) for _ in range(count)),
        (of_fp8(peers, device, draw_fp8(fp8, bounds)) for _ in range(count)),
    )
    by_turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    yield from {work.name: work for work in by_turns if work}.values()
