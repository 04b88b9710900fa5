#include "heddle/session/conversation.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json_view.h"
#include "heddle/base/stopwatch.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

Conversation::Conversation(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& form,
                           AnswerSettings settings, bool slide)
    : engine_(engine),
      tokenizer_(tokenizer),
      form_(form),
      settings_(std::move(settings)),
      slide_(slide),
      reasoning_(find_reasoning_form(form.text(), tokenizer)),
      sequence_(engine, engine.open(program_sampling(settings_, 0))) {
  settings_.validate();
}

std::string Conversation::text_of(std::span<const ChatMessage> messages) const {
  std::vector<ChatMessage> all;
  if (!system_.empty()) all.push_back({"system", system_});
  all.insert(all.end(), messages.begin(), messages.end());
  return form_.render(all, {.extra = &variables_});
}

// Returns the tokens of the conversation, and its text. If the context slides, it drops the oldest turns until the rest
// leaves room for an answer, at most a quarter of the context.
std::vector<i32> Conversation::fit(TurnStats& stats, std::string& text) {
  const i32 context = engine_.max_context();
  const i32 room = std::min(settings_.max_tokens, context / 4);
  std::span<const ChatMessage> kept = messages_;
  const auto read = [&] {
    text = text_of(kept);
    return tokenizer_.encode(text, false);
  };
  std::vector<i32> tokens = read();
  while (slide_ && i32(tokens.size()) + room > context && kept.size() > 2) {
    kept = kept.subspan(2);
    stats.dropped += 2;
    tokens = read();
  }
  require(!tokens.empty(),
          "[conversation] the template made no text of this; say something else or give another template");
  require(i32(tokens.size()) < context,
          "[conversation] the context is full: this turn would need {} of {} positions; begin anew, or let "
          "what is "
          "oldest slide out",
          tokens.size() + 1, context);
  messages_.erase(messages_.begin(), messages_.begin() + i64(stats.dropped));
  return tokens;
}

i32 Conversation::step(std::span<const i32> tokens, bool wanted, Answer& answer) {
  const StepRequest request{.sequence = sequence_.id(),
                            .tokens = tokens,
                            .wanted = wanted,
                            .mask = wanted ? answer.mask() : std::span<const u32>()};
  const StepResult result = engine_.step(std::span(&request, 1), {.logits = answer.wants_logits()});
  return wanted ? answer.choose(result.logits, result.sampled[0]) : -1;
}

// Generates tokens after `token`: as many as one launch makes, or a single one if logits or a mask are needed. `token`
// becomes the last one. Returns false when it ends the answer.
bool Conversation::go_on(i32& token, Answer& answer, const StopCallback& stop) {
  if (answer.wants_logits() || answer.is_constrained()) {
    token = step(std::span(&token, 1), true, answer);
    return answer.take(token);
  }
  const i32 before = token, room = engine_.max_context() - engine_.length(sequence_.id());
  const StepRequest request{sequence_.id(), std::span(&before, 1), true};
  bool more = true;
  const auto take = [&](std::span<const i32> chosen) {
    token = answer.choose({}, chosen[0]);
    more = answer.take(token);
    return more && !stop();
  };
  engine_.step(std::span(&request, 1), {.steps = std::min({Engine::kMostSteps, answer.left(), room}),
                                        .logits = false,
                                        .ends = answer.ends(),
                                        .on_tokens = take});
  return more;
}

// Reads the tokens that are not in the KV cache yet. Returns the first token of the answer, or -1 when it was
// stopped.
i32 Conversation::read(std::span<const i32> tokens, TurnStats& stats, Answer& answer,
                       const StopCallback& stop) {
  const auto there = engine_.tokens(sequence_.id());
  const auto same = std::ranges::mismatch(tokens.first(tokens.size() - 1), there).in1 - tokens.begin();
  engine_.rewind(sequence_.id(), i32(same));
  stats.kept = size_t(engine_.length(sequence_.id()));
  i32 token = -1;
  for (auto rest = tokens.subspan(stats.kept); !rest.empty() && !stop();) {
    const size_t count = std::min(rest.size(), size_t(engine_.max_rows()));
    token = step(rest.first(count), count == rest.size(), answer);
    rest = rest.subspan(count);
  }
  return token;
}

