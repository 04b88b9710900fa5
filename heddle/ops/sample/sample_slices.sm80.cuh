// The choice on a GPU from what sample_parts made of slices of the scores. Of a greedy choice, the slices' bests. A threshold lies
// between two scores of which blocks of the slices' sorted scores tell: what lies above for sure, and what may. Those blocks
// that it may lie in are looked at score by score. The token is searched in the sums of slices, then in the slice. All sums have
// a fixed order.
// Included once per device program, behind sample_passes.sm80.cuh, which takes thresholds that do not fit here.
namespace sample {

struct Slices : Passes {
  static constexpr i32 kSize = ScoreSlices::kSize, kBlock = ScoreSlices::kBlock;
  static constexpr i32 kMost = 4096;  // slices whose sums lie on chip
  static constexpr i32 kSlots = 48;   // scores that a thread looks at
  static constexpr i32 kMostBlocks = kSlots * Team::warps();
  // Of where a threshold may lie: before blocks are counted, and of scores, until one is asked whether it is left.
  static constexpr i32 kHalvings = 10, kFirstHalvings = 12, kMoreHalvings = 3;
  static constexpr i32 kRounds = 4;  // of these
  static_assert(kBlock == 32 && ScoreSlices::kBlocks == 32 && ScoreSlices::kParts == 4);

  // A row's parts in memory.
  struct Parts {
    const float4* best;   // [number]
    const float* sorted;  // [number, kSize]
    const float* blocks;  // [number, kPlanes, 32]
    i32 number, vocab;

    float plane(i32 slice, i32 which) const {
      const i32 lane = Team::lane();
      return blocks[(slice * ScoreSlices::kPlanes + which) * 32 + lane];
    }
    // The lane's score of a block, counted over all slices.
    float score(i32 block) const { return sorted[block * kBlock + Team::lane()]; }
    // What weights of a slice, relative to its best, are worth beside the row's best.
    template <class Row>
    float worth(const Row& row, i32 slice) const {
      const float score = best[slice].x;
      return score > identity(Max()) ? weight_of((score - row.top) * row.inverse_temperature) : 0.0f;
    }
  };

  // Where a threshold lies: above `low`, whose sum has reached the limit, and not above `high`.
  struct Range {
    float low, high;

    float middle() const { return 0.5f * low + 0.5f * high; }
    void halve(float at, float sum, float limit) { (sum < limit ? high : low) = at; }
    bool is_one() const { return middle() <= low || middle() >= high; }
  };

  // The search for a threshold: lanes have blocks of a slice, warps slices in turn.
  template <i32 kOfWarp, class Block, class Row>
  struct Search {
    Block& block;
    const Row& row;
    const Parts& parts;
    Limit limit;  // its value is what a sum must not reach
    Pair* sums;   // [2, Team::warps()]
    i32* found;   // [kMostBlocks]
    i32* counts;  // [Team::warps()]
    i32 turn = 0;
    Range range;
    float first[kOfWarp], last[kOfWarp], amount[kOfWarp];

    static i32 lane() { return Team::lane(); }
    static i32 warp() { return Team::warp(); }

    // Of what each thread has; two buffers in turn.
    Pair sum(float a, float b) {
      a = Team::over_warp(Sum(), a), b = Team::over_warp(Sum(), b);
      turn ^= Team::warps();
      if (lane() == 0) sums[turn + warp()] = {a, b};
      block.sync();
      Pair all = sums[turn];
#pragma unroll
      for (i32 w = 1; w < Team::warps(); ++w)
        all.first += sums[turn + w].first, all.second += sums[turn + w].second;
      return all;
    }

