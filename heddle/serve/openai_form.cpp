// OpenAI's /v1/completions and /v1/chat/completions.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "heddle/serve/answer_form.h"

namespace heddle {
namespace {

Json finish_of(const std::string& reason) {
  if (reason.empty()) return {};
  if (reason == "calls") return "tool_calls";
  return reason == "length" || reason == "context" ? "length" : "stop";
}

Json usage_of(const MadeAnswers& made) {
  return Json::object({{"prompt_tokens", made.prompt_tokens},
                       {"completion_tokens", made.answer_tokens},
                       {"total_tokens", made.prompt_tokens + made.answer_tokens},
                       {"prompt_tokens_details", Json::object({{"cached_tokens", made.cached_tokens}})}});
}

// The head of each object, and the parts of a stream that both endpoints share.
class OpenAiForm : public AnswerForm {
 public:
  OpenAiForm(const Asked& asked, const ServedModel& model, const char* prefix)
      : asked_(asked), model_(model), name_(request_name(prefix)), created_(seconds_since_1970()) {}

  std::string end(const MadeAnswers& made) override {
    std::string last;
    if (asked_.tells_usage) {
      Json told = object(true);
      told["choices"] = Json::array();
      told["usage"] = usage_of(made);
      last = event(told);
    }
    return last + "data: [DONE]\n\n";
  }

 protected:
  virtual const char* kind(bool is_piece) const = 0;

  Json object(bool is_piece) const {
    return Json::object(
        {{"id", name_}, {"object", kind(is_piece)}, {"created", created_}, {"model", model_.names[0]}});
  }
  std::string piece(Json choice) const {
    Json told = object(true);
    told["choices"] = Json::array({std::move(choice)});
    if (asked_.tells_usage) told["usage"] = Json();
    return event(told);
  }
  std::string text_of(i32 token) const { return model_.tokenizer.decode(std::span(&token, 1), false); }

  const Asked& asked() const { return asked_; }
  const Tokenizer& tokenizer() const { return model_.tokenizer; }

 private:
  const Asked& asked_;
  const ServedModel& model_;
  const std::string name_;
  const i64 created_;
};

class CompletionForm : public OpenAiForm {
 public:
  CompletionForm(const Asked& asked, const ServedModel& model) : OpenAiForm(asked, model, "cmpl-") {}

  Json whole(const MadeAnswers& made) const override {
    Json told = object(false);
    told["choices"] = Json::array();
    for (size_t i = 0; i < made.answers.size(); ++i) told["choices"].push_back(choice(i, made));
    told["usage"] = usage_of(made);
    return told;
  }
  std::string begin() override {
    std::string first;
    for (size_t i = 0; asked().echo && i < asked().choices(); ++i)
      first += piece(part(i, asked().texts[i / size_t(asked().n)], Json(), Json()));
    return first;
  }
  std::string token(size_t index, const AnswerToken& token, const MadeAnswer&,
                    const std::vector<PartEvent>&) override {
    Json logprobs;
    if (asked().top && token.logprobs) {
      Lists lists;
      add(lists, token.id, *token.logprobs);
      logprobs = lists.json(true);
    }
    if (token.text.empty() && logprobs.is_null() && token.reason.empty()) return {};
    return piece(part(index, token.text, std::move(logprobs), finish_of(token.reason)));
  }

 private:
  // The four lists of a choice's log-probabilities.
  struct Lists {
    Json tokens = Json::array(), values = Json::array(), top = Json::array(), offsets = Json::array();
    size_t offset = 0;
    Json json(bool has_top) {
      return Json::object({{"tokens", std::move(tokens)},
                           {"token_logprobs", std::move(values)},
                           {"top_logprobs", has_top ? std::move(top) : Json()},
                           {"text_offset", std::move(offsets)}});
    }
  };

