"""cross_entropy against torch's, with all of its options."""

import itertools

import pytest
import torch

import heddle
from heddle.torch import linear_loss

ROWS, COLUMNS = 23, 77
OPTIONS = [
    {},
    {"label_smoothing": 0.2},
    {"softcap": 3.0},
    {"z_loss": 0.1},
    {"label_smoothing": 0.1, "softcap": 5.0, "z_loss": 0.01},
]


def torch_loss(logits, target, label_smoothing=0.0, softcap=0.0, z_loss=0.0, ignore_index=-100):
    z = softcap * torch.tanh(logits.float() / softcap) if softcap else logits.float()
    lse = torch.logsumexp(z, -1)
    loss = torch.nn.functional.cross_entropy(
        z, target.long(), reduction="none", ignore_index=ignore_index, label_smoothing=label_smoothing
    )
    return loss + z_loss * (lse**2).masked_fill(target == ignore_index, 0), lse


def rows(dtype=torch.float32, index=torch.int64, ignored=-100):
    generator = torch.Generator().manual_seed(0)
    logits = (4 * torch.randn(ROWS, COLUMNS, generator=generator)).to(dtype)
    target = torch.randint(0, COLUMNS, (ROWS,), generator=generator).to(index)
    target[::5] = ignored
    return logits, target


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    ("dtype", "index"), list(itertools.product((torch.float32, torch.bfloat16), (torch.int64, torch.int32)))
)
def test_value_and_gradient_are_those_of_torch(options, dtype, index):
    logits, target = rows(dtype, index)
    one, other = logits.clone().requires_grad_(), logits.float().requires_grad_()
    loss, lse = heddle.ops.cross_entropy(one, target, **options)
    wanted, wanted_lse = torch_loss(other, target, **options)
    torch.testing.assert_close(loss, wanted, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(lse, wanted_lse, atol=1e-5, rtol=1e-5)
    weights = torch.linspace(-1, 1, ROWS)
    ((loss * weights).sum() + (lse * weights.flip(0)).sum()).backward()
    ((wanted * weights).sum() + (wanted_lse * weights.flip(0)).sum()).backward()
    bound = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(one.grad.float(), other.grad, atol=bound, rtol=bound)


def test_another_ignored_index():
    logits, target = rows(ignored=7)
    loss, _ = heddle.ops.cross_entropy(logits, target, ignore_index=7)
    torch.testing.assert_close(loss, torch_loss(logits, target, ignore_index=7)[0], atol=1e-4, rtol=1e-5)


def test_leading_dimensions():
    logits, target = rows()
    loss, lse = heddle.ops.cross_entropy(logits.reshape(1, ROWS, COLUMNS), target.reshape(1, ROWS))
    assert loss.shape == lse.shape == (1, ROWS)


def test_the_gradient_in_place_of_the_logits():
    logits, target = rows()
    loss, lse = heddle.ops.cross_entropy(logits, target)
    wanted = heddle.ops.cross_entropy_backward(logits, target, lse, torch.ones_like(loss))
    made = heddle.ops.cross_entropy_backward(logits, target, lse, torch.ones_like(loss), out=logits)
    assert made is logits
    assert torch.equal(made, wanted)


@pytest.mark.parametrize("wrong", [COLUMNS, -1, 1 << 32])
def test_a_target_that_is_no_column_is_refused_on_a_cpu_and_shows_in_a_program(wrong):
    logits, target = rows()
    target[1] = wrong
    refused = rf"\[cross_entropy\] target\[1\] is {wrong}; must be 0 to {COLUMNS - 1}, or ignore_index = -100"
    for given in (logits, logits.clone().requires_grad_(), logits.to(torch.bfloat16)):
        with pytest.raises(heddle.InvalidArgument, match=refused):
            heddle.ops.cross_entropy(given, target)
    weight, x = torch.randn(COLUMNS, 8), torch.randn(len(target), 8)
    with pytest.raises(heddle.InvalidArgument, match=refused):
        heddle.linear_cross_entropy(x, weight, target)
    loss, lse = torch.zeros(len(target)), torch.zeros(len(target))
    call = heddle.schedule("cross_entropy", logits=logits, target=target, loss=loss, lse=lse)
    heddle.Megakernel([call]).run()
    assert loss.isnan().nonzero().tolist() == [[1]]


def test_logits_that_are_no_numbers_show():
    for value, wanted in ((torch.nan, "isnan"), (torch.inf, "isnan"), (-torch.inf, "isfinite")):
        logits, target = rows()
        logits[1, (target[1] + 1) % COLUMNS] = value
        loss, _ = heddle.ops.cross_entropy(logits, target)
        assert getattr(loss[1], wanted)()


@pytest.mark.parametrize("kind", ["silu", "gelu", "gelu_tanh", "relu", "sigmoid", "relu_squared"])
def test_gated_product(kind):
    functional = torch.nn.functional
    function = {
        "silu": functional.silu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "sigmoid": torch.sigmoid,
        "relu_squared": lambda x: functional.relu(x).square(),
        "relu": functional.relu,
    }[kind]
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(2, 5, 19, generator=generator, requires_grad=True) for _ in range(2)]
    other = [each.detach().clone().requires_grad_() for each in made]
    y, wanted = heddle.ops.gated_product(*made, kind=kind), function(other[0]) * other[1]
    torch.testing.assert_close(y, wanted, atol=1e-5, rtol=1e-5)
    dy = torch.randn(y.shape, generator=generator)
    y.backward(dy)
    wanted.backward(dy)
    for one, two in zip(made, other, strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-5, rtol=1e-5)