    void load() {
      const float none = identity(Max());
#pragma unroll
      for (i32 n = 0; n < kOfWarp; ++n) {
        const i32 slice = min(warp() + n * Team::warps(), parts.number - 1);
        first[n] = parts.plane(slice, ScoreSlices::kFirst), last[n] = parts.plane(slice, ScoreSlices::kLast);
        amount[n] = parts.plane(slice, limit.of_weight ? ScoreSlices::kWeight : ScoreSlices::kCount);
        if (limit.of_weight) amount[n] *= parts.worth(row, slice);
      }
      float lowest = row.top;
#pragma unroll
      for (i32 n = 0; n < kOfWarp; ++n) {
        if (warp() + n * Team::warps() >= parts.number) first[n] = last[n] = none, amount[n] = 0;
        if (last[n] > none) lowest = min(lowest, last[n]);
      }
      lowest = block.reduce(Min(), lowest);
      // What is e^32 times less likely than the best counts for nothing.
      const float bottom = max(row.top - kRange / max(row.inverse_temperature, 1e-30f), float_below(lowest));
      range = {bottom, row.top};
    }
    static float float_below(float value) {
      const u32 bits = __builtin_bit_cast(u32, value);
      if (value == 0) return -1e-37f;
      return __builtin_bit_cast(float, value > 0 ? bits - 1 : bits + 1);
    }

    // Narrows the range by what blocks above it have at least, and at most.
    void narrow() {
      Range least = range, most = range;
#pragma unroll 1
      for (i32 i = 0; i < kHalvings; ++i) {
        const float at_least = least.middle(), at_most = most.middle();
        float lower = 0, upper = 0;
#pragma unroll
        for (i32 n = 0; n < kOfWarp; ++n) {
          lower += last[n] > at_least ? amount[n] : 0.0f;
          upper += first[n] > at_most ? amount[n] : 0.0f;
        }
        const Pair both = sum(lower, upper);
        least.halve(at_least, both.first, limit.value), most.halve(at_most, both.second, limit.value);
      }
      range = {least.low, most.high};
    }
    bool may_have_it(i32 n) const { return first[n] > range.low && last[n] <= range.high; }

    // Lists the blocks that the threshold may lie in, as many as fit; their number. above: the sum of those that lie above.
    i32 list(float& above) {
      i32 mine = 0;
      float sure = 0;
#pragma unroll
      for (i32 n = 0; n < kOfWarp; ++n) {
        mine += __popc(Team::vote(may_have_it(n)));
        sure += last[n] > range.high ? amount[n] : 0.0f;
      }
      if (lane() == 0) counts[warp()] = mine;
      above = sum(sure, 0).first;
      i32 at = 0, all = 0;
#pragma unroll
      for (i32 w = 0; w < Team::warps(); ++w) at += w < warp() ? counts[w] : 0, all += counts[w];
#pragma unroll
      for (i32 n = 0; n < kOfWarp; ++n) {
        const u32 votes = Team::vote(may_have_it(n));
        const i32 place = at + __popc(votes & ((1u << lane()) - 1));
        if (may_have_it(n) && place < kMostBlocks) found[place] = (warp() + n * Team::warps()) * 32 + lane();
        at += __popc(votes);
      }
      block.sync();
      return all;
    }

    // The threshold among the scores of `number` listed blocks.
    float among(i32 number, float above) {
      const float none = identity(Max());
      float score[kSlots], its[kSlots];
#pragma unroll
      for (i32 n = 0; n < kSlots; ++n) {
        const i32 i = warp() + n * Team::warps();
        score[n] = i < number ? parts.score(found[i]) : none;
      }
#pragma unroll
      for (i32 n = 0; n < kSlots; ++n)
        its[n] = score[n] > none ? limit.of_weight ? row.weight_of_kept(score[n]) : 1.0f : 0.0f;
      for (i32 times = kFirstHalvings;; times = kMoreHalvings) {
#pragma unroll 1
        for (i32 i = 0; i < times; ++i) {
          const float at = range.middle();
          float higher = 0;
#pragma unroll
          for (i32 n = 0; n < kSlots; ++n) higher += score[n] > at ? its[n] : 0.0f;
          range.halve(at, above + sum(higher, 0).first, limit.value);
        }
        float between = 0;
#pragma unroll
        for (i32 n = 0; n < kSlots; ++n)
          between += range.low < score[n] && score[n] < range.high ? 1.0f : 0.0f;
        if (!(sum(between, 0).first > 0)) return range.high;
      }
    }

