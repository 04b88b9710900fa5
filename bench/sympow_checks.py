"""Checks of the whole kernels that bench/sympow.py launches, against fp64 in torch."""


def chunks_of(length, chunk):
    chunk = min(chunk or length, length)
    return -(-length // chunk), chunk


def phi(x):
    """The symmetric square, as ops/sympow/sympow_columns.h orders it."""
    import torch

    tiles = x.unflatten(-1, (-1, 8))
    count = tiles.shape[-2]
    blocks = [
        (tiles[..., a, :, None] * tiles[..., b, None, :]).flatten(-2) * (1 if a == b else 2**0.5)
        for a in range(count)
        for b in range(a + 1)
    ]
    return torch.cat(blocks, -1)


def by_chunks(x, chunk):
    """[B, T, H, K] as [B, H, chunks, chunk, K], with zeros at the end."""
    import torch

    chunks, chunk = chunks_of(x.shape[1], chunk)
    x = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, chunks * chunk - x.shape[1]))
    return x.unflatten(1, (chunks, chunk)).permute(0, 3, 1, 2, 4)


def by_positions(y, length):
    return y.permute(0, 2, 3, 1, 4).flatten(1, 2)[:, :length]


def mma_reference(x, s, chunk):
    y = phi(by_chunks(x, chunk)) @ s.unflatten(2, (chunks_of(x.shape[1], chunk)[0], -1))
    return by_positions(y, x.shape[1])


def state_reference(x, v, chunk):
    return (phi(by_chunks(x, chunk)).transpose(-1, -2) @ by_chunks(v, chunk)).flatten(2, 3)


def attention_reference(q, k, v, sums, past, scale, chunk, power, normalise, eps, low=None):
    """`low`: rounds as products of that dtype do."""
    import torch

    rounded = (lambda t: t.to(low).to(t.dtype)) if low else (lambda t: t)
    queries, keys, values = (by_chunks(each, chunk) for each in (q, k, v))
    weights = (rounded(queries @ keys.transpose(-1, -2)) * scale) ** power
    factor = torch.full((1, 1, 1, 1, 1), scale**power, device=q.device, dtype=q.dtype)
    if sums is not None:
        gates = by_chunks(sums.to(q.dtype)[..., None], chunk)
        weights = weights * (gates - gates.transpose(-1, -2)).tril().exp()
        factor = factor * gates.exp()
    weights = rounded(weights.tril())
    y, total = weights @ values, weights.sum(-1, keepdim=True)
    if past is not None:
        before = by_chunks(past, chunk)
        columns = v.shape[-1]
        y = y + factor * before[..., :columns]
        total = total + (factor * before[..., columns : columns + 1] if normalise else 0)
    y = y / (total + eps) if normalise else y
    return by_positions(y, q.shape[1]), by_positions(total, q.shape[1])[..., 0]


def scan_reference(u, sums, s0, chunks, chunk):
    import torch

    u = u.double().unflatten(2, (chunks, -1))
    state, states = s0.double() if s0 is not None else torch.zeros_like(u[:, :, 0]), []
    for g in range(chunks):
        states.append(state)
        end = min((g + 1) * chunk, sums.shape[1]) - 1 if sums is not None else 0
        decay = sums[:, end].double().exp()[..., None, None] if sums is not None else 1
        state = state * decay + u[:, :, g]
    return torch.cat(states, 2), state


def error(made, wanted):
    return ((made.double() - wanted).norm() / wanted.norm()).item()


def gap_of(tensor):
    """Elements between the rows of a tensor that Checks.empty made; None for another."""
    if tensor.dim() < 4 or tensor.stride(-2) != tensor.shape[-1] + 8:
        return None
    sizes = (*tensor.shape[:-1], 8)
    return tensor.as_strided(sizes, tensor.stride(), tensor.storage_offset() + tensor.shape[-1])


