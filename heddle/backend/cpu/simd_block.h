// The block of the threads executor: one thread, a lane vector at a time. Included once per SIMD target,
// inside its namespace, after simd_row.h.

class SimdBlock {
 public:
  using View = Row<DType>;

  struct Plane {
    u8* data;
    DType dtype;
    i64 stride;  // bytes
    i32 rows = 0, cols = 0, m0 = 0, n0 = 0;
    Scratch::Mark mark{};

    View row(i32 m) const { return {data + m * stride, dtype}; }
  };
  using Operand = Plane;
  using Fragment = Plane;

  explicit SimdBlock(const MatrixKernels& kernels) : kernels_(kernels) {}

  // Called before each tile.
  void begin() { scratch_.reset(), dead_ = false; }
  bool was_dead() const { return dead_; }

  void inputs() {}
  void sync() {}
  i32 rows(const TileCoord& tile) const { return tile[1] - tile[0]; }
  void dead() { dead_ = true; }

  View row(const Tensor& tensor, auto... indices) {
    i64 at = 0;
    int dim = 0;
    ((at += i64(indices) * tensor.stride[dim++]), ...);
    return {tensor.data + at * size_of(tensor.dtype), tensor.dtype};
  }

  WeightRow weight_row(const Weight& weight, i32 row) { return {weight, row}; }

  template <class F>
  HWY_INLINE void map(i32 n, F&& f) {
    over_groups(n, f);
  }
  template <class Make, class Use>
  HWY_INLINE void map(i32 n, Make&& make, Use&& use) {
    map(n, [&](auto i) HWY_ATTR { use(i, make(i)); });
  }
  template <class F>
  HWY_INLINE void map_rows(i32 count, i32 n, F&& f) {
    for (i32 j = 0; j < count; ++j) map(n, [&](auto i) HWY_ATTR { f(j, i); });
  }
  template <class Make, class Use>
  HWY_INLINE void map_rows(i32 count, i32 n, Make&& make, Use&& use) {
    for (i32 j = 0; j < count; ++j) map(n, [&](auto i) HWY_ATTR { use(j, i, make(j, i)); });
  }

