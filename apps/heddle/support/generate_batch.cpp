#include "apps/heddle/support/generate_batch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/results_file.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/build/family.h"
#include "heddle/text/prompts_file.h"

namespace heddle {
namespace {

using nlohmann::json;

// A line of the prompts file, with what the tokenizer made of it.
struct Asked {
  PromptLine line;
  std::vector<i32> tokens;
  bool done = false;
};

class Batch {
 public:
  Batch(const GenerateFlags& flags, const AnswerSettings& settings, const Tokenizer& tokenizer)
      : flags_(flags), settings_(settings), tokenizer_(tokenizer) {}

  void run() {
    const ModelInfo info = open_model(flags_.engine.model)->info();
    read_prompts(info);
    ResultsFile results(flags_.out, [&](std::string_view line, size_t number) { read_result(line, number); });
    if (results.cut() > 0)
      std::fprintf(stderr, "%s: took away %zu bytes of a last line that was cut\n", flags_.out.c_str(),
                   results.cut());
    if (done_ < asked_.size()) answer(results);
    std::fprintf(stderr, "[%zu of %zu prompts are done%s]\n", done_, asked_.size(),
                 done_ < asked_.size() ? "; the same command goes on from here" : "");
  }

 private:
  i32 max_tokens_of(const PromptLine& line) const { return line.max_tokens.value_or(settings_.max_tokens); }

  // Every line is looked at before any work begins.
  void read_prompts(const ModelInfo& info) {
    const i32 limit = flags_.engine.max_context > 0 ? flags_.engine.max_context : info.max_positions;
    for (PromptLine& line : parse_prompts(read_file(flags_.prompts), flags_.prompts, settings_.sampling)) {
      std::vector<i32> tokens = line.prompt ? tokenizer_.encode(*line.prompt, true) : line.tokens;
      const auto wrong = [&](const std::string& what) {
        fail(ErrorCode::kIo, "[{}:{}] {}", flags_.prompts, line.line, what);
      };
      if (tokens.empty()) wrong("the prompt has no tokens; some text or tokens are expected");
      if (i64(tokens.size()) >= limit)
        wrong(fmt::format("the prompt has {} tokens; the context holds {}", tokens.size(), limit));
      for (i32 token : tokens)
        if (token >= info.vocab)
          wrong(fmt::format("token {}; the model knows 0 to {}", token, info.vocab - 1));
      context_ = std::max(context_, i32(std::min(i64(limit), i64(tokens.size()) + max_tokens_of(line))));
      by_id_[line.id] = asked_.size();
      asked_.push_back({std::move(line), std::move(tokens)});
    }
    if (asked_.empty())
      fail(ErrorCode::kIo, "[{}] has no prompts; lines such as {{\"prompt\": \"a text\"}} are expected",
           flags_.prompts);
  }

  void read_result(std::string_view line, size_t number) {
    const std::string where = fmt::format("{}:{}", flags_.out, number);
    const json result = json::parse(line, nullptr, false);
    if (!result.is_object() || !result.contains("id") || !result.contains("prompt_tokens"))
      fail(ErrorCode::kIo, "[{}] is no result of heddle; --out takes a new file or one of the same prompts",
           where);
    const auto found = by_id_.find(result["id"].dump());
    if (found == by_id_.end() || result["prompt_tokens"] != json(asked_[found->second].tokens))
      fail(ErrorCode::kIo, "[{}] id {} has another prompt than in {}; give another --out", where,
           result["id"].dump(), flags_.prompts);
    done_ += !std::exchange(asked_[found->second].done, true);
  }

  void answer(ResultsFile& results) {
    EngineOptions options = flags_.engine.options();
    options.max_context = context_;
    options.max_sequences = i32(std::min(size_t(flags_.sequences), asked_.size() - done_));
    const auto engine = load_engine(flags_.engine, options);
    Batcher batcher(*engine);
    for (Asked& asked : asked_)
      if (!asked.done) batcher.add(job_of(asked, results));
    const auto start = std::chrono::steady_clock::now();
    while (!batcher.idle() && !interrupted()) {
      batcher.step();
      show_progress();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const BatchStats& stats = batcher.stats();
    std::fprintf(
        stderr,
        "[%llu prompt tokens, %llu more shared; %llu new tokens; %.1f tokens/s in %llu steps of up to %d "
        "sequences]\n",
        static_cast<unsigned long long>(stats.prompt_tokens),
        static_cast<unsigned long long>(stats.shared_tokens),
        static_cast<unsigned long long>(stats.new_tokens), double(stats.new_tokens) / seconds,
        static_cast<unsigned long long>(stats.steps), stats.most_sequences);
  }

  std::shared_ptr<Answer> job_of(Asked& asked, ResultsFile& results) {
    AnswerSettings settings = settings_;
    settings.sampling = asked.line.sampling;
    settings.max_tokens = max_tokens_of(asked.line);
    settings.stops.insert(settings.stops.end(), asked.line.stops.begin(), asked.line.stops.end());
    auto job = std::make_shared<Answer>(std::move(settings), asked.tokens, tokenizer_);
    job->on_end = [this, &asked, &results, answer = job.get()] {
      const nlohmann::ordered_json line = {{"id", json::parse(asked.line.id)},
                                           {"text", answer->text()},
                                           {"finish_reason", answer->reason()},
                                           {"prompt_tokens", asked.tokens},
                                           {"tokens", answer->tokens()}};
      results.append(line.dump());
      ++done_;
    };
    return job;
  }

  void show_progress() {
    if (::isatty(STDERR_FILENO) == 0 || shown_ == done_) return;
    shown_ = done_;
    std::fprintf(stderr, "\r%zu of %zu prompts are done\033[K%s", done_, asked_.size(),
                 done_ == asked_.size() ? "\r\033[K" : "");
  }

  const GenerateFlags& flags_;
  const AnswerSettings& settings_;
  const Tokenizer& tokenizer_;
  std::vector<Asked> asked_;
  std::map<std::string, size_t> by_id_;
  size_t done_ = 0, shown_ = 0;
  i32 context_ = 1;
};

}  // namespace

void generate_batch(const GenerateFlags& flags, const AnswerSettings& settings, const Tokenizer& tokenizer) {
  require(flags.sequences >= 1 && flags.sequences <= 512, "[generate] --sequences is {}; must be 1 to 512",
          flags.sequences);
  Batch(flags, settings, tokenizer).run();
}

}  // namespace heddle
