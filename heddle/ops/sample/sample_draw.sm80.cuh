// Finds the token at which a running sum of weights passes a share of their total, on a GPU from sm_80 on. One warp searches the
// sums of the slices. Then each warp sums 128 tokens of that slice, and one searches its lanes and the four scores of a word.
// Every sum has a fixed order.
// Included once per device program, after sample.cuh.
namespace sample {

struct Draw {
  // The sum of the values of all lanes up to and including the caller's.
  static float sum_to(float value) {
    const i32 lane = Team::lane();
#pragma unroll
    for (i32 step = 1; step < 32; step *= 2) {
      const float other = Team::from_lane(value, max(lane - step, 0));
      if (lane >= step) value += other;
    }
    return value;
  }

  // The lane in which the running sum of the lanes passes `wanted`, or the last lane with a positive value; -1: no lane has one.
  // `before` grows by the sum of the lanes before it.
  static i32 passing(float mine, float wanted, float& before) {
    const float sum = sum_to(mine);
    const u32 some = Team::vote(mine > 0), past = Team::vote(mine > 0 && before + sum > wanted);
    if (some == 0) return -1;
    const u32 first = past != 0 ? past & (~past + 1) : highest(some);
    const i32 lane = __popc(first - 1);
    before += Team::from_lane(sum - mine, lane);
    return lane;
  }
  static u32 highest(u32 bits) {
    while (bits & (bits - 1)) bits &= bits - 1;
    return bits;
  }

  // The first i of [begin, end) at which the running sum passes `wanted`, or the last with a positive value. `before` grows by the
  // sum of those before it.
  template <class SumOf>
  static i32 first_past(i32 begin, i32 end, float wanted, float& before, SumOf&& sum_of) {
    i32 found = begin;
    float its = 0;
#pragma unroll 1
    for (i32 i = begin; i < end; ++i) {
      const float sum = sum_of(i);
      if (!(sum > 0)) continue;
      before += its, found = i, its = sum;
      if (before + sum > wanted) break;
    }
    return found;
  }

  // A share's place among sums: the sum that the running sum must pass, the index at which it does, and the sum of those before it.
  struct Place {
    i32 index;  // -1: no sum is positive
    float wanted, before;
  };

  // The index at which the running sum of `number` sums passes a share of their total, or the last positive one.
  static Place part_past(const float* sums, i32 number, float share) {
    const i32 lane = Team::lane(), each = (number + 31) / 32;
    const auto end = [&](i32 part) { return min((part + 1) * each, number); };
    float mine = 0;
    for (i32 i = lane * each; i < end(lane); ++i) mine += sums[i];
    Place place{-1, Team::from_lane(sum_to(mine), 31) * share, 0};
    const i32 part = passing(mine, place.wanted, place.before);
    if (part >= 0)
      place.index =
          first_past(part * each, end(part), place.wanted, place.before, [&](i32 i) { return sums[i]; });
    return place;
  }

  // The token at which the running sum passes `place.wanted`, among four tokens for each thread from word `first` on. All threads call
  // it: each warp sums 128 tokens. of_warp: [Team::warps()]. The warp that has the token stores it.
  static void token_past(i32 first, Place place, const float4& weights, float* of_warp, i32* token) {
    const i32 lane = Team::lane(), warp = Team::warp();
    const float sum = Team::over_warp(Sum(), sum_of(weights));
    if (lane == 0) of_warp[warp] = sum;
    Team::sync();
    const float mine = lane < Team::warps() ? of_warp[lane] : 0.0f;
    if (max(passing(mine, place.wanted, place.before), 0) != warp) return;
    const i32 at = max(passing(sum_of(weights), place.wanted, place.before), 0);
    const i32 k = first_past(0, 4, place.wanted, place.before, [&](i32 i) {
      return i < 2 ? (i < 1 ? weights.x : weights.y) : i < 3 ? weights.z : weights.w;
    });
    if (lane == at) *token = 4 * (first + Team::thread()) + k;
  }
  static float sum_of(const float4& all) { return (all.x + all.y) + (all.z + all.w); }

  // The weights of tokens [4 * at, 4 * at + 4), whose row may begin at any address. Past the end, and for NaNs, they are 0.
  template <class Row>
  static float4 weights_of(const Row& row, i32 vocab, i32 at) {
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
    if (row.editor.changes()) word = edited(row.editor, vocab, 4 * at, word);
    return {row.weight_of_score(max(word.x, none)), row.weight_of_score(max(word.y, none)),
            row.weight_of_score(max(word.z, none)), row.weight_of_score(max(word.w, none))};
  }
  // Apart: four scores are much code, and most sequences edit none.
  template <class Editor>
  static __noinline__ float4 edited(const Editor& editor, i32 vocab, i32 first, const float4& word) {
    const auto one = [&](i32 k, float logit) { return editor.score_of(min(first + k, vocab - 1), logit); };
    return {one(0, word.x), one(1, word.y), one(2, word.z), one(3, word.w)};
  }
};

}  // namespace sample
