// Attention of a few queries on a GPU from sm_80 on: one pass over the positions of the split, keys and values straight
// from memory, 16 bytes a lane, those of some rounds under way while those before them are added. Some lanes share a
// position. Scores of all queries and rounds are summed over them together, so that a lane has one to bend and to weigh;
// a warp has one maximum for each query. Warps meet at the end, in a fixed order.
// A worker that knows the positions of the step already asks for what lies in pages before it waits for its inputs: who
// wrote the record did so behind all who had read the one before, and those who fill pages read it.
// Rows of prompts are many queries: attention_mma.sm80.cuh takes them.
// Included once per device program, behind attention.cuh, whose body takes what does not fit here.
#include "heddle/ops/attention/attention_mma.sm80.cuh"

namespace attention {

struct DeviceBody {
  static constexpr i32 kQueries = 4;  // of one pass
  static constexpr i32 kMostQueries = 16;
  static constexpr i32 kRounds = 2;  // positions that a group of lanes takes at once
  static constexpr i32 kScores = kQueries * kRounds;

  // Sums of kCount vectors over the lanes that differ in the bits from kBit to kEnd: at each bit a lane passes half of
  // them on, and is left with those whose index has its bits; a single one is summed by all.
  template <i32 kBit, i32 kEnd, i32 kCount, i32 kSize, i32 kWidth>
  static void sum_over(float (&value)[kSize][kWidth], i32 lane) {
    if constexpr (kBit < kEnd && kCount == 1) {
#pragma unroll
      for (i32 i = 0; i < kWidth; ++i) value[0][i] += __shfl_xor_sync(~0u, value[0][i], kBit);
      sum_over<2 * kBit, kEnd, 1>(value, lane);
    } else if constexpr (kBit < kEnd) {
      const bool odd = lane & kBit;
#pragma unroll
      for (i32 n = 0; n < kCount / 2; ++n)
#pragma unroll
        for (i32 i = 0; i < kWidth; ++i) {
          const float mine = odd ? value[2 * n + 1][i] : value[2 * n][i];
          const float theirs = odd ? value[2 * n][i] : value[2 * n + 1][i];
          value[n][i] = mine + __shfl_xor_sync(~0u, theirs, kBit);
        }
      sum_over<2 * kBit, kEnd, kCount / 2>(value, lane);
    }
  }

  // kLanes: lanes that share a position, each of which has 8 dimensions.
  template <i32 kLanes>
  struct Lane {
    static constexpr i32 kHeadDim = 8 * kLanes, kGroups = 32 / kLanes;
    static constexpr i32 kPositions = kWarps * kGroups;  // of a round
    i32 warp = i32(arch::thread() / 32), lane = i32(arch::thread() % 32);

    i32 part() const { return lane % kLanes * 8; }
    i32 position(i32 round) const { return round * kPositions + warp * kGroups + lane / kLanes; }
  };

  // What a lane takes at once.
  struct Words {
    uint4 key[kRounds] = {}, value[kRounds] = {};
  };

  static const uint4& word(const View& row) { return *reinterpret_cast<const uint4*>(row.data); }

  // Those positions from `begin` on that lie in pages, or in this step's rows.
  template <bool kInPages, i32 kLanes, class Block>
  static void load(Block& block, const Attention& a, const Body::Work& work, const Lane<kLanes>& lane,
                   i32 begin, Words& words) {
    const i32 page_size = a.keys.size[2], column = work.kv_head * Lane<kLanes>::kHeadDim + lane.part();
#pragma unroll
    for (i32 r = 0; r < kRounds; ++r) {
      const i32 position = begin + lane.position(r);
      if (position >= work.end() || (position < work.plan.start) != kInPages) continue;
      if (kInPages) {
        const i32 page = work.pages[u32(position) / u32(page_size)],
                  slot = i32(u32(position) % u32(page_size));
        words.key[r] = word(block.row(a.keys, page, work.kv_head, slot).from(lane.part()));
        words.value[r] = word(block.row(a.values, page, work.kv_head, slot).from(lane.part()));
      } else {
        const i32 row = work.first_row + position - work.plan.start;
        words.key[r] = word(block.row(a.k, row).from(column));
        words.value[r] = word(block.row(a.v, row).from(column));
      }
    }
  }

  // The lane's dimensions of all queries, as they came: as floats they would take twice the registers.
  struct Queries {
    uint4 word[kQueries];

    template <DType kType>
    Packed<kType> at(i32 q) const {
      uint4 bits = word[q];
      arch::forget(bits);
      return Packed<kType>(bits);
    }
  };
  template <i32 kLanes, class Block>
  static void load_queries(Block& block, const Attention& a, const Body::Work& work, const Lane<kLanes>& lane,
                           i32 first_query, Queries& queries) {
#pragma unroll
    for (i32 q = 0; q < kQueries; ++q) {
      const i32 at = min(first_query + q, work.queries - 1);
      queries.word[q] =
          word(block.row(a.q, work.row(at)).from(work.head(at) * Lane<kLanes>::kHeadDim + lane.part()));
    }
  }

