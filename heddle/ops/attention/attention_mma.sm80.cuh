// Attention of many queries on a GPU from sm_80 on: both products run on tensor cores, on sm_90a those of four warps together where
// a kernel has one op alone. A warp has sixteen queries; their scores, weights and sums stay in its registers. A step is a few positions, whose keys and values asynchronous copies bring into
// stages on chip some steps early. Weights are rounded to the dtype of the values, totals are not. Steps begin at multiples of
// their size, wherever pages, parts, windows or this step's rows begin, and a step of which a query sees nothing does not change
// the query's sums: their order follows from positions alone.
// Included once per device program, by attention.sm80.cuh, which says which tiles come here.
namespace attention {

template <bool kBf16, i32 kKeyDim, class Config>
class ManyQueries {
 public:
  // Four warps multiply together, from chip (wgmma): rows on chip are 128 bytes, whose 16-byte words are permuted by the row, and
  // rows of more are one block of such rows after another.
  static constexpr bool kOnChip = Kernel::kMultipliesTogether && kKeyDim <= 128;
  static constexpr arch::Terms kTerms = kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr i32 kQueries = 16;  // queries of a warp
  // A pass has as many dimensions of the values as leave registers for its sums and scores.
  static constexpr i32 kValueDim = kKeyDim > 128 ? kKeyDim / 2 : kKeyDim;
  static constexpr i32 kMostStep = kKeyDim <= 64 ? 64 : kKeyDim <= 128 ? 32 : 16;
  static constexpr i32 kStep = Config::kStep < kMostStep ? Config::kStep : kMostStep;
  static constexpr i32 kFewestStages = 2;
  static_assert(kStep % 16 == 0 && Config::kStages >= kFewestStages);
  // Rows on chip are an odd number of words apart, so that eight of them fall into different banks.
  static constexpr i32 kWord = 16, kPad = kOnChip ? 0 : kWord;
  static constexpr i32 kKeyRow = 2 * kKeyDim + kPad, kValueRow = 2 * kValueDim + kPad;
  static constexpr i32 kStageBytes = kStep * (kKeyRow + kValueRow), kWarpBytes = kQueries * kKeyRow;
  static constexpr i32 kTogether = kOnChip ? 4 : 1;  // warps that take the same steps
  static constexpr i32 kRowsOnChip = kQueries * kTogether;
  static constexpr tile::OperandTile kQueryTile{kRowsOnChip, kKeyDim, 2}, kKeyTile{kStep, kKeyDim, 2},
      kValueTile{kStep, kValueDim, 2};

  ManyQueries(const Attention& a, const Body::Work& work, u8* chip, i64 room) : a_(a), work_(work) {
    if constexpr (kOnChip) {
      const i32 ahead = i32(-reinterpret_cast<u64>(chip) % 1024);
      chip += ahead, room -= ahead;
    }
    const i32 fit = i32(room - kFewestStages * kStageBytes) / kWarpBytes / kTogether * kTogether;
    const i32 wanted = (work.queries + kRowsOnChip - 1) / kRowsOnChip * kTogether;
    warps_ = min(min(Team::warps(), fit), wanted);
    count_ = min(Config::kStages, i32(room - warps_ * kWarpBytes) / kStageBytes);
    queries_ = chip, stages_ = chip + warps_ * kWarpBytes;
  }

  void run() {
    for (i32 first = 0; first < work_.queries; first += warps_ * kQueries)
      for (i32 part = 0; part < kKeyDim; part += kValueDim) run_pass(first, part);
  }

 private:
  // A lane's two queries: lane / 4 of the warp's, and lane / 4 + 8.
  struct Group {
    i32 first;                       // query
    i32 begin[2], end[2];            // positions that they see
    i32 any_begin = 0, any_end = 0;  // that some of those of the warps that go together see
    i32 all_begin = 0, all_end = 0;  // that all of the warp's see
    RunningSoftmax softmax;
    float sums[kValueDim / 8][4] = {};
    u32 weights[kStep / 16][4];  // kOnChip: the last step's, rounded
  };

  Group group_of(i32 first_of_pass) const {
    const i32 lane = Team::lane(), warp = Team::warp();
    Group group{.first = first_of_pass + warp * kQueries};
    const i32 last = work_.queries - 1;
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i32 query = min(group.first + lane / 4 + 8 * r, last);
      group.begin[r] = max(work_.begin(), work_.first_seen(query));
      group.end[r] = min(work_.end(), work_.end_seen(query));
    }
    const i32 of_all = first_of_pass + warp / kTogether * kRowsOnChip;
    if (warp >= warps_ || of_all > last) return group;
    group.any_begin = max(work_.begin(), work_.first_seen(of_all));
    group.any_end = min(work_.end(), work_.end_seen(min(of_all + kRowsOnChip - 1, last)));
    if (group.first > last) return group;
    const i32 behind = min(group.first + kQueries - 1, last);
    group.all_begin = max(work_.begin(), work_.first_seen(behind));
    group.all_end = min(work_.end(), work_.end_seen(group.first));
    return group;
  }