class Checks:
    def __init__(self, kernels):
        self.kernels, self.torch, self.wrong, self.count = kernels, kernels.torch, [], 0
        self.torch.manual_seed(1)

    def random(self, *sizes, dtype, gap=0):
        wide = self.torch.randn(*sizes[:-1], sizes[-1] + gap, device="cuda").to(dtype)
        return wide[..., : sizes[-1]]

    def empty(self, *sizes, dtype):
        return self.torch.full((*sizes[:-1], sizes[-1] + 8), 77.0, device="cuda").to(dtype)[..., : sizes[-1]]

    def gates(self, batch, length, heads, chunk):
        g = self.torch.nn.functional.logsigmoid(self.torch.randn(batch, length, heads, device="cuda") + 3)
        chunks, chunk = chunks_of(length, chunk)
        padded = self.torch.nn.functional.pad(g, (0, 0, 0, chunks * chunk - length))
        return padded.unflatten(1, (chunks, chunk)).cumsum(2).flatten(1, 2)[:, :length].contiguous()

    def judge(self, what, run, made, wanted, bound):
        torch = self.torch
        run()
        torch.cuda.synchronize()
        first = [each.clone() for each in made]
        for _ in range(5):
            run()
        torch.cuda.synchronize()
        self.count += 1
        errors = [error(one, two) for one, two in zip(made, wanted, strict=True)]
        good = all(e <= b for e, b in zip(errors, bound, strict=True))
        same = all(torch.equal(a, b) for a, b in zip(first, made, strict=True))
        clean = all(bool((gap == 77).all()) for gap in map(gap_of, made) if gap is not None)
        state = "ok" if good and same and clean else "WRONG"
        line = f"{state} {what}: errors {' '.join(f'{e:.2e}' for e in errors)}"
        line += f", bounds {' '.join(f'{b:.2e}' for b in bound)}"
        line += ("" if same else ", other bits") + ("" if clean else ", wrote outside")
        if state == "WRONG":
            self.wrong.append(line)
        print(line, flush=True)

    def all(self, only):
        for name, fact in self.kernels.facts.items():
            if only in name:
                getattr(self, fact["op"])(name, fact)
        print(f"checked {self.count}: {len(self.wrong)} wrong", flush=True)
        return not self.wrong

    def dtype(self, fact, field):
        return {"f32": self.torch.float32, "f16": self.torch.float16, "bf16": self.torch.bfloat16}[
            fact["dtypes"][field]
        ]

    def sympow_mma(self, name, fact):
        c, dtype = fact["constants"], self.dtype(fact, "x")
        dim, columns = 8 * c["Tiles"], c["Columns"]
        width = dim // 8 * (dim // 8 + 1) // 2 * 64
        for batch, length, heads, chunk in ((2, 300, 3, 128), (1, 1000, 2, 400), (1, 64, 1, 0), (1, 5, 1, 0)):
            x = self.random(batch, length, heads, dim, dtype=dtype, gap=8)
            s = self.random(batch, heads, chunks_of(length, chunk)[0] * width, columns, dtype=dtype)
            y = self.empty(batch, length, heads, columns, dtype=dtype)
            wanted = mma_reference(x.double(), s.double(), chunk)
            low = error(mma_reference(x, s, chunk), wanted)
            run = self.kernels.sympow_mma(name, x, s, y, chunk)
            self.judge(f"{name} {batch} {length} {heads} {chunk}", run, [y], [wanted], [1.2 * low])

    def sympow_mma_backward(self, name, fact):
        c, dtype = fact["constants"], self.dtype(fact, "x")
        dim, columns = 8 * c["Tiles"], c["Columns"]
        width = dim // 8 * (dim // 8 + 1) // 2 * 64
        for batch, length, heads, chunk in ((2, 300, 3, 128), (1, 1000, 2, 400), (1, 5, 1, 0)):
            x = self.random(batch, length, heads, dim, dtype=dtype, gap=8)
            dy = self.random(batch, length, heads, columns, dtype=dtype)
            s = self.random(batch, heads, chunks_of(length, chunk)[0] * width, columns, dtype=dtype)
            dx = self.empty(batch, length, heads, dim, dtype=dtype)
            grads = []
            for low in (False, True):
                rows = (x if low else x.double()).detach().requires_grad_()
                y = mma_reference(rows, s.to(rows.dtype), chunk)
                grads.append(self.torch.autograd.grad(y, rows, dy.to(rows.dtype))[0])
            run = self.kernels.sympow_mma_backward(name, x, s, dy, dx, chunk)
            what = f"{name} {batch} {length} {heads} {chunk}"
            self.judge(what, run, [dx], grads[:1], [1.2 * error(grads[1], grads[0])])

    def mma_sympow(self, name, fact):
        c, dtype = fact["constants"], self.dtype(fact, "x")
        dim, columns = 8 * c["Tiles"], c["Columns"]
        width = dim // 8 * (dim // 8 + 1) // 2 * 64
        for batch, length, heads, chunk in (
            (2, 300, 3, 128),
            (1, 1000, 2, 192),
            (1, 100, 1, 0),
            (1, 5, 1, 0),
        ):
            x = self.random(batch, length, heads, dim, dtype=dtype, gap=8)
            v = self.random(batch, length, heads, columns, dtype=dtype)
            s = self.empty(batch, heads, chunks_of(length, chunk)[0] * width, columns, dtype=dtype)
            wanted = state_reference(x.double(), v.double(), chunk)
            low = error(state_reference(x, v, chunk), wanted)
            run = self.kernels.mma_sympow(name, x, v, s, chunk)
            self.judge(f"{name} {batch} {length} {heads} {chunk}", run, [s], [wanted], [1.2 * low])

    def power_attention(self, name, fact):
        dtype = self.dtype(fact, "q")
        dim, columns, power = (int(n) for n in name.split("_")[3:6])
        forms = ((True, True, True), (False, False, False), (True, False, True), (True, True, False))
        for batch, length, heads, chunk in ((2, 300, 3, 128), (1, 1100, 2, 512), (1, 70, 1, 0)):
            for gated, past, normalise in forms:
                q, k = (self.random(batch, length, heads, dim, dtype=dtype, gap=8) for _ in range(2))
                k = k.copy_((k + q) / 2)
                v = self.random(batch, length, heads, columns, dtype=dtype)
                sums = self.gates(batch, length, heads, chunk) if gated else None
                before = self.random(batch, length, heads, columns + 8, dtype=dtype).abs() if past else None
                y = self.empty(batch, length, heads, columns, dtype=dtype)
                total = self.torch.empty(batch, length, heads, device="cuda")
                form = (dim**-0.5, chunk, power, normalise, 1e-3)
                exact = [None if each is None else each.double() for each in (q, k, v, sums, before)]
                wanted = attention_reference(*exact, *form)
                low = attention_reference(*exact, *form, low=dtype)
                bound = [
                    1.2 * (error(one, two) + self.torch.finfo(dtype).eps / 4)
                    for one, two in zip(low, wanted, strict=True)
                ]
                run = self.kernels.power_attention(
                    name, q, k, v, sums, before, y, total, dim**-0.5, chunk, normalise, 1e-3
                )
                what = f"{name} {batch} {length} {heads} {chunk} {gated:d}{past:d}{normalise:d}"
                self.judge(what, run, [y, total], wanted, bound)

    def power_attention_keys_backward(self, name, fact):
        self.power_attention_backward(name, fact)

    def power_attention_backward(self, name, fact):
        dtype, of_keys = self.dtype(fact, "q"), "keys" in name
        dim, columns, power = (int(n) for n in name.split("_")[-3:])
        eps = self.torch.finfo(dtype).eps
        for batch, length, heads, chunk in ((2, 300, 3, 128), (1, 1100, 2, 512), (1, 70, 1, 0)):
            for gated, past, normalise in ((True, True, True), (False, False, False), (True, True, False)):
                q, k = (self.random(batch, length, heads, dim, dtype=dtype, gap=8) for _ in range(2))
                k = k.copy_((k + q) / 2)
                v = self.random(batch, length, heads, columns, dtype=dtype)
                sums = self.gates(batch, length, heads, chunk) if gated else None
                before = self.random(batch, length, heads, columns + 8, dtype=dtype).abs() if past else None
                form = (dim**-0.5, chunk, power, normalise, 1e-3)
                given = (q, k, v, sums, before)
                exact = [None if each is None else each.double().requires_grad_() for each in given]
                y, total = attention_reference(*exact, *form)
                dy = self.random(batch, length, heads, columns, dtype=dtype)
                dtotal = self.torch.randn(batch, length, heads, device="cuda") * 0.1
                inputs = [exact[i] for i in ((1, 2) if of_keys else (0,))]
                if of_keys and gated:  # the sums' gradient has parts of rows and of keys
                    inputs.append(exact[3])
                given = (dy.double(), dtotal.double())
                wanted = self.torch.autograd.grad((y, total), inputs, given)
                y, total = y.detach().to(dtype).contiguous(), total.detach().float().contiguous()
                dq, dl_rows = self.empty(batch, length, heads, dim, dtype=dtype), self.torch.empty_like(total)
                attributes = (dim**-0.5, chunk, normalise, 1e-3)
                rows = (q, k, v, sums, before, y, total, dy, dtotal, dq, dl_rows)
                queries_name = name.replace("_keys", "")
                first = self.kernels.power_attention_backward(queries_name, rows, *attributes)
                what = f"{name} {batch} {length} {heads} {chunk} {gated:d}{past:d}{normalise:d}"
                if not of_keys:
                    self.judge(what, first, [dq], wanted[:1], [eps])
                    continue
                first()
                dk = self.empty(batch, length, heads, dim, dtype=dtype)
                dv, dl = self.empty(batch, length, heads, columns, dtype=dtype), self.torch.empty_like(total)
                keys = (q, k, v, sums, y, total, dy, dtotal, dl_rows, dk, dv, dl)
                run = self.kernels.power_attention_backward(name, keys, *attributes)
                made = [dk, dv, dl] if gated else [dk, dv]
                self.judge(what, run, made, wanted, [eps, eps, 4 * eps][: len(made)])

    def state_scan_backward(self, name, fact):
        torch, dtype = self.torch, self.dtype(fact, "s")
        for batch, heads, length, chunk, width, columns in (
            (2, 2, 300, 64, 192, 72),
            (1, 3, 1000, 100, 100, 64),
        ):
            chunks = chunks_of(length, chunk)[0]
            s, ds = (self.random(batch, heads, chunks * width, columns, dtype=dtype) for _ in range(2))
            dlast = torch.randn(batch, heads, width, columns, device="cuda")
            parts = -(-width // 64)
            for sums in (self.gates(batch, length, heads, chunk), None):
                du, ds0 = torch.empty_like(s), torch.empty_like(dlast)
                part = torch.empty(batch, heads, chunks, parts, device="cuda")
                run = self.kernels.state_scan_backward(name, s, sums, ds, dlast, du, ds0, part, chunks, chunk)
                given, wanted, products = dlast.double(), [], []
                for g in reversed(range(chunks)):
                    rows = slice(g * width, (g + 1) * width)
                    wanted.insert(0, given)
                    product = s[:, :, rows].double() * given
                    product = torch.nn.functional.pad(product, (0, 0, 0, parts * 64 - width))
                    products.insert(0, product.unflatten(2, (parts, 64)).sum((-1, -2)))
                    end = min((g + 1) * chunk, length) - 1
                    decay = sums[:, end].double().exp()[..., None, None] if sums is not None else 1
                    given = ds[:, :, rows].double() + decay * given
                right = [torch.cat(wanted, 2), given, torch.stack(products, 2)]
                bound = [torch.finfo(dtype).eps / 2, 1e-5, 1e-4]
                self.judge(f"{name} {batch} {heads} {length}", run, [du, ds0, part], right, bound)

    def state_scan(self, name, fact):
        dtype = self.dtype(fact, "u")
        for batch, heads, length, chunk, width, columns in (
            (2, 2, 300, 64, 192, 72),
            (1, 3, 1000, 100, 64, 64),
        ):
            chunks = chunks_of(length, chunk)[0]
            u = self.random(batch, heads, chunks * width, columns, dtype=dtype)
            sums, s0 = (
                self.gates(batch, length, heads, chunk),
                self.torch.randn(batch, heads, width, columns, device="cuda"),
            )
            for gates, begin in ((sums, s0), (None, None)):
                s, last = self.torch.empty_like(u), self.torch.empty_like(s0)
                run = self.kernels.state_scan(name, u, gates, begin, s, last, chunks, chunk)
                wanted = scan_reference(u, gates, begin, chunks, chunk)
                self.judge(
                    f"{name} {batch} {heads} {length}",
                    run,
                    [s, last],
                    wanted,
                    [self.torch.finfo(dtype).eps / 2, 1e-5],
                )
