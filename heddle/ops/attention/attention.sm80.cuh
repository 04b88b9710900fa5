// Attention of a few queries on a GPU from sm_80 on: one pass over the positions of the split, keys and values straight
// from memory, 16 bytes a lane. Some lanes share a key, so that a warp takes several positions at a time; each such
// group keeps a running maximum of its own, and all of them meet at the end, in a fixed order.
// Included once per device program, behind attention.cuh, whose body takes what does not fit here.
namespace attention {

struct DeviceBody {
  static constexpr i32 kQueries = 4;  // of one pass
  static constexpr i32 kMostQueries = 16;

  // e^x for x <= 0, within a few units of FP32's last place for every weight that counts.
  static float weight_of(float x) {
    constexpr float kLog2E = 1.44269504088896341f;
    return arch::exp2(x * kLog2E);
  }

  // What a group of lanes knows: weighed sums of 8 dimensions a lane.
  struct Partial {
    float best = kLowest, total = 0, sum[8] = {};

    void add(float score, bool seen, const float (&value)[8]) {
      const float top = max(best, score), keep = weight_of(best - top);
      const float weight = seen ? weight_of(score - top) : 0.0f;
      total = fma(total, keep, weight);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) sum[i] = fma(sum[i], keep, weight * value[i]);
      best = top;
    }
    // Joins what the lanes `distance` apart know.
    void join(i32 distance) {
      const float other = __shfl_xor_sync(~0u, best, distance), top = max(best, other);
      const float keep = weight_of(best - top), take = weight_of(other - top);
      total = fma(total, keep, __shfl_xor_sync(~0u, total, distance) * take);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) sum[i] = fma(sum[i], keep, __shfl_xor_sync(~0u, sum[i], distance) * take);
      best = top;
    }
  };

  // Where the key and the value of a position lie.
  struct Place {
    const u8 *key, *value;
  };
  // What does not change from one position to the next, worked out once and kept on chip: registers are for the sums.
  struct Places {
    const i32* pages;
    const u8 *keys, *values, *k, *v;  // of the head
    i32 page_size, start, row;  // positions before `start` are in pages, those from it in rows from `row` on
    i32 page_bytes, slot_bytes, row_bytes;

    Place at(i32 position) const volatile {
      if (position >= start) {
        const i64 offset = i64(row + position - start) * row_bytes;
        return {k + offset, v + offset};
      }
      const u32 nth = u32(position) / u32(page_size), slot = u32(position) - nth * u32(page_size);
      const i64 offset = i64(pages[nth]) * page_bytes + slot * u32(slot_bytes);
      return {keys + offset, values + offset};
    }
  };
  struct Plan {
    Places places;
    i32 begin[kQueries], end[kQueries];  // of the positions that each query sees
  };
  static volatile Plan& plan() {
    __shared__ Plan plan;
    return plan;
  }
  // By one thread.
  template <class Block>
  static void make_plan(Block& block, const Attention& a, const Body::Work& work, i32 first_query,
                        i32 queries) {
    volatile Places& p = plan().places;
    const i32 bytes = size_of(a.keys.dtype);
    p.pages = work.pages, p.page_size = a.keys.size[2], p.start = work.plan.start, p.row = work.first_row;
    p.keys = block.row(a.keys, 0, work.kv_head).data, p.values = block.row(a.values, 0, work.kv_head).data;
    p.k = block.row(a.k, 0).from(work.kv_head * a.head_dim()).data;
    p.v = block.row(a.v, 0).from(work.kv_head * a.head_dim()).data;
    p.page_bytes = i32(a.keys.stride[0]) * bytes, p.slot_bytes = i32(a.keys.stride[2]) * bytes;
    p.row_bytes = i32(a.k.stride[0]) * bytes;
    for (i32 q = 0; q < kQueries; ++q) {
      const i32 at = first_query + min(q, queries - 1);
      plan().begin[q] = work.first_seen(at), plan().end[q] = min(work.end_seen(at), work.end());
    }
  }

  // A query times a key, of which each lane has 8 dimensions.
  template <i32 kLanes, class View, class Words>
  static float score_of(View query, const Words& key) {
    const float* part = reinterpret_cast<const float*>(query.data);
    float score = 0;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) score = fma(part[i], key.value[i], score);
