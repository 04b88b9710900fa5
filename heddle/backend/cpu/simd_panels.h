// The walk of matrix kernels of f32 operands over rows and panels. A block of rows times one or more panels stays in registers along
// all of k: a sum has one order, whatever rows and panels stand beside it. Included once per SIMD target, inside its namespace.

constexpr i32 kVecs = kPanelRows / kLanes;  // lane vectors across a panel
constexpr i64 kAhead = 2048;                // bytes that prefetch runs before the loads

struct PanelBlock {
  static constexpr i32 kMostPanels = 4;

  const Weight* w;
  i32 run;  // columns, as MatrixTask has them
  const u8* panel[kMostPanels];
  const float* x;
  i64 x_stride;  // floats
  float* out;
  i64 out_stride;
};

template <i32 kRows, i32 kPanels>
struct BlockSums {
  Vec of[kRows][kPanels][kVecs];

  HWY_INLINE BlockSums() {
#pragma GCC unroll 64
    for (i32 i = 0; i < kRows * kPanels * kVecs; ++i) (&of[0][0][0])[i] = hn::Zero(d);
  }
  // Adds the products of kCols columns, of which `column` is the first.
  template <i32 kCols>
  HWY_INLINE void add(const PanelBlock& block, i32 column, const Vec (&w)[kPanels][kCols][kVecs]) {
#pragma GCC unroll 2
    for (i32 c = 0; c < kCols; ++c)
#pragma GCC unroll 16
      for (i32 m = 0; m < kRows; ++m) {
        const Vec x = hn::Set(d, block.x[m * block.x_stride + column + c]);
#pragma GCC unroll 4
        for (i32 p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
          for (i32 v = 0; v < kVecs; ++v) of[m][p][v] = hn::MulAdd(x, w[p][c][v], of[m][p][v]);
      }
  }
  // add: to what the block has already.
  HWY_INLINE void store(const PanelBlock& block, bool add = false) const {
#pragma GCC unroll 16
    for (i32 m = 0; m < kRows; ++m)
#pragma GCC unroll 4
      for (i32 p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
        for (i32 v = 0; v < kVecs; ++v) {
          float* const out = block.out + m * block.out_stride + p * kPanelRows + v * kLanes;
          hn::StoreU(add ? hn::Add(hn::LoadU(d, out), of[m][p][v]) : of[m][p][v], d, out);
        }
  }
};

// All rows of the operand times kPanels panels: kRows at a time, then powers of two. Kernel::multiply<kRows, kPanels> takes a block.
template <class Kernel, i32 kRows, i32 kPanels>
void multiply_rows(const MatrixTask& task, i32 first) {
  static_assert(kPanels <= PanelBlock::kMostPanels);
  PanelBlock block{.w = task.w,
                   .run = task.run,
                   .x = reinterpret_cast<const float*>(task.x),
                   .x_stride = task.x_stride / 4,
                   .out = task.out + first * kPanelRows,
                   .out_stride = task.out_stride};
  for (i32 p = 0; p < kPanels; ++p) block.panel[p] = task.panel(first + p);
  i32 left = task.rows;
  const auto take = [&](i32 rows, void (*multiply)(const PanelBlock&)) {
    for (; left >= rows; left -= rows) {
      multiply(block);
      block.x += rows * block.x_stride;
      block.out += rows * block.out_stride;
    }
  };
  take(kRows, Kernel::template multiply<kRows, kPanels>);
  if constexpr (kRows > 8) take(8, Kernel::template multiply<8, kPanels>);
  if constexpr (kRows > 4) take(4, Kernel::template multiply<4, kPanels>);
  if constexpr (kRows > 2) take(2, Kernel::template multiply<2, kPanels>);
  if constexpr (kRows > 1) take(1, Kernel::template multiply<1, kPanels>);
}

template <class Kernel, i32 kRows, i32 kPanels>
void multiply_panels(const MatrixTask& task) {
  i32 p = 0;
  for (; p + kPanels <= task.panels; p += kPanels) multiply_rows<Kernel, kRows, kPanels>(task, p);
  if constexpr (kPanels > 1)
    for (; p < task.panels; ++p) multiply_rows<Kernel, kRows, 1>(task, p);
}