TurnStats Conversation::say(const std::string& message, const TextCallback& on_text, const StopCallback& stop,
                            const TextCallback& on_reasoning) {
  messages_.push_back({"user", message});
  try {
    return take_turn(on_text, stop, on_reasoning);
  } catch (...) {
    messages_.pop_back();
    throw;
  }
}

// Answers the last message.
TurnStats Conversation::take_turn(const TextCallback& on_text, const StopCallback& stop,
                                  const TextCallback& on_reasoning) {
  TurnStats stats{.context = engine_.max_context()};
  AnswerText form{.after_prompt = false, .reasoning = reasoning_};
  const std::vector<i32> tokens = fit(stats, form.prompt);
  stats.prompt = tokens.size();
  Answer answer(settings_, tokens, tokenizer_, form);
  answer.on_text = on_text;
  answer.on_reasoning = on_reasoning;
  engine_.begin_answer(sequence_.id(), answer.sampling());
  Stopwatch watch;
  i32 token = -1;
  bool full = false;
  try {
    token = read(tokens, stats, answer, stop);
    stats.prompt_seconds = watch.seconds();
    watch = {};
    const auto is_full = [&] { return engine_.length(sequence_.id()) >= engine_.max_context(); };
    bool more = token >= 0 && answer.take(token);
    full = more && is_full();
    while (more && !stop() && !full) {
      more = go_on(token, answer, stop);
      full = more && is_full();
    }
  } catch (const Cancelled&) {  // the step leaves the sequence as it was
    if (!stop()) throw;
  }
  answer.end(full);
  ++settings_.sampling.seed;  // seed of the next answer, if the host chooses tokens
  stats.answer_seconds = watch.seconds();
  stats.answer = answer.tokens().size();
  stats.reason = answer.reason();
  stats.left = stats.context - engine_.length(sequence_.id());
  if (token < 0)
    messages_.pop_back();  // stopped before the answer began
  else
    messages_.push_back({"assistant", answer.text(), answer.reasoning()});
  return stats;
}

void Conversation::save(const std::string& path) const {
  Json messages = Json::array();
  if (!system_.empty()) messages.push_back(Json::object({{"role", "system"}, {"content", system_}}));
  for (const ChatMessage& message : messages_) {
    Json& made = messages.push_back(Json::object({{"role", message.role}, {"content", message.content}}));
    if (!message.reasoning.empty()) made["reasoning_content"] = message.reasoning;
  }
  write_file(path, Json::object({{"messages", messages}}).dump(2) + "\n");
}

void Conversation::load(const std::string& path) {
  const JsonDocument document(read_file(path), path);
  const JsonView root = document.root(), list = root.at("messages");
  std::string system;
  std::vector<ChatMessage> messages;
  list.for_each_item([&](const JsonView& message) {
    const JsonView role = message.at("role"), content = message.at("content");
    const auto reasoning = message.find("reasoning_content");
    const char* next = messages.size() % 2 == 0 ? "user" : "assistant";
    if (role.as_string() == "system" && messages.empty())
      system = content.as_string();
    else if (role.as_string() == next)
      messages.push_back({next, content.as_string(), reasoning ? reasoning->as_string() : std::string()});
    else
      role.fail(ErrorCode::kIo, fmt::format("{} is expected here", next));
  });
  if (messages.size() % 2 != 0) list.fail(ErrorCode::kIo, "an answer to the last message is expected");
  system_ = std::move(system);
  messages_ = std::move(messages);
}

}  // namespace heddle
