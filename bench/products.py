"""bmm, scaled_mm and matmul in tf32 as whole kernels (ops/matmul/matmul_kernel.sm90.cuh) against torch.bmm,
torch._scaled_mm and torch.matmul with allow_tf32.
products.py build FOLDER: compiles shapes of tiles; needs no GPU.
products.py run FOLDER [check] [bmm] [fp8] [tf32]: on a GPU of compute capability 9.0."""

import json
import math
import pathlib
import struct
import sys

import device_kernel as dk
import gemm

# rows, brought, columns, slabs, cluster, split
WIDE = [
    (128, 128, 256, 1, 2, 1),
    (128, 128, 256, 1, 1, 1),
    (128, 128, 192, 1, 1, 1),
    (128, 128, 128, 2, 1, 1),
]
MIDDLE = [(64, 64, 256, 1, 1, 1), (64, 64, 128, 2, 1, 1), (64, 64, 64, 2, 1, 1), (64, 16, 64, 2, 1, 1)]
PROMOTED = [
    *((128, 128, columns, 1, cluster, 1) for columns in (128, 160, 192) for cluster in (1, 2)),
    *((64, 64, columns, 1, 1, 1) for columns in (64, 128, 192)),
    (64, 16, 64, 1, 1, 1),
]
BLOCKED = [shape for shape in PROMOTED if shape[2] % 64 == 0]
OPS = {"bmm": "Bmm", "scaled_mm": "ScaledMm", "matmul": "Matmul"}


def fact(op, kind, shape, a, b, out, scales=0, promotes=0):
    return {
        "op": op,
        "kind": kind,
        "shape": shape,
        "types": (a, b, out),
        "scales": scales,
        "promotes": promotes,
    }


def wanted():
    for kind in gemm.KINDS:
        for shape in WIDE + MIDDLE[:3]:
            if gemm.fits(shape, kind):
                yield fact("bmm", kind, shape, "bf16", "bf16", "bf16")
    yield fact("bmm", "tn", WIDE[0], "f16", "f16", "f32")
    for shape in WIDE + MIDDLE:
        yield fact("scaled_mm", "tn", shape, "f8e4m3", "f8e4m3", "bf16", 1)
        yield fact("matmul", "tn", shape, "f32", "f32", "f32")
    for shape in PROMOTED:
        yield fact("scaled_mm", "tn", shape, "f8e4m3", "f8e4m3", "bf16", 1, 1)
    for shape in BLOCKED:
        yield fact("scaled_mm", "tn", shape, "f8e4m3", "f8e4m3", "bf16", 2, 1)
    for a, b in (("f8e4m3", "f8e5m2"), ("f8e5m2", "f8e4m3"), ("f8e5m2", "f8e5m2")):
        yield fact("scaled_mm", "tn", PROMOTED[0], a, b, "bf16", 1, 1)


