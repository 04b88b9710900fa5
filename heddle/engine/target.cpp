#include "heddle/engine/target.h"

#include <algorithm>

namespace heddle {

Target cpu_target(i32 workers) {
  Target target;
  target.topology = {.workers = workers};
  target.splits.most = 32;
  target.fixed_splits = true;
  return target;
}

Target gpu_target(i32 workers) {
  Target target;
  target.topology = {.workers = workers, .worker_memory = 227 << 10, .ring_bytes = 128 << 10};
  target.tiling.gpu = true;
  target.narrow_travel = true;
  target.panel_rows = 2;
  target.interleave = 8;
  target.code_bytes = 16;
  target.splits.unit = 64;
  target.most_parts = 128;  // a constant: no sum may depend on the number of workers
  target.wide_chunk = 16;
  target.prompt_queries = 128;  // sixteen for each warp of a CTA
  target.resident = true;
  target.most_rows = kMostStepRows;
  target.max_prologue_bytes = 72 << 10;
  target.max_prologue_rows = kFewStepRows;  // whole kernels take more rows, without prologues
  target.sample_parts = true;
  return target;
}

namespace {

const RowClass& class_of(i32 rows) {
  const auto found = std::ranges::find_if(kRowClasses, [&](const RowClass& one) { return rows <= one.rows; });
  return found == std::end(kRowClasses) ? *std::prev(found) : *found;
}

}  // namespace

CostModel default_costs(const Topology& topology) {
  if (topology.ring_bytes == 0) return {};
  // An H200: 4,500 GB/s for all SMs together and 60 GB/s for one, 0.65 us for a message while weights stream,
  // consumers three times as fast as the stream. The time of a tile without work is a guess.
  const double stream = std::max(topology.workers / 4500.0, 1 / 60.0);
  return {.ns_per_stream_byte = stream,
          .ns_per_byte = 0.02,
          .ns_per_flop = 0.01,
          .ns_per_tile = 100,
          .ns_per_message = 650};
}

GraphRequest make_request(const ModelInfo& model, const Target& target, const Capacity& capacity, i32 rows,
                          i32 sequences) {
  GraphRequest request;
  request.shape = {.rows = rows,
                   .sequences = sequences,
                   .wanted = capacity.all_logits ? rows : sequences,
                   .pages_per_sequence = capacity.pages_per_sequence,
                   .page_size = capacity.page_size,
                   .vocab = model.vocab};
  request.context = capacity.context;
  const RowClass& of_rows = class_of(rows);
  request.cut = {.block_rows = of_rows.attention_rows,
                 .max_blocks = std::min(rows, rows / of_rows.attention_rows + sequences),
                 .max_splits = target.fixed_splits
                                   ? (capacity.context + capacity.splits.unit - 1) / capacity.splits.unit
                                   : std::min(of_rows.most_splits, capacity.splits.most),
                 .split_unit = capacity.splits.unit};
  request.fixed_splits = target.fixed_splits;
  request.wide_chunk = target.wide_chunk;
  if (rows > kManyStepRows) request.attention_queries = target.prompt_queries;
  request.kv_dtype = capacity.kv_dtype.value_or(model.weight_dtype);
  request.num_pages = capacity.num_pages;
  request.slots = capacity.slots;
  request.travel_dtype = target.narrow_travel ? model.weight_dtype : DType::kF32;
  request.panel_rows = target.panel_rows;
  request.interleave = target.interleave;
  request.codes = capacity.codes;
  request.code_bytes = target.code_bytes;
  // tiles that are cut in both dimensions know no homes
  request.resident = target.resident && rows <= kManyStepRows;
  request.sample = !capacity.all_logits;
  request.sample_parts = target.sample_parts;
  return request;
}

}  // namespace heddle
