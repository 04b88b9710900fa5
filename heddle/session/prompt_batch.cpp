#include "heddle/session/prompt_batch.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/stopwatch.h"
#include "heddle/session/answer_json.h"

namespace heddle {

using nlohmann::json;

PromptBatch::PromptBatch(PromptBatchOptions options, const AnswerSettings& settings,
                         const Tokenizer& tokenizer, const ModelInfo& info)
    : options_(std::move(options)), tokenizer_(tokenizer) {
  read_prompts(settings, info);
  results_.emplace(options_.results,
                   [this](std::string_view line, size_t number) { read_result(line, number); });
}

void PromptBatch::read_prompts(const AnswerSettings& settings, const ModelInfo& info) {
  require(options_.n >= 1, "[batch] n is {}; must be positive", options_.n);
  const i32 limit = options_.max_context > 0 ? options_.max_context : info.max_positions;
  for (PromptLine& line : parse_prompts(read_file(options_.prompts), options_.prompts, settings)) {
    std::vector<i32> tokens = line.prompt ? tokenizer_.encode(*line.prompt, true) : line.tokens;
    const auto wrong = [&](const std::string& what) {
      fail(ErrorCode::kIo, "[{}:{}] {}", options_.prompts, line.line, what);
    };
    if (tokens.empty()) wrong("the prompt has no tokens; some text or tokens are expected");
    if (i64(tokens.size()) >= limit)
      wrong(fmt::format("the prompt has {} tokens; the context holds {}", tokens.size(), limit));
    for (i32 token : tokens)
      if (token >= info.vocab) wrong(fmt::format("token {}; the model knows 0 to {}", token, info.vocab - 1));
    try {
      require_known_tokens(line.settings, info.vocab);
    } catch (const Error& error) {
      wrong(error.what());
    }
    context_ = std::max(context_, i32(std::min(i64(limit), i64(tokens.size()) + line.settings.max_tokens)));
    by_id_[line.id] = asked_.size();
    asked_.push_back({std::move(line), std::move(tokens), std::vector<bool>(size_t(options_.n))});
    wanted_ += size_t(options_.n);
  }
  if (asked_.empty())
    fail(ErrorCode::kIo, "[{}] has no prompts; lines such as {{\"prompt\": \"a text\"}} are expected",
         options_.prompts);
}

void PromptBatch::read_result(std::string_view line, size_t number) {
  const std::string where = fmt::format("{}:{}", options_.results, number);
  const json result = json::parse(line, nullptr, false);
  const json index = result.is_object() ? result.value("index", json(0u)) : json();
  if (!index.is_number_unsigned() || !result.contains("id") || !result.contains("prompt_tokens"))
    fail(ErrorCode::kIo, "[{}] is no result of heddle; results go to a new file or one of the same prompts",
         where);
  const auto found = by_id_.find(result["id"].dump());
  if (found == by_id_.end() || result["prompt_tokens"] != json(asked_[found->second].tokens))
    fail(ErrorCode::kIo, "[{}] id {} has another prompt than in {}; give another file for the results", where,
         result["id"].dump(), options_.prompts);
  const size_t answer = index.get<size_t>();
  if (answer >= size_t(options_.n))
    fail(ErrorCode::kIo, "[{}] is answer {} to its prompt and n is {}; give n as it was", where, answer + 1,
         options_.n);
  if (!asked_[found->second].done[answer]) ++done_;
  asked_[found->second].done[answer] = true;
}

PromptBatchStats PromptBatch::run(Engine& engine, const StopCallback& stop,
                                  const std::function<void()>& on_done) {
  PromptBatchStats stats;
  Batcher batcher(engine, stop);
  for (Asked& asked : asked_)
    for (i32 i = 0; i < options_.n; ++i)
      if (!asked.done[size_t(i)]) {
        batcher.add(job_of(asked, i, on_done));
        ++(asked.line.settings.sampling.needs_host().empty() ? stats.by_program : stats.by_host);
      }
  const Stopwatch watch;
  while (!batcher.idle() && !stop()) batcher.step();
  stats.seconds = watch.seconds();
  stats.steps = batcher.stats();
  return stats;
}

std::shared_ptr<Answer> PromptBatch::job_of(Asked& asked, i32 index, const std::function<void()>& on_done) {
  AnswerSettings settings = asked.line.settings;
  settings.sampling.seed += u64(index);
  auto job = std::make_shared<Answer>(std::move(settings), asked.tokens, tokenizer_);
  job->on_end = [this, &asked, &on_done, index, answer = job.get()] {
    nlohmann::ordered_json line = {{"id", json::parse(asked.line.id)}};
    if (options_.n > 1) line["index"] = index;
    line.update(json_of(*answer));
    results_->append(line_of(line));
    asked.done[size_t(index)] = true;
    ++done_;
    if (on_done) on_done();
  };
  return job;
}

}  // namespace heddle
