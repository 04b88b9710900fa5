// Sums of columns. A CTA has kEights x 8 columns: its threads take every kGroups-th row, and the sums of these groups are added in
// their order, which follows from the number of rows alone.
namespace column_sum {

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kEights = 4, kWords = 4;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kEights = Config::kEights, kGroups = i32(kThreads) / kEights, kRows = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;

  static void run(const ColumnSum& a, const TensorMap*, u8*) {
    __shared__ float sums[kGroups][kEights * 8 + 1];
    const i32 rows = a.x.size[0], group = i32(threadIdx.x) / kEights, inside = i32(threadIdx.x) % kEights;
    const i64 at = i64(blockIdx.x) * kEights + inside;
    float mine[8] = {};
    if (at < a.x.size[1] / 8) {
#pragma unroll 1
      for (i32 row = group; row < rows; row += kRows * kGroups) {
        Eight<kIn> values[kRows];
#pragma unroll
        for (i32 n = 0; n < kRows; ++n)
          if (row + n * kGroups < rows) values[n].load(row_of(a.x, row + n * kGroups), at);
#pragma unroll
        for (i32 n = 0; n < kRows; ++n)
#pragma unroll
          for (i32 i = 0; i < 8; ++i) mine[i] += values[n].get(i);
      }
    }
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sums[group][8 * inside + i] = mine[i];
    __syncthreads();
    const i32 column = i32(blockIdx.x) * kEights * 8 + i32(threadIdx.x);
    if (i32(threadIdx.x) >= kEights * 8 || column >= a.x.size[1]) return;
    float all = sums[0][threadIdx.x];
#pragma unroll
    for (i32 g = 1; g < kGroups; ++g) all += sums[g][threadIdx.x];
    store_element(kOut, a.y.data, column, all);
  }
};

}  // namespace column_sum
