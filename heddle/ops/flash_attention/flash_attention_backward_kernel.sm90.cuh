// flash_attention_backward as whole kernels on sm_90a. `Prepare` brings lse and delta into the form that copies can take. In
// `Kernel` a CTA has 128 keys, each of two groups of four warps 64 of them, with dk and dv in registers; queries come 64 at a time.
// A CTA with heads of more than 128 elements has 64 keys: each group makes the scores of half of the queries, which both read on
// chip, and half of the columns of dk and dv.
//   s = k q^T, p = exp(s - lse), dp = v dy^T, dv += p dy, ds = p (dp - delta), dk += ds q, dq += ds^T k
// Each group makes half of the columns of dq, which two threads add to memory by bulk copies, a step each in turn: one thread alone
// takes longer than a step, since a release waits for all copies under way. CTAs add to dq of a step one after the other and
// come to it some time after one another (KeyWork), so that they seldom wait. A CTA waits only for CTAs that were launched before
// it, so the kernel ends however few of them run at once.
// `Finish` puts dq in rows. With block lists, `Order` finds before all how many CTAs add to each step before another one, and one
// thread of a CTA walks the lists of its keys.
// In loops on purpose: 1 fence: a CTA passes its turn at a step of dq to the next
// In loops on purpose: 2 empty-l1: a CTA waits for its turn
// Known: 20 spill: of the helper threads, and of products whose scores are modified; the times in bench/results include them
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/tile_mma.cuh"
#include "heddle/ops/flash_attention/attention_backward_sides_kernel.sm90.cuh"
#include "heddle/ops/flash_attention/attention_parts_kernel.sm90.cuh"
#include "heddle/ops/flash_attention/flash_attention_backward.h"

namespace heddle::device::flash_attention_backward {

using namespace attention_parts;

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kDim = 128;    // elements of a head, rounded up to 64, 128 or 256
  static constexpr i32 kSoftcap = 0;  // 1: the call has one
  static constexpr i32 kSpills = 0;   // bytes that a thread may spill (heddle check)
  using Score = SameScore;            // a function of scores (kit/attention/score.h)
};

template <class Config>
struct Kernel : Facts<Config> {
  using F = Facts<Config>;
  using F::kType, F::kHasParts, F::kHasLists, F::kHasBias, F::kHasAlibi, F::kModifiesScores, F::kDim,
      F::kHalf, F::kBends, F::kColumns;
  using Score = typename F::Score;
  static constexpr arch::Terms kTerms = kType == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr arch::Major kAlongK = arch::Major::kK;
  using F::kKeys, F::kShares;
  static constexpr tile::Budget kBudget = heddle::flash_attention_backward::kernel_budget(kDim);
  static constexpr tile::OperandTile kQueryTile = head_tile(kStepQueries, kDim),
                                     kKeyTile = head_tile(kKeys, kDim),
                                     kScoreTile = heddle::flash_attention_backward::score_tile(kDim),
                                     kQueriesAsDepth = kQueryTile.turned(), kKeysAsDepth = kKeyTile.turned();
  static constexpr i32 kQueries = kStepQueries, kStages = heddle::flash_attention_backward::stages_of(kDim);
  static constexpr i32 kOwn =
      kShares ? kQueries / 2 : kQueries;   // queries of a step whose scores a group makes
  static constexpr u32 kPlaces = kStages;  // on chip for dq of a step
  // Narrow keys and values lie in registers, too: products would read them from the chip as often as queries.
  static constexpr bool kHoldsKeys = kDim == 64 && !kModifiesScores;
  static constexpr u32 kThreads = kBudget.threads();
  static constexpr u32 kHalfBytes = kQueries * kHalf * 4, kDqBytes = 2 * kHalfBytes, kRowBytes = kQueries * 4;
  using Ring = SlotRing<kStages, kQueryTile.bytes()>;
  static_assert(kDim == 64 || kDim == 128 || kDim == 256);

  using Work = KeyWork<Config>;

  // A step that a list names.
  struct Listed {
    i32 head, step;  // step -1: there are no more
    u32 before;      // CTAs that add to its dq before this one
  };

