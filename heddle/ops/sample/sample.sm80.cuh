// Sample on a GPU from sm_80 on, from what sample_parts made of slices of the scores: a greedy token is the best of the slices'
// bests. Otherwise the filters' thresholds are searched in the slices' sorted scores, and the token in the sums of what
// each slice keeps. Without parts, and for more slices than fit on chip, the generic body reads all scores.
// Included once per device program, after sample.cuh.
#include "heddle/ops/sample/sample_draw.sm80.cuh"
#include "heddle/ops/sample/sample_slices.sm80.cuh"

namespace sample {

struct DeviceBody : Body {
  static constexpr i32 kMostSlices = 4096;  // whose sums lie on chip

  template <i32 kOfWarp, class Block, class Row>
  static bool find_in_registers(Block& block, const Row& row, const Slices& parts, const Limit& limit,
                                float& kept) {
    using Found = Search<kOfWarp, Block, Row>;
    const ScratchMark before = block.scratch_mark();
    auto* sums = reinterpret_cast<Pair*>(block.scratch(4 * Team::warps()).data);
    auto* found = reinterpret_cast<i32*>(block.scratch(Found::kMostBlocks).data);
    auto* counts = reinterpret_cast<i32*>(block.scratch(Team::warps()).data);
    Found search{block, row, parts, limit, sums, found, counts};
    const bool is_found = search.find(kept);
    block.sync();
    block.release(before);
    return is_found;
  }
  // Uses sums[parts.number].
  template <class Block, class Row>
  static float threshold_of(Block& block, const Row& row, const Slices& parts, const Limit& limit,
                            float* sums) {
    constexpr i32 kFew = 16 * Team::warps(), kMany = 32 * Team::warps();
    float kept = 0;
    if constexpr (Kernel::kKnowsSizes)  // else the search for many is code enough
      if (parts.number <= kFew && find_in_registers<16>(block, row, parts, limit, kept)) return kept;
    if ((!Kernel::kKnowsSizes || parts.number > kFew) && parts.number <= kMany &&
        find_in_registers<32>(block, row, parts, limit, kept))
      return kept;
    return parts.find_in_memory(block, row, limit, sums);
  }

  // The warps find it together, on chip.
  struct Found {
    Draw::Place slice;
    float of_warp[Team::warps()];
    i32 token;
  };
  static_assert(4 * Team::size() == Slices::kSize, "a thread has four tokens of a slice");

  // The token of a draw among all that the options leave.
  template <class Block, class Row>
  static i32 draw_from(Block& block, const Slices& parts, const StepSequence& options, float share,
                       Row& row) {
    const ScratchMark before_it = block.scratch_mark();
    auto* sums = reinterpret_cast<float*>(block.scratch(parts.number).data);
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
        const float limit = of_weight ? options.top_p * parts.total(block, sums) : float(options.top_k);
        row.kept = max(row.kept, threshold_of(block, row, parts, Limit{of_weight, limit}, sums));
      }
      parts.sum(block, row, true, sums, [&](float score) { return row.weight_of_score(score); });
    }
    auto* found = reinterpret_cast<Found*>(block.scratch(sizeof(Found) / 4).data);
    if (Team::warp() == 0) {
      const Draw::Place place = Draw::part_past(sums, parts.number, share);
      if (Team::lane() == 0) found->slice = place, found->token = 0;
    }
    block.sync();
    const Draw::Place slice = found->slice;
    if (slice.index >= 0) {
      const i32 first = slice.index * (Slices::kSize / 4);
      const float4 weights = Draw::weights_of(row, parts.vocab, first + Team::thread());
      Draw::token_past(first, slice, weights, found->of_warp, &found->token);
    }
    block.sync();
    const i32 token = found->token;
    block.sync();
    block.release(before_it);
    return token;
  }

  template <class Block, class Row>
  static i32 pick(Block& block, const Sample& a, i32 m, const StepSequence& options, u32 draw, Row& row) {
    const Slices parts{reinterpret_cast<const float4*>(block.row(a.best, m, 0).data),
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
    if (!is_choice(best)) return StepArrays::kNoToken;
    if (!(options.temperature > 0)) return best.index;
    row.top = best.value;
    return draw_from(block, parts, options, uniform_draw(options.seed, draw), row);
  }

  template <class Block>
  static void run(Block& block, const Sample& a, const TileCoord& t) {
    if (a.best.exists() && a.best.size[1] <= kMostSlices)
      run_with<DeviceBody>(block, a, t);
    else
      run_with<Body>(block, a, t);
  }
};

}  // namespace sample
