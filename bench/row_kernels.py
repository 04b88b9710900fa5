"""The whole kernels of rows and of single elements (heddle/ops/*/*_kernel.sm80.cuh) against torch and a copy.

row_kernels.py build FOLDER [op ...]: compiles all configurations; needs no GPU.
row_kernels.py run FOLDER [check] [large] [small] [compiled] [op ...]: checks against fp64, and times on
a GPU; with torch.compile as a further peer.
"""

import json
import pathlib
import struct
import sys
from concurrent.futures import ProcessPoolExecutor

import device_kernel as dk
from row_references import HEAD, reference

INTEGERS = {"i32": 3, "f8": 5, "i64": 9}
TYPES = dk.DTYPES | INTEGERS
SIZES = dk.BYTES | {"i32": 4, "f8": 1, "i64": 8}
ABSENT = ("dsum", "dlse")  # inputs that no case here has
# (threads of a CTA, threads of a row, eights of a thread)
ROWS = [
    (128, 32, 1),
    (128, 32, 2),
    (128, 32, 4),
    (128, 128, 1),
    (128, 128, 2),
    (128, 128, 4),
    (256, 256, 1),
    (256, 256, 2),
    (256, 256, 4),
    (512, 512, 1),
    (512, 512, 2),
    (512, 512, 4),
    (1024, 1024, 1),
    (1024, 1024, 2),
    (1024, 1024, 4),
]
ELEMENTS = [(128, 1), (128, 2), (256, 1), (256, 2), (512, 1), (512, 2), (1024, 1)]
LONG = [(256, 4), (512, 2), (512, 4), (1024, 2), (1024, 4)]
TILES = [(64, 64), (128, 64), (64, 128), (128, 128), (256, 64)]


class Op:
    """An op as its header has it: tensors in order, their types ("e": that of the case), attributes."""

    def __init__(self, folder, args, family, tensors, attributes=""):
        self.folder, self.args, self.family = folder, args, family
        self.tensors = [each.split(":") for each in tensors.split()]
        self.attributes = [each.split("=") for each in attributes.split()]


CLASSES = "i:ignore=-100 f:smoothing=0 f:softcap=0 f:z_loss=0"
OPS = {
    "copy": Op("copy", "Copy", "elements", "x:e y:e"),
    "activation": Op("activation", "Activation", "elements", "x:e y:e", "i:kind=0"),
    "activation_backward": Op("activation", "ActivationBackward", "elements", "x:e dy:e dx:e", "i:kind=0"),
    "gated_activation": Op("activation", "GatedActivation", "elements", "x:e y:e", "i:kind=0"),
    "gated_activation_backward": Op(
        "activation", "GatedActivationBackward", "elements", "x:e dy:e dx:e", "i:kind=0"
    ),
    "gated_product": Op("activation", "GatedProduct", "elements", "gate:e up:e y:e", "i:kind=0"),
    "gated_product_backward": Op(
        "activation", "GatedProductBackward", "elements", "gate:e up:e dy:e dgate:e dup:e", "i:kind=0"
    ),
    "adamw": Op(
        "adamw",
        "Adamw",
        "elements",
        "param:e grad:e m:f32 v:f32 new_param:e new_m:f32 new_v:f32",
        "f:lr=0.001 f:beta1=0.9 f:beta2=0.999 f:eps=1e-8 f:decay=0.01 f:scale=1 i:step=3",
    ),
    "cross_entropy_backward": Op(
        "cross_entropy",
        "CrossEntropyBackward",
        "pieces",
        "logits:e target:i64 lse:f32 dloss:f32 dlse:f32 dlogits:e",
        CLASSES,
    ),
    "cross_entropy": Op(
        "cross_entropy", "CrossEntropy", "long", "logits:e target:i64 loss:f32 lse:f32", CLASSES
    ),
    "softmax": Op("softmax", "Softmax", "rows", "x:e y:e"),
    "softmax_backward": Op("softmax", "SoftmaxBackward", "rows", "y:e dy:e dx:e"),
    "rms_norm": Op("rms_norm", "RmsNorm", "rows", "x:e weight:e y:e", "f:eps=1e-5"),
    "rms_norm_residual": Op(
        "rms_norm", "RmsNormResidual", "rows", "x:e residual:e weight:e y:e sum:e", "f:eps=1e-5"
    ),
    "layer_norm": Op("layer_norm", "LayerNorm", "rows", "x:e weight:e bias:e y:e", "f:eps=1e-5"),
    "layer_norm_residual": Op(
        "layer_norm", "LayerNormResidual", "rows", "x:e residual:e weight:e bias:e y:e sum:e", "f:eps=1e-5"
    ),
    "rms_norm_backward": Op(
        "rms_norm",
        "RmsNormBackward",
        "parts",
        "x:e weight:e dy:e dsum:e dx:e dweight_parts:f32",
        "f:eps=1e-5 i:part_rows=16",
    ),
    "layer_norm_backward": Op(
        "layer_norm",
        "LayerNormBackward",
        "parts",
        "x:e weight:e dy:e dsum:e dx:e dweight_parts:f32 dbias_parts:f32",
        "f:eps=1e-5 i:part_rows=16",
    ),
    "reduce": Op("reduce", "Reduce", "rows", "x:e y:f32", "i:kind=0 i:variant=0"),
    "quantize": Op("quantize", "Quantize", "rows", "x:e codes:f8 scales:f32", "i:code=0 i:by=1"),
    "quantize_both": Op(
        "quantize",
        "QuantizeBoth",
        "squares",
        "x:e codes:f8 scales:f32 transposed:f8 transposed_scales:f32",
        "i:code=0",
    ),
    "rope_rows": Op(
        "rope",
        "RopeRows",
        "turns",
        "x:e table:f32 y:e",
        "i:head_dim=128 i:rotary_dim=128 i:heads=0 i:interleaved=0",
    ),
    "rope_rows_backward": Op(
        "rope",
        "RopeRowsBackward",
        "turns",
        "dy:e table:f32 dx:e",
        "i:head_dim=128 i:rotary_dim=128 i:heads=0 i:interleaved=0",
    ),
    "transpose": Op("transpose", "Transpose", "tiles", "x:e y:e"),
}


