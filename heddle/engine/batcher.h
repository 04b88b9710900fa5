// Runs many sequences on one engine. Each step takes the next token of every sequence that is answering and,
// in the rows that are left, chunks of the prompts of others. A sequence enters as soon as another ends and pages are
// free for its prompt. When pages run out, sequences give theirs back and are computed again later, the prompt in chunks and
// then token by token, as they were: a sequence that shares steps with no other gets the same bits.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/engine/engine.h"
#include "heddle/engine/ngram_draft.h"

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
  // It has a sequence. `known`: positions of its prompt that pages of others hold, so that nobody computes them.
  virtual void begin(i32 /*known*/) {}
  virtual i32 choose(std::span<const float> logits, i32 chosen);
  // Takes the token. Returns false when it was the last one.
  virtual bool take(i32 token) = 0;
  // Known limits of that: how many more tokens the job takes, and which tokens end it. A launch that makes
  // many tokens ends with these.
  virtual i32 left() const { return INT32_MAX; }
  virtual std::span<const i32> ends() const { return {}; }
  // True if mask() may say something of a token: its sequence takes one step a call, and so do those that share it.
  virtual bool is_constrained() const { return false; }
  // The tokens that may be chosen next (StepRequest::mask).
  virtual std::span<const u32> mask() const { return {}; }
  // False: it takes part in no step for now. It keeps its pages as long as no other job wants them.
  virtual bool is_ready() const { return true; }
  // No more tokens will come: take() returned false, or (`full`) the context is full.
  virtual void end(bool full) = 0;
  // Called after each take() or take_rows(), and the end() that may follow it: others may see now what they made.
  virtual void publish() {}
  // Names it in errors; "" if there is nothing to tell it from.
  virtual std::string name() const { return {}; }
};

// Follows a job through a batch. The thread that runs the steps calls it.
class JobFollower {
 public:
  virtual ~JobFollower() = default;
  virtual void runs() = 0;        // it has a sequence: for the first time, or again
  virtual void is_put_off() = 0;  // it gave its pages back, and waits
  virtual void took() = 0;        // a token, or rows
  // It is no longer in the batch. `error`: what its functions threw, or NotFiniteLogits; null after BatchJob::end().
  virtual void ended(const std::exception_ptr& error) = 0;
};

// A job's place among others.
struct BatchPlace {
  i32 priority = 0;  // higher ones first; equal ones as they came
  // Only jobs of one company share steps, so that those of other companies change no rounding.
  u64 company = 0;
  // Without one, what would end this job alone is thrown by step().
  std::shared_ptr<JobFollower> follower = {};
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
  u64 put_off = 0,
      again_tokens = 0;    // how often pages were taken from a job, and positions that were computed again
  i32 most_sequences = 0;  // in a step
  u64 guessed_tokens = 0, right_guesses = 0;
};

struct BatchOptions {
  // Rows of prompts, at most, in a step that answers share, so that none of these waits long for its next token; 0: as many as a
  // step holds.
  i32 prompt_rows = 0;
  // Greedy answers that change no scores go on by several tokens a step where these follow as they did before (NgramDraft), and
  // a step of up to kFewStepRows rows agrees. The tokens stay the same. Not where a model is recurrent.
  bool draft = false;
};

class Batcher {
 public:
  // `engine` must outlive the batcher, which fetches logits in steps where a job wants them, and no other opens sequences
  // on it meanwhile. It calls `pause` after each token; true makes step() return.
  explicit Batcher(
      Engine& engine, std::function<bool()> pause = [] { return false; }, const BatchOptions& options = {})
      : engine_(engine), pause_(std::move(pause)), options_(options) {}

  void add(std::shared_ptr<BatchJob> job, BatchPlace place = {});
  // Forgets the job if it waits or runs, without end(), and frees its pages; not from a callback.
  void drop(const BatchJob& job);
  // True if no job waits or runs.
  bool idle() const { return waiting_.empty() && running_.empty(); }
  size_t waiting() const { return waiting_.size(); }
  size_t running() const { return running_.size(); }
  // Runs one step; false: there was none, because no job is ready. Throws as Engine::step(), with the name of the job. If all
  // sequences are answering and none wants logits, it runs as many steps as one launch holds, at most `most`, until an
  // answer ends.
  bool step(i32 most = Engine::kMostSteps);
  const BatchStats& stats() const { return stats_; }

 private:
  // The positions of a job are those of its prompt, and then of the tokens that were chosen.
  struct Member {
    std::shared_ptr<BatchJob> job;
    BatchPlace place;
    u64 arrival = 0;
    std::vector<i32> chosen = {};
    std::optional<OpenSequence> sequence = {};
    i32 read = 0;     // positions in the pages
    i32 reached = 0;  // positions that were in them before it was put off
    bool ended = false;
    bool is_plain = false;  // its tokens are those of the largest logits
    NgramDraft draft = {};

    i32 prompt_size() const { return i32(job->prompt().size()); }
    i32 size() const { return prompt_size() + i32(chosen.size()); }
    bool reading() const { return chosen.empty() || read + 1 < size(); }
    bool is_ready() const { return job->is_ready(); }
    bool shares_steps_with(const Member& other) const {
      return place.company == other.place.company && job->wants_rows() == other.job->wants_rows();
    }
    // The smaller one goes first.
    std::pair<i64, u64> turn() const { return {-i64(place.priority), arrival}; }
    std::span<const i32> tokens(i32 end) const;  // from `read` on
  };
  // A member's part of a step: its positions up to `end`.
  struct Part {
    Member* member;
    i32 end;
  };
  void put_in_line(Member member);
  bool is_being_read(std::span<const i32> prompt) const;
  bool has_room(const Member& next) const;
  bool open(Member& next);
  const Member* leader() const;
  void admit();
  Member* to_put_off(const Member* next);
  void put_off(Member& member);
  void settle();
  std::vector<Part> parts();
  i64 missing_pages(std::span<const Part> parts, i32 steps) const;
  i32 steps_of(std::span<const Part> parts, i32 most) const;
  void step_once(std::span<const Part> parts, std::span<const StepRequest> made);
  void step_many(std::span<const Part> parts, std::span<const StepRequest> made, i32 steps);
  std::vector<std::vector<i32>> guesses(std::span<const Part> parts);
  void step_guesses(std::span<const Part> parts, std::span<const std::vector<i32>> guesses);
  bool go_on(Member& member, std::span<const float> logits, i32 chosen);
  template <class Hand>
  bool hand_over(Member& member, Hand&& hand);
  void fail(Member& member, const std::exception_ptr& error);

  Engine& engine_;
  std::function<bool()> pause_;
  const BatchOptions options_;
  std::deque<Member> waiting_;  // in the order in which they are to enter
  std::vector<Member> running_;
  u64 arrivals_ = 0;
  BatchStats stats_;
};

}  // namespace heddle