  struct Chip {
    arch::OnChip keys = chip() + kBudget.offset("keys"), values = chip() + kBudget.offset("values"),
                 scores = chip() + kBudget.offset("scores"), dq = chip() + kBudget.offset("dq"),
                 rows = chip() + kBudget.offset("rows"), full = chip() + kBudget.offset("full"),
                 dq_full = chip() + kBudget.offset("dq full"), dq_empty = chip() + kBudget.offset("dq empty"),
                 work = chip() + kBudget.offset("work"), steps = chip() + kBudget.offset("steps"),
                 told = chip() + kBudget.offset("told");
    Ring query_ring{chip() + kBudget.offset("queries"), chip() + kBudget.offset("of queries")},
        given_ring{chip() + kBudget.offset("dy"), chip() + kBudget.offset("of dy")};

    Shared<Work> shared_work() const { return {work}; }
    // The steps of the slots of the rings, and of dq that each draining thread has.
    Shared<Listed> listed(u32 slot) const { return {steps + slot * 16}; }
    Shared<Listed> listed_dq(u32 turn) const { return {steps + (kStages + turn) * 16}; }
    arch::OnChip lse(u32 slot) const { return rows + slot * kRowBytes; }
    arch::OnChip delta(u32 slot) const { return rows + (kStages + slot) * kRowBytes; }
  };

  static void run(const FlashAttentionBackward& a, const TensorMap* maps, u8* workspace) {
    const Chip chip;
    if (threadIdx.x == 0) {
      chip.query_ring.init(2), chip.given_ring.init(2);
      arch::init_barrier(chip.full, 1u);
      for (i32 s = 0; s < kStages; ++s) arch::init_barrier(chip.told + s * 8, 1u);
#pragma unroll
      for (u32 t = 0; t < 2; ++t)
        arch::init_barrier(chip.dq_full + 8 * t, 256u), arch::init_barrier(chip.dq_empty + 8 * t, 1u);
      arch::fence_barriers();
      chip.shared_work().store(Work::of(a));
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      enter<Kernel, "help">();
      if (threadIdx.x == 0) produce(chip, a, maps, workspace);
      if (kHasLists && threadIdx.x == 96) walk(chip, a, workspace);
      if (threadIdx.x == 32 || threadIdx.x == 64) drain(chip, a, workspace, threadIdx.x / 32 - 1);
      return;
    }
    enter<Kernel, "multiply">();
    Group(chip, a, workspace).run();
  }

  // The number of the sequence's first step of a head among all, for the workspace.
  static i64 place_of(const FlashAttentionBackward& a, const Work& work, i32 steps, i32 head) {
    return (i64(work.batch) * a.q.size[2] + head) * steps + work.tile.first_step;
  }

  template <tile::OperandTile kTile>
  static void load(arch::OnChip to, const TensorMap* map, arch::OnChip full, arch::Corner4 at) {
#pragma unroll
    for (i32 j = 0; j < kTile.blocks(); ++j, at.x += kTile.span_elements())
      arch::load_box(to + j * kTile.block_bytes(), map, full, at);
  }

  static void produce(const Chip& chip, const FlashAttentionBackward& a, const TensorMap* maps,
                      u8* workspace) {
    const Work work = chip.shared_work().load();
    if (!kHasLists && work.first >= work.last) return;
    const AttentionRoom room(a, kDim);
    const i32 key = work.tile.sequence.key_begin + work.tile.row;
    arch::expect_bytes(chip.full, 2 * kKeyTile.bytes());
    load<kKeyTile>(chip.keys, maps + 1, chip.full, {0, key, work.group, work.batch});
    load<kKeyTile>(chip.values, maps + 2, chip.full, {0, key, work.group, work.batch});
    typename Ring::Place place;
    arch::Corner4 at{0, 0, work.head(0), work.batch};
    const auto bring_step = [&](const u8* rows, i32 step) {
      at.y = work.tile.sequence.query_begin + step * kQueries;
      chip.query_ring.begin(place, kQueryTile.bytes() + kRowBytes);
      load<kQueryTile>(chip.query_ring.slot(place), maps, chip.query_ring.full(place), at);
      arch::load_bytes(chip.lse(place.slot), rows + step * (2 * kRowBytes), kRowBytes,
                       chip.query_ring.full(place));
      chip.given_ring.begin(place, kQueryTile.bytes() + kRowBytes);
      load<kQueryTile>(chip.given_ring.slot(place), maps + 3, chip.given_ring.full(place), at);
      arch::load_bytes(chip.delta(place.slot), rows + (step * (2 * kRowBytes) + kRowBytes), kRowBytes,
                       chip.given_ring.full(place));
    };
    const auto rows_of = [&] {
      return workspace + room.rows + place_of(a, work, room.steps, at.z) * (2 * kRowBytes);
    };
    if constexpr (kHasLists) {
#pragma unroll 1
      for (;; place.next()) {
        arch::wait_barrier(chip.told + place.slot * 8, place.phase);
        const Listed listed = chip.listed(place.slot).load();
        if (listed.step < 0) break;
        at.z = listed.head, bring_step(rows_of(), listed.step);
      }
      arch::arrive(chip.query_ring.full(place));
      return;
    }
#pragma unroll 1
    for (i32 n = work.heads; n > 0; --n, ++at.z) {
      const u8* rows = rows_of();
#pragma unroll 1
      for (i32 step = work.last - 1; step >= work.first; --step, place.next()) bring_step(rows, step);
    }
  }