  // Runs the pass for the values' dimensions from `part` on.
  void run_pass(i32 first, i32 part) {
    Team::sync();  // all warps have read the stages of the previous pass
    const i32 last = min(first + warps_ * kQueries, work_.queries) - 1;
    const i32 begin = max(work_.begin(), work_.first_seen(first)) / kStep * kStep;
    const i32 end = min(work_.end(), work_.end_seen(last));
    copy_queries(first, last);
    for (i32 s = 0; s < count_ - 1; ++s) fill(s, begin + s * kStep, end, part);
    Group group = group_of(first);
    i32 stage = 0;
#pragma unroll 1
    for (i32 at = begin; at < end; at += kStep) {
      arch::wait_copies(count_ - 2);
      if constexpr (kOnChip) arch::show_copies(), wait_values(group);
      Team::sync();
      fill(stage == 0 ? count_ - 1 : stage - 1, at + (count_ - 1) * kStep, end, part);
      if (at + kStep > group.any_begin && at < group.any_end) add(group, stages_ + stage * kStageBytes, at);
      stage = stage + 1 < count_ ? stage + 1 : 0;
    }
    if constexpr (kOnChip) wait_values(group);
    store(group, part);
  }

  // Where a word of a row lies on chip. `rows`: those of its block.
  template <i32 kDim>
  static i32 word_at(i32 row, i32 word, i32 rows) {
    if constexpr (kOnChip) return word / 8 * rows * 128 + row * 128 + (word % 8 ^ row % 8) * kWord;
    return row * (2 * kDim + kPad) + word * kWord;
  }
  // The products of weights and values are done.
  static void wait_values(Group& group) {
    arch::wait_products<0>();
    arch::keep(flat(group.sums));
    keep_fragments(group.weights);
  }
  template <i32 kCount>
  static float (&flat(float (&sums)[kCount][4]))[4 * kCount] {
    return reinterpret_cast<float(&)[4 * kCount]>(sums);
  }

  void copy_queries(i32 first, i32 last) const {
    constexpr i32 kWords = kKeyDim / 8;
    for (i32 i = Team::thread(); i < warps_ * kQueries * kWords; i += Team::size()) {
      const i32 at = i / kWords, word = i % kWords, query = min(first + at, last);
      const u8* from = a_.q.data + (i64(work_.row(query)) * a_.q.stride[0] + work_.head(query) * kKeyDim) * 2;
      const i32 block = at / kRowsOnChip * kRowsOnChip;
      arch::copy_word(queries_ + block * kKeyRow + word_at<kKeyDim>(at - block, word, kRowsOnChip),
                      from + word * kWord, true);
    }
  }

  // Begins the copies of the step at position `at`, zeros where it has none. One group of copies, empty from `end` on.
  void fill(i32 stage, i32 at, i32 end, i32 part) const {
    u8* to = stages_ + stage * kStageBytes;
    if (at < end) {
      copy_rows<kKeyDim>(to, a_.keys, a_.k, at, end, 0);
      copy_rows<kValueDim>(to + kStep * kKeyRow, a_.values, a_.v, at, end, part);
    }
    arch::commit_copies();
  }
  template <i32 kDim>
  void copy_rows(u8* to, const Tensor& pages, const Tensor& rows, i32 at, i32 end, i32 part) const {
    constexpr i32 kWords = kDim / 8;
    for (i32 i = Team::thread(); i < kStep * kWords; i += Team::size()) {
      const i32 position = at + i / kWords, word = i % kWords;
      const bool there = position >= work_.begin() && position < end;
      const u8* from =
          there ? work_.row_of(pages, rows, position, kKeyDim) + part * 2 + word * kWord : pages.data;
      arch::copy_word(to + word_at<kDim>(i / kWords, word, kStep), from, there);
    }
  }

  void add(Group& group, const u8* stage, i32 at) const {
    if constexpr (kOnChip) return add_on_chip(group, arch::on_chip(stage), at);
    float scores[kStep / 8][4] = {};
    multiply_keys(scores, stage);
    weigh(group, scores, at);
    const i32 lane = Team::lane();
    const u8* values = stage + kStep * kKeyRow + lane % 16 * kValueRow + lane / 16 * kWord;
#pragma unroll
    for (i32 t = 0; t < kStep / 16; ++t) {
      const auto& left = scores[2 * t];
      const auto& right = scores[2 * t + 1];
      const u32 weights[4] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]),
                              pack(right[2], right[3])};
