// Asynchronous products of four warps with both operands in shared memory (wgmma), on sm_90a. Until the program has waited for
// them, it must not touch their sums or their operands.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device::arch {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kMultipliesOnChip = true;

// Makes what this thread's copies brought on chip visible to products.
inline void show_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kLeft of the committed groups are under way.
template <i32 kLeft>
inline void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

// Describes rows of 128 bytes whose 16-byte words are permuted by the row, eight rows to 1,024 bytes (PTX ISA, matrix descriptors).
inline u64 rows_descriptor(OnChip at) {
  constexpr u64 kPermuted128 = 1ull << 62, kEightRows = u64(1024 / 16) << 32;
  return kPermuted128 | kEightRows | 1ull << 16 | u64(at.at % (1u << 18) / 16);
}
// Describes 16-byte words of one row after the other; the next words of all rows follow `stride` bytes later.
inline u64 words_descriptor(OnChip at, u32 stride) {
  constexpr u64 kEightRows = u64(128 / 16) << 32;
  return kEightRows | u64(stride / 16) << 16 | u64(at.at % (1u << 18) / 16);
}

#define HEDDLE_SUMS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define HEDDLE_SUMS_1 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HEDDLE_SUMS_2 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_SUMS_3 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_SUMS_4 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define HEDDLE_SUMS_5 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define HEDDLE_SUMS_6 \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define HEDDLE_SUMS_7 \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define HEDDLE_BLOCK(j) "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
#define HEDDLE_BLOCKS(j) HEDDLE_BLOCK(j), HEDDLE_BLOCK(j + 1), HEDDLE_BLOCK(j + 2), HEDDLE_BLOCK(j + 3)
#define HEDDLE_PRODUCT(size, type, sums, left, right)                                               \
  "{\n.reg .pred add;\nsetp.eq.u32 add, 0, 0;\n"                                                    \
  "wgmma.mma_async.sync.aligned.m64n" size "k16.f32." type "." type " {" sums "}, " left ", " right \
  ", add, 1, 1, 0, 0;\n}"

// sums += a b^T: [64, 16] times [8 kBlocks, 16]. `left` lies in rows of 128 bytes. `right` has the first word of all rows, then,
// `stride` bytes later, the second. A warp has one block of sums for its 16 rows and each eight columns, laid over its lanes as
// in multiply_add.
template <bool kBf16, i32 kBlocks>
inline void multiply_on_chip(float (&sums)[kBlocks][4], OnChip left, OnChip right, u32 stride) {
  const u64 a = rows_descriptor(left), b = words_descriptor(right, stride);
#define HEDDLE_MULTIPLY(size, names, left, right, ...)            \
  if constexpr (kBf16)                                            \
    asm volatile(HEDDLE_PRODUCT(size, "bf16", names, left, right) \
                 : __VA_ARGS__                                    \
                 : "l"(a), "l"(b)                                 \
                 : "memory");                                     \
  else                                                            \
    asm volatile(HEDDLE_PRODUCT(size, "f16", names, left, right) : __VA_ARGS__ : "l"(a), "l"(b) : "memory")
  static_assert(kBlocks == 4 || kBlocks == 8 || kBlocks == 16 || kBlocks == 32);
  if constexpr (kBlocks == 4) {
    HEDDLE_MULTIPLY("32", HEDDLE_SUMS_0, "%16", "%17", HEDDLE_BLOCKS(0));
  } else if constexpr (kBlocks == 8) {
    HEDDLE_MULTIPLY("64", HEDDLE_SUMS_0 ", " HEDDLE_SUMS_1, "%32", "%33", HEDDLE_BLOCKS(0), HEDDLE_BLOCKS(4));
  } else if constexpr (kBlocks == 16) {
    HEDDLE_MULTIPLY("128", HEDDLE_SUMS_0 ", " HEDDLE_SUMS_1 ", " HEDDLE_SUMS_2 ", " HEDDLE_SUMS_3, "%64",
                    "%65", HEDDLE_BLOCKS(0), HEDDLE_BLOCKS(4), HEDDLE_BLOCKS(8), HEDDLE_BLOCKS(12));
  } else {
    HEDDLE_MULTIPLY("256",
                    HEDDLE_SUMS_0 ", " HEDDLE_SUMS_1 ", " HEDDLE_SUMS_2 ", " HEDDLE_SUMS_3 ", " HEDDLE_SUMS_4
                                  ", " HEDDLE_SUMS_5 ", " HEDDLE_SUMS_6 ", " HEDDLE_SUMS_7,
                    "%128", "%129", HEDDLE_BLOCKS(0), HEDDLE_BLOCKS(4), HEDDLE_BLOCKS(8), HEDDLE_BLOCKS(12),
                    HEDDLE_BLOCKS(16), HEDDLE_BLOCKS(20), HEDDLE_BLOCKS(24), HEDDLE_BLOCKS(28));
  }
#undef HEDDLE_MULTIPLY
}
#undef HEDDLE_SUMS_0
#undef HEDDLE_SUMS_1
#undef HEDDLE_SUMS_2
#undef HEDDLE_SUMS_3
#undef HEDDLE_SUMS_4
#undef HEDDLE_SUMS_5
#undef HEDDLE_SUMS_6
#undef HEDDLE_SUMS_7
#undef HEDDLE_BLOCK
#undef HEDDLE_BLOCKS
#undef HEDDLE_PRODUCT

#else
constexpr bool kMultipliesOnChip = false;
inline void show_copies() {}
inline void begin_products() {}
inline void commit_products() {}
template <i32 kLeft>
inline void wait_products() {}
template <bool kBf16, i32 kBlocks>
inline void multiply_on_chip(float (&)[kBlocks][4], OnChip, OnChip, u32) {}
#endif

}  // namespace heddle::device::arch