  const char* kind(bool) const override { return "text_completion"; }
  static Json part(size_t index, const std::string& text, Json logprobs, Json finish) {
    return Json::object({{"index", index},
                         {"text", text},
                         {"logprobs", std::move(logprobs)},
                         {"finish_reason", std::move(finish)}});
  }
  // A text has nothing of special tokens.
  size_t shown_size(i32 token, const std::string& text) const {
    return tokenizer().is_skipped(token) ? 0 : text.size();
  }
  void add(Lists& lists, i32 token, const TokenLogprobs& logprobs) const {
    const std::string text = text_of(token);
    lists.tokens.push_back(text);
    lists.values.push_back(written_logprob(logprobs.chosen));
    Json top = Json::object();
    for (const auto& [id, value] : logprobs.likeliest) {
      const std::string name = text_of(id);
      if (!top.find(name)) top[name] = written_logprob(value);
    }
    top[text] = written_logprob(logprobs.chosen);
    lists.top.push_back(std::move(top));
    lists.offsets.push_back(lists.offset);
    lists.offset += shown_size(token, text);
  }
  Json choice(size_t index, const MadeAnswers& made) const {
    const size_t prompt = index / size_t(asked().n);
    const MadeAnswer& answer = made.answers[index];
    Json logprobs;
    if (asked().top) {
      Lists lists;
      if (asked().echo) {
        const std::vector<i32>& tokens = asked().prompts[prompt].tokens;
        const std::string first = text_of(tokens[0]);
        lists.tokens.push_back(first);  // nothing comes before it that it could follow from
        lists.values.push_back(Json());
        lists.top.push_back(Json());
        lists.offsets.push_back(0);
        lists.offset = shown_size(tokens[0], first);
        for (size_t i = 1; i < tokens.size(); ++i) add(lists, tokens[i], made.scores[prompt][i - 1]);
      }
      for (const AnswerToken& token : answer.tokens)
        if (token.logprobs) add(lists, token.id, *token.logprobs);
      logprobs = lists.json(*asked().top > 0);
    }
    return part(index, (asked().echo ? asked().texts[prompt] : "") + answer.joined(AnswerPart::Kind::kText),
                std::move(logprobs), finish_of(answer.reason));
  }
};

class ChatForm : public OpenAiForm {
 public:
  ChatForm(const Asked& asked, const ServedModel& model) : OpenAiForm(asked, model, "chatcmpl-") {}

  Json whole(const MadeAnswers& made) const override {
    Json told = object(false);
    told["choices"] = Json::array();
    for (size_t i = 0; i < made.answers.size(); ++i) {
      const MadeAnswer& answer = made.answers[i];
      Json message = message_of(answer);
      Json logprobs;
      if (asked().top) {
        Json content = Json::array();
        for (const AnswerToken& token : answer.tokens)
          if (token.logprobs) content.push_back(scored(token));
        logprobs = Json::object({{"content", std::move(content)}, {"refusal", Json()}});
      }
      told["choices"].push_back(Json::object({{"index", i},
                                              {"message", std::move(message)},
                                              {"logprobs", std::move(logprobs)},
                                              {"finish_reason", finish_of(answer.reason)}}));
    }
    told["usage"] = usage_of(made);
    return told;
  }
  std::string begin() override {
    std::string first;
    for (size_t i = 0; i < asked().choices(); ++i)
      first += piece(part(i, Json::object({{"role", "assistant"}, {"content", ""}}), Json(), Json()));
    return first;
  }
  std::string token(size_t index, const AnswerToken& token, const MadeAnswer& made,
                    const std::vector<PartEvent>& events) override {
    std::string told;
    Json logprobs;
    if (asked().top && token.logprobs)
      logprobs = Json::object({{"content", Json::array({scored(token)})}, {"refusal", Json()}});
    for (const PartEvent& event : events)
      if (Json delta = delta_of(event, made.parts); !delta.is_null())
        told += piece(part(index, std::move(delta), std::exchange(logprobs, {}), Json()));
    if (!logprobs.is_null())
      told += piece(part(index, Json::object({{"content", ""}}), std::move(logprobs), Json()));
    if (!made.reason.empty()) told += piece(part(index, Json::object(), Json(), finish_of(made.reason)));
    return told;
  }

