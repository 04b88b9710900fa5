// The product of two matrices as they lie in memory. Included once per SIMD target, inside its namespace, after
// simd_product.h.

// Terms of a sum that are multiplied at a time, and those of a chunk in f32 that are added one by one: these order the sum.
constexpr i32 kMatmulChunk = 256, kMatmulRun = 32;

// Part [r0, r0 + rows) x [c0, c0 + cols) of a matrix's data: in place, or decoded into memory of the caller.
inline Lines<Row<DType>> lines_of(const heddle::Matrix& matrix, i32 r0, i32 rows, i32 c0, i32 cols,
                                  Scratch& scratch) {
  const Tensor& data = matrix.data;
  if (is_wide_float(data.dtype) && !matrix.scales.exists())
    return {Row<DType>{data.data + (r0 * data.stride[0] + c0) * size_of(data.dtype), data.dtype},
            data.stride[0], rows, cols};
  auto* decoded = static_cast<float*>(scratch.take(size_t(rows) * size_t(cols) * 4));
  for (i32 r = 0; r < rows; ++r) decode_row(matrix, r0 + r, c0, cols, decoded + i64(r) * cols);
  return {Row<DType>{reinterpret_cast<u8*>(decoded), DType::kF32}, cols, rows, cols};
}

// Terms [k, k + count) of the sums of a fragment at (m0, n0).
struct TermRange {
  i32 m0, n0, k, count;
};

// Fills both sides of a product with terms.
inline void take_terms(const Product& product, const heddle::Matrix& a, const heddle::Matrix& b,
                       const TermRange& terms, Scratch& scratch) {
  const auto [m0, n0, k, count] = terms;
  const auto left = a.transposed ? lines_of(a, k, count, m0, product.rows, scratch)
                                 : lines_of(a, m0, product.rows, k, count, scratch);
  for (i32 m = 0; m < product.rows; ++m) {
    const auto row = product.left_row(m);
    if (a.transposed)
      over_groups(count,
                  [&](auto i) HWY_ATTR { row.store(i, left.first.from(m).every(left.stride).load(i)); });
    else
      over_groups(count, [&](auto i) HWY_ATTR { row.store(i, left[m].load(i)); });
  }
  if (b.transposed)
    product.set_right_rows(0, 0, lines_of(b, n0, product.cols, k, count, scratch));
  else
    product.set_right_columns(0, lines_of(b, k, count, n0, product.cols, scratch));
}
