// flash_attention as a whole kernel on sm_90a: one thread brings queries, keys and values by bulk copies, and groups of four warps
// have 64 queries each. Scores and weights stay in registers; the product of weights and values runs during the softmax of the next
// scores, and groups take turns at the tensor cores. CTAs go from tile to tile, those with the most keys first. Keys are taken from
// the last block to the first, so the order of each sum depends on the sequence and the constants alone.
// Known: 8 spill: a few words per block of keys; the times in bench/results include them
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/attention/running_softmax.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/turns.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/flash_attention/attention_memory.h"
#include "heddle/ops/flash_attention/attention_parts_kernel.sm90.cuh"
#include "heddle/ops/flash_attention/flash_attention.h"
#include "heddle/tile/raster.h"

namespace heddle::device::flash_attention {

using namespace attention_parts;

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kDim = 128, kValueDim = 128;  // elements of a head, rounded up
  static constexpr i32 kGroups = 2, kKeys = 128;     // a CTA has, and a block
  static constexpr i32 kStages = 2;                  // blocks of keys, and of values, in flight
  static constexpr i32 kSoftcap = 0;                 // 1: the call has one
  static constexpr i32 kSpills = 0;                  // bytes that a thread may spill (heddle check)
  using Score = SameScore;                           // a function of scores (kit/attention/score.h)
};

constexpr float kLog2E = 1.4426950409f, kLn2 = 0.6931471806f;

// Queries of one head and the keys that they see.
struct KernelTile {
  i32 batch, head, row;  // row: the first query, in its sequence. batch -1: there are no more tiles
  AttentionSequence sequence;
  i32 first, blocks;  // the blocks of keys that any of them sees; with a list, those in it
};

// The tiles of a call, in the order in which CTAs take them.
struct TileOrder {
  tile::HeavyFirst raster;
  i32 tiles;

  TileOrder(const FlashAttention& a, i32 rows) {
    constexpr i32 kCache = 32 << 10;  // KiB of the L2 cache that keys and values may have
    const i32 size =
        1 + i32(i64(a.k.size[1]) * (a.k.size[3] + a.v.size[3]) * 2 >> 10) / (a.q.size[2] / a.k.size[2]);
    const i32 heads = a.q.size[0] * a.q.size[2];
    // The rows before, between and after sequences have tiles too; each sequence may have one that is not full.
    const i32 parts = a.cu_seqlens_q.rank > 0 ? a.cu_seqlens_q.size[0] + 1 : 1;
    const i32 row_tiles = parts > 1 ? a.q.size[1] / rows + parts : (a.q.size[1] + rows - 1) / rows;
    const bool last_first = a.causal || a.window_right >= 0 || a.kv_num_blocks.rank > 0;
    raster = {row_tiles, heads, last_first ? max(1, min(heads, kCache / size)) : 1, last_first};
    tiles = raster.tiles();
  }
};

template <class Config>
struct Kernel {
  static constexpr FlashAttention kTypes = Config::types();
  static constexpr bool kBf16 = kTypes.q.dtype == DType::kBf16;
  static constexpr arch::Terms kTerms = kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr bool kHasBias = kTypes.bias.rank > 0, kHasAlibi = kTypes.alibi_slopes.rank > 0;
  static constexpr bool kHasLists = kTypes.kv_num_blocks.rank > 0;
  static constexpr bool kContinues = kTypes.lse_in.rank > 0;
  static constexpr bool kHasSinks = kTypes.sinks.rank > 0, kHasParts = kTypes.cu_seqlens_q.rank > 0;
  using Score = typename Config::Score;
  static constexpr bool kModifiesScores = Config::kSoftcap || kHasBias || kHasAlibi || Score::kChanges;

  static constexpr i32 kDim = Config::kDim, kValueDim = Config::kValueDim, kKeys = Config::kKeys;
  static constexpr i32 kRows = 64 * Config::kGroups;
  static constexpr u32 kGroups = Config::kGroups;
  static constexpr tile::OperandTile kQueryTile = head_tile(kRows, kDim), kKeyTile = head_tile(kKeys, kDim),
                                     kValueTile = head_tile(kKeys, kValueDim);
  static constexpr tile::Budget kBudget =
      heddle::flash_attention::kernel_budget(kDim, kValueDim, Config::kGroups, kKeys, Config::kStages);
  static constexpr u32 kThreads = kBudget.threads();
  using KeyRing = SlotRing<Config::kStages, kKeyTile.bytes()>;
  using ValueRing = SlotRing<Config::kStages, kValueTile.bytes()>;
  using Turn = Turns<1, kGroups>;
  static_assert(kKeys % 16 == 0 && kDim % 16 == 0 && kValueDim % 8 == 0 && Config::kStages <= 4);