def linear_inputs(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 11, 16, generator=generator).to(dtype)
    weight = torch.randn(COLUMNS, 16, generator=generator).to(dtype)
    target = torch.randint(0, COLUMNS, (3, 11), generator=generator)
    target[:, ::4] = -100
    return x, weight, target


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("chunk_rows", [None, 1, 5, 33])
@pytest.mark.parametrize("options", OPTIONS[-2:])
def test_the_loss_of_a_linear_layer(reduction, chunk_rows, options):
    x, weight, target = linear_inputs()
    one = [each.clone().requires_grad_() for each in (x, weight)]
    other = [each.clone().requires_grad_() for each in (x, weight)]
    loss = heddle.linear_cross_entropy(*one, target, reduction=reduction, chunk_rows=chunk_rows, **options)
    logits = (other[0] @ other[1].T).reshape(-1, COLUMNS)
    wanted, _ = torch_loss(logits, target.reshape(-1), **options)
    if reduction == "none":
        wanted = wanted.reshape(target.shape)
    else:
        wanted = wanted.sum() / (1 if reduction == "sum" else (target != -100).sum())
    torch.testing.assert_close(loss, wanted, atol=1e-4, rtol=1e-5)
    given = torch.linspace(-1, 2, loss.numel()).reshape(loss.shape) + 0.5
    loss.backward(given)
    wanted.backward(given)
    for made, expected in zip(one, other, strict=True):
        torch.testing.assert_close(made.grad, expected.grad, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("rows_of_a_slice", [7, 50])
def test_many_chunks_round_the_weights_gradient_once(monkeypatch, dtype, reduction, rows_of_a_slice):
    monkeypatch.setattr(linear_loss, "SLICE_BYTES", rows_of_a_slice * 32 * 2)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2048, 32, generator=generator).to(dtype)
    weight = torch.randn(50, 32, generator=generator).to(dtype)
    target = torch.randint(0, 50, (2048,), generator=generator)

    def gradient(dtype, chunk_rows):
        leaf = weight.to(dtype).requires_grad_()
        if chunk_rows:
            loss = heddle.linear_cross_entropy(x, leaf, target, chunk_rows=chunk_rows, reduction=reduction)
            loss = loss if reduction == "mean" else loss.mean()
        else:
            loss = torch.nn.functional.cross_entropy(x.to(dtype) @ leaf.T, target)
        return torch.autograd.grad(loss, leaf)[0].double()

    exact = gradient(torch.float64, None)
    whole, parts = (gradient(dtype, rows) for rows in (2048, 16))
    assert (parts - exact).norm() <= 1.5 * (whole - exact).norm()


