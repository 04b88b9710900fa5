"""Symmetric powers and power attention as whole kernels (ops/sympow/*_kernel.sm90.cuh) against torch.
sympow.py build FOLDER [NAME]: compiles the kernels; needs no GPU.
sympow.py run FOLDER [check[:NAME]] [time]: on a GPU of compute capability 9.0."""

import json
import pathlib
import struct
import sys
import time

import device_kernel as dk
from sympow_checks import Checks, chunks_of

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
        return self.launcher(name, grid, 1, 256, 64, tensors, attributes, [])

    def state_scan(self, name, u, sums, s0, s, last, chunks, chunk):
        vectors = u.shape[2] // chunks * u.shape[3] // 8
        grid = u.shape[0] * u.shape[1] * -(-vectors // 256)
        return self.launcher(
            name, grid, 1, 256, 0, (u, sums, s0, s, last), struct.pack("<ii", chunks, chunk), []
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