  // What a warp knows: of the lane's own query, lane % kQueries, the best score and the lane's share of the total; of
  // all queries the lane's dimensions of the values that its positions add.
  struct Partial {
    i32 begin, end;  // of the positions that the lane's query sees
    float best = kLowest, total = 0, sum[kQueries][8] = {};
  };

  // The score of the lane's own query and round.
  template <DType kType, i32 kLanes>
  static float make_score(const Words& words, const Queries& queries, const Lane<kLanes>& lane) {
    float score[kScores][1];
#pragma unroll
    for (i32 q = 0; q < kQueries; ++q) {
      const Packed<kType> query = queries.at<kType>(q);
#pragma unroll
      for (i32 r = 0; r < kRounds; ++r) {
        const Packed<kType> key(words.key[r]);
        float sum = 0;
#pragma unroll
        for (i32 i = 0; i < 8; ++i) sum = fma(query.value[i], key.value[i], sum);
        score[r * kQueries + q][0] = sum;
      }
    }
    sum_over<1, kLanes, kScores>(score, lane.lane);
    return score[0][0];
  }

  // Over the lanes of a query, of which those of a position may know the same.
  template <i32 kLanes, class F>
  static float over_lanes(float value, F&& join) {
#pragma unroll
    for (i32 step = kQueries; step < 32; step *= 2)
      if (step < kScores || step >= kLanes) value = join(value, __shfl_xor_sync(~0u, value, step));
    return value;
  }