def places(family, threads):
    """Rows of which a CTA has elements on chip. heddle/ir/row_kernel.cpp decides by the width of a row."""
    return {"Places": 3 if threads <= 128 else 4} if family == "parts" else {}


def configs_of(op):
    """(constants, launch)"""
    family = OPS[op].family
    if family in ("elements", "turns"):
        return [({"Threads": t, "Words": w}, "Kernel") for t, w in ELEMENTS]
    if family == "pieces":
        return [({"Threads": t, "Words": w}, "Kernel") for t, w in ELEMENTS]
    if family == "long":
        return [({"Threads": t, "Words": w}, "Kernel") for t, w in LONG]
    if family == "squares":
        return [({"Rows": 128, "Columns": 128}, "Kernel")]
    if family == "tiles":
        return [({"Rows": r, "Columns": c}, "Kernel") for r, c in TILES]
    kind = {"Kind": 1} if op == "quantize" else {}  # by blocks, to e4m3
    made = [
        ({"Threads": t, "RowThreads": r, "Words": w} | kind | places(family, t * w), "Kernel")
        for t, r, w in ROWS
        if family != "parts" or (t == r and w <= 2)
    ]
    if op in ("softmax", "reduce"):
        made += [({"Threads": t, "Words": w}, "LongKernel") for t, w in LONG]
    return made


def name_of(op, constants, launch, dtype):
    return "_".join([op, *map(str, constants.values()), dtype] + (["long"] if launch == "LongKernel" else []))


def make(task):
    """(name, facts, cubin, what the compiler says) of one configuration."""
    op, constants, launch, dtype = task
    spec = OPS[op]
    types = ""
    for name, kind in spec.tensors:
        if name not in ABSENT:
            number = TYPES[dtype if kind == "e" else kind]
            types += f"a.{name}.dtype = heddle::DType({number}); a.{name}.rank = 2; "
    folder = f"heddle/ops/{spec.folder}"
    cubin, log = dk.compile_text(dk.source(op, spec.args, folder, "sm80", constants, types, 0, launch))
    facts = {"op": op, "constants": constants, "launch": launch, "dtype": dtype}
    return name_of(*task), facts, cubin, log


