// Searches a filter's threshold in the parts that sample_parts made of a row, on a GPU from sm_80 on.
// A slice's scores lie in descending order, in blocks of 32. Above a threshold t, a sum has at least the blocks whose last score is
// above t, and at most those whose first score is above t. So the search first narrows a range by blocks alone, which threads
// hold in registers; it then loads the scores of the blocks that the range still touches and halves on. If there are too many slices
// or blocks for the registers, it reads the blocks from memory in each halving instead.
// Every sum has a fixed order. Included once per device program, after sample.cuh.
namespace sample {

// A filter's limit: the sum of the weights of the scores above the threshold, or their number, stays below `value`.
struct Limit {
  bool of_weight;
  float value;
};

struct Slices {
  static constexpr i32 kSize = ScoreSlices::kSize, kBlock = ScoreSlices::kBlock;
  static constexpr i32 kAtATime = 4;   // slices that a warp sums together; 16 are four times the code
  static constexpr float kRange = 32;  // a score e^32 times less likely than the best counts for nothing
  static_assert(kBlock == 32 && ScoreSlices::kBlocks == 32 && ScoreSlices::kParts == 4);

  const float4* best;   // [number]
  const float* sorted;  // [number, kSize]
  const float* blocks;  // [number, kPlanes, 32]
  i32 number, vocab;

  // The lane's block of a slice.
  float plane(i32 slice, i32 which) const {
    const i32 lane = Team::lane();
    return blocks[(slice * ScoreSlices::kPlanes + which) * 32 + lane];
  }
  // The lane's score of a block, counted over all slices.
  float score(i32 block) const { return sorted[block * kBlock + Team::lane()]; }
  // The factor from weights of a slice, which are relative to its best score, to weights relative to the row's.
  template <class Row>
  float worth(const Row& row, i32 slice) const {
    const float score = best[slice].x;
    return score > identity(Max()) ? weight_of((score - row.top) * row.inverse_temperature) : 0.0f;
  }
  // The lowest score that counts for anything.
  template <class Row>
  static float bottom(const Row& row) {
    return row.top - kRange / max(row.inverse_temperature, 1e-30f);
  }
  static float float_below(float value) {
    const u32 bits = __builtin_bit_cast(u32, value);
    if (value == 0) return -1e-37f;
    return __builtin_bit_cast(float, value > 0 ? bits - 1 : bits + 1);
  }

  // sums[slice] = what counted(score) says, summed over the slice's scores: whole blocks, and the scores of the block of which
  // only some count. counted must be 0 up to some score and, above it, the score's weight or 1. A warp sums kAtATime slices at
  // a time.
  template <class Block, class Row, class Counted>
  void sum(Block& block, const Row& row, bool of_weight, float* sums, Counted&& counted) const {
    const i32 lane = Team::lane(), warp = Team::warp();
#pragma unroll 1
    for (i32 begin = warp; begin < number; begin += kAtATime * Team::warps()) {
      float mine[kAtATime];
      i32 cut[kAtATime];  // the block of which only some scores count; -1: none
#pragma unroll
      for (i32 n = 0; n < kAtATime; ++n) {
        const i32 slice = min(begin + n * Team::warps(), number - 1);
        const bool some = counted(plane(slice, ScoreSlices::kFirst)) > 0;
        const bool all = counted(plane(slice, ScoreSlices::kLast)) > 0;
        mine[n] = !all        ? 0.0f
                  : of_weight ? plane(slice, ScoreSlices::kWeight) * worth(row, slice)
                              : plane(slice, ScoreSlices::kCount);
        const u32 votes = Team::vote(some && !all);
        cut[n] = votes != 0 ? slice * 32 + __popc((votes & (~votes + 1)) - 1) : -1;
      }
#pragma unroll
      for (i32 n = 0; n < kAtATime; ++n) mine[n] += cut[n] >= 0 ? counted(score(max(cut[n], 0))) : 0.0f;
        // Sums all of them over the lanes at once: in each step, lanes with the bit set go on with the second half.
#pragma unroll
      for (i32 half = kAtATime / 2, step = 16; half > 0; half /= 2, step /= 2)
#pragma unroll
        for (i32 n = 0; n < half; ++n) {
          const bool second = (lane & step) != 0;
          const float other = Team::across(second ? mine[n] : mine[n + half], step);
          mine[n] = (second ? mine[n + half] : mine[n]) + other;
        }
      constexpr i32 kLanes = 32 / kAtATime;  // that have a part of the same slice now
#pragma unroll
      for (i32 step = kLanes / 2; step > 0; step /= 2) mine[0] += Team::across(mine[0], step);
      const i32 slice = begin + lane / kLanes * Team::warps();
      if (lane % kLanes == 0 && slice < number) sums[slice] = mine[0];
    }
    block.sync();
  }
  template <class Block>
  float total(Block& block, const float* sums) const {
    float mine = 0;
#pragma unroll 1
    for (i32 i = Team::thread(); i < number; i += Team::size()) mine += sums[i];
    return block.reduce(Sum(), mine);
  }

