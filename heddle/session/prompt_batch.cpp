#include "heddle/session/prompt_batch.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/stopwatch.h"
#include "heddle/session/answer_json.h"
#include "heddle/session/service.h"
#include "heddle/text/tokenizer_files.h"

namespace heddle {

std::string identity_of(const Model& model, const std::string& folder) {
  const std::string parts[] = {model.fingerprint(), TokenizerFiles::fingerprint(folder)};
  return digest_of(std::vector<std::string_view>(std::begin(parts), std::end(parts)));
}

PromptBatch::PromptBatch(PromptBatchOptions options, const AnswerSettings& settings,
                         const Tokenizer& tokenizer, const ModelInfo& info)
    : options_(std::move(options)), tokenizer_(tokenizer) {
  read_prompts(settings, info);
  results_.emplace(options_.results,
                   [this](std::string_view line, size_t number) { read_result(line, number); });
  if (!seed_ && std::ranges::any_of(asked_, [this](const Asked& asked) { return draws(asked); }))
    seed_ = random_seed();
}

void PromptBatch::read_prompts(const AnswerSettings& settings, const ModelInfo& info) {
  require(options_.n >= 1, "[batch] n is {}; must be positive", options_.n);
  limit_ = options_.max_context > 0 ? options_.max_context : info.default_positions();
  const i32 limit = limit_;
  // Answers depend on the context that was asked for, not on what the longest prompt happens to need.
  if (limit > info.default_positions()) context_ = info.default_positions() + 1;
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
  Json result;  // null if the line was cut
  try {
    result = parse_json(line, where);
  } catch (const Error&) {
  }
  const Json *id = result.find("id"), *tokens = result.find("prompt_tokens"), *index = result.find("index");
  const std::optional<int64_t> number_of_answer = index ? index->to_int() : 0;
  if (!id || !tokens || !number_of_answer || *number_of_answer < 0)
    fail(ErrorCode::kIo, "[{}] is no result of heddle; results go to a new file or one of the same prompts",
         where);
  const auto found = by_id_.find(id->dump());
  if (found == by_id_.end() || *tokens != Json(asked_[found->second].tokens))
    fail(ErrorCode::kIo, "[{}] id {} has another prompt than in {}; give another file for the results", where,
         id->dump(), options_.prompts);
  const auto answer = size_t(*number_of_answer);
  if (answer >= size_t(options_.n))
    fail(ErrorCode::kIo, "[{}] is answer {} to its prompt and n is {}; give n as it was", where, answer + 1,
         options_.n);
  Asked& asked = asked_[found->second];
  if (draws(asked) && !seed_) take_seed(result, i32(answer));
  require_same(result, settings_of(asked, i32(answer)), where);
  if (!asked.done[answer]) ++done_;
  asked.done[answer] = true;
}

bool PromptBatch::draws(const Asked& asked) const {
  return options_.draws_seed && !asked.line.has_seed && !asked.line.settings.sampling.greedy();
}

void PromptBatch::take_seed(const Json& result, i32 index) {
  const Json* made = result.find("made_with");
  const Json* seed = made ? made->find("seed") : nullptr;  // without one it was the default
  const std::optional<int64_t> drawn = seed ? seed->to_int() : int64_t(SamplingParams{}.seed);
  if (drawn && *drawn >= index) seed_ = u64(*drawn - index);
}

AnswerSettings PromptBatch::settings_of(const Asked& asked, i32 index) const {
  AnswerSettings settings = asked.line.settings;
  if (draws(asked)) settings.sampling.seed = seed_.value_or(0);
  settings.sampling.seed += u64(index);
  return settings;
}

Json PromptBatch::made_with(const AnswerSettings& settings) const {
  // A setting at its default is left out, so that results stay readable, and last when there is a new setting.
  const Json all = heddle::json_of(settings), defaults = heddle::json_of(AnswerSettings{});
  Json made = Json::object({{"model", options_.model}, {"max_context", limit_}});
  for (const auto& [name, value] : all.members())
    if (value != defaults.at(name)) made[name] = value;
  return made;
}

void PromptBatch::require_same(const Json& result, const AnswerSettings& settings,
                               const std::string& where) const {
  const Json* before = result.find("made_with");
  if (!before || !before->is_object())
    fail(ErrorCode::kIo,
         "[{}] does not say which model and settings made it; give another file for the results", where);
  const Json now = made_with(settings), defaults = heddle::json_of(AnswerSettings{});
  const auto value_in = [&](const Json& made, const std::string& name) {
    const Json* found = made.find(name);
    if (!found) found = defaults.find(name);
    return found ? *found : Json();
  };
  std::string differences;
  for (const Json* side : {before, &now})
    for (const auto& [name, value] : side->members()) {
      const Json then = value_in(*before, name), here = value_in(now, name);
      if (then == here || (side == &now && before->find(name))) continue;
      differences += fmt::format("{}{} is {} in the file and {} now", differences.empty() ? "" : "; ", name,
                                 brief(then), brief(here));
    }
  if (!differences.empty())
    fail(ErrorCode::kIo,
         "[{}] was made in another way: {}; give another file for the results (--out), or what was asked",
         where, differences);
}

namespace {

// The requests that have ended, by their numbers, for the thread that writes their results.
class EndedRequests {
 public:
  auto listener(size_t number) {
    return [this, number](const Ticket& ticket) {
      if (!ticket.has_ended()) return;
      const std::lock_guard lock(mutex_);
      numbers_.push_back(number);
      came_.notify_one();
    };
  }
  // Waits for a moment.
  std::optional<size_t> next() {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, Ticket::kPeriod, [this] { return !numbers_.empty(); });
    if (numbers_.empty()) return {};
    const size_t number = numbers_.front();
    numbers_.pop_front();
    return number;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<size_t> numbers_;
};

}  // namespace

PromptBatchStats PromptBatch::run(Engine& engine, const StopCallback& stop,
                                  const std::function<void()>& on_done) {
  struct Begun {
    Asked* asked;
    i32 index;
    std::shared_ptr<Answer> answer;
  };
  std::vector<Begun> begun;
  std::vector<Request> requests;
  EndedRequests ended;
  for (Asked& asked : asked_)
    for (i32 i = 0; i < options_.n; ++i) {
      if (asked.done[size_t(i)]) continue;
      auto answer = std::make_shared<Answer>(settings_of(asked, i), asked.tokens, tokenizer_);
      answer->prompt_name = fmt::format("{}:{}", options_.prompts, asked.line.line);
      requests.push_back({.job = answer, .on_change = ended.listener(begun.size())});
      begun.push_back({&asked, i, std::move(answer)});
    }
  PromptBatchStats stats;
  const Stopwatch watch;
  Service service(engine, {.batch = options_.batch});
  const auto tickets = service.submit(std::move(requests));
  std::exception_ptr error;  // the first
  for (size_t left = tickets.size(); left > 0 && !stop();) {
    const std::optional<size_t> at = ended.next();
    if (!at) continue;
    --left;
    const auto& [asked, index, answer] = begun[*at];
    if (tickets[*at]->state() == TicketState::kFinished) {
      ++(asked->line.settings.sampling.needs_host().empty() ? stats.by_program : stats.by_host);
      write(*asked, index, *answer);
      if (on_done) on_done();
    } else if (!error) {
      error = tickets[*at]->error();
    }
  }
  service.stop();
  stats.seconds = watch.seconds();
  if (error && !stop()) std::rethrow_exception(error);
  stats.steps = service.stats().batch;
  return stats;
}

void PromptBatch::write(Asked& asked, i32 index, const Answer& answer) {
  Json line = Json::object({{"id", parse_json(asked.line.id, "id")}});
  if (options_.n > 1) line["index"] = index;
  const Json members = json_of(answer);
  for (const auto& [name, value] : members.members()) line[name] = value;
  line["made_with"] = made_with(settings_of(asked, index));
  results_->append(line.dump());
  asked.done[size_t(index)] = true;
  ++done_;
}

}  // namespace heddle
