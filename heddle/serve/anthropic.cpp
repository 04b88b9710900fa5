// Anthropic's /v1/messages.
#include <fmt/format.h>

#include "heddle/serve/answer_form.h"

namespace heddle {
namespace {

// Anthropic's form of a conversation as OpenAI's, which templates read. Blocks of tools become their calls and messages.
class Conversion {
 public:
  void system(const JsonView& value) {
    std::string text;
    if (value.is_string())
      text = value.as_string();
    else
      value.for_each_item([&](const JsonView& block) { text += block.at("text").as_string(); });
    if (!text.empty()) messages_.push_back(Json::object({{"role", "system"}, {"content", text}}));
  }

  void message(const JsonView& value) {
    const JsonView role = value.at("role"), content = value.at("content");
    role.check_one_of({"user", "assistant"});
    text_.clear();
    calls_ = Json::array();
    if (content.is_string())
      text_ = content.as_string();
    else
      content.for_each_item([&](const JsonView& part) { block(part); });
    if (text_.empty() && calls_.size() == 0 && !content.is_string()) return;  // results of tools alone
    Json made = Json::object({{"role", role.as_string()}, {"content", text_}});
    if (calls_.size() > 0) made["tool_calls"] = calls_;
    messages_.push_back(std::move(made));
  }

  Json messages() { return std::move(messages_); }

 private:
  void block(const JsonView& part) {
    const JsonView kind = part.at("type");
    const std::string& type = kind.as_string();
    if (type == "text") {
      text_ += part.at("text").as_string();
    } else if (type == "tool_use") {
      const JsonView name = part.at("name"), input = part.at("input"), id = part.at("id");
      calls_.push_back(Json::object(
          {{"id", id.as_string()},
           {"type", "function"},
           {"function", Json::object({{"name", name.as_string()}, {"arguments", input.value()}})}}));
    } else if (type == "tool_result") {
      const JsonView id = part.at("tool_use_id");
      messages_.push_back(
          Json::object({{"role", "tool"}, {"tool_call_id", id.as_string()}, {"content", result(part)}}));
    } else if (type != "thinking") {
      kind.fail(ErrorCode::kUnsupported,
                "text, tool_use or tool_result is expected: heddle reads nothing else yet");
    }
  }
  static std::string result(const JsonView& part) {
    std::string text;
    const auto content = part.find("content");
    if (!content) return text;
    if (content->is_string()) return content->as_string();
    content->for_each_item([&](const JsonView& block) { text += block.at("text").as_string(); });
    return text;
  }

  Json messages_ = Json::array(), calls_;
  std::string text_;
};

Json tools_of_messages(const JsonView& value) {
  Json tools = Json::array();
  value.for_each_item([&](const JsonView& tool) {
    const JsonView name = tool.at("name"), schema = tool.at("input_schema");
    Json function = Json::object({{"name", name.as_string()}});
    if (const auto about = tool.find("description")) function["description"] = about->as_string();
    function["parameters"] = schema.value();
    tools.push_back(Json::object({{"type", "function"}, {"function", std::move(function)}}));
  });
  return tools;
}

Json reason_of(const MadeAnswer& answer) {
  if (!answer.stop.empty()) return "stop_sequence";
  return answer.reason == "length" || answer.reason == "context" ? "max_tokens" : "end_turn";
}

class MessageForm : public AnswerForm {
 public:
  MessageForm(const Asked& asked, const ServedModel& model)
      : asked_(asked), model_(model), name_(request_name("msg_")) {}

  ErrorForm errors() const override { return ErrorForm::kAnthropic; }
  Json whole(const MadeAnswers& made) const override {
    const MadeAnswer& answer = made.answers[0];
    Json told = head();
    if (!answer.reasoning.empty())
      told["content"].push_back(
          Json::object({{"type", "thinking"}, {"thinking", answer.reasoning}, {"signature", ""}}));
    told["content"].push_back(Json::object({{"type", "text"}, {"text", answer.text}}));
    told["stop_reason"] = reason_of(answer);
    told["stop_sequence"] = text_or_null(answer.stop);
    told["usage"] = usage(made);
    return told;
  }
  std::string begin() override {
    Json message = head();
    message["usage"] =
        Json::object({{"input_tokens", asked_.prompts[0].tokens.size()}, {"output_tokens", 0}});
    return event(Json::object({{"type", "message_start"}, {"message", std::move(message)}}), "message_start");
  }
  std::string token(size_t, const AnswerToken& token) override {
    std::string events;
    if (!token.reasoning.empty())
      add(events, "thinking", Json::object({{"type", "thinking_delta"}, {"thinking", token.reasoning}}));
    if (!token.text.empty())
      add(events, "text", Json::object({{"type", "text_delta"}, {"text", token.text}}));
    return events;
  }
  std::string end(const MadeAnswers& made) override {
    const MadeAnswer& answer = made.answers[0];
    std::string events;
    if (block_.empty()) begin_block(events, "text");
    end_block(events);
    Json delta =
        Json::object({{"stop_reason", reason_of(answer)}, {"stop_sequence", text_or_null(answer.stop)}});
    events +=
        event(Json::object({{"type", "message_delta"}, {"delta", std::move(delta)}, {"usage", usage(made)}}),
              "message_delta");
    return events += event(Json::object({{"type", "message_stop"}}), "message_stop");
  }
  std::string failed(const ApiError& error) const override {
    return event(json_of(error, errors()), "error");
  }

