// attention of many rows as a whole kernel on sm_90a: one warp brings queries, keys and values, from pages or from this step's rows,
// and groups of four warps have 64 rows of one head each. Scores and weights stay in registers; the product of weights and values
// runs while the next scores are multiplied. CTAs go from tile to tile, those with the most positions first. Steps of kStep positions,
// their softmax and their order are those of attention_mma.sm80.cuh: the bits are the same.
#pragma once

#include "heddle/ir/attention_plan.h"
#include "heddle/ir/step.h"
#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/tensor_map.h"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/attention/running_softmax.cuh"
#include "heddle/kit/attention/scores.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/tile_mma.cuh"
#include "heddle/kit/move/turns.cuh"
#include "heddle/ops/attention/attention.h"
#include "heddle/ops/attention/chain_memory.h"

namespace heddle::device::attention {

struct KernelConfig {
  static constexpr i32 kDim = 64;            // elements of a head
  static constexpr i32 kGroups = 2;          // a CTA has
  static constexpr i32 kStages = 4;          // blocks of keys, and of values, in flight
  static constexpr i32 kModifiesScores = 0;  // 1: scores are modified before the softmax
};

// Rows of one head that are neighbours in a sequence, and the positions that they see.
struct KernelTile {
  i32 head, row, row_end;  // rows of the step. head -1: there are no more tiles
  i32 position;            // the first row has it
  i32 first, blocks;       // the first position, and blocks of them from there on
};

template <class Config, class Frame>
struct ChainKernel {
  using RowsBlock = typename Frame::Block;
  static constexpr Attention kTypes = Config::types();
  static constexpr DType kIn = kTypes.q.dtype;
  static constexpr arch::Terms kTerms = kIn == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  // Positions of a block, and of a step of the softmax.
  static constexpr i32 kDim = Config::kDim, kKeys = heddle::attention::block_keys(kDim),
                       kStep = kDim <= 64    ? 64
                               : kDim <= 128 ? 32
                                             : 16;
  static constexpr i32 kSteps = kKeys / kStep, kRows = 64 * Config::kGroups;
  static constexpr u32 kGroups = Config::kGroups;
  static constexpr tile::OperandTile kQueryTile = heddle::attention::head_tile(kRows, kDim),
                                     kBlockTile = heddle::attention::head_tile(kKeys, kDim);
  static constexpr tile::Budget kBudget =
      heddle::attention::kernel_budget(kDim, Config::kGroups, Config::kStages);
  static constexpr u32 kThreads = kBudget.threads();
  using Ring = SlotRing<Config::kStages, kBlockTile.bytes()>;
  using Place = typename Ring::Place;
  using Turn = Turns<1, kGroups>;
  static_assert(kDim == 64 || kDim == 128 || kDim == 256);

  struct Chip {
    arch::OnChip queries = chip() + kBudget.offset("queries"), full = chip() + kBudget.offset("full"),
                 empty = chip() + kBudget.offset("empty"), tiles = chip() + kBudget.offset("tiles");
    Ring key_ring{chip() + kBudget.offset("keys"), chip() + kBudget.offset("of keys")},
        value_ring{chip() + kBudget.offset("values"), chip() + kBudget.offset("of values")};

    // Two tiles take turns, so that one can be read while the next is there.
    Shared<KernelTile> tile_of(u32 turn) const { return {tiles + turn * 32}; }
  };

  static void run(const Frame& frame, const TensorMap* maps) {
    const Chip chip;
    if (threadIdx.x == 0) {
      chip.key_ring.init(kGroups), chip.value_ring.init(kGroups);
      arch::init_barrier(chip.full, 1u), arch::init_barrier(chip.empty, kGroups);
      arch::fence_barriers();
    }
    __syncthreads();
    arch::let_next_kernel_start();
    const auto chain = frame.chain();
    const Attention& a = chain.args();
    arch::wait_for_kernel_before();
    if (threadIdx.x < 128) {
      enter<ChainKernel, "bring">();
      if (threadIdx.x < 32) produce(chip, a, maps);
      if (blockIdx.x == 0 && threadIdx.x / 32 == 1) count_blocks(frame, a);
      return;
    }
    enter<ChainKernel, "multiply">();
    Group(chip, a).run();
  }

  // Counts the program's tiles of a call. Those of blocks that the step has not are dead. One warp calls it.
  static void count_blocks(const Frame& frame, const Attention& a) {
    const StepHost& host = RowsBlock::host(a.step);
    const StepDevice& device = RowsBlock::device(a.state);
    frame.count_tiles(
        [&](const auto& tile) { return attention_block(host, device, a.cut(), tile[1]).sequence < 0; });
  }

