"""flash_attention as whole kernels (heddle/ops/flash_attention) against cuDNN's attention through torch.
flash_attention.py build FOLDER: compiles all of them; needs no GPU.
flash_attention.py run FOLDER [check] [burst] [sustained]: on a GPU of compute capability 9.0."""

import json
import math
import pathlib
import struct
import sys
import time

import device_kernel as dk

OP = "heddle/ops/flash_attention"
NAMES = ("dim", "value_dim", "groups", "keys", "stages", "softcap")
TENSORS = ("q", "k", "v", "bias", "sinks", "alibi_slopes", "cu_seqlens_q", "cu_seqlens_k", "y_in", "lse_in")
TENSORS += ("kv_num_blocks", "kv_indices", "y", "lse")
BLOCKS = 128, 128  # block_q and block_k
# dim, value_dim, groups, keys, stages, softcap; dtype; optional tensors
KERNELS = {
    "d128_k128": ((128, 128, 2, 128, 2, 0), "bf16", ()),
    "d128_k176": ((128, 128, 2, 176, 2, 0), "bf16", ()),
    "d128_k160": ((128, 128, 2, 160, 2, 0), "bf16", ()),
    "d128_f16": ((128, 128, 2, 128, 2, 0), "f16", ()),
    "d64_k128": ((64, 64, 2, 128, 2, 0), "bf16", ()),
    "d64_k192": ((64, 64, 2, 192, 2, 0), "bf16", ()),
    "d64_g3_k128": ((64, 64, 3, 128, 2, 0), "bf16", ()),
    "d64_k128_s4": ((64, 64, 2, 128, 4, 0), "bf16", ()),
    "d96_k128": ((96, 96, 2, 128, 2, 0), "bf16", ()),
    "d192_k112": ((192, 192, 2, 96, 2, 0), "bf16", ()),
    "d192_v128": ((192, 128, 2, 112, 2, 0), "bf16", ()),
    "d256_k80": ((256, 256, 2, 80, 2, 0), "bf16", ()),
    "softcap": ((128, 128, 2, 128, 2, 1), "bf16", ()),
    "sinks": ((64, 64, 2, 128, 2, 0), "bf16", ("sinks",)),
    "alibi": ((128, 128, 2, 128, 2, 0), "bf16", ("alibi_slopes",)),
    "bias": ((64, 64, 2, 128, 2, 0), "f16", ("bias",)),
    "parts": ((128, 128, 2, 128, 2, 0), "bf16", ("cu_seqlens_q", "cu_seqlens_k")),
}


def types_of(dtype, optional):
    lines = [
        f"a.{n}.rank = 4; a.{n}.dtype = heddle::DType({dk.DTYPES[dtype]});" for n in ("q", "k", "v", "y")
    ]
    lines.append("a.lse.rank = 3; a.lse.dtype = heddle::DType::kF32;")
    form = {"bias": (4, dtype), "sinks": (1, dtype), "alibi_slopes": (1, "f32")}
    for name in optional:
        rank, its = form.get(name, (1, "i32"))
        its = "kI32" if its == "i32" else {"f32": "kF32", "f16": "kF16", "bf16": "kBf16"}[its]
        lines.append(f"a.{name}.rank = {rank}; a.{name}.dtype = heddle::DType::{its};")
    return "\n".join(lines)


def build(folder, only=""):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (numbers, dtype, optional) in KERNELS.items():
        if only not in name:
            continue
        constants = {"".join(p.title() for p in n.split("_")): v for n, v in zip(NAMES, numbers, strict=True)}
        text = dk.source(
            "flash_attention", "FlashAttention", OP, "sm90", constants, types_of(dtype, optional), 3
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


def tensor_bytes(tensor):
    """heddle/ir/tensor.h"""
    if tensor is None:
        return struct.pack("<QIBBHq4i4q", 0, 0xFFFFFFFF, 0, 0, 0, 0, *[0] * 8)
    import torch

    dtypes = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.int32: 3}
    rank = tensor.dim()
    size, stride = [*tensor.shape, *[0] * (4 - rank)], [*tensor.stride(), *[0] * (4 - rank)]
    return struct.pack("<QIBBHq4i4q", tensor.data_ptr(), 0, dtypes[tensor.dtype], rank, 0, 0, *size, *stride)


