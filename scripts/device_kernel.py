"""Compiles device code by NVRTC, without a GPU, and launches it by the driver."""

import ctypes
import glob
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAP_TYPE = 9  # CU_TENSOR_MAP_DATA_TYPE_BFLOAT16


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

    def tensor_map(self, address, sizes, strides, box, swizzle=3):
        """A map of bf16. Dimensions begin with the adjacent one; strides in bytes, without the first."""
        raw = ctypes.create_string_buffer(192)
        at = (ctypes.addressof(raw) + 63) // 64 * 64
        rank = len(sizes)
        status = self.library.cuTensorMapEncodeTiled(
            ctypes.c_void_p(at),
            MAP_TYPE,
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

    def launch(self, function, threads, shared, params):
        """Launches a CTA on torch's stream. `params`: bytes of each parameter."""
        import torch

        kept = []
        for value in params:
            raw = ctypes.create_string_buffer(len(value) + 64)
            at = (ctypes.addressof(raw) + 63) // 64 * 64
            ctypes.memmove(at, value, len(value))
            kept.append((raw, at))
        pointers = (ctypes.c_void_p * len(kept))(*[at for _, at in kept])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        sizes = (1, 1, 1, threads, 1, 1, shared)
        self.check(self.library.cuLaunchKernel(function, *sizes, stream, pointers, None), "launch")
