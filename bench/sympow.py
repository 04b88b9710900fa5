"""Symmetric powers and power attention as whole kernels (ops/sympow/*_kernel.sm90.cuh) against torch.
sympow.py build FOLDER [NAME]: compiles the kernels; needs no GPU.
sympow.py run FOLDER [check] [time]: on a GPU of compute capability 9.0."""

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
        for dim, columns, groups, cluster in MMA:
            if dtype == "f16" and columns != 64:
                continue
            name = f"sympow_mma_{dtype}_{dim}_{columns}_{groups}_{cluster}"
            constants = {"Tiles": dim // 8, "Columns": columns, "Groups": groups, "Cluster": cluster}
            constants["Stages"] = mma_stages(dim, columns, groups)
            made[name] = ("sympow_mma", "SympowMma", dict.fromkeys("xsy", dtype), constants, 2)
    return made


# d, E, groups, CTAs of a cluster
MMA = (
    (64, 64, 4, 2),
    (64, 64, 4, 1),
    (64, 64, 3, 2),
    (64, 72, 4, 2),
    (64, 128, 2, 2),
    (64, 128, 3, 2),
    (64, 32, 4, 2),
    (32, 64, 4, 2),
    (24, 40, 4, 2),
    (128, 128, 2, 2),
)


def mma_stages(dim, columns, groups):
    blocks = (dim // 8) * (dim // 8 + 1) // 2
    stage = (2 if blocks % 2 == 0 else 1) * -(-columns // 64) * 8192
    rows = 2 * groups * 8192 * -(-dim // 64)
    return min(12, (SHARED - 256 - rows) // (stage + 16))


def mma_shared(constants):
    dim, columns, groups = constants["Tiles"] * 8, constants["Columns"], constants["Groups"]
    blocks = (dim // 8) * (dim // 8 + 1) // 2
    stage = (2 if blocks % 2 == 0 else 1) * -(-columns // 64) * 8192
    return 2 * groups * 8192 * -(-dim // 64) + constants["Stages"] * (stage + 16) + 64


def build(folder, wanted):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "manifest.json"
    made = json.loads(path.read_text()) if path.exists() else {}
    for name, (op, args, dtypes, constants, maps) in kernels().items():
        if wanted not in name:
            continue
        types = " ".join(f"a.{field}.dtype = heddle::DType({dk.DTYPES[t]});" for field, t in dtypes.items())
        text = dk.source(op, args, "heddle/ops/sympow", "sm90", constants, types, maps)
        begin = time.time()
        cubin, log = dk.compile_text(text)
        registers, spills, serial = dk.use_of(log)
        print(f"{name}: {registers} registers, {spills} spilled, {serial} {time.time() - begin:.1f} s", flush=True)
        if not cubin:
            sys.exit(log)
        (folder / f"{name}.cubin").write_bytes(cubin)
        made[name] = {"op": op, "dtypes": dtypes, "constants": constants}
    path.write_text(json.dumps(made))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "build":
        build(folder, sys.argv[3] if len(sys.argv) > 3 else "")
