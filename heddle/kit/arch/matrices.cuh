// On sm_90 and later: loads and stores of 8 x 8 matrices of 16-bit elements between shared memory and the registers of a warp, by places in shared
// memory. Each lane gives the place of a row of 16 bytes: lanes 0 to 7 those of the first matrix, and so on.
#pragma once

#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device::arch {

inline void load_matrices(u32 (&to)[4], OnChip row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row.at)
               : "memory");
}
inline void load_transposed(u32 (&to)[4], OnChip row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row.at)
               : "memory");
}

inline void store_matrices(OnChip row, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row.at), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}
inline void store_matrices(OnChip row, u32 a, u32 b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row.at), "r"(a), "r"(b)
               : "memory");
}
inline void store_transposed(OnChip row, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row.at), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace heddle::device::arch