  struct Chip {
    arch::OnChip queries = chip() + kBudget.offset("queries"), full = chip() + kBudget.offset("full"),
                 empty = chip() + kBudget.offset("empty"), tiles = chip() + kBudget.offset("tiles"),
                 begins = chip() + kBudget.offset("begins");
    KeyRing key_ring{chip() + kBudget.offset("keys"), chip() + kBudget.offset("of keys")};
    ValueRing value_ring{chip() + kBudget.offset("values"), chip() + kBudget.offset("of values")};

    // Two tiles take turns, so that one can be read while the next is there.
    Shared<KernelTile> tile_of(u32 turn) const { return {tiles + turn * 64}; }
    // The first key of the block in a slot, where a list says it.
    Shared<i32> begin_of(const typename KeyRing::Place& place) const { return {begins + place.slot * 4}; }
  };

  static void run(const FlashAttention& a, const TensorMap* maps, u8* workspace) {
    const Chip chip;
    if (threadIdx.x == 0) {
      chip.key_ring.init(kGroups), chip.value_ring.init(kGroups);
      arch::init_barrier(chip.full, 1u), arch::init_barrier(chip.empty, kGroups);
      arch::fence_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      enter<Kernel, "bring">();
      if (threadIdx.x == 0) produce(chip, a, maps, reinterpret_cast<u32*>(workspace));
      return;
    }
    enter<Kernel, "multiply">();
    Group(chip, a).run();
  }

  static KernelTile tile_of(const FlashAttention& a, const TileOrder& order, i32 number) {
    KernelTile t;
    const auto [head, row_tile] = order.raster.at(number);
    t.batch = head / a.q.size[2], t.head = head % a.q.size[2];
    if constexpr (kHasParts) {
      const Parts parts = Parts::of(a.cu_seqlens_q, a.cu_seqlens_k, a.q.size[1], a.k.size[1]);
      const i32 n = parts.part_of(row_tile, kRows);
      const AttentionRange rows = parts.range(n), keys = parts.other_range(n);
      t.sequence = {rows.begin, rows.end, keys.begin, keys.end};
      t.row = (row_tile - parts.first_tile(n, kRows)) * kRows;
    } else {
      t.sequence = {0, a.q.size[1], 0, a.k.size[1]}, t.row = row_tile * kRows;
    }
    t.first = t.blocks = 0;
    if (t.row >= t.sequence.queries()) return t;
    if constexpr (kHasLists) {
      t.blocks = list_of_tile(a, t).count * (a.block_k / kKeys);
      return t;
    }
    const AttentionMask mask = attention_mask(a, t.sequence);
    const i32 begin = mask.keys_of(t.row).begin, end = mask.keys_of(min(t.row + kRows, mask.queries) - 1).end;
    if (begin < end) t.first = begin / kKeys, t.blocks = (end + kKeys - 1) / kKeys - t.first;
    return t;
  }

  static BlockList list_of_tile(const FlashAttention& a, const KernelTile& t) {
    if constexpr (!kHasLists) return {};
    return list_of(Memory(), a.kv_num_blocks, a.kv_indices, t.batch, t.head, t.row / a.block_q, a.block_k);
  }
  // The first key of block n of a tile. A block that is not there begins after all keys.
  static i32 first_key(const FlashAttention& a, const KernelTile& t, const BlockList& list, i32 n) {
    if constexpr (!kHasLists) return (t.first + n) * kKeys;
    const i32 parts = a.block_k / kKeys, block = list.listed[n / parts];
    return u32(block) < u32(blocks_of(a.k.size[1], a.block_k)) ? block * a.block_k + n % parts * kKeys
                                                               : a.k.size[1];
  }

