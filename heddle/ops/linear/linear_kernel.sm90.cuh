// linear of many rows as a whole kernel on sm_90a: y^T = w x^T, so that panels of two rows need no other packing. One thread brings
// slabs of 64 k by bulk copies: rows of x, and of a panel the 128 bytes that hold four words of either row. Two groups of four warps
// load their 64 rows of w from chip into registers, from where tensor cores multiply them with x on chip. A thread then has the sums
// of both rows of a panel: a pair of neighbouring columns of y, for many rows of x. Epilogues take such pairs in registers; what they
// leave goes to memory by bulk stores while the next tile is multiplied. Two warps look up what epilogues need for each row while the
// tile is multiplied. CTAs go from tile to tile; for few rows clusters do, whose CTAs have parts of k and give each other the sums of
// some rows. A sum has its terms in the order of k, in each of kSplit parts: no other constant changes a bit.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/tensor_map.h"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/exchange.cuh"
#include "heddle/kit/move/next_tile.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/tile_mma.cuh"
#include "heddle/kit/value/expand.cuh"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/linear/linear_memory.h"
#include "heddle/tile/raster.h"

namespace heddle::device::linear {

struct KernelConfig {
  static constexpr i32 kRows = 256;  // A tile of x has them
  static constexpr i32 kSplit = 1;   // parts of k, each in a CTA of its own
  static constexpr i32 kStages = 4;  // slabs in flight
  static constexpr i32 kFold = 1;    // columns that make one of y
};

template <class Config, class Frame>
struct ChainKernel {
  using Chain = typename Frame::Chain;
  using RowsBlock = typename Frame::Block;
  using Columns = typename Frame::Columns;
  static constexpr Linear kTypes = Config::types();
  static constexpr DType kIn = kTypes.x.dtype, kOut = kTypes.y.dtype;
  static constexpr arch::Terms kTerms = kIn == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr i32 kRows = Config::kRows, kSplit = Config::kSplit, kStages = Config::kStages,
                       kFold = Config::kFold, kSlabK = 64, kOwnRows = kRows / kSplit;
  static constexpr i32 kColumns = heddle::linear::kColumns;
  static constexpr u32 kGroups = heddle::linear::kGroups;
  static constexpr Code kCode = kTypes.w.coding.code;
  static constexpr bool kCoded = kCode != Code::kNone;
  static constexpr tile::OperandTile kTileX = heddle::linear::slab_tile(kRows),
                                     kTileW = kCoded ? heddle::linear::coded_tile()
                                                     : heddle::linear::slab_tile(64),
                                     kStored = heddle::linear::stored_tile(kOwnRows, kFold, size_of(kOut));
  static constexpr tile::Budget kBudget =
      heddle::linear::KernelSizes{kRows, kSplit, kFold, size_of(kOut), kCoded, kStages}.budget();
  static constexpr u32 kThreads = kBudget.threads();
  static constexpr u32 kSlabX = kTileX.bytes(), kGroupW = kTileW.bytes(), kSlab = kSlabX + kGroups * kGroupW;
  using Ring = SlotRing<kStages, kSlab>;
  static constexpr i32 kPart = kStored.rows;
  static constexpr u32 kStage = kStored.bytes(), kTurns = heddle::linear::stored_turns(kFold, size_of(kOut));
  static_assert(kOwnRows % kPart == 0 && (kFold == 1 || kFold == 2) && kSlab % 1024 == 0 &&
                kStage % 1024 == 0);
  static_assert(kTypes.w.panel_rows == 2 && (kCoded || kTypes.w.interleave == 8));

  using Sums = float[kRows / 2];
  using Own = float[kOwnRows / 2];  // a CTA of a cluster finishes them
  using Parts = Exchange<kSplit == 1 ? 8 : kRows / 2, kSplit == 1 ? 2 : kSplit>;
  using Left = u32[kSlabK / 16][4];  // a warp's rows of a slab of w
  // Epilogues take kBatch pairs of a thread together, and the operands of the next ones are under way.
  static constexpr i32 kBatch = kOwnRows < 32 ? kOwnRows / 4 : 8, kBatches = kOwnRows / 4 / kBatch;
  using Operands = typename Chain::Operands[kBatch];
  using Places = decltype(static_cast<const Chain*>(nullptr)->places(*static_cast<RowsBlock*>(nullptr), 0));
  static_assert(!Places::kAny || sizeof(Places) == heddle::linear::kPlaceBytes);