  // Says which step each slot of the rings has: those that the lists of the CTA's keys name.
  static void walk(const Chip& chip, const FlashAttentionBackward& a, const u8* workspace) {
    const Work work = chip.shared_work().load();
    const AttentionRoom room(a, kDim);
    typename Ring::Place place;
    const auto tell = [&](const Listed& listed) {
      arch::wait_barrier(chip.query_ring.empty(place), place.phase ^ 1);
      chip.listed(place.slot).store(listed);
      arch::arrive(chip.told + place.slot * 8);
      place.next();
    };
    const i32 parts = a.block_q / kQueries, steps = room.steps;
#pragma unroll 1
    for (i32 n = 0; n < work.heads; ++n) {
      const i32 head = work.head(n);
      const BlockList list = list_of(Memory(), a.q_num_blocks, a.q_indices, work.batch, head,
                                     work.tile.row / a.block_k, a.block_q);
      const u32* const later = named_from(a, workspace, room, work.batch, head) + work.block() + 1;
#pragma unroll 1
      for (i32 i = 0; i < list.count; ++i) {
        const i32 block = list.listed[i];
        if (u32(block) >= u32(blocks_of(a.q.size[1], a.block_q))) continue;
        const u32 before = later[block * (room.later_row / 4)];
        const i32 end = min((block + 1) * parts, steps);
#pragma unroll 1
        for (i32 step = block * parts; step < end; ++step) tell({head, step, before});
      }
    }
    tell({0, -1, 0});
  }

  // Adds dq of every other step, from number `t` of the CTA's on, to memory, after the CTAs whose turn is before.
  static void drain(const Chip& chip, const FlashAttentionBackward& a, u8* workspace, u32 t) {
    const Work work = chip.shared_work().load();
    const AttentionRoom room(a, kDim);
    const arch::OnChip full = chip.dq_full + 8 * t, from = chip.dq + t % kPlaces * kDqBytes;
    u32 phase = 0;
    const auto wait_for_dq = [&] { arch::wait_barrier(full, phase), phase ^= 1; };
    // `place`: of the sum, among all. `before`: CTAs that add to it before this one.
    const auto drain_step = [&](i64 place, u32 before) {
      u32* const turn = reinterpret_cast<u32*>(workspace) + place;
      float* const to = reinterpret_cast<float*>(workspace + room.dq) + place * (kDqBytes / 4);
      if (before > 0) arch::wait_acquire(turn, before);
      arch::show_memory_to_copies();
      if (before == 0)
        arch::store_bytes(to, from, kDqBytes);
      else
        arch::add_floats(to, from, kDqBytes);
      arch::commit_stores();
      arch::wait_stores_read<0>();
      arch::arrive(chip.dq_empty + 8 * t);
      arch::wait_stores<0>();
      arch::show_memory_to_copies();
      // A relaxed store saves 1 to 15 %, but then sums had other bits in 63 of 500 runs (H200, CTAs close to one another): a copy
      // that has ended for this thread need not have been added up for others.
      arch::store_release(turn, before + 1);
    };
    if constexpr (kHasLists) {
#pragma unroll 1
      while (true) {
        wait_for_dq();
        const Listed listed = chip.listed_dq(t).load();
        if (listed.step < 0) return;
        drain_step(place_of(a, work, room.steps, listed.head) + listed.step, listed.before);
      }
    }
    u32 number = 0;  // steps that the CTA has begun
#pragma unroll 1
    for (i32 n = 0; n < work.heads; ++n) {
      const i64 head = place_of(a, work, room.steps, work.head(n));
#pragma unroll 1
      for (i32 step = work.last - 1; step >= work.first; --step) {
        if (number++ % 2 != t) continue;
        const i64 place = head + step;
        const u32 before = work.before(step);
        wait_for_dq();
        drain_step(place, before);
      }
    }
  }

