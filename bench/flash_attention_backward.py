"""The gradient of flash_attention as whole kernels against cuDNN's through torch.
flash_attention_backward.py build FOLDER: compiles them; needs no GPU.
flash_attention_backward.py run FOLDER [check] [burst] [sustained]: on a GPU of compute capability 9.0."""

import json
import pathlib
import struct
import sys
import time

import device_kernel as dk
import flash_attention as forward

TENSORS = ("q", "k", "v", "bias", "alibi_slopes", "cu_seqlens_q", "cu_seqlens_k")
TENSORS += ("kv_num_blocks", "kv_indices", "q_num_blocks", "q_indices")
TENSORS += ("dy", "lse", "delta", "dq", "dk", "dv")
LAUNCHES = ("Prepare", "Kernel", "Finish")
# dim, softcap; dtype; optional tensors
KERNELS = {
    "d128": ((128, 0), "bf16", ()),
    "d128_f16": ((128, 0), "f16", ()),
    "d64": ((64, 0), "bf16", ()),
    "softcap": ((128, 1), "bf16", ()),
    "alibi": ((64, 0), "bf16", ("alibi_slopes",)),
    "bias": ((64, 0), "f16", ("bias",)),
    "parts": ((128, 0), "bf16", ("cu_seqlens_q", "cu_seqlens_k")),
}
QUERIES, KEYS = 64, 128


def types_of(dtype, optional):
    text = forward.types_of(dtype, optional).replace("a.y.", "a.dy.")
    for name in ("dq", "dk", "dv"):
        text += f"\na.{name}.rank = 4; a.{name}.dtype = heddle::DType({dk.DTYPES[dtype]});"
    return text + "\na.delta.rank = 3; a.delta.dtype = heddle::DType::kF32;"


def compiled(path, op, args_type, variant, constants, types, maps, launch="Kernel"):
    text = dk.source(op, args_type, forward.OP, variant, constants, types, maps, launch)
    begin = time.time()
    cubin, log = dk.compile_text(text)
    registers, spills, serial = dk.use_of(log)
    print(f"{path.stem}: {registers} registers, {spills} spilled, {serial} {time.time() - begin:.1f} s")
    if not cubin:
        sys.exit(log)
    path.write_bytes(cubin)