def build(folder, only, jobs=None):
    folder.mkdir(parents=True, exist_ok=True)
    tasks = []
    for op, spec in OPS.items():
        configs = configs_of(op) if not only or op in only else []
        for number, (constants, launch) in enumerate(configs):
            more = ("f32", "f16") if number in (1, 4) and spec.family not in ("tiles", "squares") else ()
            tasks += [(op, constants, launch, dtype) for dtype in ("bf16", *more)]
    made = {}
    with ProcessPoolExecutor(jobs) as pool:
        for name, facts, cubin, log in pool.map(make, tasks):
            if not cubin:
                sys.exit(f"{name}\n{log}")
            registers, spills, _ = dk.use_of(log)
            if spills:
                print(f"{name}: {registers} registers, {spills} bytes spilled: dropped", flush=True)
                continue
            (folder / f"{name}.cubin").write_bytes(cubin)
            made[name] = facts | {"registers": registers}
    (folder / "manifest.json").write_text(json.dumps(made, indent=1))
    print(f"{len(made)} kernels of {len(tasks)}")


def tensor_bytes(tensor, kind):
    """heddle/ir/tensor.h"""
    if tensor is None:
        return struct.pack("<QIBBHq4i4q", 0, 0xFFFFFFFF, 0, 0, 0, 0, *[0] * 8)
    rank = tensor.dim()
    sizes, strides = list(tensor.shape) + [0] * (4 - rank), list(tensor.stride()) + [0] * (4 - rank)
    return struct.pack("<QIBBHq4i4q", tensor.data_ptr(), 0, TYPES[kind], rank, 0, 0, *sizes, *strides)