def test_chunks_are_alike_and_have_room(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2100, 64, generator=generator, requires_grad=True)
    weight = torch.randn(640, 64, generator=generator, requires_grad=True)
    target = torch.randint(640, (2100,), generator=generator)
    room = 640 * 4 * 700  # bytes of the logits of 700 rows
    monkeypatch.setattr(linear_loss, "CHUNK_BYTES", room)
    chunks = linear_loss._chunks(x, weight, None, sums=True)
    assert [(part.start, part.stop) for part in chunks] == [(0, 640), (640, 1280), (1280, 1920), (1920, 2100)]
    heddle.linear_cross_entropy(x, weight, target).backward()
    in_parts = x.grad, weight.grad
    x.grad = weight.grad = None
    heddle.linear_cross_entropy(x, weight, target, chunk_rows=2100).backward()
    for made, whole in zip(in_parts, (x.grad, weight.grad), strict=True):
        torch.testing.assert_close(made, whole, atol=1e-5, rtol=1e-4)


def test_chunks_of_a_weight_with_a_gradient_have_a_share_of_its_sum():
    x, weight = torch.empty(4096, 1, device="meta"), torch.empty(128256, 4096, device="meta")
    one = [len(linear_loss._chunks(x, weight, None, sums)) for sums in (False, True)]
    assert one == [16, 2]


@pytest.mark.parametrize("sizes", [(8192, 128256, 4096), (700, 3000, 512), (513, 9999, 512), (16, 64, 8)])
def test_logits_in_a_gradients_memory_are_read_before_it_is_written(sizes):
    rows, classes, width = sizes
    done = free = 0  # classes that have a part, and the end of the parts' memory
    for begin, end, at in linear_loss._parts_in_gradient(*sizes):
        assert begin == done < end
        assert end * width <= at >= free
        done, free = end, at + rows * (end - begin)
    assert free <= classes * width
    assert done >= (0.45 * classes if sizes == (8192, 128256, 4096) else 0)


def test_all_logits_are_held_where_that_takes_less_than_a_sum_in_float32():
    def chosen(rows, width, classes, dtype=torch.bfloat16, chunk_rows=None, dweight=True):
        x = torch.empty(rows, width, dtype=dtype, device="meta")
        weight = torch.empty(classes, width, dtype=dtype, device="meta")
        return type(linear_loss._gradients(x, weight, True, dweight, chunk_rows))

    held, summed = linear_loss._Held, linear_loss._Summed
    assert chosen(8192, 4096, 128256) is held
    assert chosen(8192, 2048, 128256) is summed  # four times weight
    assert chosen(8192, 4096, 1024) is summed  # one chunk
    assert chosen(8192, 4096, 128256, dtype=torch.float32) is summed
    assert chosen(8192, 4096, 128256, chunk_rows=512) is summed
    assert chosen(8192, 4096, 128256, dweight=False) is summed


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("options", [{}, {"softcap": 3.0, "label_smoothing": 0.1, "z_loss": 0.01}])
@pytest.mark.parametrize("transposed", [False, True])
def test_held_logits_have_as_exact_gradients(monkeypatch, dtype, reduction, options, transposed):
    monkeypatch.setattr(linear_loss, "CHUNK_BYTES", 1 << 19)  # 128 rows
    monkeypatch.setattr(linear_loss, "_should_hold", lambda *_: True)
    generator = torch.Generator().manual_seed(1)
    rows, width, classes = 300, 128, 2050
    x = torch.randn(rows, width, generator=generator).to(dtype)
    weight = (torch.randn(classes, width, generator=generator) * 0.1).to(dtype)
    weight = weight.T.contiguous().T if transposed else weight
    target = torch.randint(classes, (rows,), generator=generator)
    target[::7] = -100
    assert type(linear_loss._gradients(x, weight, True, True, None)) is linear_loss._Held
    assert linear_loss._parts_in_gradient(rows, classes, width)

    def gradients(dtype, chunk_rows=None):
        leaves = [each.detach().to(dtype).requires_grad_() for each in (x, weight)]
        if dtype == torch.float64:
            losses, _ = torch_loss(leaves[0] @ leaves[1].T, target, **options)
        else:
            given = {"reduction": reduction, "chunk_rows": chunk_rows, **options}
            losses = heddle.linear_cross_entropy(*leaves, target, **given)
        kept = (target != -100).sum()
        loss = losses if losses.dim() == 0 else losses.sum() / kept
        return [each.double() for each in torch.autograd.grad(loss, leaves)]

    exact, whole, held = gradients(torch.float64), gradients(dtype, rows), gradients(dtype)
    # A product of 16 bits is rounded to them on a CPU, before dx is added up.
    for bound, made, one, wanted in zip((2, 1.01), held, whole, exact, strict=True):
        assert (made - wanted).norm() <= bound * (one - wanted).norm()
    assert all(map(torch.equal, held, gradients(dtype)))


