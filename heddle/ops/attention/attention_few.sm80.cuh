// Attention of a few queries on a GPU from sm_80 on: both products run on tensor cores. Keys and values come straight from memory,
// 16 bytes per lane, and dimensions are multiplied in the order of these loads. A warp has sixteen positions of a step, with a
// maximum and sums of its own for each query; the warps' results are merged at the end, in a fixed order. The queries are the upper
// eight rows of the left matrix. The lower eight hold the rounding errors of the weights, so that weights keep more bits than
// values have. Steps begin at multiples of their size from the begin of a split: the order of a query's sums follows from
// positions alone. Included once per device program, by attention.sm80.cuh, which says which tiles come here.
namespace attention {

template <DType kType, i32 kHeadDim>
class FewQueries {
 public:
  // The limits of a pass: the state of its queries takes less than 18 KB on chip.
  static constexpr i32 kQueries = 512 / kHeadDim;
  static constexpr i32 kPositions = 16;                     // positions of a warp in a step
  static constexpr i32 kStep = Team::warps() * kPositions;  // positions
  static constexpr i32 kKeyWords = kHeadDim / 32;    // a lane's words of a position: four lanes share it
  static constexpr i32 kValueWords = kHeadDim / 64;  // a lane's words of a position: eight lanes share it
  static constexpr i32 kTiles = kHeadDim / 8;        // a tile has eight dimensions
  // Two steps are under way. With longer rows, registers hold only one.
  static constexpr bool kAhead = kHeadDim <= 64;

  FewQueries(const Attention& a, const Body::Work& work, i32 first_query)
      : a_(a), work_(work), first_query_(first_query) {
    begin_ = max(work.begin(), work.first_seen(first_query)), end_ = work.end();
  }

  // A worker that already knows the positions of the step loads from pages before it waits for its inputs. This is safe: the record
  // is written after all readers of the previous record are done, and the workers that fill pages read it.
  template <class Block>
  void run(Block& block) const {
    i32 at = begin_ - (begin_ - work_.begin()) % kStep;
    Words words, next;
    const bool has_next =
        kAhead && at + kStep < end_;  // a branch, so that the code of a step that is not there is not fetched
    load<true>(words, at);
    if (has_next) load<true>(next, at + kStep);
    block.inputs();
    load<false>(words, at);
    if (has_next) load<false>(next, at + kStep);
    const Queries queries = load_queries();
    Sums sums{.begin = max(work_.begin(), work_.first_seen(own())), .end = min(end_, work_.end_seen(own()))};
#pragma unroll 1
    for (; at < end_; at += kStep) {
      add(words, queries, at, sums);
      if (at + kStep >= end_) break;
      Words& coming = kAhead ? next : words;
      if (kAhead) words = next;
      coming = {};
      const i32 then = at + (kAhead ? 2 : 1) * kStep;
      load<true>(coming, then), load<false>(coming, then);
    }
    store(block, sums);
  }

 private:
  struct Queries {
    uint4 word[kKeyWords];
  };
  // A lane's words of a step: keys of two positions, lane / 4 of each eight, and values of four, pair lane % 4 of each four pairs.
  struct Words {
    uint4 key[2][kKeyWords] = {}, value[4][kValueWords] = {};
  };
  // A warp's state of the lane's query, lane / 4: the positions that it sees, its best score and the lane's share of the total. And
  // the lane's sums of values for all queries, with those of the weights' rounding errors.
  struct Sums {
    i32 begin, end;
    float best = kLowest, total = 0, value[kTiles][4] = {};
  };

  static i32 warp() { return Team::warp(); }
  // The lane's row of a matrix: a query, a position, or a word of values.
  static i32 row() { return Team::lane() / 4; }
  static i32 column() { return Team::lane() % 4; }
  i32 own() const { return min(first_query_ + row(), work_.queries - 1); }
  static const uint4& word(const u8* data, i32 at) { return reinterpret_cast<const uint4*>(data)[at]; }

  Queries load_queries() const {
    const u8* from =
        a_.q.data + (i64(work_.row(own())) * a_.q.stride[0] + work_.head(own()) * kHeadDim) * size_of(kType);
    Queries queries;
#pragma unroll
    for (i32 w = 0; w < kKeyWords; ++w) queries.word[w] = word(from, column() + 4 * w);
    return queries;
  }

  // Loads the positions of the step at `at` that lie in pages, or in this step's rows.
  template <bool kInPages>
  void load(Words& words, i32 at) const {
    at += warp() * kPositions;
#pragma unroll
    for (i32 t = 0; t < 2; ++t) {
      const i32 position = at + 8 * t + row();
      if (!is_there<kInPages>(position)) continue;
      const u8* from = work_.template row_of<kInPages>(a_.keys, a_.k, position, kHeadDim);
#pragma unroll
      for (i32 w = 0; w < kKeyWords; ++w) words.key[t][w] = word(from, column() + 4 * w);
    }
#pragma unroll
    for (i32 r = 0; r < 4; ++r) {
      const i32 position = at + 8 * (r / 2) + 2 * column() + r % 2;
      if (!is_there<kInPages>(position)) continue;
      const u8* from = work_.template row_of<kInPages>(a_.values, a_.v, position, kHeadDim);
#pragma unroll
      for (i32 w = 0; w < kValueWords; ++w) words.value[r][w] = word(from, row() + 8 * w);
    }
  }
  template <bool kInPages>
  bool is_there(i32 position) const {
    return position >= begin_ && position < end_ && (position < work_.plan.start) == kInPages;
  }