  // Four chains, taken in turn; the order depends on n alone.
  template <class Op, class F>
  HWY_INLINE float reduce(i32 n, Op op, F&& f) {
    Value a = identity(op), b = a, c = a, e = a;
    i32 i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const Value next = combine(op, a, f(Lanes{i}));
      a = b, b = c, c = e, e = next;
    }
    Value all = combine(op, combine(op, a, b), combine(op, c, e));
    if (i < n) {
      const Value last = f(FewLanes{i, n - i});
      all = combine(op, all, hn::IfThenElse(hn::FirstN(d, size_t(n - i)), last.v, Value(identity(op)).v));
    }
    return over_lanes(op, all);
  }
  template <class Op, class F>
  HWY_INLINE void reduce_rows(View out, i32 count, i32 n, Op op, F&& f) {
    for (i32 j = 0; j < count; ++j) out.set(j, reduce(n, op, [&](auto i) HWY_ATTR { return f(j, i); }));
  }

  template <class F>
  HWY_INLINE Best argmax(i32 n, F&& f) {
    Value values = identity(Max());
    Vec32 where = hn::Zero(d32);
    const auto consider = [&](i32 at, Value value) HWY_ATTR {
      // As is_better: larger, or the first NaN.
      const auto above = hn::Not(hn::Or(hn::Le(value.v, values.v), hn::IsNaN(values.v)));
      values = hn::IfThenElse(above, value.v, values.v);
      where = hn::IfThenElse(hn::RebindMask(d32, above), hn::Iota(d32, u32(at)), where);
    };
    i32 i = 0;
    for (; i + kLanes <= n; i += kLanes) consider(i, f(Lanes{i}));
    if (i < n) {
      const Value last = f(FewLanes{i, n - i});
      consider(i, hn::IfThenElse(hn::FirstN(d, size_t(n - i)), last.v, Value(identity(Max())).v));
    }
    alignas(64) float lane_value[kLanes];
    alignas(64) u32 lane_index[kLanes];
    hn::Store(values.v, d, lane_value);
    hn::Store(where, d32, lane_index);
    Best best{identity(Max()), 0};
    for (i32 lane = 0; lane < kLanes; ++lane) {
      const i32 index = i32(lane_index[lane]);
      const float value = lane_value[lane];
      const bool is_equal = value == best.value || (value != value && best.value != best.value);
      if (is_better(value, best.value) || (is_equal && index < best.index)) best = {value, index};
    }
    return best;
  }
  Best argmax(View row, i32 n) {
    return argmax(n, [&](auto i) { return row.load(i); });
  }
  HWY_INLINE Value index(Lanes i) const { return hn::Iota(d, float(i.at)); }
  HWY_INLINE Value index(FewLanes i) const { return hn::Iota(d, float(i.at)); }
  template <class F>
  i32 select(i32 n, View out, F&& f) {
    i32 count = 0;
    for (i32 i = 0; i < n; ++i)
      if (f(i)) out.set_int(count++, i);
    return count;
  }

  Row<Float32> scratch(i32 n) { return {static_cast<u8*>(scratch_.take(size_t(n) * 4)), {}}; }

  // Columns are padded with zeros. The extra cache line keeps rows out of one another's sets.
  Operand operand(i32 rows, i32 cols, DType dtype) {
    const bool narrow = dtype == DType::kBf16 && kernels_.narrow;
    const DType stored = narrow ? DType::kBf16 : DType::kF32;
    const i64 stride = i64(round_up(cols, kOperandCols)) * size_of(stored) + 64;
    const i32 padded = narrow ? round_up(rows, kOperandRows) : rows;
    Operand x{static_cast<u8*>(scratch_.take(size_t(padded) * size_t(stride))), stored, stride, rows, cols};
    const i64 used = i64(cols) * size_of(stored);
    for (i32 m = 0; m < rows; ++m) std::memset(x.data + m * stride + used, 0, size_t(stride - used));
    return x;
  }
  Operand operand(const Tensor& tensor, i32 m0, i32 rows, DType dtype) {
    const Operand x = operand(rows, tensor.last(), dtype);
    map_rows(rows, tensor.last(), [&](i32 m, auto i) { x.row(m).store(i, row(tensor, m0 + m).load(i)); });
    return x;
  }
  Operand operand(i32 rows, i32 cols, const Weight& w) { return operand(rows, cols, w.data.dtype); }
  Operand operand(const Tensor& tensor, i32 m0, i32 rows, const Weight& w) {
    return operand(tensor, m0, rows, w.data.dtype);
  }
  // Padded to whole panels and operand rows; kernels write the padding too. The extra cache line is there as in
  // an operand.
  Fragment fragment(i32 m0, i32 rows, i32 n0, i32 cols) {
    const Scratch::Mark mark = scratch_.mark();
    const i64 stride = i64(round_up(cols, kPanelRows)) * 4 + 64;
    auto* data = static_cast<u8*>(scratch_.take(size_t(round_up(rows, kOperandRows)) * size_t(stride)));
    return {data, DType::kF32, stride, rows, cols, m0, n0, mark};
  }
  void release(const Fragment& fragment) { scratch_.reset(fragment.mark); }

  void mma(Fragment& fragment, const Operand& x, const Weight& w) {
    if (!is_packed_for_kernels(w) || fragment.n0 % kPanelRows != 0) return mma_any(fragment, x, w);
    const MatrixTask task{.x = x.data,
                          .x_stride = x.stride,
                          .rows = fragment.rows,
                          .w = &w,
                          .first_panel = fragment.n0 / kPanelRows,
                          .panels = round_up(fragment.cols, kPanelRows) / kPanelRows,
                          .out = reinterpret_cast<float*>(fragment.data),
                          .out_stride = fragment.stride / 4};
    const bool narrow = x.dtype == DType::kBf16;
    const MatrixKernel kernel = narrow ? kernels_.narrow : kernels_.wide;
    if (!w.is_coded()) return kernel(task);
    task.rows <= kernels_.coded.few_rows ? kernels_.coded.few(task) : multiply_codes(task, kernel);
  }

  Product product(i32 m, i32 n, i32 k, DType dtype) {
    return make_product(scratch_, kernels_, m, n, k, dtype);
  }
  void set_right_rows(const Product& product, i32 s, i32 at, const Lines<View>& lines) {
    product.set_right_rows(s, at, lines);
  }
  void set_right_columns(const Product& product, i32 s, const Lines<View>& lines) {
    product.set_right_columns(s, lines);
  }
  // Sizes are those of a GPU's chip.
  template <class Sizes>
  void mma(Fragment& fragment, const Operand& x, const Weight& w, Sizes) {
    mma(fragment, x, w);
  }
  void mma(Fragment& fragment, const Operand& x, const Weight& w, i32 matrix) {
    mma(fragment, x, w.matrix(matrix));
  }
  void mma(Fragment& fragment, const Product& product, i32 run = 0) {
    product.repeat_right();
    const MatrixTask task{.x = product.left,
                          .x_stride = product.left_stride,
                          .rows = fragment.rows,
                          .w = &product.right,
                          .panels = product.right.panels(),
                          .out = reinterpret_cast<float*>(fragment.data),
                          .out_stride = fragment.stride / 4,
                          .run = run};
    (product.narrow ? kernels_.narrow : kernels_.wide)(task);
  }

  // Chunks of k, each a product of its own, are added in order.
  void mma(Fragment& sum, const heddle::Matrix& a, const heddle::Matrix& b) {
    const DType type = product_dtype(a, b);
    const bool is_exact = !a.scales.exists() && !a.zeros.exists();  // bf16 holds codes of 8 bits and fewer
    const Scratch::Mark mark = scratch_.mark();
    map_rows(sum.rows, sum.cols, [&](i32 m, auto i) HWY_ATTR { sum.row(m).store(i, Value(0.0f)); });
    for (i32 k = 0; k < a.cols(); k += kMatmulChunk) {
      const i32 count = std::min(kMatmulChunk, a.cols() - k);
      const Product product =
          make_product(scratch_, kernels_, sum.rows, sum.cols, count, type, is_exact ? 1 : kTerms);
      take_terms(product, a, b, {sum.m0, sum.n0, k, count}, scratch_);
      Fragment part = fragment(sum.m0, sum.rows, sum.n0, sum.cols);
      mma(part, product, type == DType::kF32 ? kMatmulRun : 0);
      map_rows(sum.rows, sum.cols, [&](i32 m, auto i) HWY_ATTR {
        sum.row(m).store(i, sum.row(m).load(i) + part.row(m).load(i));
      });
      scratch_.reset(mark);
    }
  }

  void panels(const Weight&, i32, i32) {}
  const StepHost& host(const Tensor& tensor) { return *reinterpret_cast<const StepHost*>(tensor.data); }
  const StepDevice& device(const Tensor& tensor) { return *reinterpret_cast<const StepDevice*>(tensor.data); }
  const i32* ints(const Tensor& tensor) { return reinterpret_cast<const i32*>(tensor.data); }

 private:
  // Kernels of many rows multiply floats: panels are decoded a few at a time, as many as stay in the L2 cache.
  void multiply_codes(MatrixTask task, MatrixKernel kernel) {
    constexpr i64 kMostBytes = 256 << 10;
    constexpr i32 kMostPanels = 16;
    const Weight& coded = *task.w;
    Weight floats = coded;
    floats.coding = {}, floats.interleave = 2;
    const i64 bytes = floats.panel_bytes();
    const i32 at_once = i32(std::clamp<i64>(kMostBytes / bytes, 1, std::min(task.panels, kMostPanels)));
    const Scratch::Mark mark = scratch_.mark();
    floats.data.data = static_cast<u8*>(scratch_.take(size_t(at_once * bytes)));
    floats.data.size[0] = at_once * kPanelRows;
    u64 table[kMostPanels];
    for (i32 p = 0; p < at_once; ++p) table[p] = u64(p * bytes);
    floats.table = table;
    MatrixTask part = task;
    part.w = &floats, part.first_panel = 0;
    for (i32 begin = 0; begin < task.panels; begin += at_once) {
      part.panels = std::min(at_once, task.panels - begin);
      for (i32 p = 0; p < part.panels; ++p)
        kernels_.coded.decode(coded, task.panel(begin + p), floats.data.data + table[p]);
      part.out = task.out + begin * kPanelRows;
      kernel(part);
    }
    scratch_.reset(mark);
  }

  // Panels of another shape: their elements are read one at a time, once for all rows of x.
  void mma_any(Fragment& fragment, const Operand& x, const Weight& w) {
    const Scratch::Mark mark = scratch_.mark();
    const auto line = scratch(w.cols());
    for (i32 c = 0; c < fragment.cols; ++c) {
      const WeightRow row{w, fragment.n0 + c};
      map(w.cols(), [&](auto i) HWY_ATTR { line.store(i, row.load(i)); });
      for (i32 m = 0; m < fragment.rows; ++m) {
        const View a = x.row(m);
        fragment.row(m).set(
            c, reduce(w.cols(), Sum(), [&](auto i) HWY_ATTR { return a.load(i) * line.load(i); }));
      }
    }
    scratch_.reset(mark);
  }

  MatrixKernels kernels_;
  Scratch scratch_;
  bool dead_ = false;
};