  // The tiles of a step. Later rows of a sequence see more positions, and go first. Of every two rounds of tiles, one goes from the
  // first CTA to the last, and one back.
  struct TileOrder {
    const StepHost& host;
    const StepDevice& device;
    AttentionCut cut;
    i32 heads, row_tiles = 0;

    explicit TileOrder(const Attention& a)
        : host(RowsBlock::host(a.step)), device(RowsBlock::device(a.state)), cut(a.cut()), heads(a.heads) {
      cut.block_rows = kRows;
      for (i32 s = 0; s < host.sequences; ++s) row_tiles += (host.sequence(s)->row_count + kRows - 1) / kRows;
    }
    i32 tiles() const { return row_tiles * heads; }
    static i32 number(i32 round) {
      const i32 ctas = i32(gridDim.x), mine = i32(blockIdx.x);
      return round * ctas + (round % 2 == 0 ? mine : ctas - 1 - mine);
    }
    AttentionBlock block(i32 number) const {
      return attention_block(host, device, cut, row_tiles - 1 - number / heads);
    }
    KernelTile tile(const AttentionBlock& block, i32 number, const Attention& a) const {
      KernelTile t{.head = number % heads, .row = block.row_begin, .row_end = block.row_end};
      t.position = block.length - (block.row_end - block.row_begin);
      t.first = a.window > 0 ? max(0, t.position + 1 - a.window) / kKeys * kKeys : 0;
      t.blocks = (block.length - t.first + kKeys - 1) / kKeys;
      return t;
    }
  };

  // Where the positions of a tile's sequence lie: from `begin` to `start` in pages, from there to `end` in rows from `row` on.
  struct Source {
    const i32* pages;
    i32 page_size, begin, start, end, row, kv_head;

    Source(const Attention& a, const StepHost& host, const AttentionBlock& block, i32 head)
        : pages(host.pages(block.sequence)),
          page_size(a.keys.size[2]),
          begin(block.first),
          start(block.start),
          end(block.start + host.sequence(block.sequence)->row_count),
          row(host.sequence(block.sequence)->row_begin),
          kv_head(head / (a.heads / a.kv_heads)) {}
  };
  // Keys or values: pages and rows, and their maps.
  struct Side {
    const Tensor &pages, &rows;
    const TensorMap *page_map, *row_map;
  };

  static bool is_leader() { return threadIdx.x % 128 == 0; }

