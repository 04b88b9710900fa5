#!/usr/bin/env python3
"""Writes heddle/backend/cuda/arch/wgmma_products.cuh: products of four warps (wgmma) of every width, with the
left operand on chip or in registers."""

import pathlib
import sys

PATH = pathlib.Path(__file__).parent.parent / "heddle/backend/cuda/arch/wgmma_products.cuh"
WIDTHS = range(8, 257, 8)
HEAD = """// Written by scripts/make_wgmma.py.
// Asynchronous products of four warps on sm_90a: sums[64, 2 kSums] (+)= a b, of every width. The left operand
// lies on chip or in registers. Until the program has waited for them, it must not touch sums or operands.
#pragma once

#include "heddle/backend/cuda/arch/wgmma.cuh"

namespace heddle::device::arch {

// The elements of both operands, or of the left and the right one. A product takes 32 bytes of k.
enum class Terms : u8 { kBf16, kF16, kTf32, kE4m3, kE5m2, kE4m3E5m2, kE5m2E4m3 };
// The elements of an operand that are adjacent on chip: those of a row or column of the product, or of one k.
enum class Major : u8 { kK, kOuter };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Describes an operand whose rows of kRow bytes (128, 64 or 32) have their 16-byte words permuted by the row,
// eight rows after another (PTX ISA, matrix descriptors). `lead`: for Major::kOuter, bytes from one block of
// rows to the next one.
template <u32 kRow = 128>
inline u64 descriptor(OnChip at, u32 lead = 16) {
  static_assert(kRow == 128 || kRow == 64 || kRow == 32);
  constexpr u64 kSwizzle = kRow == 128 ? 1 : kRow == 64 ? 2 : 3;
  return kSwizzle << 62 | u64(8 * kRow / 16) << 32 | u64(lead / 16) << 16 | u64(at.at % (1u << 18) / 16);
}

// Has the compiler move no use of registers across.
template <i32 kCount>
inline void keep(float (&values)[kCount]) {
#pragma unroll
  for (i32 i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}
template <i32 kCount>
inline void keep(u32 (&values)[kCount]) {
#pragma unroll
  for (i32 i = 0; i < kCount; ++i) asm volatile("" : "+r"(values[i])::"memory");
}

"""
TAIL = """constexpr bool kHasProducts = true;
#else
constexpr bool kHasProducts = false;  // the others are for code that is never made
template <u32 kRow = 128>
inline u64 descriptor(OnChip, u32 = 16) {
  return 0;
}
template <class Values>
inline void keep(Values&) {}
template <Terms, Major, Major, i32 kSums>
inline void multiply(float (&)[kSums], u64, u64, bool) {}
template <Terms, Major, i32 kSums>
inline void multiply(float (&)[kSums], const u32 (&)[4], u64, bool) {}
#endif

}  // namespace heddle::device::arch
"""
TYPES = [
    ("Bf16", "k16.f32.bf16.bf16", True),
    ("F16", "k16.f32.f16.f16", True),
    ("Tf32", "k8.f32.tf32.tf32", False),
    ("E4m3", "k32.f32.e4m3.e4m3", False),
    ("E5m2", "k32.f32.e5m2.e5m2", False),
    ("E4m3E5m2", "k32.f32.e4m3.e5m2", False),
    ("E5m2E4m3", "k32.f32.e5m2.e4m3", False),
]


def wrapped(macro, lines):
    """A macro of several lines, with backslashes in one column."""
    lines = [f"#define {macro}", *lines]
    width = max(map(len, lines)) + 1
    return "\n".join(f"{line:{width}}\\" for line in lines[:-1]) + "\n" + lines[-1] + "\n"