class Call:
    """Arguments of flash_attention."""

    def __init__(
        self, q, k, v, scale=0.0, causal=False, left=-1, right=-1, softcap=0.0, offset=0, **optional
    ):
        import torch

        self.q, self.k, self.v, self.optional = q, k, v, optional
        self.scale, self.causal, self.left, self.right = scale, causal, left, right
        self.softcap, self.offset = softcap, offset
        shape = (*q.shape[:3], v.shape[3])
        self.y = torch.full(shape, float("nan"), device=q.device, dtype=q.dtype)
        self.lse = torch.full((q.shape[0], q.shape[2], q.shape[1]), float("nan"), device=q.device)

    def bytes(self):
        tensors = {"q": self.q, "k": self.k, "v": self.v, "y": self.y, "lse": self.lse, **self.optional}
        packed = b"".join(tensor_bytes(tensors.get(name)) for name in TENSORS)
        return packed + struct.pack(
            "<f?3xiifi2i", self.scale, self.causal, self.left, self.right, self.softcap, self.offset, *BLOCKS
        )


def map_of(driver, tensor, rows):
    """Boxes of 64 elements and `rows` rows of one head."""
    b, s, h, _ = tensor.stride()
    size = tensor.element_size()
    return driver.tensor_map(
        tensor.data_ptr(),
        {2: "bf16"}[size] if "bfloat" in str(tensor.dtype) else "f16",
        (tensor.shape[3], tensor.shape[1], tensor.shape[2], tensor.shape[0]),
        (s * size, h * size, b * size),
        (64, rows, 1, 1),
    )


class Kernel:
    def __init__(self, driver, folder, name):
        self.driver, self.name = driver, name
        (self.dim, self.value_dim, self.groups, self.keys, self.stages, self.softcap), _, _ = KERNELS[name]
        self.rows = 64 * self.groups
        slabs = (self.dim + 63) // 64, (self.value_dim + 63) // 64
        self.shared = (
            slabs[0] * self.rows * 128 + self.stages * (sum(slabs) * self.keys * 128 + 32) + 16 + 128 + 16
        )
        self.function = driver.load(folder / f"{name}.cubin", self.shared)

    def call(self, call):
        import torch

        maps = map_of(self.driver, call.q, self.rows)
        maps += map_of(self.driver, call.k, self.keys) + map_of(self.driver, call.v, self.keys)
        batch, rows, heads, _ = call.q.shape
        starts = call.optional.get("cu_seqlens_q")
        tiles = -(-rows // self.rows) if starts is None else rows // self.rows + len(starts) + 1
        tiles *= batch * heads
        count = torch.cuda.get_device_properties(0).multi_processor_count
        counter = torch.zeros(1, device="cuda", dtype=torch.int32)
        params = [call.bytes(), maps, struct.pack("<Q", counter.data_ptr())]
        launch = self.driver.launcher(
            self.function, min(tiles, count), 1, 128 * (self.groups + 1), self.shared, params
        )

        def run(kept=(call, counter)):
            if tiles > count:
                counter.zero_()
            launch()

        return run


def exact(call):
    """y and lse in fp64."""
    import torch

    q, k, v = (each.double() for each in (call.q, call.k, call.v))
    group = q.shape[2] // k.shape[2]
    k, v = (each.repeat_interleave(group, 2) for each in (k, v))
    x = torch.einsum("bshd,bthd->bhst", q, k) * (call.scale or q.shape[3] ** -0.5)
    if call.softcap:
        x = call.softcap * (x / call.softcap).tanh()
    rows, keys = (torch.arange(each.shape[1], device="cuda") for each in (q, k))
    starts = call.optional.get("cu_seqlens_q")
    if starts is None:
        position, key = (rows + k.shape[1] - q.shape[1] + call.offset)[:, None], keys[None]
        seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device="cuda")
    else:
        ends = call.optional["cu_seqlens_k"]
        position = torch.zeros(q.shape[1], 1, dtype=torch.long, device="cuda")
        key = torch.zeros(q.shape[1], k.shape[1], dtype=torch.long, device="cuda")
        seen = torch.zeros(q.shape[1], k.shape[1], dtype=torch.bool, device="cuda")
        for a, b, c, d in zip(
            starts.tolist(), starts.tolist()[1:], ends.tolist(), ends.tolist()[1:], strict=False
        ):
            position[a:b, 0] = torch.arange(b - a, device="cuda") + (d - c) - (b - a) + call.offset
            seen[a:b, c:d] = True
            key[a:b] = keys[None] - c
    if "alibi_slopes" in call.optional:
        x = x - call.optional["alibi_slopes"].double().view(-1, 1, 1) * (position - key).abs()
    if "bias" in call.optional:
        x = x + call.optional["bias"].double()
    right = 0 if call.causal else call.right
    if call.left >= 0:
        seen = seen & (key >= position - call.left)
    if right >= 0:
        seen = seen & (key <= position + right)
    x = x.masked_fill(~seen, -math.inf)
    if "sinks" in call.optional:
        column = call.optional["sinks"].double().view(1, -1, 1, 1).expand(*x.shape[:3], 1)
        lse = torch.cat([x, column], -1).logsumexp(-1)
        weights = (x - lse[..., None]).exp()
    else:
        empty = ~seen.any(-1, keepdim=True)
        x = x.masked_fill(empty, 0.0)
        lse = x.logsumexp(-1)
        weights = (x - lse[..., None]).exp().masked_fill(empty, 0.0)
        lse = lse.masked_fill(empty[..., 0], -math.inf)
    return torch.einsum("bhst,bthe->bshe", weights, v), lse