  void add(const Words& words, const Queries& queries, i32 at, Sums& sums) const {
    float score[2][4] = {};
#pragma unroll
    for (i32 w = 0; w < kKeyWords; ++w) {
      const uint4& q = queries.word[w];
#pragma unroll
      for (i32 t = 0; t < 2; ++t) {
        const uint4& k = words.key[t][w];
        arch::multiply_add<kType == DType::kBf16>(score[t], {q.x, 0, q.y, 0}, {k.x, k.y});
        arch::multiply_add<kType == DType::kBf16>(score[t], {q.z, 0, q.w, 0}, {k.z, k.w});
      }
    }
    weigh(score, at + warp() * kPositions + 2 * column(), sums);
    const SplitPair<kType> first(score[0][0], score[0][1]), second(score[1][0], score[1][1]);
    const u32 weights[4] = {first.high, first.low, second.high, second.low};
#pragma unroll
    for (i32 w = 0; w < kValueWords; ++w)
#pragma unroll
      for (i32 d = 0; d < 8; ++d) {
        const u32 upper = pair_of(words.value[0][w], words.value[1][w], d),
                  lower = pair_of(words.value[2][w], words.value[3][w], d);
        arch::multiply_add<kType == DType::kBf16>(sums.value[8 * w + d], weights, {upper, lower});
      }
  }

  // Turns the scores of the lane's query into weights, two at position `at` and two at `at` + 8. Older sums decay.
  void weigh(float (&score)[2][4], i32 at, Sums& sums) const {
    float top = sums.best;
#pragma unroll
    for (i32 t = 0; t < 2; ++t)
#pragma unroll
      for (i32 i = 0; i < 2; ++i) {
        const i32 position = at + 8 * t + i;
        float modified = score[t][i] * a_.scale;
        if (a_.softcap > 0) modified = tanh(modified * (1 / a_.softcap)) * a_.softcap;
        score[t][i] = position >= sums.begin && position < sums.end ? modified : kLowest;
        top = max(top, score[t][i]);
      }
    top = max(top, Team::across(top, 1));
    top = max(top, Team::across(top, 2));
    const float base = top > kLowest ? top : 0.0f;  // hidden scores weigh nothing, though all are
    const float decay = weight_of(sums.best - base);
    sums.best = top, sums.total *= decay;
#pragma unroll
    for (i32 t = 0; t < 2; ++t)
#pragma unroll
      for (i32 i = 0; i < 2; ++i) score[t][i] = weight_of(score[t][i] - base), sums.total += score[t][i];
#pragma unroll
    for (i32 d = 0; d < kTiles; ++d)
#pragma unroll
      for (i32 i = 0; i < 4; ++i) sums.value[d][i] *= decay;
  }

  // Element `d` of eight, of two positions side by side.
  static u32 pair_of(const uint4& first, const uint4& second, i32 d) {
    const u32 a[4] = {first.x, first.y, first.z, first.w}, b[4] = {second.x, second.y, second.z, second.w};
    return d % 2 == 0 ? (a[d / 2] & 0xffff) | b[d / 2] << 16 : a[d / 2] >> 16 | (b[d / 2] & 0xffff0000u);
  }

  template <class Block>
  void store(Block& block, Sums& mine) const {
    const i32 queries = min(kQueries, work_.queries - first_query_);
    const View sums = block.scratch(Team::warps() * queries * kHeadDim),
               stats = block.scratch(Team::warps() * queries * 2);
    mine.total += Team::across(mine.total, 1);
    mine.total += Team::across(mine.total, 2);
    const i32 of_warp = warp() * queries + row();
    if (row() < queries) {
      if (column() == 0) stats.from(2 * of_warp).store_pair(Index{0}, mine.best, mine.total);
#pragma unroll
      for (i32 w = 0; w < kValueWords; ++w)
        store_word(sums.from(of_warp * kHeadDim + 64 * w + 16 * column()), mine, w);
    }
    block.sync();
    block.map_rows(queries, kHeadDim, [&](i32 q, Index i) {
      float best[Team::warps()], total[Team::warps()], sum[Team::warps()], top = kLowest, all = 0, value = 0;
#pragma unroll
      for (i32 w = 0; w < Team::warps(); ++w) {
        const Pair pair = *reinterpret_cast<const Pair*>(stats.from(2 * (w * queries + q)).data);
        best[w] = pair.first, total[w] = pair.second;
        sum[w] = sums.get((w * queries + q) * kHeadDim + i.at), top = max(top, best[w]);
      }
#pragma unroll
      for (i32 w = 0; w < Team::warps(); ++w) {
        const float share = weight_of(best[w] - top);
        all = fma(total[w], share, all), value = fma(sum[w], share, value);
      }
      const i32 row = work_.row(first_query_ + q), head = work_.head(first_query_ + q);
      block.row(a_.part, row, head, work_.split).store(i, all == 0 ? 0.0f : quotient(value, all));
      if (i.at == 0) block.row(a_.stats, row, head, work_.split).store_pair(Index{0}, top, all);
    });
  }
  // A lane's sixteen dimensions of 64: eight of either column of its matrices.
  static void store_word(const View& to, const Sums& mine, i32 w) {
#pragma unroll
    for (i32 j = 0; j < 16; j += 4) {
      const auto sum = [&](i32 i) {
        const float(&value)[4] = mine.value[8 * w + i % 8];
        return value[i / 8] + value[2 + i / 8];
      };
      reinterpret_cast<float4*>(to.data)[j / 4] = {sum(j), sum(j + 1), sum(j + 2), sum(j + 3)};
    }
  }

  const Attention& a_;
  const Body::Work& work_;
  i32 first_query_, begin_,
      end_;  // the pass's first query; all positions that its queries see lie in [begin_, end_)
};

}  // namespace attention
