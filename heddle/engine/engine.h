// The engine: one model, its weights and KV pages, and a checked program for each row class. A step runs any
// mix of prompt chunks and next tokens of several sequences.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/engine/options.h"
#include "heddle/engine/sequences.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

// One sequence's part of a step.
struct StepRequest {
  SequenceId sequence = 0;
  std::span<const i32> tokens;  // the next positions; not empty
  // Compute logits (and a choice) for the last token; with all_logits: for all of them, and no choice.
  bool wanted = false;
  bool logits = true;  // where the step's logits are fetched, these are among them
  // Only tokens whose bits are set can be chosen, 32 a word, in a call of one step; empty: all. Tokens beyond its end cannot.
  std::span<const u32> mask = {};
};

struct StepResult {
  std::vector<i32> sampled;   // for each request, in order, the last chosen token; -1 if none was wanted
  std::vector<float> logits;  // the last step's: fetched rows x vocab, in the order of the requests
  // For each request, the choice of each step; cancelled steps are left out.
  std::vector<std::vector<i32>> tokens;
  std::vector<std::exception_ptr> failed;  // with fails_alone, for each request: NotFiniteLogits or null
  RunReport report;
};

struct StepOptions {
  // Above 1: the same sequences take their next tokens in the same launch, and every request is one wanted
  // token.
  i32 steps = 1;
  bool logits = true;  // fetch the logits
  // A step of its own kind, whose programs are made at its first use: logits of all rows of wanted requests, as the
  // engine's option has it for all steps. Not with programs that were made ahead of time.
  bool all_logits = false;
  // For a call of several steps without logits, in which each sequence continues from its own choices. The
  // call ends with the step that chooses one of `ends` for any of its sequences.
  std::span<const i32> ends = {};
  // Receives the choices of each step, by request, while the next step runs. Returning false ends the call. A recurrent
  // model's sequences are empty after it if a device was several steps ahead.
  std::function<bool(std::span<const i32>)> on_tokens = {};
  // NotFiniteLogits are StepResult::failed instead of thrown, so that the other sequences keep their choices. on_tokens gets
  // kNoToken for such a sequence, and its step is the last.
  bool fails_alone = false;
};

// A sequence's logits are no numbers that a token can be chosen by.
class NotFiniteLogits : public Error {
 public:
  NotFiniteLogits(SequenceId id, const std::string& message)
      : Error(ErrorCode::kDevice, message), sequence(id) {}
  SequenceId sequence;
};

class Engine {
 public:
  // Throws Error when it does not fit into free memory.
  Engine(std::shared_ptr<const Model> model, EngineOptions options);
  ~Engine();

  const ModelInfo& info() const;
  i32 max_context() const;
  size_t weight_bytes() const;
  // Which weights are expanded from the checkpoint's codes, for people; "" where none is.
  const std::string& weights_note() const;
  size_t kv_bytes() const;

  // Opens a sequence that will continue with `prompt`. If pages of another sequence hold the beginning of the
  // prompt, the new sequence starts with these positions. Steps give the rest, from length() on.
  SequenceId open(const SamplingSettings& sampling, std::span<const i32> prompt = {});
  void close(SequenceId sequence);
  // A new answer of the sequence begins: the bias and the penalties are those of `sampling`, and count from here on.
  void begin_answer(SequenceId sequence, const SamplingSettings& sampling);
  i32 length(SequenceId sequence) const;
  // One for each position; valid until the sequence's next step or rewind.
  std::span<const i32> tokens(SequenceId sequence) const;
  // Drops the positions from `length` on. It may keep fewer if it shares a page with another sequence, or if
  // `length` lies more than a page back and the model's window has released earlier pages. Where the model is
  // recurrent, it keeps all or none.
  void rewind(SequenceId sequence, i32 length);
  // Positions of a prompt that a sequence opened now would not have to compute.
  i32 known(std::span<const i32> prompt) const;
  i32 page_size() const;
  i32 max_sequences() const;
  // KV pages that no sequence holds. One sequence alone always finds enough of them.
  i32 free_pages() const;
  i32 held_pages(SequenceId sequence) const;
  // Pages that it would take, in one step, to have so many positions.
  i32 missing_pages(SequenceId sequence, i32 positions) const;
  // The most pages that one sequence holds between steps.
  i32 max_held_pages() const;

  // The most rows that one step may have.
  i32 max_rows(bool all_logits = false) const;
  // Runs one step. Throws NotFiniteLogits, with the position and the first op whose result is not finite, when
  // logits that are fetched or chosen from contain NaN or +infinity, or are all -infinity. Throws Error with the
  // values when a token is outside the vocabulary, when a sequence comes twice or would exceed its context, or
  // when a step cannot hold that many rows and sequences. Sequences of a step that failed stay as they were, but those of
  // a recurrent model are empty.
  StepResult step(std::span<const StepRequest> requests, const StepOptions& options = {});
  static constexpr i32 kMostSteps = StepDevice::kHistory;  // steps in one call

  // Replaces the weights that `values` has; what it has not stays. Programs stay, and no page is found by its content any
  // more. Throws Error before anything changes, for a tensor of another shape or type and for numbers that are not finite.
  // Then it calls `before`, after which no sequence may be open. If a device fails later, steps throw until an update of
  // all weights.
  // What lies in the executor's memory is packed there, without the host.
  void update_weights(
      const WeightValues& values, const std::function<void()>& before = [] {});
  // Has later steps run programs of this scheduler and these configurations of ops, as in EngineOptions. Weights and
  // sequences stay, and so do programs that were made before. Throws Error where the options do, and where programs were
  // made ahead of time; nothing has changed then.
  void plan(const std::string& scheduler, const std::string& config);
  // The program for steps of `rows` rows and `sequences` sequences, built and checked on first use.
  const Program& program(i32 rows, i32 sequences);
  // The content of one of the program's buffers, after a step with keep_buffers.
  std::vector<std::byte> buffer(const Program& program, u32 index) const;
  // Events of its workers in the last step, with run.trace_events.
  Trace trace(const Program& program) const;
  // Says what runs its calls (Executor::bodies).
  std::vector<std::string> bodies(const Program& program) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
