// Matrices of a warp: loads from shared memory, and products on tensor cores (mma.sync).
#pragma once

#include "heddle/base/dtype.h"
#include "heddle/base/types.h"
#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device::arch {

// Loads 8 x 8 matrices of 16-bit elements; each lane gives the address of a row of 16 bytes.
inline void load_matrices(u32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(on_chip(row).at)
               : "memory");
}
inline void load_matrices(u32 (&to)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(on_chip(row).at)
               : "memory");
}
// Loads four matrices, each transposed.
inline void load_transposed(u32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(on_chip(row).at)
               : "memory");
}
// sums += a b: [16, 16] times [16, 8].
template <bool kBf16>
inline void multiply_add(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  if constexpr (kBf16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, "
        "%2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, "
        "%2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// sums += a b: [16, 32] times [32, 8] of 8-bit floats. sm_89 and sm_120 have an instruction, whose sums may have fewer bits of fraction
// than an f32; for sm_90 and sm_100 NVRTC 13.0 converts the elements to f16 and multiplies these.
#if __CUDA_ARCH__ >= 890
constexpr bool kMultipliesCodes = true;
template <DType kLeft, DType kRight>
inline void multiply_codes(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#define HEDDLE_MULTIPLY_CODES(left, right)                                   \
  asm("mma.sync.aligned.m16n8k32.row.col.f32." left "." right                \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])           \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (kLeft == DType::kF8E4M3 && kRight == DType::kF8E4M3)
    HEDDLE_MULTIPLY_CODES("e4m3", "e4m3");
  else if constexpr (kLeft == DType::kF8E4M3)
    HEDDLE_MULTIPLY_CODES("e4m3", "e5m2");
  else if constexpr (kRight == DType::kF8E4M3)
    HEDDLE_MULTIPLY_CODES("e5m2", "e4m3");
  else
    HEDDLE_MULTIPLY_CODES("e5m2", "e5m2");
#undef HEDDLE_MULTIPLY_CODES
}
#else
constexpr bool kMultipliesCodes = false;
template <DType, DType>
inline void multiply_codes(float (&)[4], const u32 (&)[4], const u32 (&)[2]) {}
#endif

}  // namespace heddle::device::arch
