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
    if (const auto strict = tool.find("strict")) function["strict"] = strict->as_bool();
    tools.push_back(Json::object({{"type", "function"}, {"function", std::move(function)}}));
  });
  return tools;
}

Json reason_of(const MadeAnswer& answer) {
  if (answer.reason == "calls") return "tool_use";
  if (!answer.stop.empty()) return "stop_sequence";
  return answer.reason == "length" || answer.reason == "context" ? "max_tokens" : "end_turn";
}

// Arguments that are no object are wrapped as Anthropic's documentation asks clients to.
Json input_of(const std::string& arguments) {
  try {
    if (Json input = parse_json(arguments, "input"); input.is_object()) return input;
  } catch (const Error&) {  // what the model wrote is told below
  }
  return Json::object({{"INVALID_JSON", arguments}});
}

// The block of a part, with its content or as it begins.
Json block_of(const AnswerPart& part, bool is_whole) {
  const std::string text = is_whole ? part.text : "";
  switch (part.kind) {
    case AnswerPart::Kind::kReasoning:
      return Json::object({{"type", "thinking"}, {"thinking", text}, {"signature", ""}});
    case AnswerPart::Kind::kText:
      return Json::object({{"type", "text"}, {"text", text}});
    case AnswerPart::Kind::kCall:
      break;
  }
  return Json::object({{"type", "tool_use"},
                       {"id", part.id},
                       {"name", part.name},
                       {"input", is_whole ? input_of(part.text) : Json::object()}});
}

Json delta_of_block(AnswerPart::Kind kind, const std::string& text) {
  switch (kind) {
    case AnswerPart::Kind::kReasoning:
      return Json::object({{"type", "thinking_delta"}, {"thinking", text}});
    case AnswerPart::Kind::kText:
      return Json::object({{"type", "text_delta"}, {"text", text}});
    case AnswerPart::Kind::kCall:
      break;
  }
  return Json::object({{"type", "input_json_delta"}, {"partial_json", text}});
}

class MessageForm : public AnswerForm {
 public:
  MessageForm(const Asked& asked, const ServedModel& model)
      : asked_(asked), model_(model), name_(request_name("msg_")) {}

  ErrorForm errors() const override { return ErrorForm::kAnthropic; }
  const char* call_prefix() const override { return "toolu_"; }
  Json whole(const MadeAnswers& made) const override {
    const MadeAnswer& answer = made.answers[0];
    Json told = head();
    for (const AnswerPart& part : answer.parts) told["content"].push_back(block_of(part, true));
    if (answer.parts.empty()) told["content"].push_back(block_of(kNoText, true));
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
  std::string token(size_t, const AnswerToken&, const MadeAnswer& made,
                    const std::vector<PartEvent>& events) override {
    std::string told;
    for (const PartEvent& event : events) told += tell(event, made.parts[event.part]);
    return told;
  }
  std::string end(const MadeAnswers& made) override {
    const MadeAnswer& answer = made.answers[0];
    std::string events;
    if (answer.parts.empty())
      for (const auto step : {PartEvent::Step::kBegin, PartEvent::Step::kEnd})
        events += tell({step, 0}, kNoText);
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
  static std::string tell(const PartEvent& told, const AnswerPart& part) {
    switch (told.step) {
      case PartEvent::Step::kBegin:
        return event(Json::object({{"type", "content_block_start"},
                                   {"index", told.part},
                                   {"content_block", block_of(part, false)}}),
                     "content_block_start");
      case PartEvent::Step::kMore:
        return event(Json::object({{"type", "content_block_delta"},
                                   {"index", told.part},
                                   {"delta", delta_of_block(part.kind, told.text)}}),
                     "content_block_delta");
      case PartEvent::Step::kEnd:
        break;
    }
    return event(Json::object({{"type", "content_block_stop"}, {"index", told.part}}), "content_block_stop");
  }

  const Asked& asked_;
  const ServedModel& model_;
  const std::string name_;
  inline static const AnswerPart kNoText{
      .kind = AnswerPart::Kind::kText};  // stands for the parts of an answer that has none
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
  fields.take("tool_choice", [&](const JsonView& value) {
    const JsonView type = value.at("type");
    type.check_one_of({"auto", "none", "any", "tool"});
    const std::string& word = type.as_string();
    asked.choice = {.may = word != "none", .must = word == "any" || word == "tool"};
    if (word == "tool") {
      const JsonView name = value.at("name");
      asked.choice.names = {{name.as_string()}};
    }
    if (const auto alone = value.find("disable_parallel_tool_use")) asked.calls.only_one = alone->as_bool();
  });
  fields.take("tools",
              [&](const JsonView& value) { set_tools(tools_of_messages(value), model, asked, variables); });
  fields.take("thinking", [&](const JsonView& value) {
    const JsonView type = value.at("type");
    variables["enable_thinking"] = type.as_string() != "disabled";
  });
  const auto read_format = [&](const JsonView& value) {
    asked.settings.response_format = read_response_format(value);
  };
  fields.take("output_format", read_format);
  fields.take("output_config", [&](const JsonView& value) {
    if (const auto format = value.find("format")) read_format(*format);
  });
  fields.refuse({{"container", "null"}, {"mcp_servers", "[]"}});
  read_settings(fields, model, asked);
  add_turn(conversion.messages(), variables, model, asked);
  fit(asked, most, "max_tokens", model);
  return asked;
}

std::unique_ptr<AnswerForm> message_form(const Asked& asked, const ServedModel& model) {
  return std::make_unique<MessageForm>(asked, model);
}

}  // namespace heddle
