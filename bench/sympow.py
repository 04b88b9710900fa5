"""Symmetric powers and power attention as whole kernels (ops/sympow/*_kernel.sm90.cuh) against torch.
sympow.py build FOLDER [NAME]: compiles the kernels; needs no GPU.
sympow.py run FOLDER [check[:NAME]] [time]: on a GPU of compute capability 9.0."""

import json
import pathlib
import struct
import sys
import time

import device_kernel as dk

SHARED = 227 << 10
ARGS = {}


def kernels():
    """name: (op, type of the arguments, dtypes by field, constants, number of maps)."""
    made = {}
    for dtype in ("bf16", "f16"):
        for variant in MMA:
            dim, columns, groups, cluster, per, turns = variant
            if dtype == "f16" and columns != 64:
                continue
            constants = {"Tiles": dim // 8, "Columns": columns, "Groups": groups, "Cluster": cluster}
            constants |= {"Per": per, "Turns": turns}
            constants["Stages"] = stages_in(*mma_bytes(constants))
            name = f"sympow_mma_{dtype}_{'_'.join(map(str, variant))}"
            made[name] = ("sympow_mma", "SympowMma", dict.fromkeys("xsy", dtype), constants, 2)
        for dim, columns, groups in BACKWARD:
            if dtype == "f16" and columns != 64:
                continue
            constants = {"Tiles": dim // 8, "Columns": columns, "Groups": groups, "Cluster": 2}
            constants["Stages"] = backward_bytes(constants)[1]
            fields = dict.fromkeys(("x", "s", "dy", "dx"), dtype)
            name = f"sympow_mma_backward_{dtype}_{dim}_{columns}_{groups}"
            made[name] = ("sympow_mma_backward", "SympowMmaBackward", fields, constants, 3)
        for dim, columns, fast, cluster in STATE:
            if dtype == "f16" and columns != 64:
                continue
            constants = {"Tiles": dim // 8, "Columns": columns, "Fast": fast, "Cluster": cluster}
            constants["Stages"] = min(12, (SHARED - 64) // (state_stage(dim, columns) + 16))
            name = f"mma_sympow_{dtype}_{dim}_{columns}_{fast}_{cluster}"
            made[name] = ("mma_sympow", "MmaSympow", dict.fromkeys("xvs", dtype), constants, 2)
        for dim, columns, power, groups, overlap in FORWARD:
            constants = {"WideRows": -(-dim // 64), "Columns": columns, "Power": power}
            constants |= {"Groups": groups, "Overlap": overlap}
            constants["Stages"] = stages_in(*attention_bytes(constants))
            fields = dict.fromkeys(("q", "k", "v", "past", "y"), dtype) | {"l": "f32", "total": "f32"}
            made[f"power_attention_{dtype}_{dim}_{columns}_{power}_{groups}_{overlap}"] = (
                "power_attention",
                "PowerAttention",
                fields,
                constants,
                3,
            )
        for dim, columns, power in ATTENTION:
            constants = {"WideRows": -(-dim // 64), "Columns": columns, "Power": power}
            constants["Stages"] = stages_in(*attention_backward_bytes(constants))
            common = dict.fromkeys(("q", "k", "v", "y", "dy"), dtype)
            common |= dict.fromkeys(("l", "total", "dtotal", "dl_rows"), "f32")
            name = f"{dtype}_{dim}_{columns}_{power}"
            fields = common | {"dq": dtype, "past": dtype}
            made[f"power_attention_backward_{name}"] = (
                "power_attention_backward",
                "PowerAttentionBackward",
                fields,
                constants,
                4,
            )
            fields = common | {"dk": dtype, "dv": dtype, "dl": "f32"}
            made[f"power_attention_keys_backward_{name}"] = (
                "power_attention_keys_backward",
                "PowerAttentionKeysBackward",
                fields,
                constants,
                4,
            )
        fields = dict.fromkeys(("s", "ds", "du"), dtype)
        fields |= dict.fromkeys(("l", "dlast", "ds0", "part"), "f32")
        made[f"state_scan_backward_{dtype}"] = (
            "state_scan_backward",
            "StateScanBackward",
            fields,
            {"Words": 3},
            0,
        )
        fields = {"u": dtype, "s": dtype, "s0": "f32", "l": "f32", "last": "f32"}
        made[f"state_scan_{dtype}"] = ("state_scan", "StateScan", fields, {"Ahead": 8}, 0)
    return made


# d, E, groups
BACKWARD = ((64, 64, 2), (64, 64, 3), (64, 72, 2), (64, 128, 2), (32, 64, 2), (24, 40, 2), (128, 64, 2))
# d, E, tiles s1 of a unit, CTAs of a cluster
STATE = (
    (64, 64, 2, 1),
    (64, 64, 2, 2),
    (64, 64, 1, 2),
    (64, 72, 2, 1),
    (64, 72, 2, 2),
    (64, 128, 1, 1),
    (64, 128, 1, 2),
    (32, 64, 2, 1),
    (24, 40, 2, 2),
    (128, 128, 1, 2),
    (128, 64, 2, 2),
)
FORWARD = (
    (64, 64, 2, 2, 1),
    (64, 64, 4, 2, 1),
    (32, 40, 2, 2, 1),
    (128, 64, 2, 2, 1),
    (64, 128, 2, 2, 1),
)
ATTENTION = ((64, 64, 2), (64, 64, 4), (32, 40, 2), (128, 64, 2))
VARIANTS = {"state_scan": "sm80", "state_scan_backward": "sm80"}


def state_stage(dim, columns):
    return (-(-dim // 64) + -(-columns // 64)) * 8192


def attention_bytes(constants):
    """Bytes besides the ring, and of a stage."""
    wide = constants["WideRows"] + -(-constants["Columns"] // 64)
    groups = constants["Groups"]
    return groups * constants["WideRows"] * 8192 + 16 + groups * 512, wide * 8192


# d, E, groups, CTAs of a cluster, blocks of a stage, turns
MMA = (
    *((64, 64, 4, cluster, 2, 0) for cluster in (1, 2)),
    (64, 72, 4, 2, 1, 1),
    (64, 72, 4, 2, 2, 0),
    (64, 128, 2, 2, 2, 0),
    (32, 64, 4, 2, 2, 0),
    (24, 40, 4, 2, 2, 0),
    (128, 128, 2, 2, 2, 0),
)


def mma_bytes(constants):
    """Bytes besides the ring, and of a stage."""
    rows = 2 * (constants["Groups"] * 8192 * -(-constants["Tiles"] // 8) + 16)
    return rows, constants["Per"] * -(-constants["Columns"] // 64) * 8192


def stages_in(rows, stage):
    return min(12, (SHARED - rows) // (stage + 16))


def attention_backward_bytes(constants):
    """Bytes besides the ring, and of a stage."""
    wide = constants["WideRows"] + -(-constants["Columns"] // 64)
    return 2 * (2 * wide * 8192 + 16) + 4096, wide * 8192


def backward_bytes(constants):
    """Bytes besides the ring, and stages."""
    tiles, groups = constants["Tiles"], constants["Groups"]
    wide, wide_rows = -(-constants["Columns"] // 64), -(-tiles // 8)
    stage = (2 if tiles * (tiles + 1) // 2 % 2 == 0 else 1) * wide * 8192
    rows = 2 * (groups * (wide + wide_rows) * 8192 + 16) + groups * tiles * 2048
    return rows, min(12, (SHARED - rows) // (stage + 16)), stage


def build(folder, wanted):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "manifest.json"
    made = json.loads(path.read_text()) if path.exists() else {}
    for name, (op, args, dtypes, constants, maps) in kernels().items():
        if wanted not in name:
            continue
        types = " ".join(f"a.{field}.dtype = heddle::DType({dk.DTYPES[t]});" for field, t in dtypes.items())
        text = dk.source(op, args, "heddle/ops/sympow", VARIANTS.get(op, "sm90"), constants, types, maps)
        if "attention" in op and "backward" in op:  # the launch that comes first
            text += (
                text[text.index("using Launch0") :]
                .replace("Launch0", "Launch1")
                .replace("launch0", "launch1")
                .replace(f"{op}::Kernel<", f"{op}::Rows<")
            )
        begin = time.time()
        cubin, log = dk.compile_text(text)
        registers, spills, serial = dk.use_of(log)
        print(
            f"{name}: {registers} registers, {spills} spilled, {serial} {time.time() - begin:.1f} s",
            flush=True,
        )
        if not cubin:
            sys.exit(log)
        (folder / f"{name}.cubin").write_bytes(cubin)
        made[name] = {"op": op, "dtypes": dtypes, "constants": constants}
    path.write_text(json.dumps(made))


def tensor_bytes(tensor):
    """heddle/ir/tensor.h; None: left out."""
    if tensor is None:
        return struct.pack("<QIBBHq4i4q", 0, 0xFFFFFFFF, 0, 0, 0, 0, *[0] * 8)
    rank, rest = tensor.dim(), [0] * (4 - tensor.dim())
    dtype = dk.DTYPES[NAMES[str(tensor.dtype)]]
    head = (tensor.data_ptr(), 0, dtype, rank, 0, 0)
    return struct.pack("<QIBBHq4i4q", *head, *tensor.shape, *rest, *tensor.stride(), *rest)


NAMES = {"torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16"}


class Kernels:
    """The compiled kernels, and launches of them on torch's tensors."""

    def __init__(self, folder):
        import torch

        self.torch, self.folder, self.driver = torch, folder, dk.Driver()
        self.facts = json.loads((folder / "manifest.json").read_text())
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count

    def rows_map(self, x, rows=64):
        """Boxes of 64 elements and `rows` positions of one head of x [B, T, H, K]."""
        size = x.element_size()
        strides = [size * x.stride(d) for d in (2, 1, 0)]
        sizes = (x.shape[3], x.shape[2], x.shape[1], x.shape[0])
        return self.driver.tensor_map(x.data_ptr(), NAMES[str(x.dtype)], sizes, strides, (64, 1, rows, 1))

    def state_map(self, s, rows):
        """Boxes of 64 columns and `rows` rows of one head of s [B, H, C, E]."""
        strides = [s.element_size() * s.stride(d) for d in (2, 1, 0)]
        sizes = (s.shape[3], s.shape[2], s.shape[1], s.shape[0])
        return self.driver.tensor_map(s.data_ptr(), NAMES[str(s.dtype)], sizes, strides, (64, rows, 1, 1))

    def launcher(self, name, grid, cluster, threads, shared, tensors, attributes, maps, **more):
        function = self.driver.load(self.folder / f"{name}.cubin", shared, more.get("function", "launch0"))
        workspace = more.get("workspace")
        args = b"".join(map(tensor_bytes, tensors)) + attributes
        args += b"\0" * (-len(args) % 8)
        params = [
            args,
            b"".join(maps) or b"\0" * 128,
            struct.pack("<Q", workspace.data_ptr() if workspace is not None else 0),
        ]
        launch = self.driver.launcher(function, grid, cluster, threads, shared, params)
        return lambda kept=(tensors, workspace): launch()

    def sympow_mma(self, name, x, s, y, chunk):
        c = self.facts[name]["constants"]
        cluster, height = c["Cluster"], 64 * c["Groups"] * c["Cluster"]
        chunks, chunk = chunks_of(x.shape[1], chunk)
        tiles = x.shape[0] * x.shape[2] * chunks * -(-chunk // height)
        grid = min(tiles, self.sms // cluster) * cluster
        maps = [self.rows_map(x), self.state_map(s, 64 // cluster)]
        attributes = struct.pack("<ii", 2, chunk)
        rows, stage = mma_bytes(c)
        shared = rows + c["Stages"] * (stage + 16)
        return self.launcher(
            name, grid, cluster, 128 * (c["Groups"] + 1), shared, (x, s, y), attributes, maps
        )

    def sympow_mma_backward(self, name, x, s, dy, dx, chunk):
        c = self.facts[name]["constants"]
        cluster, height = c["Cluster"], 64 * c["Groups"] * c["Cluster"]
        chunks, chunk = chunks_of(x.shape[1], chunk)
        tiles = x.shape[0] * x.shape[2] * chunks * -(-chunk // height)
        grid = min(tiles, self.sms // cluster) * cluster
        rows, stages, stage = backward_bytes(c)
        maps = [self.rows_map(x), self.rows_map(dy), self.state_map(s, 64 // cluster)]
        attributes = struct.pack("<ii", 2, chunk)
        shared, threads = rows + stages * (stage + 16), 128 * (c["Groups"] + 1)
        return self.launcher(name, grid, cluster, threads, shared, (x, s, dy, dx), attributes, maps)

    def mma_sympow(self, name, x, v, s, chunk):
        c = self.facts[name]["constants"]
        cluster, pairs = c["Cluster"], (c["Tiles"] + 1) // 2
        units = pairs * (pairs + 1) // (2 if c["Fast"] == 2 else 1)
        chunks, chunk = chunks_of(x.shape[1], chunk)
        items = x.shape[0] * x.shape[2] * chunks * -(-units // (2 * cluster))
        grid = min(items, self.sms // cluster) * cluster
        shared = c["Stages"] * (state_stage(8 * c["Tiles"], c["Columns"]) + 16)
        maps = [self.rows_map(x, 64 // cluster), self.rows_map(v, 64 // cluster)]
        return self.launcher(name, grid, cluster, 384, shared, (x, v, s), struct.pack("<ii", 2, chunk), maps)

    def power_attention(self, name, q, k, v, sums, past, y, total, scale, chunk, normalise, eps):
        c = self.facts[name]["constants"]
        chunks, chunk = chunks_of(q.shape[1], chunk)
        tiles = q.shape[0] * q.shape[2] * chunks * -(-chunk // (64 * c["Groups"]))
        rows, stage = attention_bytes(c)
        shared = rows + c["Stages"] * (stage + 16)
        attributes = struct.pack("<ifi?3xf", c["Power"], scale, chunk, normalise, eps)
        tensors = (q, k, v, sums, past, y, total)
        maps = [self.rows_map(each) for each in (q, k, v)]
        threads = 128 * (c["Groups"] + 1)
        return self.launcher(name, min(tiles, self.sms), 1, threads, shared, tensors, attributes, maps)

    def power_attention_backward(self, name, tensors, scale, chunk, normalise, eps):
        """Gradients of queries, or of keys; `tensors` in the order of the op's arguments."""
        c = self.facts[name]["constants"]
        q, k, v, dy = tensors[0], tensors[1], tensors[2], tensors[7 if "keys" not in name else 6]
        chunks, chunk = chunks_of(q.shape[1], chunk)
        tiles = q.shape[0] * q.shape[2] * chunks * -(-chunk // 128)
        rows, stage = attention_backward_bytes(c)
        attributes = struct.pack("<ifi?3xf", c["Power"], scale, chunk, normalise, eps)
        maps = [self.rows_map(each) for each in (q, k, v, dy)]
        count = q.shape[0] * q.shape[1] * q.shape[2]
        workspace = self.torch.empty(2 * count, device="cuda")
        more = {"workspace": workspace, "function": "launch1"}
        first = self.launcher(name, -(-count // 8), 1, 256, 0, tensors, attributes, maps, **more)
        more["function"] = "launch0"
        shared = rows + c["Stages"] * (stage + 16)
        main = self.launcher(name, min(tiles, self.sms), 1, 384, shared, tensors, attributes, maps, **more)

        def run():
            first()
            main()

        return run

    def state_scan_backward(self, name, s, sums, ds, dlast, du, ds0, part, chunks, chunk):
        grid = s.shape[0] * s.shape[1] * -(-(s.shape[2] // chunks) // 64)
        tensors, attributes = (s, sums, ds, dlast, du, ds0, part), struct.pack("<ii", chunks, chunk)
        return self.launcher(name, grid, 1, 256, 0, tensors, attributes, [])

    def state_scan(self, name, u, sums, s0, s, last, chunks, chunk):
        vectors = u.shape[2] // chunks * u.shape[3] // 8
        grid = u.shape[0] * u.shape[1] * -(-vectors // 256)
        return self.launcher(
            name, grid, 1, 256, 0, (u, sums, s0, s, last), struct.pack("<ii", chunks, chunk), []
        )


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


def times(kernels):
    """b 1, t 65,536, h 8, d 64, power 2, chunks of 1,024, as in the published figures."""
    torch = kernels.torch
    checks = Checks(kernels)
    length, heads, chunk, dim, width = 65536, 8, 1024, 64, 2304
    chunks, bf16 = length // chunk, torch.bfloat16
    x = checks.random(1, length, heads, dim, dtype=bf16)
    cases, flops = {}, {}
    sums = checks.gates(1, length, heads, chunk)
    for name, fact in kernels.facts.items():
        c = fact["constants"]
        if "bf16" not in name or c.get("Tiles", 8) != 8 or c.get("WideRows", 1) != 1 or "_32_40" in name:
            continue
        columns = c.get("Columns", 72)
        rows = checks.random(1, length, heads, columns, dtype=bf16)
        if fact["op"] == "sympow_mma":
            s = checks.random(1, heads, chunks * width, columns, dtype=bf16)
            cases[name] = kernels.sympow_mma(name, x, s, torch.empty_like(rows), chunk)
        elif fact["op"] == "sympow_mma_backward":
            s = checks.random(1, heads, chunks * width, columns, dtype=bf16)
            cases[name] = kernels.sympow_mma_backward(name, x, s, rows, torch.empty_like(x), chunk)
        elif fact["op"] == "mma_sympow":
            s = torch.empty(1, heads, chunks * width, columns, device="cuda", dtype=bf16)
            cases[name] = kernels.mma_sympow(name, x, rows, s, chunk)
        elif fact["op"] == "state_scan_backward":
            u = checks.random(1, heads, chunks * width, 72, dtype=bf16)
            last = torch.zeros(1, heads, width, 72, device="cuda")
            part = torch.empty(1, heads, chunks, 36, device="cuda")
            made = (torch.empty_like(u), torch.empty_like(last), part)
            cases[name] = kernels.state_scan_backward(name, u, sums, u, last, *made, chunks, chunk)
        elif fact["op"] == "state_scan":
            u = checks.random(1, heads, chunks * width, 72, dtype=bf16)
            last = torch.empty(1, heads, width, 72, device="cuda")
            cases[name] = kernels.state_scan(name, u, sums, None, torch.empty_like(u), last, chunks, chunk)
        elif "backward" in fact["op"]:
            y, total = torch.empty_like(rows), torch.ones(1, length, heads, device="cuda")
            common = (x, x, rows, sums)
            if "keys" in name:
                made = (torch.empty_like(x), torch.empty_like(rows), torch.empty_like(total))
                tensors = (*common, y, total, rows, total, total, *made)
            else:
                past = checks.random(1, length, heads, columns + 8, dtype=bf16)
                tensors = (*common, past, y, total, rows, total, torch.empty_like(x), torch.empty_like(total))
            cases[name] = kernels.power_attention_backward(name, tensors, 0.125, chunk, True, 1e-3)
            flops[name] = (
                length
                * heads
                * chunk
                * ((4 if "keys" in name else 2) * (dim + columns) - (0 if "keys" in name else columns - dim))
            )
        else:
            past = checks.random(1, length, heads, columns + 8, dtype=bf16)
            for gates, what in ((sums, " gated"), (None, "")):
                total = torch.empty(1, length, heads, device="cuda")
                cases[name + what] = kernels.power_attention(
                    name, x, x, rows, gates, past, torch.empty_like(rows), total, 0.125, chunk, True, 1e-3
                )
            flops[name] = flops[name + " gated"] = 2 * length * heads * chunk / 2 * (dim + columns)
        if "Tiles" in c:
            flops[name] = 2 * length * heads * width * columns
    results = dk.bench(cases, rounds=7, inner=2)
    for name, ms in results.items():
        rate = f", {flops[name] / ms / 1e9:.0f} TFLOP/s" if name in flops else ""
        print(f"{name}: {ms:.3f} ms{rate}", flush=True)
    return results


def run(folder, parts):
    import torch

    torch.zeros(1, device="cuda")
    kernels = Kernels(folder)
    results = {"device": torch.cuda.get_device_name(0)}
    print(results["device"], flush=True)
    checks = Checks(kernels)
    for part in parts:
        if part.startswith("check"):
            results[part] = checks.all(part.removeprefix("check").removeprefix(":"))
    if "time" in parts:
        results.update(times(kernels))
    return results


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "build":
        build(folder, sys.argv[3] if len(sys.argv) > 3 else "")
    else:
        made = run(folder, sys.argv[3:] or ["check", "time"])
        (folder / "results.json").write_text(json.dumps(made))