  struct Sizes {
    i32 live;           // rows
    i32 rows, columns;  // tiles
    i32 first, steps;   // slabs of k of this CTA
    EveryTile<kSplit> mine;
    u32 rank;
    CodePanel panel;

    Sizes(const Frame& frame, const Linear& a)
        : live(frame.live(a.x.size[0])),
          rows((live + kRows - 1) / kRows),
          columns((a.w.rows() + kColumns - 1) / kColumns),
          first(0),
          steps((a.w.cols() + kSlabK - 1) / kSlabK),
          rank(kSplit > 1 ? arch::cta_in_cluster() : 0),
          panel(a.w.code_panel()) {
      if constexpr (kSplit > 1) {
        const i32 part = (steps + kSplit - 1) / kSplit;
        first = i32(rank) * part;
        steps = min(part, steps - first);
      }
    }
    // The first line of a slab in a panel.
    i32 line_of(i32 step) const {
      if (!kCoded) return step * 2;
      const i32 part = step * kSlabK / panel.part_cols(), scales = panel.part_bytes(0) - panel.code_bytes(0);
      return step * kSlabK / (CodePanel::kPieceCols * panel.pieces()) +
             part * (scales / CodePanel::kLineBytes);
    }
    i32 tiles() const { return rows * columns; }
    tile::TileAt place(i32 t) const { return tile::GroupedRaster{rows, columns, 8}.at(t); }
  };

  static void run(const Frame& frame, const TensorMap* maps) {
    const Ring ring{chip() + kBudget.offset("ring"), chip() + kBudget.offset("of ring")};
    if (threadIdx.x == 0) {
      if constexpr (kSplit > 1)
        for (u32 group = 0; group < kGroups; ++group) Parts::init(barriers_of_sums(group));
      ring.init(kGroups);
    }
    if constexpr (kSplit > 1)
      arch::sync_cluster();
    else
      __syncthreads();
    arch::let_next_kernel_start();
    const Chain chain = frame.chain();
    const Sizes sizes(frame, chain.args());
    if (threadIdx.x < 128) {
      enter<ChainKernel, "bring">();
      if (threadIdx.x == 0) produce(ring, sizes, maps);
      if (blockIdx.x == 0 && threadIdx.x / 32 == 1) frame.count_tiles();
      if constexpr (Places::kAny)
        if (threadIdx.x >= 64) look_up(sizes, chain);
    } else {
      enter<ChainKernel, "multiply">();
      arch::wait_for_kernel_before();
      multiply(ring, sizes, chain, maps);
    }
    if constexpr (kSplit > 1) arch::sync_cluster();  // nobody leaves while others may arrive here
  }
  static arch::OnChip barriers_of_sums(u32 group) {
    return chip() + (kBudget.offset("of sums") + group * Parts::kBarrierBytes);
  }

  // Panels are there before the previous kernel has ended; x is not.
  static void produce(const Ring& ring, const Sizes& sizes, const TensorMap* maps) {
    typename Ring::Place place;
    i32 ahead = min(kStages, sizes.steps);
#pragma unroll 1
    for (i32 t = sizes.mine.first; t < sizes.tiles(); t += sizes.mine.stride, ahead = 0) {
      const tile::TileAt tile = sizes.place(t);
      const i32 m = tile.row * kRows, n = tile.col * kColumns;
      if (ahead > 0) {
        typename Ring::Place begun;
#pragma unroll 1
        for (i32 step = 0; step < ahead; ++step, begun.next())
          bring_w(ring, begun, maps, n, sizes.line_of(sizes.first + step));
        arch::wait_for_kernel_before();
        arch::show_memory_to_copies();
      }
#pragma unroll 1
      for (i32 step = 0; step < sizes.steps; ++step, place.next()) {
        if (step >= ahead) bring_w(ring, place, maps, n, sizes.line_of(sizes.first + step));
        arch::load_box(ring.slot(place), maps, ring.full(place),
                       arch::Corner2{(sizes.first + step) * kSlabK, m});
      }
    }
  }
  static void bring_w(const Ring& ring, const typename Ring::Place& place, const TensorMap* maps, i32 n,
                      i32 line) {
    ring.begin(place);
#pragma unroll
    for (u32 group = 0; group < kGroups; ++group)
      arch::load_box(ring.slot(place) + (kSlabX + group * kGroupW), maps + 1, ring.full(place),
                     arch::Corner3{0, n / 2 + i32(group) * 32, line});
  }

