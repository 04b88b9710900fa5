// Two matrices on chip that mma multiplies. Included once per SIMD target, inside its namespace, after
// simd_value.h and simd_lanes.h.
//
// The right one lies in panels as a packed weight does. Where the kernel of bf16 operands serves, the left one is
// kept as three bf16 terms side by side, whose sum is the f32 value: 8 bits of it each. The right one then stands
// there three times, so that one run over k adds up the products of all terms.
constexpr i32 kTerms = 3;

struct Product {
  u8* left;
  i64 left_stride;  // bytes
  Weight right;     // as the kernels see it, both halves
  i32 terms;        // of the left; 1: f32
  i32 half;         // columns of one term
  i32 rows, cols;   // of the left, of the right

  // The left row, stored to only.
  struct LeftRow {
    u8* data;
    i32 terms, half;

    HWY_INLINE void store(Lanes i, Value value) const {
      if (terms == 1) return store_lanes(DType::kF32, data + i64(i.at) * 4, value);
      Vec rest = value.v;
      for (i32 term = 0; term < kTerms; ++term) {
        const Vec32 bits = hn::BitCast(d32, rest);
        const Vec32 high = hn::And(bits, hn::Set(d32, 0xffff0000u));
        hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(bits)), d16,
                   reinterpret_cast<uint16_t*>(data) + term * half + i.at);
        rest = hn::Sub(rest, hn::BitCast(d, high));
      }
    }
    void store(FewLanes i, Value value) const {
      alignas(64) float lanes[kLanes];
      hn::Store(value.v, d, lanes);
      for (i32 lane = 0; lane < i.count; ++lane) {
        if (terms == 1) {
          set_element(DType::kF32, data + i64(i.at + lane) * 4, lanes[lane]);
          continue;
        }
        for (i32 term = 0; term < kTerms; ++term) {
          const u32 high = std::bit_cast<u32>(lanes[lane]) & 0xffff0000u;
          set_element(DType::kBf16, data + i64(term * half + i.at + lane) * 2, std::bit_cast<float>(high));
          lanes[lane] -= std::bit_cast<float>(high);
        }
      }
    }
  };

  // A row, or a column, of the right one; stored to only.
  struct RightLine {
    const Product* product;
    i32 index;
    bool column;

    HWY_INLINE void store(Lanes i, Value value) const {
      const bool pairs = product->right.interleave == 2;
      if (!pairs && column) return store_lanes(DType::kF32, product->at(i.at, index), value);
      if (!pairs) return scatter_row<4>(product->at(index, i.at), value);
      if (kLanes % 2 != 0) return store(FewLanes{i.at, kLanes}, value);
      if (column)
        store_column(product->at(i.at, index), value);
      else
        scatter_row<2>(product->at(index, i.at), value);
    }
    void store(FewLanes i, Value value) const {
      alignas(64) float lanes[kLanes];
      hn::Store(value.v, d, lanes);
      for (i32 lane = 0; lane < i.count; ++lane) {
        u8* at = column ? product->at(i.at + lane, index) : product->at(index, i.at + lane);
        set_element(product->right.data.dtype, at, lanes[lane]);
      }
    }

   private:
    // Neighbours in k lie a panel's rows apart; where elements have two bytes, pairs of neighbours do.
    template <i32 kElementBytes>
    HWY_INLINE void scatter_row(u8* at, Value value) const {
      alignas(64) u8 packed[4 * kLanes];
      store_lanes(kElementBytes == 4 ? DType::kF32 : product->right.data.dtype, packed, value);
      for (i32 word = 0; word < kLanes * kElementBytes / 4; ++word)
        std::memcpy(at + word * kPanelRows * 4, packed + word * 4, 4);
    }
    // Neighbours in a column lie a pair apart: the other half of each pair stays.
    HWY_INLINE void store_column(u8* at, Value value) const {
      const bool odd = index % 2 == 1;
      auto* pairs = reinterpret_cast<u32*>(at - (odd ? 2 : 0));
      const Vec32 bits =
          product->right.data.dtype == DType::kBf16 ? value_to_bf16(value.v) : value_to_f16(value.v);
      const Vec32 kept = hn::And(hn::LoadU(d32, pairs), hn::Set(d32, odd ? 0xffffu : 0xffff0000u));
      hn::StoreU(hn::Or(kept, odd ? hn::ShiftLeft<16>(bits) : bits), d32, pairs);
    }
  };

  LeftRow left_row(i32 m) const { return {left + m * left_stride, terms, half}; }
  RightLine right_row(i32 n) const { return {this, n, false}; }
  RightLine right_column(i32 k) const { return {this, k, true}; }

  // Before a multiplication: the right one, once for each term of the left.
  void repeat_right() const {
    const size_t bytes = size_t(half) * kPanelRows * size_t(size_of(right.data.dtype));
    for (i32 p = 0; p < right.panels(); ++p)
      for (i32 term = 1; term < terms; ++term) {
        u8* panel = right.data.data + right.table[p];
        std::memcpy(panel + size_t(term) * bytes, panel, bytes);
      }
  }

 private:
  // Where element [row, k] of the right one lies.
  HWY_INLINE u8* at(i32 row, i32 k) const {
    return right.data.data + right.table[row / kPanelRows] +
           right.place(row % kPanelRows, k) * size_of(right.data.dtype);
  }
};

// Rows and columns that only the kernels see are zeros, and so is the right one.
inline Product make_product(Scratch& scratch, const MatrixKernels& kernels, i32 m, i32 n, i32 k,
                            DType dtype) {
  const bool narrow = dtype == DType::kBf16 && kernels.narrow && m >= kernels.narrow_rows;
  Product made{.terms = narrow ? kTerms : 1, .half = round_up(k, kOperandCols), .rows = m, .cols = n};
  const i32 cols = made.terms * made.half;
  made.left_stride = i64(cols) * (narrow ? 2 : 4) + 64;  // the line keeps rows out of one another's sets
  const i32 padded = round_up(m, kOperandRows);
  made.left = static_cast<u8*>(scratch.take(size_t(padded) * size_t(made.left_stride)));
  // What no left row stores to: rows past m, and all of the others where terms have a rest.
  const i32 whole = made.half == k ? m : 0;
  std::memset(made.left + whole * made.left_stride, 0, size_t((padded - whole) * made.left_stride));
  Weight& w = made.right;
  w.panel_rows = kPanelRows, w.interleave = dtype == DType::kF32 ? 1 : 2;
  w.data.dtype = dtype, w.data.rank = 2;
  w.data.size[0] = n, w.data.size[1] = cols;
  const size_t panels = size_t(w.panels()), panel_bytes = size_t(w.panel_bytes());
  w.data.data = static_cast<u8*>(scratch.take(panels * panel_bytes));
  std::memset(w.data.data, 0, panels * panel_bytes);
  auto* table = static_cast<u64*>(scratch.take(panels * sizeof(u64)));
  for (size_t p = 0; p < panels; ++p) table[p] = p * panel_bytes;
  w.table = table;
  return made;
}