#pragma unroll
    for (i32 step = 1; step < kLanes; step *= 2) score += __shfl_xor_sync(~0u, score, step);
    return score;
  }

  // kLanes: lanes that share a position, head_dim / 8.
  template <DType kType, i32 kLanes, class Block>
  static void run_queries(Block& block, const Attention& a, const Body::Work& work, i32 first_query) {
    constexpr i32 kPositions = 32 / kLanes;  // of a warp at a time
    const i32 warp = i32(arch::thread() / 32), lane = i32(arch::thread() % 32), part = lane % kLanes * 8;
    const i32 queries = min(kQueries, work.queries - first_query);
    auto query = block.scratch(kQueries * a.head_dim());  // scaled
    if (arch::thread() == 0) make_plan(block, a, work, first_query, queries);
    block.map_rows(kQueries, a.head_dim(), [&](i32 q, Index i) {
      const i32 at = first_query + min(q, queries - 1);
      const float value = block.row(a.q, work.row(at)).from(work.head(at) * a.head_dim()).load(i);
      query.from(q * a.head_dim()).store(i, value * a.scale);
    });
    block.sync();
    Partial partial[kQueries];
    const i32 first = max(work.begin(), work.first_seen(first_query)), last = work.end();
    for (i32 begin = first + warp * kPositions; begin < last; begin += kWarps * kPositions) {
      const i32 position = begin + lane / kLanes;
      const Place place = plan().places.at(min(position, last - 1));
      const Packed<kType> key(*reinterpret_cast<const uint4*>(place.key + part * size_of(kType)));
      const Packed<kType> value(*reinterpret_cast<const uint4*>(place.value + part * size_of(kType)));
#pragma unroll
      for (i32 q = 0; q < kQueries; ++q) {
        float score = score_of<kLanes>(query.from(q * a.head_dim() + part), key);
        if (a.softcap > 0) score = tanh(score * (1 / a.softcap)) * a.softcap;
        const bool sees = position >= plan().begin[q] && position < plan().end[q];
        partial[q].add(sees ? score : kLowest, sees, value.value);
      }
    }
    const i32 rounds = (max(last - first, 1) + kPositions - 1) / kPositions;
    store<kLanes>(block, a, work, first_query, queries, min(rounds, kWarps), partial);
  }

  // Joins the groups of a warp, then the warps; `warps` of them had positions.
  template <i32 kLanes, class Block>
  static void store(Block& block, const Attention& a, const Body::Work& work, i32 first_query, i32 queries,
                    i32 warps, Partial (&partial)[kQueries]) {
    const i32 warp = i32(arch::thread() / 32), lane = i32(arch::thread() % 32);
    auto sums = block.scratch(kWarps * kQueries * a.head_dim());
    auto stats = block.scratch(kWarps * kQueries * 2);
#pragma unroll
    for (i32 q = 0; q < kQueries && warp < warps; ++q) {
#pragma unroll
      for (i32 distance = kLanes; distance < 32; distance *= 2) partial[q].join(distance);
      const i32 at = warp * kQueries + q;
      if (lane < kLanes)
#pragma unroll
        for (i32 i = 0; i < 8; ++i)
          sums.from(at * a.head_dim()).store(Index{lane * 8 + i}, partial[q].sum[i]);
      if (lane == 0) stats.from(at * 2).store_pair(Index{0}, partial[q].best, partial[q].total);
    }
    block.sync();
    // What each warp's sums count: its best score stands against the best of all.
    auto shares = block.scratch(kWarps * kQueries);
    block.map_rows(queries, warps, [&](i32 q, Index w) {
      float best = kLowest;
#pragma unroll 4
      for (i32 other = 0; other < warps; ++other) best = max(best, stats.get((other * kQueries + q) * 2));
      shares.from(q * kWarps).store(w, weight_of(stats.get((w.at * kQueries + q) * 2) - best));
    });
    block.sync();
    block.map_rows(queries, a.head_dim(), [&](i32 q, Index i) {
      float best = kLowest, total = 0, sum = 0;
#pragma unroll 4
      for (i32 w = 0; w < warps; ++w) {
        const float share = shares.get(q * kWarps + w);
        best = max(best, stats.get((w * kQueries + q) * 2));
        total = fma(stats.get((w * kQueries + q) * 2 + 1), share, total);
        sum = fma(sums.get((w * kQueries + q) * a.head_dim() + i.at), share, sum);
      }
      const i32 query = first_query + q;
      block.row(a.part, work.row(query), work.head(query), work.split).store(i, sum);
      if (i.at == 0)
        block.row(a.stats, work.row(query), work.head(query), work.split).store_pair(Index{0}, best, total);
    });
    block.sync();
  }

  template <DType kType, class Block>
  static bool run_type(Block& block, const Attention& a, const Body::Work& work) {
    for (i32 query = 0; query < work.queries; query += kQueries) {
      block.begin_scratch();
      if (a.head_dim() == 64)
        run_queries<kType, 8>(block, a, work, query);
      else if (a.head_dim() == 128)
        run_queries<kType, 16>(block, a, work, query);
      else
        return false;
    }
    return true;
  }

  static bool in_words(const Tensor& rows) {
    return reinterpret_cast<u64>(rows.data) % 16 == 0 && rows.stride[0] % 8 == 0;
  }
  static bool same_steps(const Tensor& a, const Tensor& b) {
    return a.stride[0] == b.stride[0] && a.stride[1] == b.stride[1] && a.stride[2] == b.stride[2];
  }
  // 16-byte words of one type everywhere, and few enough queries of one part.
  static bool fits(const Attention& a, i32 queries) {
    const DType type = a.keys.dtype;
    return size_of(type) == 2 && a.values.dtype == type && a.k.dtype == type && a.v.dtype == type &&
           same_steps(a.keys, a.values) && a.k.stride[0] == a.v.stride[0] && a.value_dim() == a.head_dim() &&
           !a.is_latent() && queries <= kMostQueries && in_words(a.k) && in_words(a.v);
  }

  // Beside the pass above, not inside it, where it would take registers; with a block of its own, since one whose
  // address is known lives in local memory.
  template <class Block>
  static __noinline__ void run_generic(Block block, const Attention& a, const TileCoord& t) {
    Body::run(block, a, t);
  }

  template <class Block>
  static void run(Block& block, const Attention& a, const TileCoord& t) {
    block.inputs();
    const Body::Work work = Body::work_of(block, a, t);
    if (work.queries == 0) return block.dead();
    if (fits(a, work.queries)) {
      if constexpr (kUses[int(DType::kBf16)])
        if (a.keys.dtype == DType::kBf16 && run_type<DType::kBf16>(block, a, work)) return;
      if constexpr (kUses[int(DType::kF16)])
        if (a.keys.dtype == DType::kF16 && run_type<DType::kF16>(block, a, work)) return;
    }
    run_generic(block, a, t);
  }
};

}  // namespace attention