  // One warp.
  static void produce(const Chip& chip, const Attention& a, const TensorMap* maps) {
    const TileOrder order(a);
    Place key, value;
    u32 phase = 0;
    arch::show_memory_to_copies();
#pragma unroll 1
    for (i32 round = 0; round * i32(gridDim.x) < order.tiles(); ++round) {
      const i32 number = TileOrder::number(round);
      if (number >= order.tiles()) continue;
      const AttentionBlock block = order.block(number);
      const KernelTile t = order.tile(block, number, a);
      give_tile(chip, phase, t);
      if (is_leader()) {
        arch::expect_bytes(chip.full, kQueryTile.bytes());
#pragma unroll
        for (i32 j = 0; j < kQueryTile.blocks(); ++j)
          arch::load_box(chip.queries + j * kQueryTile.block_bytes(), maps, chip.full,
                         arch::Corner2{t.head * kDim + 64 * j, t.row});
      }
      const Source source(a, order.host, block, t.head);
#pragma unroll 1
      for (i32 at = t.first; at < t.first + t.blocks * kKeys; at += kKeys) {
        bring_block(chip.key_ring, key, source, Side{a.keys, a.k, maps + 3, maps + 1}, at);
        bring_block(chip.value_ring, value, source, Side{a.values, a.v, maps + 4, maps + 2}, at);
      }
    }
    give_tile(chip, phase, {.head = -1});
    if (is_leader()) arch::arrive(chip.full);
  }
  static void give_tile(const Chip& chip, u32& phase, const KernelTile& tile) {
    arch::wait_barrier(chip.empty, phase ^ 1);
    if (is_leader()) chip.tile_of(phase).store(tile);
    phase ^= 1;
  }
  // Brings the positions from `at` on: in one copy, as many as pages have, or word by word.
  static __forceinline__ void bring_block(const Ring& ring, Place& place, const Source& source,
                                          const Side& side, i32 at) {
    const arch::OnChip to = ring.slot(place), full = ring.full(place);
    arch::wait_barrier(ring.empty(place), place.phase ^ 1);
    const bool is_new = at >= source.start && at + kKeys <= source.end,
               is_old = at >= source.begin && at + kKeys <= source.start;
    if (!is_new && !is_old) {
      copy_mixed(to, source, side, at);
      arch::show_to_copies();
      __syncwarp();
      if (is_leader()) arch::arrive(full);
    } else if (is_leader()) {
      arch::expect_bytes(full, kBlockTile.bytes());
      if (is_new)
        load_rows(to, full, source, side, at);
      else
        load_pages(to, full, source, side, at);
    }
    place.next();
  }
  static __forceinline__ void load_rows(arch::OnChip to, arch::OnChip full, const Source& source,
                                        const Side& side, i32 at) {
#pragma unroll
    for (i32 j = 0; j < kBlockTile.blocks(); ++j)
      arch::load_box(to + j * kBlockTile.block_bytes(), side.row_map, full,
                     arch::Corner2{source.kv_head * kDim + 64 * j, source.row + at - source.start});
  }
  // A box has the positions of a page, and at most kKeys.
  static __forceinline__ void load_pages(arch::OnChip to, arch::OnChip full, const Source& source,
                                         const Side& side, i32 at) {
    const u32 high = u32(min(kKeys, source.page_size));
#pragma unroll 1
    for (u32 i = 0; i < u32(kKeys); i += high) {
      const u32 page = (u32(at) + i) / u32(source.page_size),
                slot = u32(at) + i - page * u32(source.page_size);
#pragma unroll
      for (u32 j = 0; j < u32(kBlockTile.blocks()); ++j)
        arch::load_box(to + (j * kKeys + i) * u32(kBlockTile.span), side.page_map, full,
                       arch::Corner4{i32(64 * j), i32(slot), source.kv_head, source.pages[page]});
    }
  }
  // Copies words to where bulk copies bring them, permuted by the row. Before the first position and after the last there are zeros.
  static void copy_mixed(arch::OnChip to, const Source& source, const Side& side, i32 at) {
    const i32 word = i32(threadIdx.x) % 8;
#pragma unroll 4
    for (i32 i = i32(threadIdx.x) / 8; i < kKeys * u32(kBlockTile.blocks()); i += 4) {
      const i32 position = at + i % kKeys, column = i / kKeys * 64 + word * 8;
      uint4 value{};
      if (position >= source.begin && position < source.end) value = *word_of(source, side, position, column);
      const u32 place = u32(i * kBlockTile.span) + kBlockTile.permuted(u32(word), u32(i)) * 16;
      arch::store_shared(to + place, value);
    }
  }
  static const uint4* word_of(const Source& source, const Side& side, i32 position, i32 column) {
    i64 at;
    if (position < source.start)
      at = source.pages[position / source.page_size] * side.pages.stride[0] +
           source.kv_head * side.pages.stride[1] + position % source.page_size * side.pages.stride[2];
    else
      at = (source.row + position - source.start) * side.rows.stride[0] + source.kv_head * kDim;
    return reinterpret_cast<const uint4*>((position < source.start ? side.pages : side.rows).data +
                                          2 * (at + column));
  }

  // 64 rows, in four warps. A thread has parts of two: `row` and `row` + 8.
  struct Group {
    const Chip& chip;
    const Attention& a;
    const u32 group = threadIdx.x / 128 - 1;
    const float exponent;  // a factor: of what the softmax takes
    u32 turn = 0;          // which of two places the tile has
    i32 first, blocks;
    i32 all_begin, all_end;  // positions that every row of the group sees
    Place key, value;
    float s[kKeys / 2], o[kDim / 2];
    u32 weights[kStep / 16][4];
    RunningSoftmax softmax;

    Group(const Chip& on_chip, const Attention& args)
        : chip(on_chip), a(args), exponent(softmax_exponent(args)) {}

    void run() {
      Turn::open(group);
#pragma unroll 1
      for (;; turn ^= 1) {
        arch::wait_barrier(chip.full, turn);
        const KernelTile tile = chip.tile_of(turn).load();
        if (tile.head < 0) break;
        const i32 position = tile.position + i32(group) * 64;
        all_begin = a.window > 0 ? position + 64 - a.window : 0, all_end = position + 1;
        first = tile.first, blocks = tile.blocks;
        softmax = RunningSoftmax();
        attend();
        store();
      }
    }