def build(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, ((dim, softcap), dtype, optional) in KERNELS.items():
        for launch in LAUNCHES:
            compiled(
                folder / f"{name}.{launch}.cubin",
                "flash_attention_backward",
                "FlashAttentionBackward",
                "sm90",
                {"Dim": dim, "Softcap": softcap},
                types_of(dtype, optional),
                4 if launch == "Kernel" else 0,
                launch,
            )
    for dtype in ("bf16", "f16"):
        types = f"a.y.dtype = a.dy.dtype = heddle::DType({dk.DTYPES[dtype]});"
        for lanes in (8, 16):
            path = folder / f"delta_{dtype}_{lanes}.cubin"
            compiled(path, "flash_attention_delta", "FlashAttentionDelta", "sm80", {"Lanes": lanes}, types, 0)


class Gradients:
    """Arguments of flash_attention_backward for a forward.Call that has run."""

    def __init__(self, call, dy):
        import torch

        self.call, self.dy = call, dy
        self.delta = torch.full_like(call.lse, float("nan"))
        self.dq, self.dk, self.dv = (
            torch.full(each.shape, float("nan"), device=dy.device, dtype=dy.dtype)
            for each in (call.q, call.k, call.v)
        )

    def bytes(self):
        call = self.call
        tensors = {"q": call.q, "k": call.k, "v": call.v, "dy": self.dy, "lse": call.lse, **call.optional}
        tensors |= {"delta": self.delta, "dq": self.dq, "dk": self.dk, "dv": self.dv}
        packed = b"".join(forward.tensor_bytes(tensors.get(name)) for name in TENSORS)
        numbers = call.scale, call.causal, call.left, call.right, call.softcap, call.offset
        return packed + struct.pack("<f?3xiifi2i", *numbers, *forward.BLOCKS)

    def delta_bytes(self):
        return b"".join(forward.tensor_bytes(each) for each in (self.call.y, self.dy, None, self.delta))


class Kernel:
    def __init__(self, driver, folder, name):
        self.driver, self.name = driver, name
        (self.dim, _), self.dtype, _ = KERNELS[name]
        slabs = self.dim // 64
        self.shared = 2 * slabs * KEYS * 128 + 4 * (slabs * QUERIES * 128 + QUERIES * 4)
        self.shared += 2 * KEYS * QUERIES * 2 + 2 * QUERIES * self.dim * 4 + 64 + 40 + 64 + 80
        self.functions = {
            launch: driver.load(folder / f"{name}.{launch}.cubin", self.shared if launch == "Kernel" else 0)
            for launch in LAUNCHES
        }
        self.delta = {
            lanes: driver.load(folder / f"delta_{self.dtype}_{lanes}.cubin", 0) for lanes in (8, 16)
        }

    def call(self, made):
        import torch

        call = made.call
        batch, rows, heads, _ = call.q.shape
        keys, groups = call.k.shape[1:3]
        parts = call.optional.get("cu_seqlens_q")

        def tiles(size, each):
            return -(-size // each) if parts is None else size // each + len(parts) + 1

        steps = tiles(rows, QUERIES)
        lines = batch * heads * steps
        first = (lines * 4 + 255) // 256 * 256
        size = first + lines * QUERIES * 4 * (2 + self.dim)
        room = torch.full((size,), 0x7F, dtype=torch.uint8, device="cuda")
        turns = room[:first]
        pointer = struct.pack("<Q", room.data_ptr())
        maps = b"".join(
            forward.map_of(self.driver, tensor, count)
            for tensor, count in ((call.q, QUERIES), (call.k, KEYS), (call.v, KEYS), (made.dy, QUERIES))
        )
        packed, none = made.bytes(), bytes(128)
        lanes = 8 if call.v.shape[3] <= 64 else 16
        delta_grid = -(-batch * rows * heads // (256 // lanes))
        launch = self.driver.launcher
        functions = self.functions
        runs = [
            launch(self.delta[lanes], delta_grid, 1, 256, 0, [made.delta_bytes(), none, pointer]),
            launch(functions["Prepare"], -(-lines * QUERIES // 256), 1, 256, 0, [packed, none, pointer]),
            launch(
                functions["Kernel"],
                batch * groups * tiles(keys, KEYS),
                1,
                384,
                self.shared,
                [packed, maps, pointer],
            ),
            launch(functions["Finish"], lines, 1, 256, 0, [packed, none, pointer]),
        ]

        def run(kept=(made, room)):
            turns.zero_()
            for each in runs:
                each()

        run.parts = runs
        return run


def exact(call, dy):
    """y, lse and the gradients in fp64."""
    import torch

    q, k, v = (each.detach().double().requires_grad_() for each in (call.q, call.k, call.v))
    wide = forward.Call.__new__(forward.Call)
    wide.__dict__.update(call.__dict__, q=q, k=k, v=v)
    y, lse = forward.exact(wide)
    grads = torch.autograd.grad(y, (q, k, v), dy.double())
    return y.detach(), lse.detach(), [each.nan_to_num(0.0) for each in grads]


def calls_of(name):
    """The forward's checks, with what the backward takes."""
    (dim, softcap), dtype, optional = KERNELS[name]
    forward.KERNELS["backward"] = ((dim, dim, 2, 128, 2, softcap), dtype, optional)
    yield from forward.calls_of("backward")


def check(kernels):
    import torch

    wrong, count, worst = [], 0, 0
    for kernel in kernels:
        for label, call in calls_of(kernel.name):
            dy = torch.randn(call.y.shape, device="cuda").to(call.y.dtype)
            y, lse, wanted = exact(call, dy)
            call.y.copy_(y)
            call.lse.copy_(lse)
            made = Gradients(call, dy)
            run = kernel.call(made)
            run()
            torch.cuda.synchronize()
            bits = [each.clone() for each in (made.dq, made.dk, made.dv)]
            for _ in range(3):
                run()
            torch.cuda.synchronize()
            count += 1
            for which, one, other, before in zip(
                ("dq", "dk", "dv"), (made.dq, made.dk, made.dv), wanted, bits, strict=True
            ):
                error = (one.double() - other).norm().item()
                # Weights and gradients of scores are rounded to 16 bits, y too; small gradients cancel.
                bound = (other.norm().item() + 0.02 * other.numel() ** 0.5) * (
                    1e-2 if call.y.dtype == torch.bfloat16 else 2e-3
                )
                worst = max(worst, error / bound)
                if not (error <= bound and torch.equal(one, before)):
                    wrong.append(
                        f"{kernel.name} {label} {which}: error {error:.2e}, bound {bound:.2e}"
                        f" same bits {torch.equal(one, before)}"
                    )
    print(f"{count} checks, {len(wrong)} wrong, the worst error is {worst:.2f} of its bound", flush=True)
    for line in wrong[:60]:
        print("  WRONG", line)


def peer(call, dy):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (each.transpose(1, 2).detach().requires_grad_() for each in (call.q, call.k, call.v))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = scaled_dot_product_attention(q, k, v, is_causal=call.causal)
    given = dy.transpose(1, 2)
    return lambda: torch.autograd.grad(y, (q, k, v), given, retain_graph=True)


def timed(kernels, results, sustain=False):
    import torch

    for dim in (128, 64):
        mine = [k for k in kernels if k.name == f"d{dim}"]
        for batch, rows, heads in forward.TIMED[dim]:
            if sustain and rows < 8192:
                continue
            for causal in (False, True):
                tensors = forward.random_tensors(batch, rows, rows, heads, heads, dim)
                call = forward.Call(*tensors, causal=causal)
                dy = torch.randn_like(call.q)
                with torch.no_grad():
                    call.y.copy_(forward.peer(call)().transpose(1, 2))
                call.lse.fill_(9.0)
                cases = {"cudnn": peer(call, dy)}
                for kernel in mine:
                    run = kernel.call(Gradients(call, dy))
                    cases[kernel.name] = run
                    if not sustain:
                        cases |= dict(zip(("delta", "prepare", "main", "finish"), run.parts, strict=True))
                        del cases["main"]  # waits for turns that are cleared before
                amount = 2.5 * forward.flops_of(call)
                if sustain:
                    times = {name: dk.sustained(run) for name, run in cases.items()}
                else:
                    times = dk.bench(cases, inner=max(1, int(3e12 / amount)))
                base = times["cudnn"]
                text = " ".join(
                    f"{n} {amount / t / 1e9:.0f} ({base / t:.3f})"
                    if n in ("cudnn", *(k.name for k in mine))
                    else f"{n} {t * 1e3:.0f} us"
                    for n, t in times.items()
                )
                label = f"{'sustained ' if sustain else ''}d{dim} b{batch} s{rows} h{heads} "
                label += "causal" if causal else "dense"
                print(f"{label}: {text}", flush=True)
                results[label] = times


def main():
    command, folder, *parts = sys.argv[1:]
    folder = pathlib.Path(folder)
    if command == "build":
        return build(folder)
    import torch

    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    torch.manual_seed(1)
    driver = dk.Driver()
    torch.zeros(1, device="cuda")
    kernels = [Kernel(driver, folder, name) for name in KERNELS if (folder / f"{name}.Kernel.cubin").exists()]
    results = {}
    if not parts or "check" in parts:
        check(kernels)
    if not parts or "burst" in parts:
        timed(kernels, results)
    if not parts or "sustained" in parts:
        timed(kernels, results, sustain=True)
    pathlib.Path("results_backward.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