  // One thread. `counter`: tiles that CTAs have taken after their first.
  static void produce(const Chip& chip, const FlashAttention& a, const TensorMap* maps, u32* counter) {
    const TileOrder order(a, kRows);
    typename KeyRing::Place key;
    typename ValueRing::Place value;
    const i32 share = a.q.size[2] / a.k.size[2];
    u32 phase = 0;
    i32 number = i32(blockIdx.x);
#pragma unroll 1
    while (true) {
      KernelTile t{.batch = -1};
      if (number < order.tiles) t = tile_of(a, order, number);
      arch::wait_barrier(chip.empty, phase ^ 1);
      chip.tile_of(phase).store(t), phase ^= 1;
      if (t.blocks == 0) {
        arch::arrive(chip.full);
        if (t.batch < 0) return;
      } else {
        arch::expect_bytes(chip.full, kQueryTile.bytes());
        load<kQueryTile>(chip.queries, maps, chip.full, t.sequence.query_begin + t.row, t.head, t.batch);
      }
      // Tiles of one size are shared out before; others go to those that are free.
      number = order.raster.last_row_first && order.tiles > i32(gridDim.x)
                   ? i32(gridDim.x + atomicAdd(counter, 1u))
                   : number + i32(gridDim.x);
      const i32 head = t.head / share;
      const BlockList list = t.blocks > 0 ? list_of_tile(a, t) : BlockList();
      i32 before = 0;  // the first key of the block before
#pragma unroll 1
      for (i32 n = t.blocks - 1; n >= -1 && t.blocks > 0; --n) {
        const i32 row = t.sequence.key_begin + (n >= 0 || !kHasLists ? first_key(a, t, list, n) : 0);
        if (n >= 0) {
          if constexpr (kHasLists) {
            arch::wait_barrier(chip.key_ring.empty(key), key.phase ^ 1);
            chip.begin_of(key).store(row);
          }
          chip.key_ring.begin(key);
          load<kKeyTile>(chip.key_ring.slot(key), maps + 1, chip.key_ring.full(key), row, head, t.batch);
          key.next();
        }
        if (n < t.blocks - 1) {  // a block of values one step after its keys
          chip.value_ring.begin(value);
          load<kValueTile>(chip.value_ring.slot(value), maps + 2, chip.value_ring.full(value),
                           kHasLists ? before : row + kKeys, head, t.batch);
          value.next();
        }
        before = row;
      }
    }
  }
  template <tile::OperandTile kTile>
  static void load(arch::OnChip to, const TensorMap* map, arch::OnChip full, i32 row, i32 head, i32 batch) {
#pragma unroll
    for (i32 j = 0; j < kTile.blocks(); ++j)
      arch::load_box(to + j * kTile.block_bytes(), map, full,
                     arch::Corner4{j * kTile.span_elements(), row, head, batch});
  }

  // 64 queries, in four warps. A thread has parts of two rows: `row` and `row` + 8.
  struct Group {
    const Chip& chip;
    const FlashAttention& a;
    const u32 group = threadIdx.x / 128 - 1;
    const float scale, exponent;  // factors: of products, and of what the softmax takes
    u32 turn = 0;                 // which of two places the tile has
    i32 first, blocks;            // blocks of keys
    i32 all_begin, all_end;       // keys that every row of the group sees
    i32 listed;                   // the first key of the block, where a list says it
    typename KeyRing::Place key;
    typename ValueRing::Place value;
    float s[kKeys / 2], o[kValueDim / 2];
    u32 weights[kKeys / 16][4];
    RunningSoftmax softmax;

    Group(const Chip& on_chip, const FlashAttention& args)
        : chip(on_chip),
          a(args),
          scale(args.scale != 0 ? args.scale : arch::rsqrt(float(args.q.size[3]))),
          exponent(kModifiesScores ? kLog2E : scale * kLog2E) {}

    bool is_leader() const { return threadIdx.x % 128 == 0; }

    void run() {
      Turn::open(group);
#pragma unroll 1
      for (;; turn ^= 1) {
        arch::wait_barrier(chip.full, turn);
        const KernelTile tile = chip.tile_of(turn).load();
        if (tile.batch < 0) break;
        const AttentionMask mask = attention_mask(a, tile.sequence);
        const i32 row = tile.row + i32(group) * 64;
        all_begin = mask.keys_of(row + 63).begin, all_end = mask.keys_of(row).end;
        first = tile.first, blocks = tile.blocks;
        softmax = RunningSoftmax();
        if (blocks > 0)
          attend();
        else
          skip();
        store();
      }
    }
    // This thread's first row, in the sequence.
    i32 row_of(const KernelTile& tile) const {
      return tile.row + i32(group * 64 + threadIdx.x / 32 % 4 * 16 + lane() / 4);
    }
    // No query sees a key.
    void skip() {
      arch::sync_threads<128>(8 + group);  // all threads have read the tile
      if (is_leader()) arch::arrive(chip.empty);
#pragma unroll
      for (i32 i = 0; i < kValueDim / 2; ++i) o[i] = 0;
    }