 private:
  const char* kind(bool is_piece) const override {
    return is_piece ? "chat.completion.chunk" : "chat.completion";
  }
  static Json call_of(const AnswerPart& part) {
    return Json::object({{"id", part.id},
                         {"type", "function"},
                         {"function", Json::object({{"name", part.name}, {"arguments", part.text}})}});
  }
  static Json message_of(const MadeAnswer& answer) {
    const std::string text = answer.joined(AnswerPart::Kind::kText);
    const std::string reasoning = answer.joined(AnswerPart::Kind::kReasoning);
    Json message = Json::object({{"role", "assistant"}, {"content", text}, {"refusal", Json()}});
    if (!reasoning.empty()) message["reasoning_content"] = reasoning;
    if (!answer.has(AnswerPart::Kind::kCall)) return message;
    message["content"] = text_or_null(text);
    for (const AnswerPart& part : answer.parts)
      if (part.kind == AnswerPart::Kind::kCall) message["tool_calls"].push_back(call_of(part));
    return message;
  }
  // Null where there is nothing to tell.
  static Json delta_of(const PartEvent& event, const std::vector<AnswerPart>& parts) {
    const AnswerPart& part = parts[event.part];
    const bool is_more = event.step == PartEvent::Step::kMore;
    if (event.step == PartEvent::Step::kEnd || (part.kind != AnswerPart::Kind::kCall && !is_more)) return {};
    if (part.kind == AnswerPart::Kind::kReasoning) return Json::object({{"reasoning_content", event.text}});
    if (part.kind == AnswerPart::Kind::kText) return Json::object({{"content", event.text}});
    Json call = is_more ? Json::object({{"function", Json::object({{"arguments", event.text}})}})
                        : call_of({.kind = part.kind, .id = part.id, .name = part.name});
    call["index"] = std::ranges::count(parts.begin(), parts.begin() + long(event.part),
                                       AnswerPart::Kind::kCall, &AnswerPart::kind);
    return Json::object({{"tool_calls", Json::array({std::move(call)})}});
  }
  static Json part(size_t index, Json delta, Json logprobs, Json finish) {
    return Json::object({{"index", index},
                         {"delta", std::move(delta)},
                         {"logprobs", std::move(logprobs)},
                         {"finish_reason", std::move(finish)}});
  }
  Json scored_one(i32 token, float value) const {
    const std::string text = text_of(token);
    Json bytes = Json::array();
    for (const char byte : text) bytes.push_back(u8(byte));
    return Json::object({{"token", text}, {"logprob", written_logprob(value)}, {"bytes", std::move(bytes)}});
  }
  Json scored(const AnswerToken& token) const {
    Json made = scored_one(token.id, token.logprobs->chosen);
    made["top_logprobs"] = Json::array();
    for (const auto& [id, value] : token.logprobs->likeliest)
      made["top_logprobs"].push_back(scored_one(id, value));
    return made;
  }
};

}  // namespace

std::string MadeAnswer::joined(AnswerPart::Kind kind) const {
  std::string text;
  for (const AnswerPart& part : parts)
    if (part.kind == kind) text += part.text;
  return text;
}

bool MadeAnswer::has(AnswerPart::Kind kind) const {
  return std::ranges::find(parts, kind, &AnswerPart::kind) != parts.end();
}

std::string AnswerForm::failed(const ApiError& error) const {
  return event(json_of(error, errors()));
}

std::string event(const Json& data, const char* name) {
  return (name ? fmt::format("event: {}\n", name) : "") + "data: " + data.dump() + "\n\n";
}

i64 seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

float written_logprob(float value) {
  return std::isnan(value) ? kLeastLogprob : std::clamp(value, kLeastLogprob, 0.0f);
}

std::unique_ptr<AnswerForm> completion_form(const Asked& asked, const ServedModel& model) {
  return std::make_unique<CompletionForm>(asked, model);
}

std::unique_ptr<AnswerForm> chat_form(const Asked& asked, const ServedModel& model) {
  return std::make_unique<ChatForm>(asked, model);
}

}  // namespace heddle