def beside_ring(shape, out, scales):
    return gemm.stage_bytes(shape, out) + (shape[0] // 64 * 4096 if scales == 2 else 0)


def stages_of(shape, out, scales):
    return min(12, (gemm.SHARED - beside_ring(shape, out, scales)) // (gemm.slot_bytes(shape) + 16))


def name_of(facts):
    return "_".join(
        map(
            str,
            [
                facts["op"],
                facts["kind"],
                *facts["shape"],
                *facts["types"],
                facts["scales"],
                facts["promotes"],
            ],
        )
    )


def build(folder):
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for facts in wanted():
        name, (a, b, out), rank = name_of(facts), facts["types"], 3 if facts["op"] == "bmm" else 2
        along_m, along_k = gemm.KINDS[facts["kind"]]
        types = (
            f"a.a.data.dtype = heddle::DType({dk.DTYPES[a]}); "
            f"a.b.data.dtype = heddle::DType({dk.DTYPES[b]}); "
            f"a.y.dtype = heddle::DType({dk.DTYPES[out]}); a.a.data.rank = a.b.data.rank = a.y.rank = {rank};"
            f"a.a.transposed = {along_m}; a.b.transposed = {along_k};"
        )
        constants = {n.capitalize(): v for n, v in zip(gemm.NAMES, facts["shape"], strict=True)}
        constants["Stages"] = stages_of(facts["shape"], out, facts["scales"])
        if facts["op"] == "scaled_mm":
            constants |= {"Scales": facts["scales"], "Promotes": facts["promotes"]}
        text = dk.source(facts["op"], OPS[facts["op"]], "heddle/ops/matmul", "sm90", constants, types, 3)
        cubin, log = dk.compile_text(text)
        registers, spills, serial = dk.use_of(log)
        print(f"{name}: {registers} registers, {spills} spilled, {serial}", flush=True)
        if not cubin:
            sys.exit(log)
        (folder / f"{name}.cubin").write_bytes(cubin)
        made[name] = facts
    (folder / "manifest.json").write_text(json.dumps(made))


def tensor_bytes(tensor, dtype):
    """heddle/ir/tensor.h"""
    rank, rest = tensor.dim(), [0] * (4 - tensor.dim())
    sizes, strides = [*tensor.shape, *rest], [*tensor.stride(), *rest]
    return struct.pack("<QIBBHq4i4q", tensor.data_ptr(), 0, dk.DTYPES[dtype], rank, 0, 0, *sizes, *strides)


def matrices_bytes(tensor, dtype, transposed):
    return tensor_bytes(tensor, dtype) + struct.pack("<B7x", transposed)


def scale_bytes(scale):
    transposed = scale.stride(1) != 1 and scale.stride(0) == 1
    return matrices_bytes(scale.t() if transposed else scale, "f32", transposed)


class Kernel:
    def __init__(self, driver, folder, name, facts):
        self.driver, self.name, self.facts = driver, name, facts
        self.op, self.kind, self.shape = facts["op"], facts["kind"], tuple(facts["shape"])
        self.scales, self.promotes, self.types = facts["scales"], facts["promotes"], facts["types"]
        stages = stages_of(self.shape, self.types[2], self.scales)
        self.shared = stages * (gemm.slot_bytes(self.shape) + 16)
        self.shared += beside_ring(self.shape, self.types[2], self.scales)
        self.function = driver.load(folder / f"{name}.cubin", self.shared)

    def call(self, a, b, y, scale_a=None, scale_b=None, rounds=True):
        """A function that launches y = a b; both lie as the kind says. `rounds`: copies round f32 to tf32."""
        import torch

        rows, brought, columns, _, cluster, split = self.shape
        along_m, along_k = gemm.KINDS[self.kind]
        ta, tb, out = self.types

        def map_of(tensor, dtype, high):
            sizes, size = [*reversed(tensor.shape)], dk.BYTES[dtype]
            strides = [stride * size for stride in reversed(tensor.stride()[:-1])]
            box = [128 // size, high, 1][: len(sizes)]
            kind = "tf32" if dtype == "f32" and self.op == "matmul" and tensor is not y and rounds else dtype
            return self.driver.tensor_map(tensor.data_ptr(), kind, sizes, strides, box)

        maps = map_of(a, ta, 64 if along_m else brought)
        maps += map_of(b, tb, columns // cluster if along_k else 64)
        maps += map_of(y, out, 64)
        batches = y.shape[0] if self.op == "bmm" else 1
        tiles = math.ceil(y.shape[-2] / (rows * cluster)) * math.ceil(y.shape[-1] / columns) * batches
        count = torch.cuda.get_device_properties(0).multi_processor_count
        if self.op == "matmul":
            args = gemm.matmul_bytes(a, b, y, along_m, along_k, ta, out)
        else:
            args = matrices_bytes(a, ta, along_m) + matrices_bytes(b, tb, along_k)
            if self.op == "scaled_mm":
                args += scale_bytes(scale_a) + scale_bytes(scale_b)
            args += tensor_bytes(y, out)
            if self.op == "scaled_mm":
                args += struct.pack("<B7x", not self.promotes)
        ctas = cluster * split
        grid = min(tiles, count // ctas) * ctas
        return self.driver.launcher(
            self.function, grid, ctas, 128 * (rows // 64 + 1), self.shared, [args, maps, bytes(8)]
        )


def torch_type(name):
    import torch

    return {
        "bf16": torch.bfloat16,
        "f16": torch.float16,
        "f32": torch.float32,
        "f8e4m3": torch.float8_e4m3fn,
        "f8e5m2": torch.float8_e5m2,
    }[name]


def lines(shape, dtype, pad=0):
    import torch

    *lead, rows, columns = shape
    values = torch.randn(*lead, rows, columns + pad, device="cuda").to(torch_type(dtype))
    return values[..., :columns]


class Checks:
    """Errors next to a peer's, what lies around a result, and the same bits whatever the tile."""

    def __init__(self):
        self.wrong, self.count, self.bits = [], 0, {}

    def result(self, shape, dtype):
        import torch

        *lead, m, n = shape
        self.whole = torch.full((*lead, m + 1, n + 16), 77.0, device="cuda").to(torch_type(dtype))
        self.y = self.whole[..., :m, :n]
        return self.y

    def compare(self, kernel, label, call, exact, peer):
        import torch

        call()
        torch.cuda.synchronize()
        self.count += 1
        y, whole, name = self.y, self.whole, f"{kernel.name} {label}"
        error = float((y.double() - exact).norm() / exact.norm())
        limit = float((peer.double() - exact).norm() / exact.norm())
        if not error <= 1.05 * limit + 1e-7:
            self.wrong.append(f"{name}: error {error:.3e}, torch {limit:.3e}")
        if not bool((whole[..., y.shape[-2] :, :] == 77).all() and (whole[..., y.shape[-1] :] == 77).all()):
            self.wrong.append(f"{name} wrote outside")
        alike = (kernel.op, kernel.kind, *kernel.types, kernel.scales, kernel.promotes, label)
        if not torch.equal(self.bits.setdefault(alike, y.clone()), y):
            self.wrong.append(f"{name} has other bits")
        if label.startswith("16x"):
            print(f"{name} error {error:.3e}, limit {limit:.3e}")


def scale_pairs(scales, m, n, k):
    import torch

    def scale(*shape):
        return torch.rand(*shape, device="cuda") + 0.5

    blocks, columns = math.ceil(k / 128), math.ceil(n / 128)
    if scales == 1:
        return [(scale(1, 1), scale(1, 1)), (scale(m, 1), scale(1, n)), (scale(m, 1), scale(1, 1))]
    turned = (scale(blocks, m).t(), scale(columns, blocks).t())
    return [(scale(m, blocks), scale(blocks, columns)), turned]


def check_scaled(checks, kernel, a, b, y):
    """b lies in columns."""
    import torch

    (m, k), n = a.shape, b.shape[0]
    for number, (sa, sb) in enumerate(scale_pairs(kernel.scales, m, n, k)):
        full_a, full_b = sa, sb
        if kernel.scales == 2:
            full_a = sa.repeat_interleave(128, 1)[:, :k]
            full_b = sb.repeat_interleave(128, 0)[:k].repeat_interleave(128, 1)[:, :n]
        exact = (a.double() * full_a) @ (b.t().double() * full_b)
        if kernel.promotes:
            peer = exact.to(y.dtype)
        else:  # sums of 14 bits
            one = torch.ones((), device="cuda")
            sums = torch._scaled_mm(
                a.contiguous(), b.contiguous().t(), one, one, out_dtype=y.dtype, use_fast_accum=True
            )
            peer = (sums.double() * full_a * full_b).to(y.dtype)
        checks.compare(kernel, f"{m}x{n}x{k} {number}", kernel.call(a, b, y, sa, sb), exact, peer)


def check(kernels):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    checks = Checks()
    for kernel in kernels:
        print("runs", kernel.name, flush=True)
        along_m, along_k = gemm.KINDS[kernel.kind]
        ta, tb, out = kernel.types
        for m, n, k in ((1000, 1520, 1040), (72, 272, 144), (16, 512, 4096), (304, 48, 80), (256, 512, 384)):
            if not gemm.fits(kernel.shape, kernel.kind, m):
                continue
            torch.manual_seed(m + n + k)
            lead, pad = (3,) if kernel.op == "bmm" else (), 16 * (m % 3)
            a = lines((*lead, k, m) if along_m else (*lead, m, k), ta, pad)
            b = lines((*lead, n, k) if along_k else (*lead, k, n), tb, pad)
            y = checks.result((*lead, m, n), out)
            if kernel.op == "scaled_mm":
                check_scaled(checks, kernel, a, b, y)
                continue
            x, w = (a.mT if along_m else a), (b.mT if along_k else b)
            exact = x.double() @ w.double()
            checks.compare(kernel, f"{m}x{n}x{k}", kernel.call(a, b, y), exact, (x @ w).to(y.dtype))
    print(f"checked {checks.count} products: {len(checks.wrong)} wrong")
    for line in checks.wrong[:40]:
        print("  WRONG", line)
    return not checks.wrong


def timed(label, peers, cases, flops, results):
    """peers, cases: {name: function}"""
    own = dict(cases)
    for name, run in peers.items():
        try:
            run()
            own[name] = run
        except RuntimeError as error:
            print(label, name, str(error).splitlines()[0][:200])
    inner = max(2, min(24, int(2e11 / (flops + 4e9)) + 1))
    times = dk.bench(own, rounds=5, inner=inner)
    results[label] = dict(times)
    best = sorted((name for name in times if name in cases), key=times.get)
    for peer in peers:
        if peer in times:
            ratios = "  ".join(f"{name} {times[peer] / times[name]:.3f}" for name in best[:5])
            rate = f"{times[peer] * 1e3:.1f} us {flops / times[peer] / 1e9:.0f} TFLOP/s"
            print(f"{label}: {peer} {rate} | {ratios}", flush=True)


def short(kernel):
    return "x".join(map(str, kernel.shape[:5]))


def measure_bmm(kernels, results):
    import torch

    for batch, m, n, k in (
        (16, 2048, 2048, 2048),
        (64, 512, 512, 512),
        (128, 1024, 128, 1024),
        (256, 128, 128, 4096),
        (8, 4096, 4096, 4096),
        (512, 128, 128, 128),
    ):
        for kind in ("tn", "nn"):
            along_k = gemm.KINDS[kind][1]
            a, b = lines((batch, m, k), "bf16"), lines((batch, n, k) if along_k else (batch, k, n), "bf16")
            w = b.mT if along_k else b
            y = torch.empty(batch, m, n, device="cuda", dtype=torch.bfloat16)
            cases = {
                short(e): e.call(a, b, y)
                for e in kernels
                if e.op == "bmm" and e.kind == kind and e.types[2] == "bf16"
            }
            timed(
                f"bmm {kind} {batch} x {m} {n} {k}",
                {"torch.bmm": lambda a=a, w=w, y=y: torch.bmm(a, w, out=y)},
                cases,
                2 * batch * m * n * k,
                results,
            )


SHAPES = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    *((m, n, k) for m in (128, 512, 2048) for n, k in gemm.LLAMA["8B"]),
)


def measure_fp8(kernels, results):
    for m, n, k in (*SHAPES, (16, 4096, 4096), (16, 14336, 4096)):
        measure_fp8_shape(kernels, results, m, n, k)


def measure_fp8_shape(kernels, results, m, n, k):
    import torch

    copies = 1 if m > 256 else max(1, min(8, math.ceil(160e6 / (n * k))))
    a, bs = lines((m, k), "f8e4m3"), [lines((n, k), "f8e4m3") for _ in range(copies)]
    y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    one, ra, rb = (torch.rand(*s, device="cuda") + 0.5 for s in ((1, 1), (m, 1), (1, n)))
    ba, bb = torch.rand(k // 128, m, device="cuda").t(), torch.rand(n // 128, k // 128, device="cuda").t()
    turn = {}

    def rotate(name, calls):
        def run():
            turn[name] = (turn.get(name, -1) + 1) % len(calls)
            calls[turn[name]]()

        return run

    def peer(name, sa, sb, fast):
        return rotate(
            name,
            [
                lambda b=b: torch._scaled_mm(a, b.t(), sa, sb, out_dtype=torch.bfloat16, use_fast_accum=fast)
                for b in bs
            ],
        )

    def own(scales, promotes, sa, sb):
        return {
            short(e): rotate(e.name, [e.call(a, b, y, sa, sb) for b in bs])
            for e in kernels
            if e.op == "scaled_mm"
            and (e.scales, e.promotes) == (scales, promotes)
            and e.types[:2] == ["f8e4m3"] * 2
            and gemm.fits(e.shape, "tn", m)
        }

    flops, label = 2 * m * n * k, f"{m} {n} {k}"
    timed(
        f"fp8 fast {label}",
        {"tensor": peer("t", one, one, True), "rows": peer("r", ra, rb, True)},
        own(1, 0, ra, rb),
        flops,
        results,
    )
    timed(
        f"fp8 {label}",
        {"tensor": peer("t2", one, one, False), "rows": peer("r2", ra, rb, False)},
        own(1, 1, ra, rb),
        flops,
        results,
    )
    timed(f"fp8 blocks {label}", {"blocks": peer("b", ba, bb, False)}, own(2, 1, ba, bb), flops, results)


def measure_tf32(kernels, results):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    for m, n, k in SHAPES:
        a, b = lines((m, k), "f32"), lines((n, k), "f32")
        y = torch.empty(m, n, device="cuda")
        cases = {
            short(e): e.call(a, b, y) for e in kernels if e.op == "matmul" and gemm.fits(e.shape, "tn", m)
        }
        timed(
            f"tf32 {m} {n} {k}",
            {"torch": lambda a=a, b=b, y=y: torch.matmul(a, b.t(), out=y)},
            cases,
            2 * m * n * k,
            results,
        )


def run(folder, parts):
    kernels, results = gemm.begin(folder, parts, Kernel, check)
    for part, measure in (("bmm", measure_bmm), ("fp8", measure_fp8), ("tf32", measure_tf32)):
        if part in parts:
            measure(kernels, results)
    return results


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "build":
        build(folder)
    else:
        made = run(folder, sys.argv[3:] or ["check", "bmm", "fp8", "tf32"])
        (pathlib.Path(sys.argv[2]) / "results.json").write_text(json.dumps(made))