  // 64 keys, in four warps. Scores lie with keys as rows: a thread has parts of two of them.
  struct Group {
    const Chip& chip;
    const FlashAttentionBackward& a;
    u8* const workspace;
    const u32 w = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
    // Halves of those of the CTA.
    const u32 own_keys = kShares ? 0 : w, own_columns = kShares ? w : 0, own_queries = kShares ? w * kOwn : 0;
    const u32 row = thread / 32 * 16 + lane() / 4, column = lane() % 4 * 2;
    const float scale;
    i32 all_begin, all_end;  // queries that see all keys of the group
    float dk[kColumns / 2], dv[kColumns / 2], s[kOwn / 2], dp[kOwn / 2];
    u32 weights[kOwn / 16][4], ds[kOwn / 16][4];
    u32 keys[kHoldsKeys ? kDim / 16 : 1][4], values[kHoldsKeys ? kDim / 16 : 1][4];
    typename Ring::Place place;
    u32 lap = 0;  // changes every second step where the rings have one slot

    Group(const Chip& on_chip, const FlashAttentionBackward& args, u8* room)
        : chip(on_chip), a(args), workspace(room), scale(scale_of(args)) {}

    bool is_leader() const { return thread == 0; }
    i32 first_key(const Work& work) const { return work.tile.row + i32(own_keys) * 64; }
    // Scores have two places, which take turns, and dq two threads that drain it.
    u32 turn_of_step() const { return kStages == 1 ? place.phase : place.slot; }
    void next_step() {
      if (kStages == 1) lap ^= place.phase;
      place.next();
    }
    // Waits until this step's dq buffer is free. With two buffers it was last used two steps ago, with one in
    // the previous step.
    void wait_for_place() const {
      const u32 turn = turn_of_step();
      if constexpr (kPlaces == 1)
        arch::wait_barrier(chip.dq_empty + 8 * (turn ^ 1), lap ^ turn ^ 1);
      else
        arch::wait_barrier(chip.dq_empty + 8 * turn, place.phase ^ 1);
    }

    void run() {
      const Work work = chip.shared_work().load();
      find_common(work);
#pragma unroll
      for (i32 i = 0; i < kColumns / 2; ++i) dk[i] = dv[i] = 0;
      if constexpr (kHasLists) return run_listed();
      const i32 begin = work.first * kQueries, end = work.last * kQueries;
      if (begin < end) wait_for_keys();
      i32 head = work.head(0), query = end;
#pragma unroll 1
      for (i32 left = work.steps(); left > 0; --left, next_step()) {
        query -= kQueries;
        take_step(head, query);
        if (query == begin) ++head, query = end;
      }
      store();
    }
    void run_listed() {
      wait_for_keys();
#pragma unroll 1
      for (;; next_step()) {
        chip.query_ring.wait(place);
        const Listed listed = chip.listed(place.slot).load();
        if (listed.step < 0) break;
        take_step(listed.head, listed.step * kQueries);
      }
      // Each thread that drains waits for the end. The one that has it empties no place any more.
      for (i32 t = 0; t < 2; ++t, next_step()) {
        if (t == 0 || kPlaces == 2) wait_for_place();
        say({0, -1, 0});
      }
      store();
    }
    // Hands a step on, with its dq.
    void say(const Listed& listed) {
      if (w == 0 && is_leader()) chip.listed_dq(turn_of_step()).store(listed);
      arch::arrive(chip.dq_full + 8 * turn_of_step());
    }
    // The queries that see all keys of the group.
    void find_common(const Work& work) {
      const AttentionMask mask = attention_mask(a, work.tile.sequence);
      const i32 first = first_key(work);
      all_begin = mask.queries_of(first + 63).begin;
      all_end = first + 64 <= mask.keys ? mask.queries_of(first).end : 0;
    }

