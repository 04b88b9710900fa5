// Answers all prompts of a file (prompts_file.h), many at once, into a file of results: a JSON object a line, on disk
// before the next begins. What is in it already is not done again, so that a run may end at any time and go on later.
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
  i32 n = 1;                     // answers to a prompt; each has the seed after that of the last
  i32 max_context = 0;           // positions that a sequence may have; 0: as many as the model allows
};

struct PromptBatchStats {
  BatchStats steps;
  size_t by_host = 0, by_program = 0;  // answers begun, by what chose their tokens
  double seconds = 0;
};

class PromptBatch {
 public:
  // Looks at every line of both files before any work begins. `settings` are of a line that says nothing else.
  // `tokenizer` must outlive this. Throws Error(kIo) with file and line where one is wrong, does not fit the model
  // `info`, or is the result of another prompt; Error(kInvalidArgument) where an option is out of its range.
  PromptBatch(PromptBatchOptions options, const AnswerSettings& settings, const Tokenizer& tokenizer,
              const ModelInfo& info);

  size_t wanted() const { return wanted_; }  // answers
  size_t done() const { return done_; }
  size_t left() const { return wanted_ - done_; }
  i32 context() const { return context_; }        // positions that the longest prompt and its answer need
  size_t cut() const { return results_->cut(); }  // bytes of a last result that was not whole, which are gone

  // Answers what is left, on an engine with this context. on_done() is called after each answer.
  PromptBatchStats run(Engine& engine, const StopCallback& stop = never_stop,
                       const std::function<void()>& on_done = {});

 private:
  // A line of the prompts file, with what the tokenizer made of it.
  struct Asked {
    PromptLine line;
    std::vector<i32> tokens;
    std::vector<bool> done;  // for each of its answers
  };
  void read_prompts(const AnswerSettings& settings, const ModelInfo& info);
  void read_result(std::string_view line, size_t number);
  std::shared_ptr<Answer> job_of(Asked& asked, i32 index, const std::function<void()>& on_done);

  PromptBatchOptions options_;
  const Tokenizer& tokenizer_;
  std::vector<Asked> asked_;
  std::map<std::string, size_t> by_id_;
  size_t wanted_ = 0, done_ = 0;
  i32 context_ = 1;
  std::optional<ResultsFile> results_;  // opened once there are prompts to compare its lines with
};

}  // namespace heddle
