// The two matrices on chip that mma multiplies. Included once per SIMD target, inside its namespace, after
// simd_value.h and simd_lanes.h.
//
// The right matrix lies in panels, as a packed weight does. For the kernel of bf16 operands, each f32 value of the
// left matrix is stored as three bf16 terms, whose sum is the value: each term holds 8 of its bits. A row has all
// first terms, then all second and all third ones. The right matrix is then repeated three times along k, so that one
// run over k adds up the products of all terms. Values that are bf16 already need one term.
constexpr i32 kTerms = 3;

struct Product {
  u8* left;
  i64 left_stride;      // bytes
  Weight right;         // as the kernels see it: repeated for each term
  bool narrow;          // the left matrix is stored as bf16
  i32 terms;            // terms of a left value
  i32 half;             // columns of one term
  i32 rows, cols;       // rows of the left matrix, and of the right one
  u8* converted_lines;  // room for four rows of the right matrix

  // A row of the left matrix. It is only stored to.
  struct LeftRow {
    u8* data;
    bool narrow;
    i32 terms, half;

    HWY_INLINE void store(Lanes i, Value value) const {
      if (!narrow) return store_lanes(DType::kF32, data + i64(i.at) * 4, value);
      Vec rest = value.v;
      for (i32 term = 0; term < terms; ++term) {
        const Vec32 bits = hn::BitCast(d32, rest);
        const Vec32 high = hn::And(bits, hn::Set(d32, 0xffff0000u));
        hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(bits)), d16,
                   reinterpret_cast<uint16_t*>(data) + term * half + i.at);
        rest = hn::Sub(rest, hn::BitCast(d, high));
        rest = hn::IfThenElseZero(hn::Eq(rest, rest), rest);  // infinity and NaN are their first terms
      }
    }
    void store(FewLanes i, Value value) const {
      alignas(64) float lanes[kLanes];
      hn::Store(value.v, d, lanes);
      for (i32 lane = 0; lane < i.count; ++lane) {
        if (!narrow) {
          set_element(DType::kF32, data + i64(i.at + lane) * 4, lanes[lane]);
          continue;
        }
        for (i32 term = 0; term < terms; ++term) {
          const u32 high = std::bit_cast<u32>(lanes[lane]) & 0xffff0000u;
          set_element(DType::kBf16, data + i64(term * half + i.at + lane) * 2, std::bit_cast<float>(high));
          lanes[lane] -= std::bit_cast<float>(high);
          if (lanes[lane] != lanes[lane]) lanes[lane] = 0;
        }
      }
    }
  };

  LeftRow left_row(i32 m) const { return {left + m * left_stride, narrow, terms, half}; }

  // right[s + j, at + i] = lines[j].load(i)
  void set_right_rows(i32 s, i32 at, const Lines<Row<DType>>& lines) const {
    const bool words = at % right.interleave == 0;
    i32 j = 0;
    if (words)
      for (; j < lines.count && (s + j) % 4 != 0; ++j) set_row(s + j, at, lines[j], lines.size);
    for (; words && j + 4 <= lines.count; j += 4) set_four_rows(s + j, at, lines, j);
    for (; j < lines.count; ++j) set_row(s + j, at, lines[j], lines.size);
  }

  // right[i, s + j] = lines[j].load(i)
  void set_right_columns(i32 s, const Lines<Row<DType>>& lines) const {
    if (right.interleave == 1) {
      for (i32 j = 0; j < lines.count; ++j)
        over_groups(lines.size, [&](auto i) HWY_ATTR {
          hn::StoreU(hn::BitCast(d32, lines[j].load(i).v), d32, word(i.at, s + j));
        });
      return;
    }
    i32 j = 0;
    if (s % 2 != 0) set_half_column(s, lines[j++], lines.size);
    for (; j + 2 <= lines.count; j += 2) {
      const Row<DType> first = lines[j], second = lines[j + 1];
      over_groups(lines.size, [&](auto i) HWY_ATTR {
        const Vec32 pair = hn::Or(bits_of(first, i), hn::ShiftLeft<16>(bits_of(second, i)));
        hn::StoreU(pair, d32, word(i.at, (s + j) / 2));
      });
    }
    if (j < lines.count) set_half_column(s + j, lines[j], lines.size);
  }

  // Repeats the right matrix once for each term of the left one. Called before a multiplication.
  void repeat_right() const {
    const size_t bytes = size_t(half) * kPanelRows * size_t(size_of(right.data.dtype));
    for (i32 p = 0; p < right.panels(); ++p)
      for (i32 term = 1; term < terms; ++term) {
        u8* panel = right.data.data + right.table[p];
        std::memcpy(panel + size_t(term) * bytes, panel, bytes);
      }
  }

 private:
  // Returns word j of a row of the right matrix: an f32, or a pair of 16-bit elements.
  HWY_INLINE u32* word(i32 row, i32 j) const {
    return reinterpret_cast<u32*>(right.data.data + right.table[row / kPanelRows]) + j * kPanelRows +
           row % kPanelRows;
  }
  HWY_INLINE u8* element(i32 row, i32 k) const {
    return reinterpret_cast<u8*>(word(row, k / right.interleave)) +
           k % right.interleave * size_of(right.data.dtype);
  }

  // Stores words j to j + 3 of four rows side by side. `to` is the place of the first row's word j. Uses vectors of
  // 128 bits on every target.
  static HWY_INLINE void store_words(const u8* const (&from)[4], i32 j, u32* to) {
    using Four = u32 __attribute__((vector_size(16)));
    Four row[4];
    for (i32 r = 0; r < 4; ++r) std::memcpy(&row[r], from[r] + j * 4, sizeof(Four));
    const Four low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
               high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
               next_low = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5),
               next_high = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    const Four word[4] = {__builtin_shufflevector(low, next_low, 0, 1, 4, 5),
                          __builtin_shufflevector(low, next_low, 2, 3, 6, 7),
                          __builtin_shufflevector(high, next_high, 0, 1, 4, 5),
                          __builtin_shufflevector(high, next_high, 2, 3, 6, 7)};
    for (i32 i = 0; i < 4; ++i) std::memcpy(to + i * kPanelRows, &word[i], sizeof(Four));
  }

  // Returns a row's elements in the dtype of the right matrix: the row itself, or a converted copy in line r.
  HWY_INLINE const u8* converted(const Row<DType>& row, i32 n, i32 r) const {
    if (row.dtype == right.data.dtype) return row.data;
    const Row<DType> line{converted_lines + r * half * 4, right.data.dtype};
    over_groups(n, [&](auto i) HWY_ATTR { line.store(i, row.load(i)); });
    return line.data;
  }

  void set_row(i32 s, i32 at, const Row<DType>& row, i32 n) const {
    const u8* from = converted(row, n, 0);
    const i32 whole = at % right.interleave == 0 ? n / right.interleave : 0,
              size = size_of(right.data.dtype);  // words, bytes
    for (i32 w = 0; w < whole; ++w) std::memcpy(word(s, at / right.interleave + w), from + w * 4, 4);
    for (i32 i = whole * right.interleave; i < n; ++i)
      std::memcpy(element(s, at + i), from + i * size, size_t(size));
  }

  // A panel has the words of its rows side by side.
  HWY_INLINE void set_four_rows(i32 s, i32 at, const Lines<Row<DType>>& lines, i32 j) const {
    const u8* from[4];
    for (i32 r = 0; r < 4; ++r) from[r] = converted(lines[j + r], lines.size, r);
    const i32 whole = lines.size / right.interleave / 4 * 4,
              size = size_of(right.data.dtype);  // words, bytes
    for (i32 w = 0; w < whole; w += 4) store_words(from, w, word(s, at / right.interleave + w));
    for (i32 i = whole * right.interleave; i < lines.size; ++i)
      for (i32 r = 0; r < 4; ++r) std::memcpy(element(s + r, at + i), from[r] + i * size, size_t(size));
  }

  // Sets one half of each pair; the other half stays.
  void set_half_column(i32 s, const Row<DType>& line, i32 n) const {
    over_groups(n, [&](auto i) HWY_ATTR {
      u32* const pairs = word(i.at, s / 2);
      const bool odd = s % 2 != 0;
      const Vec32 kept = hn::And(hn::LoadU(d32, pairs), hn::Set(d32, odd ? 0xffffu : 0xffff0000u));
      const Vec32 bits = bits_of(line, i);
      hn::StoreU(hn::Or(kept, odd ? hn::ShiftLeft<16>(bits) : bits), d32, pairs);
    });
  }

  // Returns elements in the dtype of the right matrix, in the low bits of words.
  HWY_INLINE Vec32 bits_of(const Row<DType>& row, auto i) const {
    if constexpr (std::is_same_v<decltype(i), Lanes>)
      if (right.interleave == 2 && row.dtype == right.data.dtype)
        return hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(row.at(i.at))));
    const Vec value = row.load(i).v;
    switch (right.data.dtype) {
      case DType::kBf16:
        return value_to_bf16(value);
      case DType::kF16:
        return value_to_f16(value);
      default:
        return hn::BitCast(d32, value);
    }
  }
};

// Rows and columns that only the kernels see are zeros, and so is the right matrix at first. `terms`: of a left value,
// where the kernel wants bf16.
inline Product make_product(Scratch& scratch, const MatrixKernels& kernels, i32 m, i32 n, i32 k, DType dtype,
                            i32 terms = kTerms) {
  const bool narrow = dtype == DType::kBf16 && kernels.narrow && (terms == 1 || kernels.narrow_terms);
  Product made{
      .narrow = narrow, .terms = narrow ? terms : 1, .half = round_up(k, kOperandCols), .rows = m, .cols = n};
  const i32 cols = made.terms * made.half;
  made.left_stride = i64(cols) * (narrow ? 2 : 4) + 64;  // the extra line keeps rows out of each other's sets
  const i32 padded = round_up(m, kOperandRows);
  made.left = static_cast<u8*>(scratch.take(size_t(padded) * size_t(made.left_stride)));
  // Clears what no left row stores to: the rows past m, and, where k does not fill a term, the ends of the others.
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
  made.converted_lines = static_cast<u8*>(scratch.take(4 * size_t(made.half) * 4));
  return made;
}
