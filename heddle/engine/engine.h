// The engine: one model, its weights and KV pages, and a checked program for each row class. A step runs any
// mix of prompt chunks and next tokens of several sequences.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heddle/engine/options.h"
#include "heddle/engine/sequences.h"
#include "heddle/ir/executor.h"

namespace heddle {

// What one sequence does in a step.
struct StepRequest {
  SequenceId sequence = 0;
  std::span<const i32> tokens;  // the next positions; not empty
  bool wanted = false;          // logits (and a choice) for the last of them; with all_logits: for all
};

struct StepResult {
  std::vector<i32> sampled;   // for each request, in order, the last token chosen; -1 where none was wanted
  std::vector<float> logits;  // of the last step: wanted rows x vocab, in order of the requests
  // For each request, what each step chose; steps that were called off are not there.
  std::vector<std::vector<i32>> tokens;
  RunReport report;
};

struct StepOptions {
  // Above 1: the same sequences take their next tokens in the same launch; every request is one wanted token.
  i32 steps = 1;
  bool logits = true;  // fetch them
  // Of a call of several steps, in which each sequence goes on from its own choices, without logits. The call ends with
  // the step that chooses one of `ends` for any of its sequences.
  std::span<const i32> ends = {};
  // Called with what each step chose, by request, while the next runs. False: that was the last.
  std::function<bool(std::span<const i32>)> on_tokens = {};
};

class Engine {
 public:
  // Throws Error where the memory that is free does not hold it.
  Engine(std::shared_ptr<const Model> model, EngineOptions options);
  ~Engine();

  const ModelInfo& info() const;
  i32 max_context() const;
  size_t weight_bytes() const;
  size_t kv_bytes() const;

  // A sequence that will go on with `prompt`: positions of it that pages hold already, from another sequence that
  // began so, are there from the start. Steps give the rest, from length() on.
  SequenceId open(const SamplingSettings& sampling, std::span<const i32> prompt = {});
  void close(SequenceId sequence);
  i32 length(SequenceId sequence) const;
  // One for each position; until the sequence's next step or rewind.
  std::span<const i32> tokens(SequenceId sequence) const;
  // Drops the positions from `length` on; it may keep fewer where it shares a page with another sequence, or where
  // these lie more than a page back and the model's window has let go what came before.
  void rewind(SequenceId sequence, i32 length);
  // Positions of a prompt that a sequence opened now would not have to compute.
  i32 known(std::span<const i32> prompt) const;
  i32 page_size() const;
  i32 max_sequences() const;

  // The most rows one step may have.
  i32 max_rows() const;
  // Runs one step. Throws Error with the values where a token is outside the vocabulary, a sequence comes
  // twice or would grow past its context, or rows and sequences are more than a step holds.
  StepResult step(std::span<const StepRequest> requests, const StepOptions& options = {});
  static constexpr i32 kMostSteps = StepDevice::kHistory;  // of one call

  // The program that steps of `rows` rows and `sequences` sequences run, built and checked on first use.
  const Program& program(i32 rows, i32 sequences);
  // What a buffer of that program holds, after a step with keep_buffers.
  std::vector<std::byte> buffer(const Program& program, u32 index) const;
  // What its workers did in the last step, with run.trace_events.
  Trace trace(const Program& program) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
