"""The matrix product as a whole kernel (ops/matmul/matmul_kernel.sm90.cuh) against cuBLAS through torch.
gemm.py build FOLDER: compiles all shapes of tiles; needs no GPU.
gemm.py run FOLDER [check] [square] [llama] [few] [sustained]: on a GPU of compute capability 9.0."""

import json
import math
import pathlib
import re
import struct
import sys
import time

import device_kernel as dk

KINDS = {"tn": (0, 1), "nn": (0, 0), "nt": (1, 0), "tt": (1, 1)}  # a, b transposed: a lies along M, b along K
NAMES = ("rows", "brought", "columns", "slabs", "cluster", "split")
SHARED = 227 << 10
LLAMA = {
    "1B": ((2048, 2048), (512, 2048), (8192, 2048), (2048, 8192)),
    "8B": ((4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336)),
    "70B": ((8192, 8192), (1024, 8192), (28672, 8192), (8192, 28672)),
}


def shapes():
    """The table of heddle/ops/matmul/product_kernel.cpp."""
    text = (dk.ROOT / "heddle/ops/matmul/product_kernel.cpp").read_text()
    table = re.search(r"kShapes\[\] = \{(.*?)\};", text, re.S).group(1)
    plain = [tuple(map(int, numbers.split(","))) for numbers in re.findall(r"\{([\d, ]+)\}", table)]
    return [(*shape[:5], split) for split in (1, 2, 4, 8) for shape in plain]


def stage_bytes(shape, out):
    rows, _, columns, _, _, split = shape
    own = columns // split
    part = 0 if own < 64 else 128 if own % 128 == 0 and split == 1 else 64
    received = 256 * (columns - own) + 16 if split > 1 else 0
    return rows // 64 * ((part * dk.BYTES[out] + 127) // 128 * 8192 + received)


def slot_bytes(shape):
    rows, _, columns, slabs, *_ = shape
    return slabs * (rows + columns) * 128