    void attend() {
      chip.key_ring.wait(key);
      {
        const auto turn = Turn::take(group);
        multiply_keys();
      }
      take_scores<0>(0);
      weigh<0>();
      rest_of_block(false);
#pragma unroll 1
      for (i32 n = 1; n < blocks; ++n) {
        chip.key_ring.wait(key);
        {
          const auto turn = Turn::take(group);
          multiply_keys();
          multiply_values<kSteps - 1>(n > 1 || kSteps > 1);
        }
        take_scores<1>(n);
        softmax_of<0>();
        arch::wait_products<0>();
        keep_values();
        softmax.scale_sums(o);
        to_weights<0>();
        rest_of_block(true);
      }
      if (is_leader()) arch::arrive(chip.empty);
      multiply_values<kSteps - 1>(blocks > 1 || kSteps > 1);
      softmax.join_lanes();
      arch::wait_products<0>();
      keep_values();
    }
    // The steps of a block after its first. Each waits for the products of the one before.
    template <i32 kOfBlock = 1>
    void rest_of_block(bool add) {
      if constexpr (kOfBlock < kSteps) {
        multiply_values<kOfBlock - 1>(add);
        softmax_of<kOfBlock>();
        arch::wait_products<0>();
        arch::keep(o), keep_fragments(weights);
        softmax.scale_sums(o);
        to_weights<kOfBlock>();
        rest_of_block<kOfBlock + 1>(true);
      }
    }

    void multiply_keys() {
      multiply_queries<kTerms, kDim, kQueryTile, kBlockTile>(
          s, chip.queries + group * u32(tile::row_bytes(kQueryTile, 64)), chip.key_ring.slot(key));
    }
    // By the values of a step of the block.
    template <i32 kOfBlock>
    void multiply_values(bool add) {
      if constexpr (kOfBlock == 0) chip.value_ring.wait(value);
      const u64 values = arch::descriptor<kBlockTile.turned()>(chip.value_ring.slot(value));
      multiply_weights<kTerms, kBlockTile>(o, weights,
                                           step_of<kBlockTile.turned()>(values, kOfBlock * kStep / 16), add);
    }
    // The scores of block n are there when at most kLeft later groups of products are under way.
    template <i32 kLeft>
    void take_scores(i32 n) {
      arch::wait_products<kLeft>();
      arch::keep(s);
      if (is_leader()) chip.key_ring.release(key);
      key.next();
      const i32 at = first + n * kKeys;
      if constexpr (Config::kModifiesScores) modify_scores(a, s);
      if (at < all_begin || at + kKeys > all_end) mask(at);
    }
    template <i32 kOfBlock>
    float (&step())[kStep / 2] {
      return reinterpret_cast<float(&)[kStep / 2]>(s[kOfBlock * kStep / 2]);
    }
    template <i32 kOfBlock>
    void softmax_of() {
      softmax.take(step<kOfBlock>(), exponent);
    }
    template <i32 kOfBlock>
    void to_weights() {
      const auto& of = step<kOfBlock>();
#pragma unroll
      for (i32 i = 0; i < kStep / 4; ++i) weights[i / 4][i % 4] = pack_pair<kIn>(of[2 * i], of[2 * i + 1]);
    }
    template <i32 kOfBlock>
    void weigh() {
      softmax_of<kOfBlock>(), to_weights<kOfBlock>();
    }
    void keep_values() {
      arch::keep(o);
      keep_fragments(weights);
      if (is_leader()) chip.value_ring.release(value);
      value.next();
    }
    // This thread's first row, of the tile.
    i32 row_of_tile() const { return i32(group * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4); }
    void mask(i32 at) {
      const i32 position = chip.tile_of(turn).load().position + row_of_tile();
#pragma unroll
      for (i32 i = 0; i < kKeys / 2; ++i) {
        const i32 row = position + i / 2 % 2 * 8, key = at + i / 4 * 8 + i32(threadIdx.x) % 4 * 2 + i % 2;
        if (key > row || (a.window > 0 && key <= row - a.window)) s[i] = RunningSoftmax::kMasked;
      }
    }

    void store() const {
      const KernelTile tile = chip.tile_of(turn).load();
#pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        const i32 row = tile.row + row_of_tile() + 8 * r;
        if (row >= tile.row_end) continue;
        const float total = softmax.total[r], share = total == 0 ? 0.0f : 1 / total;
        const auto part = RowsBlock::row(a.part, row, tile.head).from(i32(threadIdx.x) % 4 * 2);
#pragma unroll
        for (i32 j = 0; j < kDim / 8; ++j)
          store_two(part.from(8 * j), o[4 * j + 2 * r] * share, o[4 * j + 2 * r + 1] * share);
        if (threadIdx.x % 4 == 0)
          store_two(RowsBlock::row(a.stats, row, tile.head), best_score(a, softmax, r), total);
      }
    }
  };
};

}  // namespace heddle::device::attention