def random_tensors(batch, queries, keys, heads, groups, dim, value_dim=None, dtype=None, gaps=False):
    import torch

    def made(rows, count, width):
        if gaps:  # as torch has them, [batch, head, row, element], a part of a larger tensor
            whole = torch.randn(batch, count, rows + 3, width + 16, device="cuda")
            return whole.to(dtype or torch.bfloat16)[:, :, 2 : rows + 2, 8 : width + 8].transpose(1, 2)
        return torch.randn(batch, rows, count, width, device="cuda").to(dtype or torch.bfloat16)

    return made(queries, heads, dim), made(keys, groups, dim), made(keys, groups, value_dim or dim)


SHAPES = (  # batch, queries, keys, heads, groups
    (1, 1024, 1024, 3, 3),
    (2, 1000, 1000, 4, 2),
    (1, 200, 333, 8, 1),
    (3, 64, 64, 1, 1),
    (1, 1, 500, 4, 4),
    (2, 129, 1, 2, 2),
    (1, 700, 260, 2, 1),
)


def calls_of(name):
    """(label, Call)s for the checks of a kernel."""
    import torch

    (dim, value_dim, _, _, _, softcap), dtype, optional = KERNELS[name]
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    for number, shape in enumerate(SHAPES):
        for label, options in {
            "dense": {},
            "causal": {"causal": True},
            "window": {"causal": True, "left": 100},
            "both": {"left": 70, "right": 33, "offset": 5},
            "narrow": {"scale": 0.3},
        }.items():
            batch, queries, keys, heads, groups = shape
            more = {}
            if "cu_seqlens_q" in optional:
                if batch > 1 or queries < 100:
                    continue
                cuts = [0, 0, 7, 7, 90, queries - 3], [0, 3, min(keys, 40), keys // 2, keys - 20, keys]
                more = {
                    f"cu_seqlens_{s}": torch.tensor(c, dtype=torch.int32, device="cuda")
                    for s, c in zip("qk", cuts, strict=True)
                }
            if "sinks" in optional:
                more["sinks"] = torch.randn(heads, device="cuda").to(dtype)
            if "alibi_slopes" in optional:
                more["alibi_slopes"] = torch.rand(heads, device="cuda") * 0.1
            if "bias" in optional:
                more["bias"] = torch.randn(batch, 1, queries, keys, device="cuda").to(dtype)
            less = 8 if label == "narrow" and dim > 8 else 0
            tensors = random_tensors(
                batch, queries, keys, heads, groups, dim - less, value_dim - less, dtype, number % 2 == 1
            )
            if softcap:
                options = {**options, "softcap": 3.0}
            yield f"{label} {shape}", Call(*tensors, **options, **more)


def error_of(made, wanted):
    return ((made.double() - wanted).norm() / (wanted.norm() + 1e-30)).item()


def check(kernels):
    import torch

    wrong, count = [], 0
    for kernel in kernels:
        for label, call in calls_of(kernel.name):
            run = kernel.call(call)
            run()
            torch.cuda.synchronize()
            y, lse = exact(call)
            bits = call.y.clone()
            for _ in range(3):
                run()
            torch.cuda.synchronize()
            error = error_of(call.y, y)
            rounded = error_of(y.to(call.y.dtype), y)
            lse_error = (call.lse.double() - lse).masked_fill(call.lse == lse, 0).abs().max().item()
            count += 1
            # Weights are rounded to 16 bits too.
            if not (error <= 2.2 * rounded + 1e-7 and lse_error < 2e-4 and torch.equal(bits, call.y)):
                wrong.append(
                    f"{kernel.name} {label}: error {error:.2e} (rounding {rounded:.2e}) lse {lse_error:.1e}"
                    f" same bits {torch.equal(bits, call.y)}"
                )
    print(f"{count} checks, {len(wrong)} wrong", flush=True)
    for line in wrong[:60]:
        print("  WRONG", line)


def peer(call):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (each.transpose(1, 2) for each in (call.q, call.k, call.v))

    def run():
        with torch.no_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=call.causal)

    return run