  // Returns where 64 threads leave on chip what epilogues need for a row of a tile.
  static Shared<Places> places_of(i32 row) {
    return {chip() + (kBudget.offset("places") + u32(row * sizeof(Places)))};
  }
  static Places load_places(i32 row) {
    if constexpr (Places::kAny)
      return places_of(row).load();
    else
      return {};
  }
  static constexpr u32 kPlacesThere = 3, kPlacesRead = 4, kPlaceThreads = 64 + 128 * kGroups;
  static void look_up(const Sizes& sizes, const Chain& chain) {
    arch::wait_for_kernel_before();
    RowsBlock block;
#pragma unroll 1
    for (i32 t = sizes.mine.first; t < sizes.tiles(); t += sizes.mine.stride) {
      const i32 m = sizes.place(t).row * kRows;
      Places places[kRows / 64];
#pragma unroll
      for (i32 i = 0; i < kRows / 64; ++i)
        places[i] = chain.places(block, min(m + i * 64 + i32(threadIdx.x) - 64, sizes.live - 1));
      if (t != sizes.mine.first) arch::sync_threads<kPlacesRead, kPlaceThreads>();
#pragma unroll
      for (i32 i = 0; i < kRows / 64; ++i) places_of(i * 64 + i32(threadIdx.x) - 64).store(places[i]);
      arch::arrive_threads<kPlacesThere, kPlaceThreads>();
    }
  }

  // Scales of codes of the two rows that a lane has, for a slab: those of the next one are under way.
  struct LaneScales {
    static constexpr i32 kCount = kTypes.w.coding.group == CodePanel::kPieceCols ? 2 : 1;  // groups of a slab
    const u8* panel = nullptr;
    CodePanel layout = {};
    i32 step = 0;  // the slab
    float2 of[kCount];

    // `first`: the first of the group's columns. `slab`: the one that it begins with.
    void begin(const Weight& w, i32 first, i32 slab) {
      if constexpr (!kCoded) return;
      layout = w.code_panel(), step = slab;
      const i32 number = first / 2 + i32(threadIdx.x / 32 % 4 * 8 + threadIdx.x % 32 / 4);
      panel = w.data.data + min(number, w.panels() - 1) * w.panel_bytes();
      load(step * kSlabK);
    }
    void load(i32 k) {
      if (k >= layout.cols) return;
#pragma unroll
      for (i32 i = 0; i < kCount; ++i)
        of[i] =
            *reinterpret_cast<const float2*>(panel + layout.scale_place(0, k + i * CodePanel::kPieceCols));
    }
  };

  // The slab that comes next, and the one whose products are waited for.
  struct Walk {
    typename Ring::Place place, done;
    LaneScales scales;
  };

