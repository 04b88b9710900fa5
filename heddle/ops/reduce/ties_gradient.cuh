// The gradient of a maximum: elements that are the largest share dy evenly, and where one is NaN, all get NaN. Included by
// reduce_dim_backward_kernel.sm80.cuh.

// The ties of each output, [G, D].
struct AllOutputs {
  Ties* ties;
  i32 columns;

  void store(i32 g, i32 d, Ties value) const { ties[i64(g) * columns + d] = value; }
  bool store_word(i32, i32, auto&&) const { return false; }
};

// The largest elements get this.
struct Share {
  float most, each;

  static Share of(Ties ties, float dy) {
    return {ties.most, ties.most == ties.most ? dy / ties.count : ties.most};
  }
  float of_element(float x) const { return x < most ? 0.0f : each; }
};

template <class Config>
struct MaxGradient {
  static constexpr DType kX = Config::types().x.dtype, kDy = Config::types().dy.dtype,
                         kOut = Config::types().dx.dtype;
  static constexpr i32 kThreads = i32(Config::kThreads);

  static void run(const ReduceDimBackward& a, const Ties* ties) {
    const GradientCut cut = gradient_cut(a.x.size[0], a.x.size[1], a.x.size[2], kThreads);
    cut.in_columns ? down_columns(a, ties, cut) : along(a, ties);
  }

 private:
  static Share share(const ReduceDimBackward& a, const Ties* ties, i64 g, i32 d) {
    return Share::of(ties[g * a.x.size[2] + d], load_element(kDy, a.dy.data, g * a.dy.stride[0] + d));
  }

  static void down_columns(const ReduceDimBackward& a, const Ties* ties, const GradientCut& cut) {
    const i32 thread = ThisCta::thread(), rows = a.x.size[1], across = a.x.size[2] / 8;
    const i32 slab = i32(floor_div(ThisCta::number(), cut.blocks));
    const i64 own = (ThisCta::number() - slab * cut.blocks) * cut.team + thread % cut.team;
    const i64 g = floor_div(own, across);
    if (g >= a.x.size[0]) return;
    const i32 word = i32(own - g * across);
    Share shares[8];
#pragma unroll
    for (i32 i = 0; i < 8; ++i) shares[i] = share(a, ties, g, word * 8 + i);
    const i32 begin = slab * cut.at_once * kGradientRows + thread / cut.team;
    constexpr i32 kBatch = 4;  // under way at once
#pragma unroll 1
    for (i32 done = 0; done < kGradientRows; done += kBatch) {
      Vec8<kX> x[kBatch];
      const auto at = [&](i32 n) { return begin + (done + n) * cut.at_once; };
#pragma unroll
      for (i32 n = 0; n < kBatch; ++n)
        if (at(n) < rows) x[n].load(a.x.data, (g * rows + at(n)) * across + word);
#pragma unroll
      for (i32 n = 0; n < kBatch; ++n)
        if (at(n) < rows)
          Vec8<kOut>::of([&](i32 i) {
            return shares[i].of_element(x[n].get(i));
          }).store(a.dx.data, (g * rows + at(n)) * across + word);
    }
  }

  static void along(const ReduceDimBackward& a, const Ties* ties) {
    const i64 total = i64(a.x.size[0]) * a.x.size[1] * a.x.size[2];
#pragma unroll 1
    for (i32 n = 0; n < kGradientWords; ++n) {
      const i64 at = (i64(ThisCta::number()) * kGradientWords + n) * kThreads * 8 + ThisCta::thread() * 8;
      if (at >= total) return;
      float values[8];
      read_eight<kX>(a.x.data, at, total, values);
      turn(a, ties, at, total, values);
      write_eight<kOut>(a.dx.data, at, total, values);
    }
  }
  // Elements become their gradients.
  static void turn(const ReduceDimBackward& a, const Ties* ties, i64 at, i64 total, float (&values)[8]) {
    const i32 columns = a.x.size[2];
    const i64 line = i64(a.x.size[1]) * columns;
    i64 g = floor_div(at, line), inside = at - g * line;
    i32 column = i32(inside - floor_div(inside, columns) * columns);
    Share now = share(a, ties, g, column);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      values[i] = now.of_element(values[i]);
      if (at + i + 1 >= total) break;
      if (++column == columns) column = 0;
      if (++inside == line) ++g, inside = 0;
      if (columns > 1 || inside == 0) now = share(a, ties, g, column);
    }
  }
};
