// The merge on a GPU from sm_80 on, in one round trip to memory: a thread loads 16 bytes of a head from several splits, and their
// stats, for all splits that there is room for. Meanwhile it computes how many of them are live. It sums in ascending
// order of the splits, as the generic body does.
// Included once per device program, after attention_merge.cuh, whose body takes what does not fit here.
namespace attention_merge {

struct DeviceBody {
  static constexpr i32 kAtOnce = 8;  // splits

  struct alignas(8) Stats {
    float best, total;
  };
  struct Splits {
    uint4 part[kAtOnce];
    Stats stats[kAtOnce];
  };

  // Word `word` of a head from splits [begin, begin + kAtOnce).
  template <class Block>
  static void load(Block& block, const AttentionMerge& a, i32 row, i32 head, i32 word, i32 begin,
                   Splits& splits) {
    const u8* part = block.row(a.part, row, head, begin).data + i64(word) * i64(sizeof(uint4));
    const auto* stats = reinterpret_cast<const Stats*>(block.row(a.stats, row, head, begin).data);
    const i32 stride = i32(a.part.stride[2]) * size_of(a.part.dtype);
#pragma unroll
    for (i32 k = 0; k < kAtOnce; ++k) {
      // Past the end it loads the last again: a value that is loaded under a condition keeps registers throughout the kernel.
      const i32 at = min(k, a.max_splits - 1 - begin);
      splits.part[k] = *reinterpret_cast<const uint4*>(part + at * stride);
      splits.stats[k] = stats[at];
    }
  }

  // Elements of one word.
  template <DType kType>
  struct Sum {
    static constexpr i32 kCount = Packed<kType>::kCount;
    float best = identity(Max()), total = 0, value[kCount] = {};

    // The first `live` of the splits.
    void add(const Splits& splits, i32 live) {
      float top = best;
#pragma unroll
      for (i32 k = 0; k < kAtOnce; ++k)
        if (k < live) top = max(top, splits.stats[k].best);
      const float keep = weight_of(best - top);
      best = top, total *= keep;
#pragma unroll
      for (i32 i = 0; i < kCount; ++i) value[i] *= keep;
#pragma unroll
      for (i32 k = 0; k < kAtOnce; ++k) {
        if (k >= live) break;
        const Packed<kType> part(splits.part[k]);
        const float weight = weight_of(splits.stats[k].best - best) * splits.stats[k].total;
        total += weight;
#pragma unroll
        for (i32 i = 0; i < kCount; ++i) value[i] = fma(weight, part.value[i], value[i]);
      }
    }
    // As word `at` of the row.
    template <class Out>
    void store(const Out& out, i32 at) const {
      const float scale = quotient(1.0f, total);
      if constexpr (kCount == 8) {
        Octet all;
#pragma unroll
        for (i32 i = 0; i < 8; ++i) all.value[i] = value[i] * scale;
        if (reinterpret_cast<u64>(out.data) % 16 == 0) return store_octet(all, out, at);
      }
#pragma unroll
      for (i32 i = 0; i < kCount; i += 2)
        out.from(at * kCount + i).store_pair(Index{0}, value[i] * scale, value[i + 1] * scale);
    }
  };

  template <DType kType>
  static bool fits(const AttentionMerge& a) {
    return a.part.dtype == kType && a.part.last() % Packed<kType>::kCount == 0 &&
           reinterpret_cast<u64>(a.part.data) % 16 == 0 && reinterpret_cast<u64>(a.stats.data) % 8 == 0 &&
           a.stats.stride[2] == 2;
  }

  // Heads [first, last) of row `row` into `out`, which is a whole row of y.
  template <DType kType, class Block, class View>
  static void merge_words(Block& block, const AttentionMerge& a, i32 row, i32 first, i32 last, View out) {
    const StepDevice& device = block.device(a.state);
    const i32 words = a.part.last() / Packed<kType>::kCount;
#pragma unroll 1
    for (i32 at = first * words + Team::thread(); at < last * words; at += Team::size()) {
      Sum<kType> sum;
      i32 splits = 0, begin = 0;
#pragma unroll 1
      do {
        Splits some;
        load(block, a, row, at / words, at % words, begin, some);
        if (begin == 0) splits = attention_block_of_row(block.host(a.step), device, a.cut(), row).splits;
        sum.add(some, splits - begin);
      } while ((begin += kAtOnce) < splits);
      sum.store(out, at);
    }
  }

  template <class Block, class View>
  static void merge_row(Block& block, const AttentionMerge& a, i32 row, i32 first, i32 last, View out) {
    if constexpr (Kernel::uses(DType::kF32))
      if (fits<DType::kF32>(a)) return merge_words<DType::kF32>(block, a, row, first, last, out);
    if constexpr (Kernel::uses(DType::kBf16))
      if (fits<DType::kBf16>(a)) return merge_words<DType::kBf16>(block, a, row, first, last, out);
    if constexpr (Kernel::uses(DType::kF16))
      if (fits<DType::kF16>(a)) return merge_words<DType::kF16>(block, a, row, first, last, out);
    Body::merge_row(block, a, row, first, last, out);
  }

  template <class Block, class View>
  static void prologue(Block& block, const AttentionMerge& a, i32 row, View out) {
    merge_row(block, a, row, 0, a.part.size[1], out);
  }

  template <class Block>
  static void run(Block& block, const AttentionMerge& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) merge_row(block, a, row, t[2], t[3], block.row(a.y, row));
  }
};

}  // namespace attention_merge