  static void multiply(const Ring& ring, const Sizes& sizes, const Chain& chain, const TensorMap* maps) {
    const u32 group = threadIdx.x / 128 - 1;
    Parts parts(chip() + (kBudget.offset("sums") + group * (kSplit > 1 ? Parts::kBytes : 0)),
                barriers_of_sums(kSplit > 1 ? group : 0));
    Walk walk;
    u32 turn = 0;
#pragma unroll 1
    for (i32 t = sizes.mine.first; t < sizes.tiles(); t += sizes.mine.stride) {
      const tile::TileAt tile = sizes.place(t);
      Sums sums;
      Left even, odd;
      walk.scales.begin(chain.args().w, tile.col * kColumns + i32(group) * 64, sizes.first);
      arch::keep(sums);
#pragma unroll 1
      for (i32 step = 0; step < sizes.steps; step += 2) {
        multiply_slab(sums, even, odd, ring, walk, step > 0);
        if (step + 1 < sizes.steps) multiply_slab(sums, odd, even, ring, walk, true);
      }
      const i32 own = i32(sizes.rank) * kOwnRows;
      const Target to{maps + 2, sizes.live, tile.row * kRows + own, tile.col * kColumns + i32(group) * 64,
                      own};
      Operands operands[2];
      ask(operands[0], chain, to, 0);
      arch::wait_products<0>();
      keep_fragments(even), keep_fragments(odd);
      arch::keep(sums);
      release(ring, walk.done);
      if constexpr (Places::kAny) arch::sync_threads<kPlacesThere, kPlaceThreads>();
      if constexpr (kSplit > 1) {
        Own finished;
        exchange<0>(finished, sums, parts, sizes.rank);
        leave(finished, operands, chain, to, turn);
      } else {
        leave(sums, operands, chain, to, turn);
      }
      if (Places::kAny && t + sizes.mine.stride < sizes.tiles())
        arch::arrive_threads<kPlacesRead, kPlaceThreads>();
    }
    if (threadIdx.x % 128 == 0) arch::wait_stores_read<0>();
  }
  // Sums in registers have constant places, so the rank is a constant too.
  template <i32 kRank>
  static void exchange(Own& own, Sums& sums, Parts& parts, u32 rank) {
    if constexpr (kRank + 1 < kSplit)
      if (rank != u32(kRank)) return exchange<kRank + 1>(own, sums, parts, rank);
    parts.template add<kRank>(sums, 1 + (threadIdx.x / 128 - 1));
#pragma unroll
    for (i32 i = 0; i < kOwnRows / 2; ++i) own[i] = sums[kRank * (kOwnRows / 2) + i];
  }
  // Products of a slab run while the next one's rows of w are loaded.
  static void multiply_slab(Sums& sums, Left& mine, Left& before, const Ring& ring, Walk& walk, bool later) {
    ring.wait(walk.place);
    if constexpr (kCoded)
      load_codes(mine, ring.slot(walk.place), walk.scales);
    else
      load_left(mine, ring.slot(walk.place));
    keep_fragments(mine);
    arch::begin_products();
    tile_mma<kTerms, kTileX>(sums, mine, arch::descriptor<kTileX>(ring.slot(walk.place)), later);
    arch::commit_products();
    walk.place.next();
    if (!later) return;
    arch::wait_products<1>();
    keep_fragments(before);
    release(ring, walk.done);
  }
  static void release(const Ring& ring, typename Ring::Place& done) {
    if (threadIdx.x % 128 == 0) ring.release(done);
    done.next();
  }
  // A warp's eight panels: their first rows are rows 0 to 7 of its fragments, their second rows the others. Bulk copies have permuted
  // the words of a panel's 128 bytes by the panel.
  static void load_left(Left& left, arch::OnChip slab) {
    const u32 group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const u32 row = lane / 8 % 2, word = lane / 16, panel = lane % 8;
    const arch::OnChip from = slab + (kSlabX + group * kGroupW + (warp * 8 + panel) * 128);
#pragma unroll
    for (u32 i = 0; i < kSlabK / 16; ++i)
      arch::load_matrices(left[i], from + (i / 2 * (kGroupW / 2) +
                                           kTileW.permuted((i % 2 * 2 + word) * 2 + row, panel) * 16));
  }

  // Codes become such fragments: a lane expands two neighbouring ones at a time.
  static void load_codes(Left& left, arch::OnChip slab, LaneScales& scales) {
    const u32 group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const u32 panel = lane / 4, pair = lane % 4;
    const arch::OnChip from = slab + (kSlabX + group * kGroupW + (warp * 8 + panel) * kTileW.span);
#pragma unroll
    for (u32 i = 0; i < kSlabK / 16; ++i)
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
        const u32 word = (i % 2 * 2 + j / 2) * 2 + j % 2, piece = i / 2;
        const arch::OnChip at = from + kTileW.permuted(word, panel) * CodePanel::kWordBytes;
        const float2 both = scales.of[LaneScales::kCount == 2 ? piece : 0];
        const float scale = j % 2 == 0 ? both.x : both.y;
        if constexpr (kCode == Code::kI4)
          left[i][j] = expand_two_i4<false>(
              arch::load_shared(at + (u32(scales.step % 2) * 2 + piece) * 4) >> (4 * pair), scale);
        else
          left[i][j] =
              expand_two_e4m3(arch::load_shared(at + (piece * 2 + pair / 2) * 4) >> (pair % 2 * 16), scale);
      }
    scales.load(++scales.step * kSlabK);
  }

  // Where the sums of a group belong.
  struct Target {
    const TensorMap* map;
    i32 live, m, n;
    i32 first;  // m, from the first row of the tile on
  };
  static void leave(Own& sums, Operands (&operands)[2], const Chain& chain, const Target& to, u32& turn) {
#pragma unroll
    for (i32 batch = 0; batch < kBatches; ++batch) {
      constexpr i32 kOfPart = kPart / 4 / kBatch;
      const i32 part = batch / kOfPart, m = to.m + part * kPart;
      if (batch % kOfPart == 0 && m >= to.live) break;
      if (batch + 1 < kBatches) ask(operands[(batch + 1) % 2], chain, to, batch + 1);
      pass(sums, operands[batch % 2], chain, to, batch);
      if (batch % kOfPart == kOfPart - 1)
        store(reinterpret_cast<float(&)[kPart / 2]>(sums[part * (kPart / 2)]), to, m, turn);
    }
  }
  // Pair i of a thread: its row, and its two columns, which are the same for all pairs.
  static i32 row_of(i32 i) { return i / 2 * 8 + i32(threadIdx.x % 4) * 2 + i % 2; }
  static i32 column_of() { return i32(threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 * 2); }
  // Where a thread's sums have a pair: sums[first_of(i)] and sums[first_of(i) + 2].
  static constexpr i32 first_of(i32 i) { return i / 2 * 4 + i % 2; }
  static i32 last_column(const Chain& chain) { return chain.args().w.rows() - 2; }

