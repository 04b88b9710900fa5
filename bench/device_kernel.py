"""Whole kernels (heddle/ir/kernel.h) without the rest of heddle: compiled by NVRTC, which needs no GPU,
launched through the driver, with torch as the peer. bench/gemm.py and its like use it."""

import ctypes
import glob
import os
import pathlib
import re
import statistics

from report import of_package

timing = of_package("timing")

ROOT = pathlib.Path(__file__).parent.parent
DTYPES = {"f32": 0, "f16": 1, "bf16": 2, "f8e4m3": 5, "f8e5m2": 6}  # heddle/base/dtype.h
MAP_TYPES = {"f32": 7, "tf32": 11, "f16": 6, "bf16": 9, "f8e4m3": 0, "f8e5m2": 0}  # CUtensorMapDataType
BYTES = {"f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1}


def source(op, args_type, path, variant, constants, types, maps, launch="Kernel"):
    """As heddle/backend/cuda/program/kernel_source.cpp writes it."""
    values = "".join(
        f"static constexpr decltype({op}::KernelConfig::k{k}) k{k} = {v};\n" for k, v in constants.items()
    )
    return f"""#include "heddle/base/types.h"
#include "heddle/backend/cuda/arch/sm90.cuh"
#include "heddle/backend/cuda/device/kernel_{variant}.cuh"
#include "{path}/{op}.h"
namespace heddle::device {{
#include "{path}/{op}_kernel.{variant}.cuh"
struct Config : {op}::KernelConfig {{
{values}static constexpr {args_type} types() {{
{args_type} a{{}};
{types}
return a;
}}
}};
}}
using namespace heddle::device;
using Launch0 = {op}::{launch}<Config>;
extern "C" __global__ __launch_bounds__(Launch0::kThreads, ctas_of<Launch0>())
void launch0(const __grid_constant__ heddle::{args_type} args,
             const __grid_constant__ heddle::TensorMaps<{max(1, maps)}> maps, heddle::u8* workspace) {{
  Launch0::run(args, maps.at, workspace);
}}
"""


def nvrtc():
    folder = os.environ.get("HEDDLE_NVRTC") or next(
        iter(glob.glob(str(ROOT / ".venv/lib/python3*/site-packages/nvidia/cu13/lib")))
    )
    ctypes.CDLL(glob.glob(folder + "/libnvrtc-builtins.so.13*")[0], ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(glob.glob(folder + "/libnvrtc.so.13*")[0])


def compile_text(text, arch="sm_90a"):
    """(cubin, log); cubin is empty where the text does not compile."""
    library, program = nvrtc(), ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = [
        "--std=c++20",
        "-default-device",
        f"--gpu-architecture={arch}",
        "--ptxas-options=-v",
        f"-I{ROOT}",
        *os.environ.get("KERNEL_OPTIONS", "").split(),
    ]
    status = library.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    )
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    cubin = b""
    if status == 0:
        library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, code)
        cubin = code.raw
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin, log.value.decode()


def use_of(log):
    """Registers, bytes spilled, and warnings of the assembler about serialised products."""
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    spills = [
        int(a) + int(b) for a, b in re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    ]
    return max(registers, default=0), max(spills, default=0), re.findall(r"\(C75\d\d\)", log)


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def check(self, status, what):
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{what}: {status} {text.value}")

    def load(self, path, shared, name="launch0"):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = pathlib.Path(path).read_bytes()
        self.check(self.library.cuModuleLoadData(ctypes.byref(module), code), path)
        self.check(self.library.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), name)
        self.check(self.library.cuFuncSetAttribute(function, 8, shared), "shared memory")
        return function

    def tensor_map(self, address, dtype, sizes, strides, box, swizzle=3):
        """Dimensions begin with the adjacent one; strides in bytes, without the first."""
        raw = ctypes.create_string_buffer(192)
        at = (ctypes.addressof(raw) + 63) // 64 * 64
        rank = len(sizes)
        status = self.library.cuTensorMapEncodeTiled(
            ctypes.c_void_p(at),
            MAP_TYPES[dtype],
            rank,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*sizes),
            (ctypes.c_uint64 * max(1, rank - 1))(*strides),
            (ctypes.c_uint32 * rank)(*box),
            (ctypes.c_uint32 * rank)(*([1] * rank)),
            0,
            swizzle,
            3,
            0,
        )
        self.check(status, f"tensor map {sizes} {strides} {box}")
        return ctypes.string_at(at, 128)

    def launcher(self, function, grid, cluster, threads, shared, params):
        """A function that launches on torch's stream. `params`: bytes of each parameter."""
        import torch

        kept = []
        for value in params:
            raw = ctypes.create_string_buffer(len(value) + 64)
            at = (ctypes.addressof(raw) + 63) // 64 * 64
            ctypes.memmove(at, value, len(value))
            kept.append((raw, at))
        pointers = (ctypes.c_void_p * len(kept))(*[at for _, at in kept])

        class Attribute(ctypes.Structure):
            _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("words", ctypes.c_uint32 * 16)]

        class Config(ctypes.Structure):
            _fields_ = [
                ("grid", ctypes.c_uint32 * 3),
                ("block", ctypes.c_uint32 * 3),
                ("shared", ctypes.c_uint32),
                ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p),
                ("count", ctypes.c_uint32),
            ]

        attribute = Attribute(4, 0)
        attribute.words[0], attribute.words[1], attribute.words[2] = cluster, 1, 1
        config = Config(
            (grid, 1, 1), (threads, 1, 1), shared, None, ctypes.addressof(attribute), int(cluster > 1)
        )
        config.stream = torch.cuda.current_stream().cuda_stream

        def launch(keep=(kept, attribute, config)):
            self.check(
                self.library.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None), "launch"
            )

        return launch


def bench(cases, rounds=9, inner=4, warm=2):
    """Median milliseconds of each of {name: function}, in a new order each round."""
    for run in cases.values():
        for _ in range(warm):
            run()
    times = timing.bursts(cases, "cuda", rounds, inner)
    return {name: statistics.median(values) for name, values in times.items()}


def sustained(run, seconds=0.5):
    """Milliseconds a call while the device works without a pause."""
    return timing.sustained(run, "cuda", seconds)
