// Answers all prompts of a file (prompts_file.h), many at once, and writes a file of results: one JSON object
// per line, on disk before the next begins. Results that the file already has are not computed again, so a
// run may end at any time and continue later. Each result keeps, as "made_with", the model and the settings that differ
// from their defaults; results of others are refused.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/session/answer.h"
#include "heddle/session/prompts_file.h"
#include "heddle/session/results_file.h"

namespace heddle {

struct PromptBatchOptions {
  std::string prompts, results;  // files
  std::string model;             // identity_of() the model, which the results keep
  i32 n = 1;                     // answers to a prompt; each one's seed is one higher than the last
  i32 max_context = 0;           // positions that a sequence may have; 0: as the model has them by default
  // Prompts that choose at random and have no seed of their own get that of the results that are there, or a random one.
  bool draws_seed = false;
  BatchOptions batch = {};
};

// Tells a model's folder from others: a digest of its configuration, of its tokenizer's files, and of the types,
// shapes and samples of its weights.
std::string identity_of(const Model& model, const std::string& folder);

struct PromptBatchStats {
  BatchStats steps;
  size_t by_host = 0, by_program = 0;  // answers that were made, by where their tokens are chosen
  double seconds = 0;
};

class PromptBatch {
 public:
  // Reads every line of both files before any work begins. `settings` apply to lines that do not set them.
  // `tokenizer` must outlive the batch. Throws Error(kIo) with file and line when a line is wrong, does not
  // fit the model `info`, or is the result of another prompt, another model or other settings;
  // Error(kInvalidArgument) when an option is out of its range.
  PromptBatch(PromptBatchOptions options, const AnswerSettings& settings, const Tokenizer& tokenizer,
              const ModelInfo& info);

  size_t wanted() const { return wanted_; }  // answers
  size_t done() const { return done_; }
  size_t left() const { return wanted_ - done_; }
  i32 context() const { return context_; }           // positions that the longest prompt and its answer need
  std::optional<u64> seed() const { return seed_; }  // that was drawn, if any prompt needs one
  size_t cut() const { return results_->cut(); }     // bytes of an incomplete last result, which were removed

  // Computes the missing answers on an engine with this context, by a Service (service.h). It calls on_done() after each answer,
  // on this thread. Where an answer fails, the others are made, and then it throws the first error.
  PromptBatchStats run(Engine& engine, const StopCallback& stop = never_stop,
                       const std::function<void()>& on_done = {});

 private:
  // A line of the prompts file, with its tokens.
  struct Asked {
    PromptLine line;
    std::vector<i32> tokens;
    std::vector<bool> done;  // for each of its answers
  };
  void read_prompts(const AnswerSettings& settings, const ModelInfo& info);
  void read_result(std::string_view line, size_t number);
  // True if the seed of its answers is drawn.
  bool draws(const Asked& asked) const;
  void take_seed(const Json& result, i32 index);
  AnswerSettings settings_of(const Asked& asked, i32 index) const;
  // Says how an answer is made, for its result.
  Json made_with(const AnswerSettings& settings) const;
  void require_same(const Json& result, const AnswerSettings& settings, const std::string& where) const;
  void write(Asked& asked, i32 index, const Answer& answer);

  PromptBatchOptions options_;
  const Tokenizer& tokenizer_;
  std::vector<Asked> asked_;
  std::map<std::string, size_t> by_id_;
  size_t wanted_ = 0, done_ = 0;
  std::optional<u64> seed_;
  i32 context_ = 1, limit_ = 0;
  std::optional<ResultsFile> results_;  // opened once there are prompts to compare its lines with
};

}  // namespace heddle