    void wait_for_keys() {
      arch::wait_barrier(chip.full, 0);
      if constexpr (kHoldsKeys) hold(keys, chip.keys), hold(values, chip.values);
    }
    // The group's rows of 64 elements, as the left operand of products.
    template <i32 kCount>
    void hold(u32 (&to)[kCount][4], arch::OnChip from) const {
      const arch::OnChip row_of = from + (own_keys * 64 + thread / 32 * 16 + lane() % 16) * 128;
#pragma unroll
      for (u32 c = 0; c < kCount; ++c)
        arch::load_matrices(to[c], row_of + kKeyTile.permuted(2 * c + lane() / 16, lane() % 8) * 16),
            arch::keep(to[c]);
    }
    // s = k q^T or dp = v dy^T. `held`: the left operand, where it lies in registers
    template <i32 kCount>
    void multiply(float (&sums)[kOwn / 2], arch::OnChip left, const u32 (&held)[kCount][4],
                  arch::OnChip right) const {
      const u64 a = arch::descriptor<kKeyTile>(left + own_keys * u32(tile::row_bytes(kKeyTile, 64))),
                b = arch::descriptor<kQueryTile>(right + own_queries * u32(kQueryTile.span));
      // The product writes them: what they held takes no registers until here.
#pragma unroll
      for (i32 i = 0; i < kOwn / 2; ++i) arch::leave_unset(sums[i]);
      arch::begin_products();
#pragma unroll
      for (i32 c = 0; c < kDim / 16; ++c) {
        const u64 terms = step_of<kQueryTile>(b, c);
        if constexpr (kHoldsKeys)
          arch::multiply<kTerms, kAlongK>(sums, held[c], terms, c > 0);
        else
          arch::multiply<kTerms, kAlongK, kAlongK>(sums, step_of<kKeyTile>(a, c), terms, c > 0);
      }
      arch::commit_products();
    }
    // dv += p dy or dk += ds q. The left operand lies in registers, or on chip where groups share it.
    void add_products(float (&sums)[kColumns / 2], const u32 (&left)[kOwn / 16][4], arch::OnChip shared,
                      arch::OnChip right) const {
      const u32 from = own_columns * (kColumns / 64 * kQueries * 128);
      const u64 b = arch::descriptor<kQueriesAsDepth>(right + from);
      if constexpr (kShares)
        tile_mma<kTerms, kScoreTile, kQueriesAsDepth>(sums, arch::descriptor<kScoreTile>(shared), b, true);
      else
        tile_mma<kTerms, kQueriesAsDepth>(sums, left, b, true);
      arch::commit_products();
    }

    // Queries from `first` on, in the sequence.
    void take_step(i32 head, i32 first) {
      const arch::OnChip queries = chip.query_ring.slot(place), given = chip.given_ring.slot(place);
      const arch::OnChip shared_weights = chip.scores,
                         shared_ds = chip.scores + (kShares ? 1 : turn_of_step()) * kScoreTile.bytes();
      chip.query_ring.wait(place);
      multiply(s, chip.keys, keys, queries);
      chip.given_ring.wait(place);
      multiply(dp, chip.values, values, given);
      arch::wait_products<1>();
      arch::keep(s);
      to_weights(head, first);
      if constexpr (kShares) share(weights, shared_weights);
      arch::keep(dv), keep_fragments(weights);
      arch::begin_products();
      add_products(dv, weights, shared_weights, given);
      arch::wait_products<1>();
      arch::keep(dp);
      to_gradients();
      share(ds, shared_ds);
      float dq[kHalf / 2];
      arch::keep(dq), arch::keep(dk), keep_fragments(ds);
      arch::begin_products();
      const auto end_dk = [&] {
        arch::keep(dk), keep_fragments(ds);
        if (is_leader()) chip.query_ring.release(place);
      };
      // Where the ring of queries has one slot, dk comes first, so that the next queries are under way early.
      if constexpr (kShares) add_products(dk, ds, shared_ds, queries);
      multiply_dq(dq, shared_ds);
      if constexpr (!kShares) add_products(dk, ds, shared_ds, queries);
      arch::wait_products<2>();
      arch::keep(dv), keep_fragments(weights);
      if (is_leader()) chip.given_ring.release(place);
      arch::wait_products<1>();
      Listed listed;  // a slot that is released may have another step
      if constexpr (kHasLists) listed = chip.listed(place.slot).load();
      if constexpr (kShares) {
        end_dk();
        arch::wait_products<0>();
      }
      arch::keep(dq);
      hand_over(dq, listed);
      if constexpr (!kShares) {
        arch::wait_products<0>();
        end_dk();
      }
    }