  template <DType kType, i32 kLanes>
  static void add(const Attention& a, const Words& words, const Queries& queries, const Lane<kLanes>& lane,
                  i32 begin, Partial& mine) {
    const i32 round = lane.lane % kScores / kQueries, position = begin + lane.position(round);
    const bool sees = position >= mine.begin && position < mine.end;
    float score = make_score<kType>(words, queries, lane) * a.scale;
    if (a.softcap > 0) score = tanh(score * (1 / a.softcap)) * a.softcap;
    const auto larger = [](float x, float y) { return max(x, y); };
    const float top = over_lanes<kLanes>(max(mine.best, sees ? score : kLowest), larger);
    const float keep = weight_of(mine.best - top), weight = sees ? weight_of(score - top) : 0.0f;
    mine.best = top, mine.total = fma(mine.total, keep, weight);
#pragma unroll
    for (i32 q = 0; q < kQueries; ++q) {
      const float decay = __shfl_sync(~0u, keep, q);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) mine.sum[q][i] *= decay;
    }
    const i32 group = lane.lane / kLanes * kLanes;  // its first lane
#pragma unroll
    for (i32 r = 0; r < kRounds; ++r) {
      const Packed<kType> value(words.value[r]);
#pragma unroll
      for (i32 q = 0; q < kQueries; ++q) {
        const float share = __shfl_sync(~0u, weight, group + r * kQueries + q);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) mine.sum[q][i] = fma(share, value.value[i], mine.sum[q][i]);
      }
    }
  }

  template <DType kType, i32 kLanes, class Block>
  static void run_queries(Block& block, const Attention& a, const Body::Work& work, i32 first_query) {
    const Lane<kLanes> lane;
    const i32 queries = min(kQueries, work.queries - first_query), last = work.end();
    const i32 own = first_query + min(lane.lane % kQueries, queries - 1);
    Partial mine{.begin = work.first_seen(own), .end = min(work.end_seen(own), last)};
    i32 begin = max(work.begin(), work.first_seen(first_query));
    constexpr i32 kStep = kRounds * Lane<kLanes>::kPositions;
    Words words, next;
    load<true>(block, a, work, lane, begin, words);
    load<true>(block, a, work, lane, begin + kStep, next);
    block.inputs();
    load<false>(block, a, work, lane, begin, words);
    load<false>(block, a, work, lane, begin + kStep, next);
    Queries query;
    load_queries(block, a, work, lane, first_query, query);
#pragma unroll 1
    for (; begin < last; begin += kStep) {
      add<kType>(a, words, query, lane, begin, mine);
      words = next, next = {};
      load<true>(block, a, work, lane, begin + 2 * kStep, next);
      load<false>(block, a, work, lane, begin + 2 * kStep, next);
    }
    store(block, a, work, lane, first_query, queries, mine);
  }

  // Joins the groups of a warp, then the warps.
  template <i32 kLanes, class Block>
  static void store(Block& block, const Attention& a, const Body::Work& work, const Lane<kLanes>& lane,
                    i32 first_query, i32 queries, Partial& mine) {
    constexpr i32 kHeadDim = Lane<kLanes>::kHeadDim, kGroups = Lane<kLanes>::kGroups;
    const View sums = block.scratch(kWarps * kQueries * kHeadDim),
               stats = block.scratch(kWarps * kQueries * 2);
    sum_over<kLanes, 32, kQueries>(mine.sum, lane.lane);
#pragma unroll
    for (i32 n = 0; n < kQueries / kGroups; ++n) {
      const i32 query = lane.warp * kQueries + lane.lane / kLanes + n * kGroups;
      auto* to = reinterpret_cast<float4*>(sums.from(query * kHeadDim + lane.part()).data);
      to[0] = {mine.sum[n][0], mine.sum[n][1], mine.sum[n][2], mine.sum[n][3]};
      to[1] = {mine.sum[n][4], mine.sum[n][5], mine.sum[n][6], mine.sum[n][7]};
    }
    mine.total = over_lanes<kLanes>(mine.total, [](float x, float y) { return x + y; });
    if (lane.lane < kQueries)
      stats.from((lane.warp * kQueries + lane.lane) * 2).store_pair(Index{0}, mine.best, mine.total);
    block.sync();
    block.map_rows(queries, kHeadDim, [&](i32 q, Index i) {
      float best = kLowest, total = 0, sum = 0;
#pragma unroll
      for (i32 w = 0; w < kWarps; ++w) best = max(best, stats.get((w * kQueries + q) * 2));
#pragma unroll
      for (i32 w = 0; w < kWarps; ++w) {
        const float share = weight_of(stats.get((w * kQueries + q) * 2) - best);
        total = fma(stats.get((w * kQueries + q) * 2 + 1), share, total);
        sum = fma(sums.get((w * kQueries + q) * kHeadDim + i.at), share, sum);
      }
      const i32 query = first_query + q;
      block.row(a.part, work.row(query), work.head(query), work.split)
          .store(i, total > 0 ? sum / total : 0.0f);
      if (i.at == 0)
        block.row(a.stats, work.row(query), work.head(query), work.split).store_pair(Index{0}, best, total);
    });
  }

  // Whether the pass above takes a tile. Where a prompt was cut must not decide it: what a tile may have counts, not what
  // it has. A sequence that answers has one row.
  template <class Block>
  static bool has_few(Block& block, const Attention& a, const Body::Work& work) {
    const bool alone = block.host(a.step).sequence(work.plan.sequence)->row_count == 1;
    return (alone ? work.queries : a.block_rows * a.block_heads) <= kMostQueries &&
           (a.head_dim() == 64 || a.head_dim() == 128);
  }
  template <DType kType, class Block>
  static void run_few(Block& block, const Attention& a, const Body::Work& work) {
    for (i32 query = 0; query < work.queries; query += kQueries) {
      if (query > 0) block.sync();
      block.begin_scratch();
      if (a.head_dim() == 64)
        run_queries<kType, 8>(block, a, work, query);
      else
        run_queries<kType, 16>(block, a, work, query);
    }
  }
  template <DType kType, i32 kDim, class Block>
  static bool run_many(Block& block, const Attention& a, const Body::Work& work) {
    if (a.head_dim() != kDim) return false;
    block.inputs();
    const Scratch scratch = block.scratch_now();
    ManyQueries<kType == DType::kBf16, kDim>(a, work, scratch.chip(), scratch.chip_bytes).run();
    return true;
  }
  template <DType kType, class Block>
  static bool run_type(Block& block, const Attention& a, const Body::Work& work) {
    if (a.keys.dtype != kType) return false;
    if (has_few(block, a, work)) return run_few<kType>(block, a, work), true;
    if constexpr (kFewRows)
      return run_many<kType, 64>(block, a, work) || run_many<kType, 128>(block, a, work) ||
             run_many<kType, 256>(block, a, work);
    return false;
  }

  static bool in_words(const Tensor& rows) {
    return reinterpret_cast<u64>(rows.data) % 16 == 0 && rows.stride[0] % 8 == 0;
  }
  // 16-byte words of one type everywhere, and queries of one part.
  static bool fits(const Attention& a) {
    const DType type = a.keys.dtype;
    return size_of(type) == 2 && a.values.dtype == type && a.q.dtype == type && a.k.dtype == type &&
           a.v.dtype == type && a.head_dim() % 8 == 0 && a.value_dim() == a.head_dim() && !a.is_latent() &&
           in_words(a.q) && in_words(a.k) && in_words(a.v);
  }

  // Beside the pass above, not inside it, where it would take registers; with a block of its own, since one whose
  // address is known lives in local memory.
  template <class Block>
  static __noinline__ void run_generic(Block block, const Attention& a, const TileCoord& t) {
    Body::run(block, a, t);
  }

  template <class Block>
  static void run(Block& block, const Attention& a, const TileCoord& t) {
    if (!block.knows_device()) block.inputs();
    const Body::Work work = Body::work_of(block, a, t);
    if (work.queries == 0) return block.dead();
    if (fits(a)) {
      if constexpr (kUses[int(DType::kBf16)])
        if (run_type<DType::kBf16>(block, a, work)) return;
      if constexpr (kUses[int(DType::kF16)])
        if (run_type<DType::kF16>(block, a, work)) return;
    }
    block.inputs();
    run_generic(block, Attention(a), t);  // of a copy: what has an address lives in local memory
  }
};

}  // namespace attention