  static void ask(Operands& operands, const Chain& chain, const Target& to, i32 batch) {
    RowsBlock block;
    const i32 n = min(to.n + column_of(), last_column(chain));
#pragma unroll
    for (i32 i = 0; i < kBatch; ++i)
      operands[i] = chain.ask(block, min(to.m + row_of(batch * kBatch + i), to.live - 1), Columns{n, 2, {}});
  }
  // Epilogues take a thread's pairs; what they make stays in their place.
  static void pass(Own& sums, const Operands& operands, const Chain& chain, const Target& to, i32 batch) {
    RowsBlock block;
    const i32 n = to.n + column_of(), last = last_column(chain);
#pragma unroll
    for (i32 i = 0; i < kBatch; ++i) {
      const i32 row = row_of(batch * kBatch + i), at = first_of(batch * kBatch + i);
      if (to.m + row >= to.live || n > last) continue;
      Columns columns{n, 2, {sums[at], sums[at + 2]}};
      chain.columns(block, to.m + row, columns, operands[i], load_places(to.first + row));
      sums[at] = columns.value[0], sums[at + 2] = columns.value[1];
    }
  }

  static void store(const float (&sums)[kPart / 2], const Target& to, i32 m, u32& turn) {
    const u32 group = threadIdx.x / 128 - 1;
    const arch::OnChip at = chip() + (kBudget.offset("stored") + (group * kTurns + turn) * kStage);
    const bool is_leader = threadIdx.x % 128 == 0;
    if (is_leader) arch::wait_stores_read<kTurns - 1>();
    sync_group(group);
    if constexpr (kFold == 1)
      stage_pairs(sums, at);
    else
      stage_folded(sums, at);
    arch::show_to_copies();
    sync_group(group);
    turn = (turn + 1) % kTurns;
    if (!is_leader) return;
#pragma unroll
    for (i32 j = 0; j < kStored.blocks(); ++j)
      arch::store_box(to.map, at + j * kStored.block_bytes(),
                      arch::Corner2{to.n / kFold + j * kStored.span_elements(), m});
    arch::commit_stores();
  }
  // The place of `byte` of a row on chip, whose words bulk stores take permuted.
  static arch::OnChip place_of(arch::OnChip stage, u32 row, u32 byte) {
    static constexpr tile::Swizzle kSwizzle = tile::swizzle_of_span(kStored.span);
    const u32 box = byte / kStored.span;
    return stage + (box * kStored.block_bytes() + kSwizzle(row * kStored.span + byte % kStored.span));
  }
  static void put(arch::OnChip to, float first, float second) {
    if constexpr (size_of(kOut) == 2)
      arch::store_shared(to, pack_pair<kOut>(first, second));
    else
      arch::store_shared(to, first, second);
  }
  static void stage_pairs(const float (&sums)[kPart / 2], arch::OnChip stage) {
#pragma unroll
    for (i32 i = 0; i < kPart / 4; ++i)
      put(place_of(stage, u32(row_of(i)), u32(column_of() * size_of(kOut))), sums[first_of(i)],
          sums[first_of(i) + 2]);
  }
  // A thread has one column of two neighbouring rows, and its partner the next or the previous one: they exchange a row.
  static void stage_folded(const float (&sums)[kPart / 2], arch::OnChip stage) {
    const u32 column = u32(column_of()) / 2, odd = column % 2;
#pragma unroll
    for (i32 i = 0; i < kPart / 4; i += 2) {
      const float first = sums[first_of(i)], second = sums[first_of(i + 1)];
      const float other = __shfl_xor_sync(~0u, odd ? first : second, 4);
      put(place_of(stage, u32(row_of(i)) + odd, (column - odd) * u32(size_of(kOut))), odd ? other : first,
          odd ? second : other);
    }
  }
  static void sync_group(u32 group) { arch::sync_threads<128>(1 + group); }
};

}  // namespace heddle::device::linear