    // s becomes p, and then p times the slope of the cap.
    void to_weights(i32 head, i32 first) {
      u32 slope[kBends ? kOwn / 4 : 1];  // pairs of f16
      if constexpr (kModifiesScores) modify(head, first, slope);
      const float exponent = kModifiesScores ? kLog2E : scale * kLog2E;
#pragma unroll
      for (i32 j = 0; j < kOwn / 8; ++j) {
        const float2 lse = arch::load_shared_pair(chip.lse(place.slot) + (own_queries + 8 * j + column) * 4);
#pragma unroll
        for (i32 c = 0; c < 4; ++c)
          s[4 * j + c] = arch::exp2(__fmaf_rn(s[4 * j + c], exponent, -(c % 2 == 0 ? lse.x : lse.y)));
      }
      if (first < all_begin || first + kQueries > all_end || (Score::kMasks && !sees_step(head, first)))
        mask(head, first);
#pragma unroll
      for (i32 j = 0; j < kOwn / 4; ++j) weights[j / 4][j % 4] = pack_pair<kType>(s[2 * j], s[2 * j + 1]);
      if constexpr (kBends) {
#pragma unroll
        for (i32 j = 0; j < kOwn / 2; ++j) s[j] *= arch::from_f16(u16(slope[j / 2] >> (j % 2 * 16)));
      }
    }
    // The query of score j in a step from `first` on.
    i32 query_of(i32 first, i32 j) const { return first + i32(own_queries + column) + j / 4 * 8 + j % 2; }
    void mask(i32 head, i32 first) {
      const Work work = chip.shared_work().load();
      const AttentionMask all = attention_mask(a, work.tile.sequence);
      AttentionRange seen[2];
      u32 bits[2];
#pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        const i32 key = first_key(work) + i32(row) + 8 * r;
        seen[r] = key < all.keys ? all.queries_of(key) : AttentionRange{0, 0};
        bits[r] = function().queries_seen(place_of(work, head, first, 2 * r));
      }
#pragma unroll
      for (i32 j = 0; j < kOwn / 2; ++j) {
        const AttentionRange& range = seen[j / 2 % 2];
        const i32 query = query_of(first, j);
        const bool is_seen = bits[j / 2 % 2] >> (j / 4 * 2 + j % 2) & 1;
        if (!is_seen || query < range.begin || query >= range.end) s[j] = 0;
      }
    }
    Score function() const { return Score(a); }
    bool sees_step(i32 head, i32 first) const {
      const Work work = chip.shared_work().load();
      return function().sees_all(ScorePlace::of(work.batch, head, first, work.tile.row));
    }
    ScorePlace place_of(const Work& work, i32 head, i32 first, i32 j) const {
      const AttentionSequence& s = work.tile.sequence;
      const i32 query = s.query_begin + query_of(first, 0), key = s.key_begin + first_key(work) + i32(row);
      return place_in(s, ScorePlace::of(work.batch, head, query, key), j / 4 * 8 + j % 2, j / 2 % 2 * 8);
    }
    template <i32 kCount>
    void modify(i32 head, i32 first, u32 (&slope)[kCount]) {
      const Work work = chip.shared_work().load();
      const i32 key = first_key(work) + i32(row);
      const float cap = a.softcap, inward = Config::kSoftcap ? 2 * kLog2E * scale / cap : 0;
      float steep = 0, apart = 0;
      if constexpr (kHasAlibi) {
        steep = reinterpret_cast<const float*>(a.alibi_slopes.data)[head];
        apart = float(attention_mask(a, work.tile.sequence).position(0) - key);
      }
      const u8* bias = nullptr;
      if constexpr (kHasBias)
        bias = a.bias.data + ((a.bias.size[0] == 1 ? 0 : work.batch) * a.bias.stride[0] +
                              (a.bias.size[1] == 1 ? 0 : head) * a.bias.stride[1]) *
                                 size_of(F::kTypes.bias.dtype);
      const auto keep_slope = [&](i32 j, float by) {
        const u32 bits = arch::to_f16(by);
        slope[j / 2] = j % 2 == 0 ? bits : slope[j / 2] | bits << 16;
      };
#pragma unroll
      for (i32 j = 0; j < kOwn / 2; ++j) {
        float x = s[j], steepness = 1;
        if constexpr (Config::kSoftcap) {  // tanh x = 1 - 2 / (e^2x + 1)
          const float t = 1 - 2 * arch::reciprocal(arch::exp2(x * inward) + 1);
          x = cap * t, steepness = 1 - t * t;
          if (!Score::kChanges) keep_slope(j, steepness);
        } else {
          x *= scale;
        }
        const i32 query = query_of(first, j);
        if constexpr (kHasAlibi) x -= steep * fabsf(apart + float(query) - float(j / 2 % 2 * 8));
        if constexpr (kHasBias)
          x += load_element<F::kTypes.bias.dtype>(bias, min(query, a.bias.size[2] - 1) * a.bias.stride[2] +
                                                            min(key + j / 2 % 2 * 8, a.bias.size[3] - 1));
        if constexpr (Score::kChanges) {
          const Scored own = function().of(x, place_of(work, head, first, j));
          x = own.score, steepness *= own.slope;
          if (kBends) keep_slope(j, steepness);
        }
        s[j] = x;
      }
    }

