// Runs many sequences on one engine. Each step takes the next token of every sequence that is answering and,
// in the rows that are left, chunks of the prompts of others. A sequence enters as soon as another ends.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "heddle/engine/engine.h"

namespace heddle {

// A sequence of a batch: its prompt, its settings, and a receiver of its tokens.
class BatchJob {
 public:
  virtual ~BatchJob() = default;
  virtual std::span<const i32> prompt() const = 0;  // not empty, shorter than the engine's context
  virtual SamplingSettings sampling() const = 0;
  // `chosen` is the program's choice. `logits` has the size of the vocabulary if wants_logits() is true.
  virtual bool wants_logits() const { return false; }
  // Instead of an answer: take_rows() gets the logits of all positions of the prompt, and then comes end(). The prompt may
  // fill the context, and only jobs of one kind share steps.
  virtual bool wants_rows() const { return false; }
  virtual void take_rows(std::span<const float>) {}  // rows come in order
  // Pages that hold the beginning of the prompt are used. Without them the job computes, and rounds, as if it were the first.
  virtual bool shares_pages() const { return true; }
  virtual i32 choose(std::span<const float> logits, i32 chosen);
  // Takes the token. Returns false when it was the last one.
  virtual bool take(i32 token) = 0;
  // Known limits of that: how many more tokens the job takes, and which tokens end it. A launch that makes
  // many tokens ends with these.
  virtual i32 left() const { return INT32_MAX; }
  virtual std::span<const i32> ends() const { return {}; }
  // No more tokens will come: take() returned false, or (`full`) the context is full.
  virtual void end(bool full) = 0;
  // Names it in errors; "" if there is nothing to tell it from.
  virtual std::string name() const { return {}; }
};

// Closes its sequence in the destructor.
class OpenSequence {
 public:
  OpenSequence(Engine& engine, SequenceId id) : engine_(&engine), id_(id) {}
  OpenSequence(OpenSequence&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)), id_(other.id_) {}
  OpenSequence& operator=(OpenSequence&& other) noexcept {
    std::swap(engine_, other.engine_), std::swap(id_, other.id_);
    return *this;
  }
  ~OpenSequence() {
    if (engine_) engine_->close(id_);
  }
  SequenceId id() const { return id_; }

 private:
  Engine* engine_;
  SequenceId id_;
};

struct BatchStats {
  u64 steps = 0, launches = 0;  // a launch has one step or many
  u64 prompt_tokens = 0, new_tokens = 0;
  u64 shared_tokens = 0;  // positions of prompts that pages already held
  i32 most_sequences = 0;
};

class Batcher {
 public:
  // `engine` must outlive the batcher, which fetches logits in steps where a job wants them. It calls `pause`
  // after each token; true makes step() return.
  explicit Batcher(
      Engine& engine, std::function<bool()> pause = [] { return false; })
      : engine_(engine), pause_(std::move(pause)) {}

  void add(std::shared_ptr<BatchJob> job);
  // Forgets the job if it waits or runs, without end(); not from a callback.
  void drop(const BatchJob& job);
  // True if no job waits or runs.
  bool idle() const { return waiting_.empty() && running_.empty(); }
  // Runs one step. Throws as Engine::step(), with the name of the job. If all sequences are answering and none wants
  // logits, it runs as many steps as one launch holds, at most `most`, until an answer ends.
  void step(i32 most = Engine::kMostSteps);
  const BatchStats& stats() const { return stats_; }

 private:
  struct Running {
    std::shared_ptr<BatchJob> job;
    OpenSequence sequence;
    i32 read = 0;    // tokens of the prompt that are in the pages
    i32 token = -1;  // the last one chosen
    bool reading() const { return read < i32(job->prompt().size()); }
  };
  void admit();
  bool is_being_read(std::span<const i32> prompt) const;
  std::vector<StepRequest> requests();
  bool go_on(Running& running, std::span<const float> logits, i32 chosen, i32 length);
  i32 steps_of(std::span<const StepRequest> made, i32 most) const;
  void step_once(std::span<const StepRequest> made, bool logits);
  void step_rows(std::span<const StepRequest> made);
  void step_many(std::span<const StepRequest> made, i32 steps);

  Engine& engine_;
  std::function<bool()> pause_;
  std::deque<std::shared_ptr<BatchJob>> waiting_;
  std::vector<Running> running_;
  BatchStats stats_;
};

}  // namespace heddle