#pragma unroll
      for (i32 d = 0; d < kValueDim / 16; ++d) {
        u32 value[4];
        arch::load_transposed(value, values + t * 16 * kValueRow + 2 * d * kWord);
        arch::multiply_add<kBf16>(group.sums[2 * d], weights, {value[0], value[1]});
        arch::multiply_add<kBf16>(group.sums[2 * d + 1], weights, {value[2], value[3]});
      }
    }
  }

  // The products of weights and values run on while the next step's copies are waited for.
  void add_on_chip(Group& group, arch::OnChip stage, i32 at) const {
    float scores[kStep / 8][4];
    const i32 block = Team::warp() / kTogether * kRowsOnChip;
    multiply_queries<kTerms, kKeyDim, kQueryTile, kKeyTile>(flat(scores),
                                                            arch::on_chip(queries_ + block * kKeyRow), stage);
    arch::wait_products<0>();
    arch::keep(flat(scores));
    weigh(group, scores, at);
#pragma unroll
    for (i32 t = 0; t < kStep / 16; ++t) {
      const auto& left = scores[2 * t];
      const auto& right = scores[2 * t + 1];
      group.weights[t][0] = pack(left[0], left[1]), group.weights[t][1] = pack(left[2], left[3]);
      group.weights[t][2] = pack(right[0], right[1]), group.weights[t][3] = pack(right[2], right[3]);
    }
    multiply_weights<kTerms, kValueTile>(flat(group.sums), group.weights,
                                         arch::descriptor<kValueTile.turned()>(stage + u32(kStep * kKeyRow)),
                                         true);
  }

  void multiply_keys(float (&scores)[kStep / 8][4], const u8* keys) const {
    const i32 lane = Team::lane(), warp = Team::warp();
    const u8* query = queries_ + warp * kWarpBytes + lane % 16 * kKeyRow + lane / 16 * kWord;
    keys += (lane / 16 * 8 + lane % 8) * kKeyRow + lane / 8 % 2 * kWord;
#pragma unroll
    for (i32 k = 0; k < kKeyDim / 16; ++k) {
      u32 left[4];
      arch::load_matrices(left, query + 2 * k * kWord);
#pragma unroll
      for (i32 n = 0; n < kStep / 16; ++n) {
        u32 key[4];
        arch::load_matrices(key, keys + n * 16 * kKeyRow + 2 * k * kWord);
        arch::multiply_add<kBf16>(scores[2 * n], left, {key[0], key[1]});
        arch::multiply_add<kBf16>(scores[2 * n + 1], left, {key[2], key[3]});
      }
    }
  }

  // Turns scores into weights. Older sums decay.
  void weigh(Group& group, float (&scores)[kStep / 8][4], i32 at) const {
    if (modifies_scores(a_)) modify_scores(a_, flat(scores));
    if (at < group.all_begin || at + kStep > group.all_end) hide(group, scores, at);
    group.softmax.take(flat(scores), softmax_exponent(a_));
    group.softmax.scale_sums(flat(group.sums));
  }
  static void hide(const Group& group, float (&scores)[kStep / 8][4], i32 at) {
    const i32 column = at + Team::lane() % 4 * 2;
#pragma unroll
    for (i32 n = 0; n < kStep / 8; ++n)
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const i32 position = column + 8 * n + i % 2;
        if (position < group.begin[i / 2] || position >= group.end[i / 2])
          scores[n][i] = RunningSoftmax::kMasked;
      }
  }

  static u32 pack(float first, float second) {
    return pack_two(kBf16 ? DType::kBf16 : DType::kF16, first, second);
  }

  void store(Group& group, i32 part) const {
    const i32 lane = Team::lane();
    group.softmax.join_lanes();
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const float total = group.softmax.total[r];
      const i32 query = group.first + lane / 4 + 8 * r;
      if (Team::warp() >= warps_ || query >= work_.queries) continue;
      const i32 row = work_.row(query), head = work_.head(query);
      const View out = view(a_.part, row, head).from(part + lane % 4 * 2);
      const float share = total == 0 ? 0.0f : 1 / total;
#pragma unroll
      for (i32 d = 0; d < kValueDim / 8; ++d)
        store_two(out.from(8 * d), group.sums[d][2 * r] * share, group.sums[d][2 * r + 1] * share);
      if (part == 0 && lane % 4 == 0)
        store_two(view(a_.stats, row, head), best_score(a_, group.softmax, r), total);
    }
  }
  View view(const Tensor& made, i32 row, i32 head) const {
    return View{made.data, made.dtype}.from(row * i64(made.stride[0]) + head * i64(made.stride[1]) +
                                            work_.split * i64(made.stride[2]));
  }

  const Attention& a_;
  const Body::Work& work_;
  i32 warps_, count_;  // warps that have queries; stages
  u8 *queries_, *stages_;
};

}  // namespace attention