def test_only_a_chunk_of_logits_is_in_memory(monkeypatch):
    x, weight, target = linear_inputs()
    seen = []
    forward = heddle.ops.cross_entropy

    def watched(logits, *more, **options):
        seen.append(logits.shape[0])
        return forward(logits, *more, **options)

    monkeypatch.setattr(heddle.ops, "cross_entropy", watched)
    heddle.linear_cross_entropy(x, weight.requires_grad_(), target, chunk_rows=8).backward()
    assert seen == [8, 8, 8, 8, 1]


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_the_gradient_of_a_linear_layer_is_taken_again(reduction):
    x, weight, target = linear_inputs()
    leaves = x.requires_grad_(), weight.requires_grad_()
    loss = heddle.linear_cross_entropy(*leaves, target, reduction=reduction).sum()
    wanted = torch.autograd.grad(loss, leaves, retain_graph=True)
    (dx,) = torch.autograd.grad(loss, x, retain_graph=True)
    (dweight,) = torch.autograd.grad(loss, weight, torch.tensor(2.0), retain_graph=True)
    assert torch.equal(dx, wanted[0])
    assert torch.equal(dweight, 2 * wanted[1])
    loss.backward()
    assert torch.equal(x.grad, wanted[0])
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_second_derivatives_of_a_linear_layer_are_refused(reduction):
    x, weight, target = linear_inputs()
    x.requires_grad_()
    loss = heddle.linear_cross_entropy(x, weight, target, reduction=reduction).sum()
    (dx,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(heddle.Unsupported, match="no second derivative"):
        torch.autograd.grad(dx.sum(), x, allow_unused=True)


@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
def test_a_linear_layer_under_autocast(given):
    x, weight, target = linear_inputs()
    one, other = ([x.to(given).requires_grad_(), weight.clone().requires_grad_()] for _ in range(2))
    with torch.autocast("cpu", torch.bfloat16):
        loss = heddle.linear_cross_entropy(*one, target)
        logits = torch.nn.functional.linear(*other).float()
    wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    torch.testing.assert_close(loss, wanted, atol=1e-2, rtol=1e-2)
    loss.backward()
    wanted.backward()
    for made, expected in zip(one, other, strict=True):
        assert made.grad.dtype == expected.grad.dtype
        torch.testing.assert_close(made.grad, expected.grad, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_compiled_linear_layer(reduction):
    def f(x, weight, target):
        return heddle.linear_cross_entropy(x, weight, target, reduction=reduction).sum()

    x, weight, target = linear_inputs()
    torch._dynamo.reset()
    made, wanted = [], []
    for function, grads in ((f, wanted), (torch.compile(f, backend="aot_eager", fullgraph=True), made)):
        leaves = x.clone().requires_grad_(), weight.clone().requires_grad_()
        loss = function(*leaves, target)
        grads += [loss, *torch.autograd.grad(loss, leaves)]
    for one, other in zip(made, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_what_does_not_fit_a_linear_layer_is_refused():
    x, weight, target = linear_inputs()
    with pytest.raises(heddle.InvalidArgument, match=r"must be \[..., K\]"):
        heddle.linear_cross_entropy(x, weight.T, target)
    with pytest.raises(heddle.InvalidArgument, match='must be "mean"'):
        heddle.linear_cross_entropy(x, weight, target, reduction="max")


def test_a_scaled_loss_has_as_exact_a_gradient_as_torchs():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 48, generator=generator).bfloat16().requires_grad_()
    weight = (torch.randn(300, 48, generator=generator) * 0.2).bfloat16().requires_grad_()
    target = torch.randint(300, (64,), generator=generator)
    given = torch.tensor(0.3)  # bf16 has 0.3008
    wide = [each.detach().float().requires_grad_() for each in (x, weight)]

    def gradients(loss, leaves):
        return torch.autograd.grad(loss, leaves, given)

    wanted = gradients(torch.nn.functional.cross_entropy(wide[0] @ wide[1].T, target), wide)
    torchs = gradients(torch.nn.functional.cross_entropy((x @ weight.T).float(), target), (x, weight))
    ours = gradients(heddle.linear_cross_entropy(x, weight, target), (x, weight))
    for made, other, exact in zip(ours, torchs, wanted, strict=True):
        assert (made - exact).norm() <= 1.1 * (other - exact).norm()