    void to_gradients() {
#pragma unroll
      for (i32 j = 0; j < kOwn / 8; ++j) {
        const float2 delta =
            arch::load_shared_pair(chip.delta(place.slot) + (own_queries + 8 * j + column) * 4);
#pragma unroll
        for (i32 c = 0; c < 4; ++c)
          dp[4 * j + c] = s[4 * j + c] * (dp[4 * j + c] - (c % 2 == 0 ? delta.x : delta.y));
      }
#pragma unroll
      for (i32 j = 0; j < kOwn / 4; ++j) ds[j / 4][j % 4] = pack_pair<kType>(dp[2 * j], dp[2 * j + 1]);
    }
    // The group's part of [keys, queries] on chip, in rows of 128 bytes whose words are permuted by the row.
    void share(const u32 (&values)[kOwn / 16][4], arch::OnChip place) const {
      const arch::OnChip to = place + (own_keys * 64 + thread / 32 * 16 + lane() % 16) * 128;
#pragma unroll
      for (u32 c = 0; c < kOwn / 16; ++c)
        arch::store_matrices(to + ((own_queries / 8 + 2 * c + lane() / 16) ^ (lane() % 8)) * 16, values[c][0],
                             values[c][1], values[c][2], values[c][3]);
      arch::show_to_copies();
      arch::sync_threads<1, 256>();
    }
    // dq = ds^T k, of which this group has half of the columns.
    void multiply_dq(float (&dq)[kHalf / 2], arch::OnChip shared_ds) const {
      const u64 left =
          arch::descriptor<kScoreTile>(shared_ds);  // one block, which both ways of reading describe alike
      const u64 right = arch::descriptor<kKeysAsDepth>(
          chip.keys + w * (kHalf < 64 ? 64 : kHalf / 64 * kKeyTile.block_bytes()));
      tile_mma<kTerms, kScoreTile.turned(), kKeysAsDepth>(dq, left, right, false);
      arch::commit_products();
    }
    void hand_over(const float (&dq)[kHalf / 2], const Listed& listed) {
      wait_for_place();
      const arch::OnChip to = chip.dq + turn_of_step() % kPlaces * kDqBytes + w * kHalfBytes + thread * 16;
#pragma unroll
      for (i32 j = 0; j < kHalf / 8; ++j)
        arch::store_shared(to + j * 2048, float4{dq[4 * j], dq[4 * j + 1], dq[4 * j + 2], dq[4 * j + 3]});
      arch::show_to_copies();
      if constexpr (kHasLists)
        say(listed);
      else
        arch::arrive(chip.dq_full + 8 * turn_of_step());
    }

    void store() const {
      const Work work = chip.shared_work().load();
      if (work.splits == 1) {
        store_keys(a.dk, work, w, thread, 0, dk, scale), store_keys(a.dv, work, w, thread, 0, dv, 1);
        return;
      }
      const AttentionRoom room(a, kDim);
      float4* const to = reinterpret_cast<float4*>(workspace + room.sums) +
                         (i64(work.line) * room.tiles + work.block()) * F::kSumWords + threadIdx.x - 128;
      constexpr i32 kWords = kColumns / 8;
#pragma unroll
      for (i32 j = 0; j < kWords; ++j) {
        to[j * 256] = {dk[4 * j], dk[4 * j + 1], dk[4 * j + 2], dk[4 * j + 3]};
        to[(kWords + j) * 256] = {dv[4 * j], dv[4 * j + 1], dv[4 * j + 2], dv[4 * j + 3]};
      }
    }
  };
};

}  // namespace heddle::device::flash_attention_backward