    // False: it does not fit.
    bool find(float& threshold) {
      load();
#pragma unroll 1
      for (i32 round = 0; round < kRounds; ++round) {
        narrow();
        threshold = range.high;
        if (range.is_one()) return true;
        float above;
        const i32 number = list(above);
        if (number > kMostBlocks) continue;
        threshold = among(number, above);
        return true;
      }
      return false;
    }
  };

  template <i32 kOfWarp, class Block, class Row>
  static bool find_in_blocks(Block& block, const Row& row, const Parts& parts, const Limit& limit,
                             float& kept) {
    const ScratchMark before = block.scratch_mark();
    auto* sums = reinterpret_cast<Pair*>(block.scratch(4 * Team::warps()).data);
    auto* found = reinterpret_cast<i32*>(block.scratch(kMostBlocks).data);
    auto* counts = reinterpret_cast<i32*>(block.scratch(Team::warps()).data);
    Search<kOfWarp, Block, Row> search{block, row, parts, limit, sums, found, counts};
    const bool is_found = search.find(kept);
    block.sync();
    block.release(before);
    return is_found;
  }
  // share: as Passes::find takes it.
  template <class Block, class Row>
  static float threshold_of(Block& block, const Row& row, const Parts& parts, const Limit& limit,
                            float share) {
    constexpr i32 kFew = 16 * Team::warps(), kMany = 32 * Team::warps();
    float kept = 0;
    if constexpr (Kernel::kKnowsSizes)  // else the search for many is code enough
      if (parts.number <= kFew && find_in_blocks<16>(block, row, parts, limit, kept)) return kept;
    if ((!Kernel::kKnowsSizes || parts.number > kFew) && parts.number <= kMany &&
        find_in_blocks<32>(block, row, parts, limit, kept))
      return kept;
    return Passes::find(block, parts.vocab, row, Limit{limit.of_weight, share});
  }

  // What is kept of each slice, by its warp: whole blocks, and the scores of the one that is kept in part.
  template <class Block, class Row>
  static void keep(Block& block, const Row& row, const Parts& parts, float* sums) {
    constexpr i32 kAtATime = 16;
    const i32 lane = Team::lane(), warp = Team::warp();
#pragma unroll 1
    for (i32 begin = warp; begin < parts.number; begin += kAtATime * Team::warps()) {
      float mine[kAtATime];
      i32 cut[kAtATime];  // the block that is kept in part; -1: none
#pragma unroll
      for (i32 n = 0; n < kAtATime; ++n) {
        const i32 slice = min(begin + n * Team::warps(), parts.number - 1);
        const bool some = row.weight_of_score(parts.plane(slice, ScoreSlices::kFirst)) > 0;
        const bool all = row.weight_of_score(parts.plane(slice, ScoreSlices::kLast)) > 0;
        mine[n] = all ? parts.plane(slice, ScoreSlices::kWeight) * parts.worth(row, slice) : 0.0f;
        const u32 votes = Team::vote(some && !all);
        cut[n] = votes != 0 ? slice * 32 + __popc((votes & (~votes + 1)) - 1) : -1;
      }
#pragma unroll
      for (i32 n = 0; n < kAtATime; ++n)
        mine[n] += cut[n] >= 0 ? row.weight_of_score(parts.score(max(cut[n], 0))) : 0.0f;
        // Sums over lanes of all of them at once: those with a bit set go on with the second half.
#pragma unroll
      for (i32 half = kAtATime / 2, step = 16; half > 0; half /= 2, step /= 2)
#pragma unroll
        for (i32 n = 0; n < half; ++n) {
          const bool second = (lane & step) != 0;
          const float other = Team::across(second ? mine[n] : mine[n + half], step);
          mine[n] = (second ? mine[n + half] : mine[n]) + other;
        }
      mine[0] += Team::across(mine[0], 1);
      const i32 slice = begin + lane / 2 * Team::warps();
      if (lane % 2 == 0 && slice < parts.number) sums[slice] = mine[0];
    }
    block.sync();
  }

