// Plans the two halves of power attention's gradient as whole kernels: rows of queries, and rows of keys.
#pragma once

#include <fmt/format.h>

#include "heddle/ops/sympow/chunk_tiles.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle {

// `most_elements`: so many a query may have, that the sums of a thread stay in its registers.
template <class Args>
KernelPlan plan_of_gradient(const Args& a, const KernelTarget& target, i32 most_elements) {
  KernelPlan plan{.file = "sm90"};
  constexpr i32 kMostColumns = 80;
  plan.why_not =
      first_of({why_not_sm90(target), why_dtype("q", a.q.dtype), why_rows("q", a.q, a.q.dtype),
                why_rows("k", a.k, a.q.dtype), why_rows("v", a.v, a.q.dtype), why_rows("dy", a.dy, a.q.dtype),
                why_rows("y", a.y, a.q.dtype),
                a.q.size[3] <= most_elements
                    ? ""
                    : fmt::format("q has rows of {}; must be at most {}", a.q.size[3], most_elements),
                a.v.size[3] <= kMostColumns
                    ? ""
                    : fmt::format("v has rows of {}; must be at most {}", a.v.size[3], kMostColumns)});
  if (!plan.why_not.empty()) return plan;
  constexpr i32 kGroups = 2, kRows = 64 * kGroups, kFactBytes = kGroups * 2 * 64 * 16, kRowsOfCta = 8;
  const i32 wide = boxes_of(a.q.size[3]), boxes = wide + boxes_of(a.v.size[3]);
  const SympowMemory memory{kGroups, 2, boxes, boxes, kFactBytes};  // rows of queries need less
  const i32 stages = stages_in(target.shared_bytes, memory);
  const tile::Budget budget = sympow_budget(memory, stages);
  plan.constants = {{"wide_rows", wide}, {"columns", a.v.size[3]}, {"power", a.power}, {"stages", stages}};
  const i64 heads = i64(a.q.size[0]) * a.q.size[2], count = heads * a.q.size[1];
  plan.workspace_bytes = count * 8;  // two floats of each row
  plan.launches.push_back({.name = "Rows", .grid = u32(ceil_div(count, kRowsOfCta)), .threads = 256});
  const auto address = [&](const Tensor& tensor) {
    return size_t(reinterpret_cast<const std::byte*>(&tensor) - reinterpret_cast<const std::byte*>(&a));
  };
  KernelLaunch main{
      .grid = persistent_grid(heads * a.tiles().chunks() * ceil_div(a.tiles().chunk, kRows), 1, target),
      .threads = u32(budget.threads()),
      .shared_bytes = budget.shared_bytes()};
  for (const Tensor* each : {&a.q, &a.k, &a.v, &a.dy}) main.maps.push_back(rows_map(address(*each), *each));
  plan.launches.push_back(std::move(main));
  return plan;
}

}  // namespace heddle