    void attend() {
      i32 n = blocks - 1;
      wait_for_keys();
      {
        const auto turn = Turn::take(group);
        multiply_keys();
      }
      take_scores<0>(n);
      to_weights();
#pragma unroll 1
      for (--n; n >= 0; --n) {
        wait_for_keys();
        {
          const auto turn = Turn::take(group);
          multiply_keys();
          multiply_values(n < blocks - 2);
        }
        take_scores<1>(n);
        arch::wait_products<0>();
        keep_values();
        softmax.scale_sums(o);
        to_weights();
      }
      if (is_leader()) arch::arrive(chip.empty);
      multiply_values(blocks > 1);
      softmax.join_lanes();
      arch::wait_products<0>();
      keep_values();
    }

    void wait_for_keys() {
      chip.key_ring.wait(key);
      if constexpr (kHasLists) listed = chip.begin_of(key).load();
    }
    void multiply_keys() {
      multiply_queries<kTerms, kDim, kQueryTile, kKeyTile>(
          s, chip.queries + group * u32(tile::row_bytes(kQueryTile, 64)), chip.key_ring.slot(key));
    }
    void multiply_values(bool add) {
      chip.value_ring.wait(value);
      multiply_weights<kTerms, kValueTile>(
          o, weights, arch::descriptor<kValueTile.turned()>(chip.value_ring.slot(value)), add);
    }
    // The scores of block n are there when at most kLeft later groups of products are under way.
    template <i32 kLeft>
    void take_scores(i32 n) {
      bool is_masked = false;
      if constexpr (Score::kMasks) is_masked = !sees_block(kHasLists ? listed : (first + n) * kKeys);
      arch::wait_products<kLeft>();
      arch::keep(s);
      if (is_leader()) chip.key_ring.release(key);
      key.next();
      const i32 at = kHasLists ? listed : (first + n) * kKeys;
      if constexpr (kModifiesScores) modify(at);
      if (is_masked || at < all_begin || at + kKeys > all_end) mask(at);
      softmax.take(s, exponent);
    }
    void keep_values() {
      arch::keep(o);
      keep_fragments(weights);
      if (is_leader()) chip.value_ring.release(value);
      value.next();
    }
    void to_weights() {
#pragma unroll
      for (i32 i = 0; i < kKeys / 4; ++i)
        weights[i / 4][i % 4] = pack_pair<kTypes.q.dtype>(s[2 * i], s[2 * i + 1]);
    }
    // The key of score i in a block from `begin` on.
    static i32 key_of(i32 begin, i32 i) { return begin + i / 4 * 8 + i32(lane()) % 4 * 2 + i % 2; }
    void mask(i32 begin) {
      const KernelTile tile = chip.tile_of(turn).load();
      const AttentionMask all = attention_mask(a, tile.sequence);
      const AttentionRange seen[2] = {all.keys_of(row_of(tile)), all.keys_of(row_of(tile) + 8)};
      const u32 bits[2] = {function().keys_seen(place_of(tile, begin, 0)),
                           function().keys_seen(place_of(tile, begin, 2))};
#pragma unroll
      for (i32 i = 0; i < kKeys / 2; ++i) {
        const AttentionRange& range = seen[i / 2 % 2];
        const i32 at = key_of(begin, i);
        // Blocks of more than 128 keys have no bits for all, and no function that masks.
        const bool is_seen = !Score::kMasks || (bits[i / 2 % 2] >> (i / 4 * 2 + i % 2) & 1) != 0;
        if (!is_seen || at < range.begin || at >= range.end) s[i] = RunningSoftmax::kMasked;
      }
    }
    Score function() const { return Score(a); }
    // True if the group's queries see all keys of a block. A block of a list is so large that none of its own is in two.
    bool sees_block(i32 begin) const {
      const KernelTile tile = chip.tile_of(turn).load();
      return function().sees_all(
          ScorePlace::of(tile.batch, tile.head, tile.row, min(begin, a.k.size[1] - 1)));
    }
    // The pair of score i.
    ScorePlace place_of(const KernelTile& tile, i32 begin, i32 i) const {
      const AttentionSequence& s = tile.sequence;
      const ScorePlace first =
          ScorePlace::of(tile.batch, tile.head, s.query_begin + row_of(tile), s.key_begin + key_of(begin, 0));
      return place_in(s, first, i / 2 % 2 * 8, i / 4 * 8 + i % 2);
    }

