// Products of one to eight rows with panels from the ring. Panels of bf16 go through tensor cores (matvec_mma.cuh), and so do codes
// (matvec_codes.cuh). The others are
// multiplied here, two panels at a time: each warp takes the same chunks of K of both, sums over its lanes, and the
// warps' sums meet in shared memory. The order of a sum depends only on K and the number of warps.
#pragma once

#include "heddle/backend/cuda/device/matvec_codes.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// Sums over the lanes that agree in bit 0: they have the same row of a panel.
inline float sum_of_row(float value) {
#pragma unroll
  for (i32 step = 2; step < 32; step *= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

constexpr i32 kChunkBytes = 512;  // a warp's load of a panel: 16 bytes per lane, rows alternate

// Loads kCount elements, of f32 or the weight's type, as floats.
template <DType kType, i32 kCount>
inline void load_values(const u8* at, float (&values)[kCount]) {
  constexpr i32 kPer = Packed<kType>::kCount;
#pragma unroll
  for (i32 i = 0; i < kCount; i += kPer) {
    const Packed<kType> part(*reinterpret_cast<const uint4*>(at + i * size_of(kType)));
#pragma unroll
    for (i32 k = 0; k < kPer; ++k) values[i + k] = part.value[k];
  }
}

// The sums of both panels of a pair, by row of x.
struct PairSums {
  float panel[kStreamRows][2] = {};
};

// Multiplies `bytes` of both panels of a pair. They begin `begin` bytes into a panel.
template <DType kType, DType kRow>
inline void multiply_pair(arch::OnChip first_panel, arch::OnChip second_panel, i32 bytes, i32 begin,
                          const Plane& x, PairSums& sums) {
  constexpr i32 kPer = Packed<kType>::kCount;
  const i32 lane = i32(arch::thread() % 32);
#pragma unroll 1
  for (i32 i = i32(arch::thread() / 32) * kChunkBytes + lane * 16; i < bytes; i += kWarps * kChunkBytes) {
    const Packed<kType> first(arch::load_word(first_panel + u32(i)));
    const Packed<kType> second(arch::load_word(second_panel + u32(i)));
    const i32 k = (begin + i) / 32 * kPer;
#pragma unroll
    for (i32 m = 0; m < kStreamRows; ++m) {
      if (m >= x.rows) break;
      float row[kPer];
      load_values<kRow>(x.data + m * x.stride + k * size_of(kRow), row);
#pragma unroll
      for (i32 j = 0; j < kPer; ++j) {
        sums.panel[m][0] = fma(first.value[j], row[j], sums.panel[m][0]);
        sums.panel[m][1] = fma(second.value[j], row[j], sums.panel[m][1]);
      }
    }
  }
}

// out[m, c] = sum_k x[m, k] w[c, k] for panels from the ring, in whole items, two panels at a time. x has rows of type kRow, padded
// with zeros to whole 16-byte words of the weight.
template <DType kType, DType kRow>
class PairProduct {
 public:
  explicit PairProduct(const Plane& x) : x_(x) {}

  // See GroupProduct::run.
  __forceinline__ void run(Drawn& drawn, const Weight&, i32 from, i32 end, i32 cols, float* partial) const {
    PanelWalk& walk = drawn.walk;
    PairSums sums;
#pragma unroll 1
    while (2 * walk.panel() < end) {
      const i32 live = walk.live(), first = 2 * walk.panel() - from;
      walk.wait();
      multiply_pair<kType, kRow>(walk.place(0), walk.place(1), walk.bytes(), walk.begin(), x_, sums);
      if (!walk.next()) continue;
      store(sums, first, live, cols, partial);
      sums = {};
    }
  }

 private:
  void store(const PairSums& sums, i32 first_column, i32 live, i32 cols, float* partial) const {
    const i32 lane = i32(arch::thread() % 32), warp = i32(arch::thread() / 32), column = first_column + lane;
#pragma unroll
    for (i32 m = 0; m < kStreamRows; ++m) {
      if (m >= x_.rows) break;
      const float first = sum_of_row(sums.panel[m][0]), second = sum_of_row(sums.panel[m][1]);
      if (lane < 2 * live && column < cols)
        partial[(m * cols + column) * kWarps + warp] = lane < 2 ? first : second;
    }
  }

  Plane x_;
};

// The sum of kWarps floats.
inline float sum_of_warps(const float* row) {
  static_assert(kWarps % 4 == 0);
  float sum = 0;
#pragma unroll
  for (i32 j = 0; j < kWarps; j += 4) {
    const float4 part = *reinterpret_cast<const float4*>(row + j);
    sum += (part.x + part.y) + (part.z + part.w);
  }
  return sum;
}

// The consumer of a product's columns: ask(from, cols) is called before the product, use(from, cols, sums, ahead) after it with what
// ask returned.
template <class Ask, class Use>
struct ColumnUse {
  Ask ask;
  Use use;
};
template <class Ask, class Use>
ColumnUse(Ask, Use) -> ColumnUse<Ask, Use>;

// x w^T for `all` columns of panels from the ring, `columns` at a time, so that the warps' sums fit on chip. `use` gets the sums
// [x.rows][cols][kWarps] of columns [from, from + cols). partial: two buffers of sums, used in turn.
template <class Product, class F>
__forceinline__ void multiply_by(Drawn& drawn, i32 all, const Plane& x, const Weight& w, float* partial,
                                 i32 columns, F&& use) {
  const Product product(x);
  for (i32 from = 0, turn = 0; from < all; from += columns, turn ^= 1) {
    const i32 cols = min(all - from, columns);
    float* sums = partial + turn * x.rows * columns * kWarps;
    const auto ahead = use.ask(from, cols);
    product.run(drawn, w, from, from + cols, cols, sums);
    sync_consumers();
    use.use(from, cols, sums, ahead);
  }
}
template <template <class> class Product, class F>
__forceinline__ void multiply_groups(Drawn& drawn, i32 all, const Plane& x, const Weight& w, float* partial,
                                     i32 columns, F&& use) {
  if (x.dtype == kSplit) return multiply_by<Product<SplitColumns>>(drawn, all, x, w, partial, columns, use);
  if constexpr (kFewRows)
    multiply_by<Product<RowColumns>>(drawn, all, x, w, partial, columns, use);
  else if (has_long_panels(w))
    multiply_by<Product<PlainColumns<4>>>(drawn, all, x, w, partial, columns, use);
  else
    multiply_by<Product<PlainColumns<2>>>(drawn, all, x, w, partial, columns, use);
}
template <Code kCode, class F>
__forceinline__ void multiply_codes(Drawn& drawn, i32 all, const Plane& x, const Weight& w, float* partial,
                                    i32 columns, F&& use) {
  if constexpr (kFewRows)
    if (x.rows > 1) return multiply_by<CodedProduct<false, kCode>>(drawn, all, x, w, partial, columns, use);
  multiply_by<CodedProduct<true, kCode>>(drawn, all, x, w, partial, columns, use);
}
template <DType kType, class F>
__forceinline__ void multiply_from_ring(Drawn& drawn, i32 all, const Plane& x, const Weight& w,
                                        float* partial, i32 columns, F&& use) {
  if constexpr (kType == DType::kBf16) {
    if constexpr (kUses[int(DType::kF8E4M3)])
      if (w.coding.code == Code::kF8E4M3)
        return multiply_codes<Code::kF8E4M3>(drawn, all, x, w, partial, columns, use);
    if constexpr (kUses[int(DType::kI4)])
      if (w.coding.code == Code::kI4)
        return multiply_codes<Code::kI4>(drawn, all, x, w, partial, columns, use);
    if constexpr (kReadsFloats) multiply_groups<GroupProduct>(drawn, all, x, w, partial, columns, use);
  } else {
    if constexpr (kFewRows)
      if (x.dtype != DType::kF32)
        return multiply_by<PairProduct<kType, kType>>(drawn, all, x, w, partial, columns, use);
    multiply_by<PairProduct<kType, DType::kF32>>(drawn, all, x, w, partial, columns, use);
  }
}

}  // namespace heddle::device
