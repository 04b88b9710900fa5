#include "apps/heddle/support/generate_batch.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "apps/heddle/support/answer_json.h"
#include "apps/heddle/support/answer_settings.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/progress.h"
#include "apps/heddle/support/results_file.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/stopwatch.h"
#include "heddle/model/build/family.h"
#include "heddle/text/prompts_file.h"

namespace heddle {
namespace {

using nlohmann::json;

// A line of the prompts file, with what the tokenizer made of it.
struct Asked {
  PromptLine line;
  std::vector<i32> tokens;
  std::vector<bool> done;  // for each of --n answers
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
    if (done_ < wanted_) answer(results);
    std::fprintf(stderr, "[%zu of %zu answers are done%s]\n", done_, wanted_,
                 done_ < wanted_ ? "; the same command goes on from here" : "");
  }

 private:
  i32 max_tokens_of(const PromptLine& line) const { return line.max_tokens.value_or(settings_.max_tokens); }

  AnswerSettings settings_of(const PromptLine& line) const {
    AnswerSettings settings = settings_;
    settings.sampling = line.sampling;
    settings.max_tokens = max_tokens_of(line);
    settings.stops.insert(settings.stops.end(), line.stops.begin(), line.stops.end());
    if (line.eos) settings.eos = *line.eos;
    return settings;
  }

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
      try {
        require_known_tokens(settings_of(line), info.vocab);
      } catch (const Error& error) {
        wrong(error.what());
      }
      context_ = std::max(context_, i32(std::min(i64(limit), i64(tokens.size()) + max_tokens_of(line))));
      by_id_[line.id] = asked_.size();
      asked_.push_back({std::move(line), std::move(tokens), std::vector<bool>(size_t(flags_.n))});
      wanted_ += size_t(flags_.n);
    }
    if (asked_.empty())
      fail(ErrorCode::kIo, "[{}] has no prompts; lines such as {{\"prompt\": \"a text\"}} are expected",
           flags_.prompts);
  }

  void read_result(std::string_view line, size_t number) {
    const std::string where = fmt::format("{}:{}", flags_.out, number);
    const json result = json::parse(line, nullptr, false);
    const json index = result.is_object() ? result.value("index", json(0u)) : json();
    if (!index.is_number_unsigned() || !result.contains("id") || !result.contains("prompt_tokens"))
      fail(ErrorCode::kIo, "[{}] is no result of heddle; --out takes a new file or one of the same prompts",
           where);
    const auto found = by_id_.find(result["id"].dump());
    if (found == by_id_.end() || result["prompt_tokens"] != json(asked_[found->second].tokens))
      fail(ErrorCode::kIo, "[{}] id {} has another prompt than in {}; give another --out", where,
           result["id"].dump(), flags_.prompts);
    const size_t answer = index.get<size_t>();
    if (answer >= size_t(flags_.n))
      fail(ErrorCode::kIo, "[{}] is answer {} to its prompt and --n is {}; give --n as it was", where,
           answer + 1, flags_.n);
    if (!asked_[found->second].done[answer]) ++done_;
    asked_[found->second].done[answer] = true;
  }

  void answer(ResultsFile& results) {
    EngineOptions options = flags_.engine.options();
    options.max_context = context_;
    options.max_sequences = i32(std::min(size_t(flags_.sequences), wanted_ - done_));
    const auto engine = load_engine(flags_.engine, options);
    Batcher batcher(*engine, interrupted);
    for (const Asked& asked : asked_)
      for (i32 i = 0; i < flags_.n; ++i)
        if (!asked.done[size_t(i)]) {
          batcher.add(job_of(asked, i, results));
          ++started_;
          on_host_ += !asked.line.sampling.needs_host().empty();
        }
    const Stopwatch watch;
    while (!batcher.idle() && !interrupted()) {
      batcher.step();
      show_progress();
    }
    progress_.clear();
    const double seconds = watch.seconds();
    const BatchStats& stats = batcher.stats();
    const std::string text = fmt::format(
        "[{} prompt tokens, {} more shared; {} new tokens; {:.1f} tokens/s in {} steps of up to {} "
        "sequences; "
        "{} answers chosen by the host, {} by the program]\n",
        stats.prompt_tokens, stats.shared_tokens, stats.new_tokens, double(stats.new_tokens) / seconds,
        stats.steps, stats.most_sequences, on_host_, started_ - on_host_);
    std::fputs(text.c_str(), stderr);
  }

  std::shared_ptr<Answer> job_of(const Asked& asked, i32 index, ResultsFile& results) {
    AnswerSettings settings = settings_of(asked.line);
    settings.sampling.seed += u64(index);
    auto job = std::make_shared<Answer>(std::move(settings), asked.tokens, tokenizer_);
    job->on_end = [this, &asked, &results, index, answer = job.get()] {
      nlohmann::ordered_json line = {{"id", json::parse(asked.line.id)}};
      if (flags_.n > 1) line["index"] = index;
      line.update(json_of(*answer));
      results.append(line_of(line));
      ++done_;
    };
    return job;
  }

  void show_progress() {
    if (shown_ == done_) return;
    shown_ = done_;
    progress_.show(fmt::format("{} of {} answers are done", done_, wanted_));
  }

  const GenerateFlags& flags_;
  const AnswerSettings& settings_;
  const Tokenizer& tokenizer_;
  std::vector<Asked> asked_;
  std::map<std::string, size_t> by_id_;
  size_t wanted_ = 0, done_ = 0, shown_ = 0, started_ = 0, on_host_ = 0;  // answers
  i32 context_ = 1;
  ProgressLine progress_;
};

}  // namespace

void generate_batch(const GenerateFlags& flags, const AnswerSettings& settings, const Tokenizer& tokenizer) {
  Batch(flags, settings, tokenizer).run();
}

}  // namespace heddle