def ceil(a, b):
    return -(-a // b)


def is_dense(tensor):
    return tensor.dim() != 2 or tensor.stride(0) == tensor.shape[1] or tensor.shape[0] == 1


class Kernel:
    def __init__(self, driver, folder, name, facts):
        self.driver, self.name = driver, name
        self.op, self.constants, self.launch = facts["op"], facts["constants"], facts["launch"]
        self.dtype, self.spec = facts["dtype"], OPS[facts["op"]]
        c, self.shared = self.constants, 0
        if self.spec.family == "parts":  # rows of x and dy on their way
            self.shared = c["Places"] * c["Threads"] * c["Words"] * 8 * 2 * (4 if self.dtype == "f32" else 2)
        self.function = driver.load(folder / f"{name}.cubin", self.shared)

    def fits(self, columns):
        c = self.constants
        if self.spec.family not in ("rows", "parts") or self.launch == "LongKernel":
            return True
        most = 8 * c["RowThreads"] * c["Words"]
        return columns <= most and (columns > most // 4 or c["RowThreads"] * c["Words"] <= 32)

    def call(self, **values):
        """`values`: tensors by name, and attributes that are not the default."""
        spec, c = self.spec, self.constants
        main = values[
            {"gated_activation": "y", "gated_activation_backward": "dy"}.get(self.op, spec.tensors[0][0])
        ]
        heads = main.shape[1] // HEAD
        packed = b"".join(
            tensor_bytes(values.get(name), self.dtype if kind == "e" else kind) for name, kind in spec.tensors
        )
        for name, default in spec.attributes:
            kind, name = name.split(":")
            value = heads if name == "heads" else values.get(name, default)
            packed += struct.pack("<i", int(value)) if kind == "i" else struct.pack("<f", float(value))
        packed += bytes(-len(packed) % 8)
        rows, columns = main.shape
        threads = c.get("Threads", 256)
        if spec.family == "elements":
            each, dense = threads * c["Words"], all(is_dense(v) for v in values.values() if hasattr(v, "dim"))
            grid = ceil(rows * columns // 8, each) if dense else rows * ceil(columns // 8, each)
        elif spec.family == "turns":
            units = heads * HEAD // 16 + columns % HEAD // 8
            grid = ceil(rows * units, threads * c["Words"])
        elif spec.family == "pieces":
            grid = rows * ceil(columns // 8, threads * c["Words"])
        elif spec.family in ("tiles", "squares"):
            grid = ceil(rows, c["Rows"]) * ceil(columns, c["Columns"])
        elif spec.family == "parts":
            grid = ceil(rows, values.get("part_rows", 16))
        else:
            grid = ceil(rows, threads // c.get("RowThreads", threads))
        params = [packed, bytes(128), bytes(8)]
        return self.driver.launcher(self.function, grid, 1, threads, self.shared, params)


def torch_type(name):
    import torch

    return {
        "bf16": torch.bfloat16,
        "f16": torch.float16,
        "f8": torch.float8_e4m3fn,
        "f32": torch.float32,
        "i64": torch.int64,
    }[name]


def values_of(op, rows, columns, dtype, pad=0):
    """Random inputs and poisoned outputs."""
    import torch

    kind = torch_type(dtype)

    def matrix(m, n, poisoned=False, of=kind):
        made = (
            torch.full((m, n + pad), torch.nan, device="cuda")
            if poisoned
            else torch.randn(m, n + pad, device="cuda")
        )
        return made.to(of)[:, :n]

    made = {}
    for name, of in OPS[op].tensors:
        of = kind if of == "e" else torch_type(of)
        if name in ABSENT:
            continue
        if name == "target":
            made[name] = torch.randint(0, columns, (rows,), device="cuda")
        elif op.startswith("quantize") and name != "x":
            m, n = (columns, rows) if name.startswith("transposed") else (rows, columns)
            n = ceil(n, 128) if name.endswith("scales") else n
            made[name] = torch.full((m, n), 7.0, device="cuda").to(of)
        elif name == "table":
            made[name] = torch.randn(rows, HEAD, device="cuda")
        elif name in ("weight", "bias"):
            made[name] = torch.randn(columns, device="cuda").to(of)
        elif name in ("loss", "lse", "dloss"):
            made[name] = torch.rand(rows, device="cuda")
        elif name == "y" and op == "reduce":
            made[name] = torch.full((rows,), torch.nan, device="cuda")
        elif name == "y" and op == "transpose":
            made[name] = matrix(columns, rows, True)
        elif name in ("dweight_parts", "dbias_parts"):
            made[name] = torch.full((ceil(rows, 16), columns), torch.nan, device="cuda")
        elif op.startswith("gated_activation") and name in ("x", "dx"):
            made[name] = matrix(rows, 2 * columns, name == "dx")
        else:
            outputs = ("y", "dx", "dgate", "dup", "sum", "new_param", "new_m", "new_v", "dlogits")
            made[name] = matrix(rows, columns, name in outputs and not op.startswith("softmax_b"), of)
    if op == "adamw":
        made["v"].abs_()
    if op == "softmax_backward":
        made["y"].copy_(made["y"].float().softmax(-1))
    if op == "cross_entropy_backward":
        made["lse"].copy_(made["logits"].float().logsumexp(-1))
    return made


CHECKED = [
    (33, 1000, 0),
    (7, 4096, 8),
    (130, 256, 0),
    (64, 8, 8),
    (3, 8192, 0),
    (5, 16384, 0),
    (2, 32768, 0),
    (3, 40000, 0),
    (17, 2056, 16),
]


def bits_of(tensor):
    import torch

    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


def faults_of(kernel, v, exact, peer):
    import torch

    run = kernel.call(**v)
    run()
    torch.cuda.synchronize()
    first = {name: bits_of(v[name]).clone() for name in exact}
    for name, want in exact.items():
        got = v[name].double()
        if v[name].element_size() == 1:  # codes: those at borders may differ
            if (got != want).double().mean().item() > 0.01:
                yield f"{name}: other codes"
            continue
        got = got.sum(0) if name.endswith("_parts") else got
        bound = (peer[name].double() - want).abs().max().item()
        unit = torch.finfo(v[name].dtype).eps * want.abs().max().item()
        error = (got - want).abs().max().item()
        if not error <= 1.2 * bound + unit:
            yield f"{name}: error {error:.2e}, torch {bound:.2e}"
    run()
    torch.cuda.synchronize()
    if any(not torch.equal(first[name], bits_of(v[name])) for name in exact):
        yield "other bits the second time"


def check(kernels):
    """Values against fp64, next to torch's in the same dtype, and the same bits again."""
    import torch

    wrong, count = [], 0
    for op, dtype in dict.fromkeys((kernel.op, kernel.dtype) for kernel in kernels):
        for rows, columns, pad in CHECKED:
            rows = ceil(rows, 16) * 16 if op in ("transpose", "quantize_both") else rows
            if op.startswith("rope") and columns < HEAD:
                continue
            mine = [k for k in kernels if (k.op, k.dtype) == (op, dtype) and k.fits(columns)]
            torch.manual_seed(rows * columns)
            v = values_of(op, rows, columns, dtype, pad)
            exact = reference(op, {k: x.double() if x.is_floating_point() else x for k, x in v.items()})
            peer = reference(op, v)
            for kernel in mine:
                count += 1
                wrong += [
                    f"{kernel.name} {rows}x{columns} {fault}" for fault in faults_of(kernel, v, exact, peer)
                ]
    print(f"checked {count} calls: {len(wrong)} wrong", flush=True)
    for line in wrong[:60]:
        print("  ", line, flush=True)


LARGE = {
    "cross_entropy": [(8192, 131072)],
    "cross_entropy_backward": [(8192, 131072)],
    "transpose": [(16384, 16384)],
    "softmax": [(32768, 4096), (131072, 1024), (32768, 8192), (8192, 32768), (1024, 1 << 20)],
    "adamw": [(8192, 8192)],
}
DEFAULT_LARGE = [(131072, 1024), (65536, 2048), (32768, 4096), (32768, 8192), (16384, 16384), (8192, 32768)]
SMALL = [(1, 4096), (16, 4096), (128, 2048), (512, 512)]


def bytes_of(v):
    return sum(x.numel() * x.element_size() for x in v.values())


def peers_of(op, v):
    import torch

    made = {"torch": lambda: reference(op, v)}
    if op not in ("rms_norm_backward", "layer_norm_backward", "gated_activation_backward"):
        inputs = {k: x for k, x in v.items() if k not in reference(op, v)}
        compiled = torch.compile(lambda inputs: reference(op, inputs), dynamic=False)
        try:
            compiled(inputs)
            made["compile"] = lambda: compiled(inputs)
        except Exception as error:
            print("compile:", str(error)[:100])
    return made


def times(kernels, shapes_of, found, compiled):
    import torch

    for op in dict.fromkeys(kernel.op for kernel in kernels):
        for rows, columns in shapes_of(op):
            mine = [k for k in kernels if k.op == op and k.dtype == "bf16" and k.fits(columns)]
            if op in ("softmax", "reduce") and columns <= 32768:
                mine = [k for k in mine if k.launch == "Kernel"]
            if not mine:
                continue
            torch._dynamo.reset()
            if op == "transpose" and rows % 8:
                continue
            v = values_of(op, rows, columns, "bf16")
            size = bytes_of(v)
            cases = {k.name: k.call(**v) for k in mine}
            cases |= peers_of(op, v) if compiled else {"torch": lambda op=op, v=v: reference(op, v)}
            source = torch.empty(size // 2, dtype=torch.uint8, device="cuda")
            target = torch.empty_like(source)
            cases["copy"] = lambda source=source, target=target: target.copy_(source)
            large = size > 64 << 20
            took = dk.bench(cases, rounds=5 if large else 9, inner=2 if large else 20, warm=1)
            found[f"{op} {rows}x{columns}"] = took
            best = sorted((took[k.name], k.name) for k in mine)
            peers = " ".join(f"{k} {took[k] * 1e3:.1f}" for k in cases if k in ("torch", "compile", "copy"))
            print(
                f"{op} {rows}x{columns} {size >> 20} MB: {best[0][1]} {best[0][0] * 1e3:.1f} us,"
                f" {size / best[0][0] / 1e6:.0f} GB/s, {took['copy'] / best[0][0]:.3f} of copy; {peers} |"
                + ", ".join(f"{name.removeprefix(op + '_')} {took['copy'] / t:.2f}" for t, name in best[1:7]),
                flush=True,
            )
            del v, cases, source, target


def run(folder, words):
    import torch

    parts = [w for w in words if w in ("check", "large", "small", "compiled")] or ["check", "large", "small"]
    only = [w for w in words if w in OPS]
    driver = dk.Driver()
    torch.zeros(1, device="cuda")
    manifest = json.loads((folder / "manifest.json").read_text())
    kernels = [Kernel(driver, folder, n, f) for n, f in manifest.items() if not only or f["op"] in only]
    found = {"device": torch.cuda.get_device_name()}
    print(found["device"])
    if "check" in parts:
        check(kernels)
    if "small" in parts:
        times(kernels, lambda op: SMALL, found, False)
    if "compiled" in parts:
        times(kernels, lambda op: LARGE.get(op, [(32768, 4096)])[:1], found, True)
    if "large" in parts:
        times(kernels, lambda op: LARGE.get(op, DEFAULT_LARGE), found, False)
    return found


if __name__ == "__main__":
    where = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "build":
        build(where, sys.argv[3:])
    else:
        results = run(where, sys.argv[3:])
        (where / "results.json").write_text(json.dumps(results, indent=1))
