// The merge on a GPU from sm_80 on: a trip to memory for the stats of all heads and splits and, beside it, for the parts,
// four elements a thread and some splits at once; the weights are worked out once a split, on chip. Sums are in ascending
// order of the splits, as those of the generic body are.
// Included once per device program, behind attention_merge.cuh, whose body takes what does not fit here.
namespace attention_merge {

struct DeviceBody {
  static constexpr i32 kAtOnce = 8;  // splits

  // Heads [first, last) of a row, and what is known of their splits: [heads, splits], on chip.
  template <class View>
  struct Heads {
    i32 row, first, last, splits;
    View best, total, weight;

    i32 count() const { return last - first; }
  };

  template <class Block, class View>
  static void make_weights(Block& block, const AttentionMerge& a, const Heads<View>& heads) {
    const i32 splits = heads.splits;
    block.map_rows(heads.count(), splits, [&](i32 j, Index split) {
      const auto stats = block.row(a.stats, heads.row, heads.first + j, split.at);
      heads.best.from(j * splits).store(split, stats.get(0));
      heads.total.from(j * splits).store(split, stats.get(1));
    });
    block.sync();
    block.map_rows(heads.count(), splits, [&](i32 j, Index split) {
      const View all = heads.best.from(j * splits);
      float best = all.get(0);
      for (i32 other = 1; other < splits; ++other) best = max(best, all.get(other));
      heads.weight.from(j * splits).store(split, exp(all.load(split) - best));
    });
    block.sync();
  }

  // Four elements of splits [begin, begin + kAtOnce); zeros past the last.
  template <class Block, class View>
  static void load(Block& block, const AttentionMerge& a, const Heads<View>& heads, i32 at, i32 begin,
                   float4 (&value)[kAtOnce]) {
    const i32 words = a.part.last() / 4, head = heads.first + at / words, word = at % words;
#pragma unroll
    for (i32 k = 0; k < kAtOnce; ++k) {
      value[k] = {0, 0, 0, 0};
      if (begin + k < heads.splits && at < heads.count() * words)
        value[k] = reinterpret_cast<const float4*>(block.row(a.part, heads.row, head, begin + k).data)[word];
    }
  }

  template <class Block, class View>
  static void merge_row(Block& block, const AttentionMerge& a, i32 row, i32 first, i32 last, View out) {
    const i32 dims = a.part.last(), words = dims / 4;
    const i32 splits = attention_block_of_row(block.host(a.step), block.device(a.state), a.cut(), row).splits;
    const i32 all = (last - first) * splits;
    const auto before = block.scratch_now();
    const Heads<View> heads{
        row, first, last, splits, block.scratch(all), block.scratch(all), block.scratch(all)};
    for (i32 begin = 0; begin < heads.count() * words; begin += kConsumers) {
      const i32 at = begin + i32(arch::thread()), j = at / words;
      float4 value[kAtOnce], sum{0, 0, 0, 0};
      load(block, a, heads, at, 0, value);
      if (begin == 0) make_weights(block, a, heads);
      if (j >= heads.count()) continue;
      float total = 0;
      for (i32 split = 0; split < splits; split += kAtOnce) {
        if (split > 0) load(block, a, heads, at, split, value);
#pragma unroll
        for (i32 k = 0; k < kAtOnce; ++k) {
          if (split + k >= splits) break;
          const float weight = heads.weight.get(j * splits + split + k);
          total = fma(heads.total.get(j * splits + split + k), weight, total);
          sum.x = fma(weight, value[k].x, sum.x), sum.y = fma(weight, value[k].y, sum.y);
          sum.z = fma(weight, value[k].z, sum.z), sum.w = fma(weight, value[k].w, sum.w);
        }
      }
      const View to = out.from((first + j) * dims + at % words * 4);
      to.store_pair(Index{0}, sum.x / total, sum.y / total);
      to.store_pair(Index{1}, sum.z / total, sum.w / total);
    }
    block.sync();
    block.give_back(before);
  }

  static bool fits(const AttentionMerge& a) { return a.part.last() % 4 == 0 && a.part.dtype == DType::kF32; }

  template <class Block, class View>
  static void prologue(Block& block, const AttentionMerge& a, i32 row, View out) {
    if (!fits(a)) return Body::prologue(block, a, row, out);
    merge_row(block, a, row, 0, a.part.size[1], out);
  }

  template <class Block>
  static void run(Block& block, const AttentionMerge& a, const TileCoord& t) {
    if (!fits(a)) return Body::run(block, a, t);
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) merge_row(block, a, row, t[2], t[3], block.row(a.y, row));
  }
};

}  // namespace attention_merge
