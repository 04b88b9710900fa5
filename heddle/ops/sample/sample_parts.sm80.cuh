// Describes slices of scores on a GPU from sm_80 on, with four scores per thread in registers.
// Included once per device program, after sample_parts.cuh.
namespace sample_parts {

struct DeviceBody : Body {
  static constexpr i32 kMine = kSize / Team::size();
  static constexpr i32 kOfBlock = kBlock / kMine;  // threads of a block
  static_assert(kMine == 4 && kOfBlock <= 32);

  struct Four {
    float at[kMine];
  };

  // Loads a thread's scores, of tokens [first, first + 4). Past the end they are minus infinity, and plus infinity for what is no
  // score, as in sample.cuh.
  static Four take(const Row<View>& row, i32 first) {
    const float none = identity(Max());
    Four mine;
    if (reinterpret_cast<u64>(row.logits.data) % 16 == 0 && first + kMine <= row.vocab) {
      const float4 word = *reinterpret_cast<const float4*>(row.logits.data + 4 * i64(first));
      mine = {{word.x, word.y, word.z, word.w}};
    } else {
#pragma unroll
      for (i32 k = 0; k < kMine; ++k) mine.at[k] = first + k < row.vocab ? row.logits.get(first + k) : none;
    }
#pragma unroll
    for (i32 k = 0; k < kMine; ++k) {
      if (row.editor.changes() && first + k < row.vocab)
        mine.at[k] = row.editor.score_of(first + k, mine.at[k]);
      if (!(mine.at[k] < -none)) mine.at[k] = -none;
    }
    return mine;
  }

  static float keep(bool higher, float a, float b) { return higher ? max(a, b) : min(a, b); }
  static void order(float& a, float& b, bool falls) {
    const float high = max(a, b), low = min(a, b);
    a = falls ? high : low, b = falls ? low : high;
  }
  // Sorts in descending order by a bitonic network: within a thread, between lanes, and between warps through `chip`, where two
  // buffers take turns.
  template <class Block>
  static void sort(Block& block, Four& mine, float4* chip) {
    const i32 me = Team::thread();
    i32 turn = 0;
    order(mine.at[0], mine.at[1], true), order(mine.at[2], mine.at[3], false);
#pragma unroll 1
    for (i32 run = 1; run <= Team::size(); run *= 2) {  // so many threads' scores are in order after this
      const bool falls = (me & run) == 0;
      i32 step = run / 2;
#pragma unroll 1
      for (; step >= 32; step /= 2, turn ^= Team::size()) {
        chip[turn + me] = {mine.at[0], mine.at[1], mine.at[2], mine.at[3]};
        block.sync();
        const float4 other = chip[turn + (me ^ step)];
        const bool higher = ((me & step) == 0) == falls;
        mine = {{keep(higher, mine.at[0], other.x), keep(higher, mine.at[1], other.y),
                 keep(higher, mine.at[2], other.z), keep(higher, mine.at[3], other.w)}};
      }
#pragma unroll 1
      for (; step > 0; step /= 2) {
        const bool higher = ((me & step) == 0) == falls;
#pragma unroll
        for (i32 k = 0; k < kMine; ++k) mine.at[k] = keep(higher, mine.at[k], Team::across(mine.at[k], step));
      }
      order(mine.at[0], mine.at[2], falls), order(mine.at[1], mine.at[3], falls);
      order(mine.at[0], mine.at[1], falls), order(mine.at[2], mine.at[3], falls);
    }
  }

  static Four weights_of(const Four& scores, float best, const Row<View>& row) {
    Four weights;
#pragma unroll
    for (i32 k = 0; k < kMine; ++k)
      weights.at[k] =
          scores.at[k] > identity(Max()) ? weight_of((scores.at[k] - best) * row.inverse_temperature) : 0.0f;
    return weights;
  }
  static float sum_of(const Four& four) { return (four.at[0] + four.at[1]) + (four.at[2] + four.at[3]); }

  // Describes a block of sorted scores. All of its threads call it; the first one stores.
  static void describe(const Four& mine, float best, const Row<View>& row, View planes) {
    float sum = sum_of(weights_of(mine, best, row)), count = 0, least = identity(Min());
#pragma unroll
    for (i32 k = 0; k < kMine; ++k)
      if (mine.at[k] > identity(Max())) least = mine.at[k], count += 1.0f;
#pragma unroll
    for (i32 step = 1; step < kOfBlock; step *= 2) {
      sum += Team::across(sum, step), count += Team::across(count, step);
      least = min(least, Team::across(least, step));
    }
    const i32 me = Team::thread(), b = me / kOfBlock;
    if (me % kOfBlock != 0) return;
    constexpr i32 kBlocks = ScoreSlices::kBlocks;
    planes.set_here(ScoreSlices::kFirst * kBlocks + b, mine.at[0]);
    planes.set_here(ScoreSlices::kLast * kBlocks + b, count > 0 ? least : identity(Max()));
    planes.set_here(ScoreSlices::kWeight * kBlocks + b, sum);
    planes.set_here(ScoreSlices::kCount * kBlocks + b, count);
  }

  template <class Block>
  static void slice(Block& block, const SampleParts& a, i32 m, i32 s, const Row<View>& row) {
    const i32 me = Team::thread(), first = s * kSize + kMine * me;
    Four mine = take(row, first);
    float value = identity(Max());
    i32 index = row.vocab;
#pragma unroll
    for (i32 k = 0; k < kMine; ++k)
      if (mine.at[k] > value) value = mine.at[k], index = first + k;
    const Best best = block.best_of(value, index, row.vocab);
    float sum = 0;
    if (row.draws) sum = block.reduce(Sum(), sum_of(weights_of(mine, best.value, row)));
    if (me == 0)
      *reinterpret_cast<float4*>(block.row(a.best, m, s).data) = {best.value, float(best.index), sum, 0.0f};
    if (!row.drops) return;
    const ScratchMark before = block.scratch_mark();
    sort(block, mine, reinterpret_cast<float4*>(block.scratch(2 * kSize).data));
    block.sync();
    block.release(before);
    reinterpret_cast<float4*>(block.row(a.sorted, m, s).data)[me] = {mine.at[0], mine.at[1], mine.at[2],
                                                                     mine.at[3]};
    describe(mine, best.value, row, block.row(a.blocks, m, s, 0));
  }

  template <class Block>
  static void run(Block& block, const SampleParts& a, const TileCoord& t) {
    run_with<DeviceBody>(block, a, t);
  }
};

}  // namespace sample_parts