def stages_of(shape, out):
    return min(12, (SHARED - stage_bytes(shape, out)) // (slot_bytes(shape) + 16))


def fits(shape, kind, rows=None):
    height, brought, columns, _, cluster, split = shape
    along_m, along_k = KINDS[kind]
    if columns % ((8 if along_k else 64) * cluster):
        return False
    if split > 1 and (cluster > 1 or columns not in (height // 2, height) or columns // split % 8):
        return False
    if brought == height:
        return True
    return not along_m and (rows is None or rows <= brought)


def shares(shape, k):
    """Has each CTA a part of k? Parts are multiples of two slabs."""
    split, slabs = shape[-1], math.ceil(k / 64)
    return (split - 1) * 2 * math.ceil(slabs / (2 * split)) < slabs


def name_of(kind, shape, dtype, out):
    return "_".join([kind, *map(str, shape), dtype, out])


def build(folder):
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    wanted = [(k, s, "bf16", "bf16") for k in KINDS for s in shapes() if fits(s, k)]
    # All of "tn"; of the others those that are wide, and one that is split.
    wanted = [
        w for w in wanted if w[0] == "tn" or w[1][2] in (128, 192, 256) or w[1] == (64, 64, 64, 2, 1, 2)
    ]
    wide, narrow = shapes()[0], (64, 64, 64, 2, 1, 2)
    wanted += [
        (k, s, d, o)
        for k in ("tn", "nt")
        for s in (wide, narrow)
        for d, o in (("f16", "f16"), ("bf16", "f32"))
    ]
    for kind, shape, dtype, out in wanted:
        name = name_of(kind, shape, dtype, out)
        along_m, along_k = KINDS[kind]
        types = (
            f"a.a.data.dtype = a.b.data.dtype = heddle::DType({dk.DTYPES[dtype]}); "
            f"a.y.dtype = heddle::DType({dk.DTYPES[out]}); "
            f"a.a.transposed = {along_m}; a.b.transposed = {along_k};"
        )
        constants = {n.capitalize(): v for n, v in zip(NAMES, shape, strict=True)}
        constants["Stages"] = stages_of(shape, out)
        text = dk.source("matmul", "Matmul", "heddle/ops/matmul", "sm90", constants, types, 3)
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
        made[name] = {"kind": kind, "shape": shape, "dtype": dtype, "out": out}
    (folder / "manifest.json").write_text(json.dumps(made))


def tensor_bytes(address, dtype, sizes, stride):
    """heddle/ir/tensor.h, of rank 2."""
    return struct.pack("<QIBBHq4i4q", address, 0, dk.DTYPES[dtype], 2, 0, 0, *sizes, 0, 0, *stride, 1, 0, 0)


def matmul_bytes(a, b, y, along_m, along_k, dtype, out):
    """heddle/ops/matmul/matmul.h."""
    absent = struct.pack("<QIBBHq4i4q", 0, 0xFFFFFFFF, 0, 0, 0, 0, *[0] * 8)

    def matrix(tensor, transposed):
        data = tensor_bytes(tensor.data_ptr(), dtype, tensor.shape, tensor.stride()[:1])
        return data + absent * 2 + struct.pack("<B7x", transposed)

    result = tensor_bytes(y.data_ptr(), out, y.shape, y.stride()[:1])
    return matrix(a, along_m) + matrix(b, along_k) + result + struct.pack("<B7x", dtype == "f32")


class Kernel:
    def __init__(self, driver, folder, name, facts):
        self.driver, self.name = driver, name
        self.kind, self.dtype, self.out = facts["kind"], facts["dtype"], facts["out"]
        self.shape = tuple(facts["shape"])
        self.shared = stages_of(self.shape, self.out) * (slot_bytes(self.shape) + 16) + stage_bytes(
            self.shape, self.out
        )
        self.function = driver.load(folder / f"{name}.cubin", self.shared)

    def call(self, a, b, y):
        """A function that launches y = a b; both lie as the kind says."""
        import torch

        rows, brought, columns, _, cluster, split = self.shape
        along_m, along_k = KINDS[self.kind]
        size = dk.BYTES[self.dtype]

        def map_of(tensor, dtype, wide, high):
            lines, length = tensor.shape
            return self.driver.tensor_map(
                tensor.data_ptr(), dtype, (length, lines), (tensor.stride(0) * dk.BYTES[dtype],), (wide, high)
            )

        maps = map_of(a, self.dtype, 128 // size, 64 if along_m else brought)
        maps += map_of(b, self.dtype, 128 // size, columns // cluster if along_k else 64)
        maps += map_of(y, self.out, 128 // dk.BYTES[self.out], 64)
        tiles = math.ceil(y.shape[0] / (rows * cluster)) * math.ceil(y.shape[1] / columns)
        count = torch.cuda.get_device_properties(0).multi_processor_count
        params = [matmul_bytes(a, b, y, along_m, along_k, self.dtype, self.out), maps, bytes(8)]
        ctas = cluster * split
        grid = min(tiles, count // ctas) * ctas
        return self.driver.launcher(self.function, grid, ctas, 128 * (rows // 64 + 1), self.shared, params)


def operands(kind, m, n, k, dtype, pad=0):
    """a and b as they lie, and as torch multiplies them. `pad`: elements between lines."""
    import torch

    along_m, along_k = KINDS[kind]

    def lines(rows, columns):
        return torch.randn(rows, columns + pad, device="cuda").to(dtype)[:, :columns]

    a = lines(k, m) if along_m else lines(m, k)
    b = lines(n, k) if along_k else lines(k, n)
    return a, b, (a.t() if along_m else a), (b.t() if along_k else b)


def torch_type(name):
    import torch

    return {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[name]


def check(kernels):
    """Errors against fp64 next to torch's, and the same bits whatever the tile."""
    import torch

    wrong, count = [], 0
    for kernel in kernels:  # by itself first, so that one that faults is known by name
        print("first run of", kernel.name, end="\r", flush=True)
        m, n, k = 64, 256, 2048
        a, b, _, _ = operands(kernel.kind, m, n, k, torch_type(kernel.dtype))
        y = torch.empty(m, n, device="cuda", dtype=torch_type(kernel.out))
        kernel.call(a, b, y)()
        torch.cuda.synchronize()
    for kind in KINDS:
        for m, n, k in (
            (1024, 1536, 1024),
            (1000, 1528, 1032),
            (72, 264, 88),
            (16, 512, 4096),
            (300, 40, 72),
            (8, 8, 8),
            *((m, 200, 136 if m % 2 else 2120) for m in (1, 7, 17, 64, 65, 129, 300)),
        ):
            if KINDS[kind][0] and m % 8:
                continue
            bits = {}
            for kernel in kernels:
                if kernel.kind != kind or not fits(kernel.shape, kind, m) or not shares(kernel.shape, k):
                    continue
                torch.manual_seed(m + n + k)
                pad = 8 * (m % 3)
                a, b, x, w = operands(kind, m, n, k, torch_type(kernel.dtype), pad)
                whole = torch.full((m + 1, n + 16), 77.0, device="cuda").to(torch_type(kernel.out))
                y = whole[:m, :n]
                kernel.call(a, b, y)()
                torch.cuda.synchronize()
                count += 1
                exact = x.double() @ w.double()
                error = (y.double() - exact).norm() / exact.norm()
                peer = ((x @ w).double() - exact).norm() / exact.norm()
                if not error <= 1.02 * peer + 1e-7:
                    wrong.append(f"{kernel.name} {m}x{n}x{k}: error {error:.2e}, torch {peer:.2e}")
                if not bool((whole[m:] == 77).all() and (whole[:, n:] == 77).all()):
                    wrong.append(f"{kernel.name} {m}x{n}x{k} wrote outside")
                first = bits.setdefault((kernel.dtype, kernel.out, kernel.shape[-1]), y.clone())
                if not torch.equal(first, y):
                    wrong.append(f"{kernel.name} {m}x{n}x{k} has other bits")
    print(f"checked {count} products: {len(wrong)} wrong")
    for line in wrong[:20]:
        print("  WRONG", line)
    return not wrong


def measure(kernels, kind, m, n, k, rounds):
    """Milliseconds of cuBLAS and of every kernel that fits. Few rows read weights that are in no cache."""
    import torch

    dtype = torch.bfloat16
    copies = 1 if m > 256 else max(1, min(24, math.ceil(160e6 / (2 * n * k))))
    all_b = [operands(kind, m, n, k, dtype) for _ in range(copies)]
    y = torch.empty(m, n, device="cuda", dtype=dtype)
    a, _, x, _ = all_b[0]
    turn = {}

    def rotate(name, calls):
        def run():
            turn[name] = (turn.get(name, -1) + 1) % len(calls)
            calls[turn[name]]()

        return run

    cases = {"cublas": rotate("cublas", [lambda w=w: torch.matmul(x, w, out=y) for _, _, _, w in all_b])}
    for kernel in kernels:
        if kernel.shape[-1] > 1 and (k < 2048 or m > 128 or not shares(kernel.shape, k)):
            continue
        if kernel.kind == kind and kernel.dtype == kernel.out == "bf16" and fits(kernel.shape, kind, m):
            calls = [kernel.call(a, b, y) for _, b, _, _ in all_b]
            cases["_".join(map(str, kernel.shape))] = rotate(kernel.name, calls)
    inner = max(2, min(24, int(2e11 / (2 * m * n * k + 4e9)) + 1))
    return dk.bench(cases, rounds=rounds, inner=inner)


def line_of(times, flops):
    peer = times.pop("cublas")
    best = sorted(times, key=times.get)
    listed = "  ".join(f"{name} {peer / times[name]:.3f}" for name in best[:6])
    return f"cuBLAS {peer * 1e3:.1f} us {flops / peer / 1e9:.0f} TFLOP/s | {listed}"


def begin(folder, parts, kind, check):
    """The kernels of a folder, each a `kind`, and where results go. Ends if the check finds a wrong one."""
    import torch

    facts = json.loads((folder / "manifest.json").read_text())
    driver = dk.Driver()
    torch.zeros(1, device="cuda")
    kernels = [kind(driver, folder, name, fact) for name, fact in facts.items()]
    if "check" in parts and not check(kernels):
        sys.exit("wrong results are not timed")
    return kernels, {"device": torch.cuda.get_device_name(0)}


def run(folder, parts):
    import torch

    kernels, results = begin(folder, parts, Kernel, check)
    if "square" in parts:
        for size in (4096, 8192):
            for kind in KINDS:
                large = [k for k in kernels if k.shape[0] == 128 and k.shape[2] >= 128]
                times = measure(large, kind, size, size, size, 7)
                results[f"{kind} {size} {size} {size}"] = dict(times)
                print(f"{size} {kind}: {line_of(times, 2 * size**3)}", flush=True)
    for part, counts in {"llama": (16, 128, 512, 1024, 2048), "few": (16, 128)}.items():
        for model, weights in LLAMA.items() if part in parts else ():
            for m in counts:
                for n, k in weights:
                    times = measure(kernels, "tn", m, n, k, 5)
                    results[f"tn {m} {n} {k}"] = dict(times)
                    print(f"{model} {m} x {n} x {k}: {line_of(times, 2 * m * n * k)}", flush=True)
    if "sustained" in parts:
        kernel = next(kernel for kernel in kernels if kernel.kind == "tn")
        for size in (4096, 8192):
            a, b, x, w = operands("tn", size, size, size, torch.bfloat16)
            y = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
            call = kernel.call(a, b, y)
            pairs = [
                (dk.sustained(lambda x=x, w=w, y=y: torch.matmul(x, w, out=y)), dk.sustained(call))
                for _ in range(2)
            ]
            peer, own = (min(times) for times in zip(*pairs, strict=True))
            results[f"sustained {size}"] = {"cublas": peer, "own": own}
            print(f"sustained {size}: cuBLAS {2 * size**3 / peer / 1e9:.0f} TFLOP/s, ratio {peer / own:.3f}")
    return results


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "build":
        build(folder)
    else:
        made = run(folder, sys.argv[3:] or ["check", "square", "llama", "sustained"])
        (folder / "results.json").write_text(json.dumps(made))