 private:
  static Json usage(const MadeAnswers& made) {
    return Json::object({{"input_tokens", made.prompt_tokens - made.cached_tokens},
                         {"cache_creation_input_tokens", 0},
                         {"cache_read_input_tokens", made.cached_tokens},
                         {"output_tokens", made.answer_tokens}});
  }
  Json head() const {
    return Json::object({{"id", name_},
                         {"type", "message"},
                         {"role", "assistant"},
                         {"model", model_.names[0]},
                         {"content", Json::array()},
                         {"stop_reason", Json()},
                         {"stop_sequence", Json()}});
  }
  // Each adds events.
  void add(std::string& events, const std::string& kind, Json delta) {
    if (block_ != kind) end_block(events), begin_block(events, kind);
    events +=
        event(Json::object({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}}),
              "content_block_delta");
  }
  void begin_block(std::string& events, const std::string& kind) {
    block_ = kind;
    Json content = Json::object({{"type", kind}, {kind, ""}});
    if (kind == "thinking") content["signature"] = "";
    events += event(
        Json::object(
            {{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(content)}}),
        "content_block_start");
  }
  void end_block(std::string& events) {
    if (block_.empty()) return;
    block_.clear();
    events +=
        event(Json::object({{"type", "content_block_stop"}, {"index", index_++}}), "content_block_stop");
  }

  const Asked& asked_;
  const ServedModel& model_;
  const std::string name_;
  std::string block_;  // the kind of the block that has begun
  int index_ = 0;
};

}  // namespace

Asked read_message(const Json& body, const ServedModel& model) {
  Fields fields(body);
  Asked asked{.settings = model.settings};
  Json variables = Json::object();
  Conversion conversion;
  read_model(fields, model);
  fields.take("system", [&](const JsonView& value) { conversion.system(value); });
  fields.need("messages", [&](const JsonView& value) {
    if (value.size() == 0) value.fail(ErrorCode::kIo, "at least one message is expected");
    value.for_each_item([&](const JsonView& message) { conversion.message(message); });
  });
  std::optional<i32> most;
  fields.need("max_tokens", [&](const JsonView& value) { most = i32(value.as_int(1, INT32_MAX)); });
  fields.take("stream", [&](const JsonView& value) { asked.streams = value.as_bool(); });
  fields.take("stop_sequences", [&](const JsonView& value) { read_setting(asked.settings, "stop", value); });
  fields.take("tools", [&](const JsonView& value) { variables["tools"] = tools_of_messages(value); });
  fields.take("tool_choice", [&](const JsonView& value) {
    const JsonView type = value.at("type");
    if (type.as_string() == "none") return void(variables["tools"] = Json());
    if (type.as_string() != "auto")
      type.fail(ErrorCode::kUnsupported, "\"auto\" or \"none\" is expected: heddle forces no call yet");
  });
  fields.take("thinking", [&](const JsonView& value) {
    const JsonView type = value.at("type");
    variables["enable_thinking"] = type.as_string() != "disabled";
  });
  fields.refuse(
      {{"container", "null"}, {"mcp_servers", "[]"}, {"output_config", "null"}, {"output_format", "null"}});
  read_settings(fields, model, asked);
  asked.prompts.push_back(prompt_of(conversion.messages(), variables, model));
  fit(asked, most, "max_tokens", model);
  return asked;
}

std::unique_ptr<AnswerForm> message_form(const Asked& asked, const ServedModel& model) {
  return std::make_unique<MessageForm>(asked, model);
}

}  // namespace heddle
