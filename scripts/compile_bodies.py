#!/usr/bin/env python3
"""Compiles every tile body for the GPU with NVRTC; needs no GPU. Run it in .venv.

    scripts/compile_bodies.py [--arch sm_90a] [OP...]

A body is one source for CPU and GPU: what the CPU build accepts and the device compiler does not (a standard
header, the heap, an exception) is found here. tests/device/block.cuh stands in for the device's block.
"""

import argparse
import ctypes
import pathlib
import re
import sys
import time

import nvidia.cu13

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Every op's body may be the main one, with all prologues before it and all epilogues behind it.
PROGRAM = """
{headers}
#include "tests/device/block.cuh"
namespace heddle::device {{
#include "heddle/tile/math.cuh"
{bodies}
template <class Body, class Args, class Out>
void try_prologue(Block& block, const Args& args, i32 row, Out out) {{
  if constexpr (requires {{ Body::prologue(block, args, row, out); }}) Body::prologue(block, args, row, out);
}}
template <class Body, class Args, class Fragment>
void try_epilogue(Block& block, const Args& args, Fragment& fragment) {{
  if constexpr (requires {{ Body::epilogue(block, args, fragment); }}) Body::epilogue(block, args, fragment);
}}
struct AllArgs {{ {arguments} }};
struct Chain {{
  const AllArgs& all;
  bool has_prologue() const {{ return all.{op}_args.{first}.rank != 0; }}
  void prologue(Block& block, i32 row, View out) {{ {prologues} }}
  void epilogues(Block& block, Matrix& fragment) {{ {epilogues} }}
}};
template <class Body, class Args>
void run(Block& block, const Args& args, const TileCoord& tile, Chain& chain) {{
  if constexpr (requires {{ Body::stream(block, args, tile); }}) Body::stream(block, args, tile);
  if constexpr (requires {{ Body::run(block, args, tile, chain); }}) {{
    Body::run(block, args, tile, chain);
  }} else {{
    Body::run(block, args, tile);
  }}
}}
extern "C" __global__ void tile(const AllArgs* all, TileCoord coord) {{
  Block block;
  Chain chain{{*all}};
  run<{op}::Body>(block, all->{op}_args, coord, chain);
}}
}}
"""


class Nvrtc:
    """The device compiler of the Python environment."""

    def __init__(self):
        folder = pathlib.Path(nvidia.cu13.__path__[0], "lib")
        # libnvrtc finds its builtins by name only: they must be open before it.
        ctypes.CDLL(str(folder / "libnvrtc-builtins.so.13.0"), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(folder / "libnvrtc.so.13"))

    def compile(self, source, arch):
        """(True if it compiled, the compiler's log)"""
        options = [f"--gpu-architecture={arch}", f"--include-path={ROOT}"]
        options += ["--std=c++20", "-default-device", "--ptxas-options=-v"]
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        program = ctypes.c_void_p()
        if self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"body.cu", 0, None, None):
            raise RuntimeError("nvrtcCreateProgram failed")
        status = self.library.nvrtcCompileProgram(program, len(options), array)
        size = ctypes.c_size_t()
        self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.library.nvrtcGetProgramLog(program, log)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return status == 0, log.value.decode()


def struct_name(op):
    return "".join(word.capitalize() for word in op.split("_"))


def program_for(op, ops):
    """The text that instantiates the body of `op`; its first tensor says if it has a prologue."""
    header = (ROOT / f"heddle/ops/{op}/{op}.h").read_text()
    first = re.search(r"^\s*Tensor (\w+)", header, re.M).group(1)
    calls = {"try_prologue": "row, out", "try_epilogue": "fragment"}
    chains = {
        call: " ".join(f"{call}<{o}::Body>(block, all.{o}_args, {rest});" for o in ops)
        for call, rest in calls.items()
    }
    return PROGRAM.format(
        op=op,
        first=first,
        headers="\n".join(f'#include "heddle/ops/{o}/{o}.h"' for o in ops),
        bodies="\n".join(f'#include "heddle/ops/{o}/{o}.cuh"' for o in ops),
        arguments=" ".join(f"{struct_name(o)} {o}_args;" for o in ops),
        prologues=chains["try_prologue"],
        epilogues=chains["try_epilogue"],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="*", metavar="OP")
    parser.add_argument("--arch", default="sm_90a")
    options = parser.parse_args()
    found = sorted(p.stem for p in ROOT.glob("heddle/ops/*/*.cuh") if p.stem == p.parent.name)
    nvrtc = Nvrtc()
    # A compiler that accepts anything would prove nothing.
    for fault in ("#include <vector>", "void f() { throw 1; }"):
        if nvrtc.compile(fault, options.arch)[0]:
            sys.exit(f"compile_bodies: the compiler accepted '{fault}'")
    failed = []
    for op in options.ops or found:
        start = time.monotonic()
        good, log = nvrtc.compile(program_for(op, found), options.arch)
        seconds = time.monotonic() - start
        registers = re.search(r"Used (\d+) registers", log)
        spills = re.search(r"(\d+) bytes spill stores", log)
        if good and registers:
            print(f"{op:24} {seconds:5.2f} s  {registers[1]:>3} registers  {spills[1]:>4} bytes spilled")
        else:
            failed.append(op)
            print(f"{op:24} FAIL\n{log}")
    print(f"compile_bodies: {len(options.ops or found)} bodies for {options.arch}, {len(failed)} failed")
    sys.exit(1 if failed or not found else 0)


if __name__ == "__main__":
    main()