  // A word of four tokens, whose row may begin anywhere; past the end, and where there is no number, minus infinity.
  template <class Row>
  static float4 word_at(const Row& row, i32 vocab, i32 at) {
    const float none = identity(Max());
    const auto* scores = reinterpret_cast<const float*>(row.logits.data);
    float4 word = {none, none, none, none};
    if (reinterpret_cast<u64>(scores) % 16 == 0 && 4 * at + 4 <= vocab) {
      word = reinterpret_cast<const float4*>(scores)[at];
    } else {
      if (4 * at < vocab) word.x = scores[4 * at];
      if (4 * at + 1 < vocab) word.y = scores[4 * at + 1];
      if (4 * at + 2 < vocab) word.z = scores[4 * at + 2];
      if (4 * at + 3 < vocab) word.w = scores[4 * at + 3];
    }
    if (row.penalised) word = penalised(row, min(at, (vocab - 1) / 4), word);
    return {max(word.x, none), max(word.y, none), max(word.z, none), max(word.w, none)};
  }

  // The token of a draw among all that options leave.
  template <class Block, class Row>
  static i32 draw_from(Block& block, const Parts& parts, const StepSequence& options, float share, Row& row) {
    const ScratchMark before_it = block.scratch_mark();
    auto* sums = reinterpret_cast<float*>(block.scratch(parts.number + 1).data);
    for (i32 s = Team::thread(); s < parts.number; s += Team::size())
      sums[s] = parts.best[s].z * parts.worth(row, s);
    block.sync();
#pragma unroll 1
    for (i32 filter = options.drops(parts.vocab) ? 0 : 3; filter < 3; ++filter) {
      if (filter == 2) {
        if (!(options.min_p > 0)) continue;
        row.min_weight = options.min_p;
      } else {
        const bool of_weight = filter == 1;
        if (of_weight ? !(options.top_p < 1) : options.top_k <= 0 || options.top_k >= parts.vocab) continue;
        const float share_kept = of_weight ? options.top_p : float(options.top_k);
        const float all =
            of_weight ? block.reduce(parts.number, Sum(), [&](Index i) { return sums[i.at]; }) : 1.0f;
        row.kept =
            max(row.kept, threshold_of(block, row, parts, Limit{of_weight, share_kept * all}, share_kept));
      }
      keep(block, row, parts, sums);
    }
    auto* chosen = reinterpret_cast<i32*>(sums + parts.number);
    if (Team::warp() == 0) {
      float wanted, before;
      const i32 slice = part_past(sums, parts.number, share, wanted, before);
      i32 token = 0;
      if (slice >= 0)
        token = token_past<kSize / 128>(block, slice * (kSize / 4), wanted, before, [&](i32 at) {
          return weights_of(row, word_at(row, parts.vocab, at));
        });
      if (Team::thread() == 0) *chosen = token;
    }
    block.sync();
    const i32 token = *chosen;
    block.sync();
    block.release(before_it);
    return token;
  }

  template <class Block, class Row>
  static i32 pick(Block& block, const Sample& a, i32 m, const StepSequence& options, u32 draw, Row& row) {
    const Parts parts{reinterpret_cast<const float4*>(block.row(a.best, m, 0).data),
                      reinterpret_cast<const float*>(block.row(a.sorted, m, 0).data),
                      reinterpret_cast<const float*>(block.row(a.blocks, m, 0, 0).data), a.best.size[1],
                      a.logits.last()};
    float value = identity(Max());
    i32 index = parts.vocab;
    for (i32 s = Team::thread(); s < parts.number; s += Team::size()) {
      const float4 best = parts.best[s];
      if (best.x > value) value = best.x, index = i32(best.y);
    }
    const Best best = block.best_of(value, index, parts.vocab);
    if (!(options.temperature > 0) || !(best.value > identity(Max()))) return best.index;
    row.top = best.value;
    return draw_from(block, parts, options, uniform_draw(options.seed, draw), row);
  }
};

}  // namespace sample