    void modify(i32 begin) {
      const KernelTile tile = chip.tile_of(turn).load();
      const i32 row = row_of(tile);
      const float cap = a.softcap, inward = Config::kSoftcap ? 2 * kLog2E * scale / cap : 0;
      float slope = 0, apart = 0;
      if constexpr (kHasAlibi) {
        slope = reinterpret_cast<const float*>(a.alibi_slopes.data)[tile.head];
        apart = float(attention_mask(a, tile.sequence).position(row));
      }
      const u8* bias[2] = {};
      if constexpr (kHasBias) {
        const i32 b = a.bias.size[0] == 1 ? 0 : tile.batch, h = a.bias.size[1] == 1 ? 0 : tile.head;
#pragma unroll
        for (i32 r = 0; r < 2; ++r)
          bias[r] = a.bias.data + (b * a.bias.stride[0] + h * a.bias.stride[1] +
                                   min(row + 8 * r, a.bias.size[2] - 1) * a.bias.stride[2]) *
                                      size_of(kTypes.bias.dtype);
      }
#pragma unroll
      for (i32 i = 0; i < kKeys / 2; ++i) {
        float x = s[i];
        // tanh x = 1 - 2 / (e^2x + 1)
        x = Config::kSoftcap ? cap - 2 * cap * arch::reciprocal(arch::exp2(x * inward) + 1) : x * scale;
        const i32 at = key_of(begin, i);
        if constexpr (kHasAlibi) x -= slope * fabsf(apart + float(i / 2 % 2 * 8) - float(at));
        if constexpr (kHasBias)
          x += load_element<kTypes.bias.dtype>(bias[i / 2 % 2], min(at, a.bias.size[3] - 1));
        if constexpr (Score::kChanges) x = function().of(x, place_of(tile, begin, i)).score;
        s[i] = x;
      }
    }

    void store() const {
      const KernelTile tile = chip.tile_of(turn).load();
#pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        const i32 m = row_of(tile) + 8 * r;
        if (m >= tile.sequence.queries()) continue;
        float total = softmax.total[r], top = softmax.best[r] * exponent, factor = 1;
        if constexpr (kHasSinks) {
          const float sink = load_element<kTypes.sinks.dtype>(a.sinks.data, tile.head) * kLog2E, before = top;
          top = fmaxf(top, sink), factor = arch::exp2(before - top);
          total = __fmaf_rn(total, factor, arch::exp2(sink - top));
        }
        const i32 query = tile.sequence.query_begin + m;
        float share = 0;  // that an earlier result has
        if constexpr (kContinues) {
          const i64 at = tile.batch * a.lse_in.stride[0] + tile.head * a.lse_in.stride[1] + query;
          const float lse = reinterpret_cast<const float*>(a.lse_in.data)[at] * kLog2E, before = top;
          top = fmaxf(top, lse);
          const float smaller = arch::exp2(before - top), earlier = arch::exp2(lse - top);
          factor *= smaller, total = __fmaf_rn(total, smaller, earlier);
          share = total == 0 ? 0 : earlier / total;
        }
        const float inverse = total == 0 ? 0 : factor / total;
        u32* const to = reinterpret_cast<u32*>(
            a.y.data + (tile.batch * a.y.stride[0] + query * a.y.stride[1] + tile.head * a.y.stride[2]) * 2);
#pragma unroll
        for (i32 j = 0; j < kValueDim / 8; ++j)
          if (8 * j < a.v.size[3]) {
            float y[2] = {o[4 * j + 2 * r] * inverse, o[4 * j + 2 * r + 1] * inverse};
            if constexpr (kContinues)
              if (share != 0) add_earlier(y, tile, query, 8 * j + i32(lane()) % 4 * 2, share);
            to[4 * j + i32(lane()) % 4] = pack_pair<kTypes.q.dtype>(y[0], y[1]);
          }
        if (lane() % 4 == 0)
          reinterpret_cast<float*>(
              a.lse.data)[tile.batch * a.lse.stride[0] + tile.head * a.lse.stride[1] + query] =
              total == 0 ? -__int_as_float(0x7f800000) : (top + __log2f(total)) * kLn2;
      }
    }
    // y_in is not read where lse_in is -inf.
    void add_earlier(float (&y)[2], const KernelTile& tile, i32 query, i32 at, float share) const {
      const i64 row = tile.batch * a.y_in.stride[0] + query * a.y_in.stride[1] + tile.head * a.y_in.stride[2];
#pragma unroll
      for (i32 i = 0; i < 2; ++i)
        y[i] = __fmaf_rn(load_element<kTypes.y_in.dtype>(a.y_in.data, row + at + i), share, y[i]);
    }
  };
};

}  // namespace heddle::device::flash_attention
