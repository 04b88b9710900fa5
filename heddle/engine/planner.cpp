#include "heddle/engine/planner.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/ir/row_classes.h"

namespace heddle {
namespace {

constexpr auto kSizes = [] {
  std::array<i32, std::size(kRowClasses)> sizes{};
  std::ranges::transform(kRowClasses, sizes.begin(), &RowClass::rows);
  return sizes;
}();

PassOptions limited(PassOptions passes, const Target& target) {
  passes.max_prologue_bytes = std::min(passes.max_prologue_bytes, target.max_prologue_bytes);
  passes.max_prologue_rows = std::min(passes.max_prologue_rows, target.max_prologue_rows);
  return passes;
}

}  // namespace

std::span<const i32> row_classes(i32 most_rows) {
  return {kSizes.begin(), std::ranges::upper_bound(kSizes, most_rows)};
}

i32 row_class(std::span<const i32> classes, i32 rows, i32 sequences) {
  for (i32 size : classes)
    if (rows <= size && sequences <= size) return size;
  fail(ErrorCode::kInvalidArgument, "[step] {} rows of {} sequences; a step holds at most {}", rows,
       sequences, classes.back());
}

std::span<const i32> Planner::row_classes() const {
  return heddle::row_classes(capacity_.all_logits ? std::min(target_.most_rows, kPromptStepRows)
                                                  : target_.most_rows);
}

Planner::Planner(std::shared_ptr<const Model> model, Target target, Capacity capacity, CompileOptions options)
    : model_(std::move(model)),
      target_(target),
      capacity_(capacity),
      options_(std::move(options)),
      placement_(place(graph(1, 1).graph, limited(options_.passes, target_), target_.topology)) {
  options_.passes = limited(options_.passes, target_);
  options_.tiling = target_.tiling;
}

GraphRequest Planner::request(i32 rows, i32 sequences) const {
  return make_request(model_->info(), target_, capacity_, rows, sequences);
}

ModelGraph Planner::graph(i32 rows, i32 sequences) const {
  return model_->graph(request(rows, sequences));
}

Graph Planner::fused(i32 rows, i32 sequences, std::vector<std::string>* log) const {
  Graph graph = this->graph(rows, sequences).graph;
  std::vector<std::string> lines = run_passes(graph, options_.passes);
  if (log) *log = std::move(lines);
  return graph;
}

Program Planner::program(i32 rows, i32 sequences) const {
  const GraphRequest wanted = request(rows, sequences);
  Placement placement = placement_;
  if (rows >= kManyStepRows) placement.topology.worker_memory = 0;  // kernel by kernel: nothing stays on chip
  Program program = compile(model_->graph(wanted).graph, wanted.shape, placement, options_);
  program.name = fmt::format("{} T={}", model_->info().family, rows);
  return program;
}

}  // namespace heddle
