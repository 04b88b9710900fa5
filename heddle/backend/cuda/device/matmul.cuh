// The product of two matrices as they lie in memory: sum_k a[m, k] b[k, n], with FP32 sums in the order of k. Tiles are 128 x 128
// or 64 x 64. The order of a sum does not depend on its tile.
#pragma once

#include "heddle/backend/cuda/device/matmul_fma.cuh"
#include "heddle/backend/cuda/device/matmul_mma.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// False: there is no room for kFewest slabs.
template <class Tile, i32 kFewest>
__forceinline__ bool multiply_matrices_inline(const Plane& fragment, const Matrix& a, const Matrix& b,
                                              DType product, const SlabRoom& room) {
  const bool alone = fragment.rows <= Tile::kSide && fragment.cols <= Tile::kSide;
  const i32 count = min(kMostSlabs, i32(room.size(alone) / Tile::kSlabBytes));
  if (count < kFewest) return false;
#pragma unroll 1
  for (i32 row = 0; row < fragment.rows; row += Tile::kSide)
#pragma unroll 1
    for (i32 col = 0; col < fragment.cols; col += Tile::kSide) {
      const Side left{a, fragment.m0 + row, fragment.m0 + fragment.rows, !a.transposed};
      const Side right{b, fragment.n0 + col, fragment.n0 + fragment.cols, b.transposed};
      Tile(left, right, product, room.begin(alone), count).multiply(fragment, row, col);
    }
  return true;
}
// A kernel of many ops has one copy of the code.
template <class Tile, i32 kFewest>
__noinline__ bool multiply_matrices_apart(const Plane& fragment, const Matrix& a, const Matrix& b,
                                          DType product, const SlabRoom& room) {
  return multiply_matrices_inline<Tile, kFewest>(fragment, a, b, product, room);
}

template <template <i32> class Tile>
__forceinline__ bool multiply_matrices(const Plane& fragment, const Matrix& a, const Matrix& b, DType product,
                                       const SlabRoom& room) {
  // A kernel for any arguments is large, and slow to compile: for few rows it does without the larger tile.
  const bool large = (kKnown || kManyRows) && fragment.rows > 64 && fragment.cols > 64;
  if constexpr (kOneOp)
    return (large && multiply_matrices_inline<Tile<2>, 2>(fragment, a, b, product, room)) ||
           multiply_matrices_inline<Tile<1>, 1>(fragment, a, b, product, room);
  else
    return (large && multiply_matrices_apart<Tile<2>, 2>(fragment, a, b, product, room)) ||
           multiply_matrices_apart<Tile<1>, 1>(fragment, a, b, product, room);
}

// Where there is no room on chip: element by element.
__forceinline__ void multiply_elements(const Plane& fragment, const Matrix& a, const Matrix& b,
                                       DType product) {
#pragma unroll 1
  for (i32 i = i32(arch::thread()); i < fragment.rows * fragment.cols; i += kConsumers) {
    const i32 m = i / fragment.cols, n = i % fragment.cols;
    float sum = 0;
#pragma unroll 1
    for (i32 k = 0; k < a.cols(); ++k)
      sum = fma(element_of(a, product, !a.transposed, fragment.m0 + m, k),
                element_of(b, product, b.transposed, fragment.n0 + n, k), sum);
    fragment.row(m).store(Index{n}, sum);
  }
}

}  // namespace heddle::device
