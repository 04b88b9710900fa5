// A target says what programs are laid out for: the number of workers, how wide panels are, whether rows of
// the residual stay with their workers, and the dtype of vectors that travel between them. CPU executors can
// run programs for any target; tests run those for a GPU with stale reads.
#pragma once

#include <optional>

#include "heddle/engine/model.h"
#include "heddle/ir/program/cost.h"
#include "heddle/ir/program/program.h"
#include "heddle/ir/row_classes.h"

namespace heddle {

// The cut of a row block's KV range for attention.
struct AttentionSplits {
  i32 unit = 0;  // positions of which a part is a multiple
  i32 most = 0;  // parts, at most
};

struct Target {
  Topology topology;
  TilingTarget tiling;
  bool narrow_travel = false;  // vectors between workers have the weights' dtype; otherwise f32
  i32 panel_rows = 16, interleave = 2;
  i32 code_bytes = 1;
  AttentionSplits splits = {.unit = 256, .most = 8};
  // All splits have the unit's length, in steps of any rows, so that a row has the same bits in all of them. Otherwise they grow with
  // the length, and steps of more rows have fewer.
  bool fixed_splits = false;
  i32 most_parts = 1 << 20;          // parts of one row over all heads: as many as get a separate worker
  i32 wide_chunk = 64;               // positions that attention keeps on chip at a time if keys are wide
  i32 prompt_queries = 0;            // rows x heads in a tile of attention in prompts; 0: by rows alone
  bool resident = false;             // workers keep their rows of the residual
  i32 most_rows = kPromptStepRows;   // in one step
  bool sample_parts = false;         // many workers read the scores that a token is chosen from
  i32 max_prologue_bytes = 1 << 20;  // bytes that each worker may read again to save a hand-off
  i32 max_prologue_rows = 1 << 20;   // rows of products that may have prologues
};

// Threads of one machine: shared memory, wide panels.
Target cpu_target(i32 workers);
// One CTA on each SM. A panel has one row (or a pair of partners), residual rows stay with their workers, and
// vectors travel in the weights' dtype. Sizes are those of sm_90: 227 KB of shared memory per worker.
Target gpu_target(i32 workers);

// Costs before any measurement. Workers with a ring are SMs of one H200; others are threads.
CostModel default_costs(const Topology& topology);

// Limits that all programs of an engine share.
struct Capacity {
  i32 context = 64;  // positions that a sequence may have
  i32 pages_per_sequence = 1, page_size = 64, num_pages = 1;
  i32 slots = 1;  // sequences that may be open
  AttentionSplits splits = {.unit = 256, .most = 8};
  i32 window = 0;                 // the model's window; pages before it return to the pool
  std::optional<DType> kv_dtype;  // unset: the weights' type
  bool codes = false;             // weights that are stored in codes stay so
  bool all_logits = false;        // logits of every row; then nothing is sampled

  // The distance that the steps of any program read pages back: as far as attention sees at most.
  AttentionCut reach() const { return {.split_unit = splits.unit, .window = window}; }
};

// The graph for steps with at most `rows` rows of at most `sequences` sequences.
GraphRequest make_request(const ModelInfo& model, const Target& target, const Capacity& capacity, i32 rows,
                          i32 sequences);

}  // namespace heddle