  // The threshold for any number of slices and equal scores. Uses sums[number].
  template <class Block, class Row>
  float find_in_memory(Block& block, const Row& row, const Limit& limit, float* sums) const {
    const auto above = [&](float t, bool of_weight) {
      sum(block, row, of_weight, sums,
          [&](float score) { return score > t ? of_weight ? row.weight_of_kept(score) : 1.0f : 0.0f; });
      return total(block, sums);
    };
    Range range = {bottom(row), row.top};
    return range.find(
        limit.value, [&](float t) { return above(t, limit.of_weight); },
        [&](const Range& in) {
          float below_high = 0, inside = 0;
#pragma unroll 1
          for (i32 end = 0; end < 2; ++end)
            below_high = inside, inside = above(end == 0 ? float_below(in.high) : in.low, false);
          return inside > below_high;
        });
  }
};

// The search in registers: lanes hold blocks of a slice, warps take slices in turn, kOfWarp of them each.
template <i32 kOfWarp, class Block, class Row>
struct Search {
  static constexpr i32 kSlots = 48;  // scores that a thread looks at
  static constexpr i32 kMostBlocks = kSlots * Team::warps();
  // Halvings of the range before the search counts the blocks that it touches, and how often it does both.
  static constexpr i32 kHalvings = 10, kRounds = 4;

  Block& block;
  const Row& row;
  const Slices& parts;
  Limit limit;
  Pair* sums;   // [2, Team::warps()]
  i32* found;   // [kMostBlocks]
  i32* counts;  // [Team::warps()]
  i32 turn = 0;
  Range range;
  float first[kOfWarp], last[kOfWarp], amount[kOfWarp];

  static i32 lane() { return Team::lane(); }
  static i32 warp() { return Team::warp(); }

  // Sums both values over all threads. Two buffers take turns, so that one barrier is enough.
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
    range = {max(Slices::bottom(row), Slices::float_below(lowest)), row.top};
  }

  // Narrows the range by what the blocks above it have at least, and at most.
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
  bool touches(i32 n) const { return first[n] > range.low && last[n] <= range.high; }

  // Lists the blocks that the range touches, as many as fit, and returns their number. above: the sum of the blocks above it.
  i32 list(float& above) {
    i32 mine = 0;
    float sure = 0;
#pragma unroll
    for (i32 n = 0; n < kOfWarp; ++n) {
      mine += __popc(Team::vote(touches(n)));
      sure += last[n] > range.high ? amount[n] : 0.0f;
    }
    if (lane() == 0) counts[warp()] = mine;
    above = sum(sure, 0).first;
    i32 at = 0, all = 0;
#pragma unroll
    for (i32 w = 0; w < Team::warps(); ++w) at += w < warp() ? counts[w] : 0, all += counts[w];
#pragma unroll
    for (i32 n = 0; n < kOfWarp; ++n) {
      const u32 votes = Team::vote(touches(n));
      const i32 place = at + __popc(votes & ((1u << lane()) - 1));
      if (touches(n) && place < kMostBlocks) found[place] = (warp() + n * Team::warps()) * 32 + lane();
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
    return range.find(
        limit.value,
        [&](float t) {
          float higher = 0;
#pragma unroll
          for (i32 n = 0; n < kSlots; ++n) higher += score[n] > t ? its[n] : 0.0f;
          return above + sum(higher, 0).first;
        },
        [&](const Range& in) {
          float between = 0;
#pragma unroll
          for (i32 n = 0; n < kSlots; ++n) between += in.low < score[n] && score[n] < in.high ? 1.0f : 0.0f;
          return sum(between, 0).first > 0;
        });
  }

  // False: there are too many blocks that may hold the threshold.
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

}  // namespace sample