def names(width):
    first = (width - 8) // 2
    mine = ", ".join(f"%{i}" for i in range(first, width // 2))
    sums = ", ".join(f'"+f"(sums[{i}])' for i in range(first, width // 2))
    if width == 8:
        return f'#define HEDDLE_NAMES_8 "{mine}"\n#define HEDDLE_SUMS_8 {sums}\n'
    last = width - 8
    return (
        f'#define HEDDLE_NAMES_{width} HEDDLE_NAMES_{last} ", {mine}"\n'
        f"#define HEDDLE_SUMS_{width} HEDDLE_SUMS_{last}, {sums}\n"
    )


def each_width():
    lines = []
    for width in WIDTHS:
        places = ", ".join(f'"%{width // 2 + i}"' for i in range(7))
        lines.append(f"  if constexpr (kSums * 2 == {width}) run({width}, {places});")
    return wrapped("HEDDLE_EACH_WIDTH(run)", lines)


def product(name, form, has_majors, in_registers):
    """One function for all widths."""
    left = "const u32 (&a)[4]" if in_registers else "u64 a"
    operands = '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])' if in_registers else '"l"(a)'
    count = 4 if in_registers else 1
    a = "{" + ", ".join(f'" p{i} "' for i in range(4)) + "}" if in_registers else '" p0 "'
    a = a.replace('" ", " "', ", ")
    majors, flags = "", ""
    if has_majors:
        inputs = ["kRight"] if in_registers else ["kLeft", "kRight"]
        majors = "".join(f", Major {m}" for m in inputs)
        flags = "".join(f', "n"(i32({m}))' for m in inputs)
    immediates = ", 1, 1" + "".join(
        f', " p{count + 2 + i} "' for i in range(0 if not has_majors else 1 if in_registers else 2)
    )
    text = [
        f'  asm volatile("{{.reg .pred add; setp.ne.u32 add, " p{count + 1} ", 0; "',
        f'               "wgmma.mma_async.sync.aligned.m64n" #width "{form} {{" HEDDLE_NAMES_##width'
        f' "}}, {a}, " p{count} ", add{immediates};}}"',
        "               : HEDDLE_SUMS_##width",
        f'               : {operands}, "l"(b), "r"(i32(add)){flags}',
        '               : "memory")',
    ]
    params = ", ".join(f"p{i}" for i in range(7))
    where = "registers" if in_registers else "chip"
    kind = name.lower()
    return (
        f"// {name}, a on {where}.\n".replace("on registers", "in registers")
        + wrapped(f"HEDDLE_RUN(width, {params})", text)
        + f"template <{majors[2:] + ', ' if majors else ''}i32 kSums>\n"
        + f"inline void multiply_{kind}(float (&sums)[kSums], {left}, u64 b, bool add) {{\n"
        + "  HEDDLE_EACH_WIDTH(HEDDLE_RUN)\n}\n#undef HEDDLE_RUN\n"
    )


def choice(in_registers):
    left = "const u32 (&a)[4]" if in_registers else "u64 a"
    params = (
        "Terms kTerms, Major kRight, i32 kSums"
        if in_registers
        else "Terms kTerms, Major kLeft, Major kRight, i32 kSums"
    )
    given = "<kRight>" if in_registers else "<kLeft, kRight>"
    k_only = "kRight == Major::kK" if in_registers else "kLeft == Major::kK && kRight == Major::kK"
    lines = [
        f"template <{params}>",
        f"inline void multiply(float (&sums)[kSums], {left}, u64 b, bool add) {{",
        f"  static_assert(kTerms == Terms::kBf16 || kTerms == Terms::kF16 || ({k_only}),",
        '                "these are along k alone");',
    ]
    for name, _, has_majors in TYPES:
        lines.append(
            f"  if constexpr (kTerms == Terms::k{name}) "
            f"return multiply_{name.lower()}{given if has_majors else ''}(sums, a, b, add);"
        )
    return "\n".join([*lines, "}"]) + "\n"


def text():
    parts = [HEAD, *map(names, WIDTHS), each_width(), "\n"]
    for name, form, has_majors in TYPES:
        for in_registers in (False, True):
            parts.append(product(name, form, has_majors, in_registers) + "\n")
    parts.append("#undef HEDDLE_EACH_WIDTH\n")
    parts += [f"#undef HEDDLE_NAMES_{w}\n#undef HEDDLE_SUMS_{w}\n" for w in WIDTHS]
    parts += [
        "\n// sums = a b, or sums += a b where `add`. The left operand: a descriptor, or a fragment of mma.\n"
    ]
    parts += [choice(False), choice(True), TAIL]
    return "// clang-format off\n".join(["", "".join(parts)]) + "// clang-format on\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PATH.read_text() != text())
    PATH.write_text(text())
