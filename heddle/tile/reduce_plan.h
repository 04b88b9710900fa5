// Plans sums over some modes of a tensor, or over the rows or columns of a tile in registers: what a thread adds, which lanes then
// exchange their sums, and what goes through shared memory and through a cluster. "Sum" stands for any associative operation. The
// order of each sum follows from sizes alone, so that the number of CTAs of a launch changes no bit.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/distribution.h"

namespace heddle::tile {

enum class Over { kRows, kColumns };  // kColumns: one sum for each row

// The order in which a distributed tile is summed. A thread adds its own elements in the order of
// `in_thread`; then lanes exchange, mask after mask (lane ^ mask); then `warps` warps, if there is more than
// one, add through shared memory.
struct ReduceStages {
  static constexpr i32 kMostMasks = 5;
  Layout outputs, in_thread;  // the fragment's number of an element: outputs(j) + in_thread(i)
  i32 masks = 0;
  i32 mask[kMostMasks] = {};
  Layout warps;  // sharing an output: warps(i), to be added to the first's number

  constexpr bool stays_in_warp() const { return warps.size() == 1; }
};

constexpr ReduceStages reduce_stages(const Distribution& who, Over over) {
  ReduceStages stages;
  const auto is_reduced = [&](const Mode& mode) {
    hold(mode.stride % who.rows == 0 || (mode.shape - 1) * mode.stride < who.rows,
         "a mode of a distribution stays in a row or in a column");
    return (mode.stride >= who.rows) == (over == Over::kColumns);
  };
  i32 weight = 1;
  for (i32 i = 0; i < who.fragment.rank; weight *= who.fragment.mode[i++].shape) {
    const Mode& mode = who.fragment.mode[i];
    Layout& part = is_reduced(mode) ? stages.in_thread : stages.outputs;
    part = part.with(mode.shape, weight);
  }
  weight = 1;
  for (i32 i = 0; i < who.thread.rank; weight *= who.thread.mode[i++].shape) {
    const Mode& mode = who.thread.mode[i];
    if (mode.stride == 0 || !is_reduced(mode)) continue;  // stride 0: copies of the same elements
    i32 left = mode.shape, step = weight;
    for (; step < 32 && left > 1; step *= 2, left /= 2) {
      hold(left % 2 == 0, "lanes that share a sum are a power of two");
      stages.mask[stages.masks++] = step;
    }
    if (left > 1) stages.warps = stages.warps.with(left, step / 32);
  }
  return stages;
}

// A reduction may use so much.
struct ReduceLimits {
  i32 element_bytes = 2;
  i32 threads = 256;   // a CTA's
  i32 cluster = 8;     // CTAs that may share an output
  i32 words_each = 8;  // words that a thread holds before more threads share its output
};

// A reduction of a tensor whose elements lie at reduced(i) + kept(j): any mix of reduced and kept modes. A word is `width`
// neighbours in memory, of one output or of several.
struct ReducePlan {
  Layout reduced, kept;
  i32 width = 1;
  bool along_reduced = true;           // a word is of one output
  i32 lanes = 1, warps = 1, ctas = 1;  // that share an output
  i32 threads = 32;                    // a CTA's

  constexpr i32 parts() const { return lanes * warps * ctas; }
  // Words of an output (if along_reduced), else elements.
  constexpr i32 words() const { return along_reduced ? reduced.size() / width : reduced.size(); }
  // Words that a thread adds, rounded up; the last may be past the end.
  constexpr i32 each() const { return (words() + parts() - 1) / parts(); }
  constexpr bool has(i32 part, i32 i) const { return i * parts() + part < words(); }
  // The index in `reduced` of word i of a part; neighbours in a warp read neighbours in memory.
  constexpr i32 first(i32 part, i32 i) const { return (i * parts() + part) * (along_reduced ? width : 1); }
  // Threads with outputs of their own, and outputs that a CTA makes at once.
  constexpr i32 teams() const { return threads / (lanes * warps); }
  constexpr i32 outputs_at_once() const { return teams() * (along_reduced ? 1 : width); }
  // Which part of its output a thread has: its lanes first, then warps, then CTAs.
  constexpr i32 part(i32 thread, i32 cta) const {
    const i32 lane = thread % 32 % lanes, warp = thread / 32 % warps;
    return (cta * warps + warp) * lanes + lane;
  }
  // The team of a thread.
  constexpr i32 team(i32 thread) const { return thread / 32 / warps * (32 / lanes) + thread % 32 / lanes; }
  constexpr bool has_shuffles() const { return lanes > 1; }
  constexpr bool has_cta_stage() const { return warps > 1; }
  constexpr bool has_cluster_stage() const { return ctas > 1; }
  // FP32 partial sums in shared memory.
  constexpr i32 shared_bytes() const {
    return has_cta_stage() || has_cluster_stage() ? outputs_at_once() * warps * 4 : 0;
  }
};

constexpr i32 widest_run(const Layout& a, const Layout& other, i32 limit) {
  const Layout few = coalesce(a);
  if (few.mode[0].stride != 1) return 1;
  i32 width = power_of_two_in(few.mode[0].shape);
  // A word begins at a multiple of its size: so must all rows do.
  const Layout rows = join(few.part(1, few.rank), other);
  for (i32 i = 0; i < rows.rank; ++i)
    if (rows.mode[i].shape > 1 && rows.mode[i].stride > 0)
      while (rows.mode[i].stride % width != 0) width /= 2;
  while (width > limit) width /= 2;
  return width;
}

constexpr ReducePlan plan_reduce(const Layout& reduced, const Layout& kept, const ReduceLimits& limits) {
  const i32 widest = 16 / limits.element_bytes;
  ReducePlan plan{.reduced = reduced, .kept = kept, .threads = limits.threads};
  const i32 own = widest_run(reduced, kept, widest), others = widest_run(kept, reduced, widest);
  plan.along_reduced = coalesce(kept).mode[0].stride != 1 || kept.size() == 1;
  plan.width = plan.along_reduced ? own : others;
  const i32 words = plan.words();
  if (plan.along_reduced)  // else neighbouring lanes have neighbouring outputs
    while (plan.lanes < 32 && plan.lanes < words) plan.lanes *= 2;
  while (plan.warps * 64 <= limits.threads && words > plan.lanes * plan.warps * limits.words_each)
    plan.warps *= 2;
  // A cluster pays where every thread would read several times what it can hold.
  while (plan.ctas * 2 <= limits.cluster && words > plan.parts() * limits.words_each * 8) plan.ctas *= 2;
  return plan;
}

}  // namespace heddle::tile