TIMED = {
    128: ((8, 2048, 16), (2, 8192, 16), (1, 16384, 16)),
    64: ((4, 2048, 32), (1, 8192, 32), (1, 16384, 16)),
}
TIMED[256] = ((2, 8192, 8),)
TIMED[96] = ((2, 8192, 16),)


def flops_of(call):
    batch, rows, heads, dim = call.q.shape
    return 4.0 * batch * heads * rows * call.k.shape[1] * dim * (0.5 if call.causal else 1)


def burst(kernels, results, sustain=False):
    for dim, shapes in TIMED.items():
        mine = [
            k for k in kernels if k.dim == dim == k.value_dim and not KERNELS[k.name][2] and not k.softcap
        ]
        mine = [k for k in mine if KERNELS[k.name][1] == "bf16"]
        for batch, rows, heads in shapes:
            for causal in (False, True):
                call = Call(*random_tensors(batch, rows, rows, heads, heads, dim), causal=causal)
                cases = {"cudnn": peer(call)} | {k.name: k.call(call) for k in mine}
                amount = flops_of(call)
                if sustain:
                    if rows < 8192:
                        continue
                    times = {name: dk.sustained(run) for name, run in cases.items()}
                else:
                    times = dk.bench(cases, inner=max(1, int(1.5e12 / amount)))
                base = times["cudnn"]
                text = " ".join(f"{n} {amount / t / 1e9:.0f} ({base / t:.3f})" for n, t in times.items())
                label = f"d{dim} b{batch} s{rows} h{heads} {'causal' if causal else 'dense'}"
                print(f"{'sustained ' if sustain else ''}{label}: {text}", flush=True)
                results[("sustained " if sustain else "") + label] = times


def main():
    command, folder, *parts = sys.argv[1:]
    folder = pathlib.Path(folder)
    if command == "build":
        return build(folder, *parts)
    import torch

    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    driver = dk.Driver()
    torch.zeros(1, device="cuda")
    kernels = [Kernel(driver, folder, path.stem) for path in sorted(folder.glob("*.cubin"))]
    results = {}
    if not parts or "check" in parts:
        check(kernels)
    if not parts or "burst" in parts:
        burst(kernels, results)
    if not parts or "sustained" in parts:
        burst(kernels, results, sustain=True)
    pathlib.Path("results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
