// OpenAI's /v1/responses, without a memory: a request has the whole conversation.
#include <fmt/format.h>

#include "heddle/serve/answer_form.h"

namespace heddle {
namespace {

// An item of the input as a message of OpenAI's other form, which templates read.
Json message_of(const JsonView& item) {
  const auto type = item.find("type");
  if (type && type->as_string() == "function_call") {
    const JsonView name = item.at("name"), arguments = item.at("arguments"), id = item.at("call_id");
    Json call = Json::object(
        {{"id", id.as_string()},
         {"type", "function"},
         {"function", Json::object({{"name", name.as_string()}, {"arguments", arguments.as_string()}})}});
    return Json::object(
        {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({std::move(call)})}});
  }
  if (type && type->as_string() == "function_call_output") {
    const JsonView id = item.at("call_id"), output = item.at("output");
    return Json::object({{"role", "tool"}, {"tool_call_id", id.as_string()}, {"content", output.value()}});
  }
  if (type && type->as_string() != "message")
    item.fail(ErrorCode::kUnsupported,
              "an item of type message, function_call or function_call_output is expected");
  const JsonView role = item.at("role"), content = item.at("content");
  return Json::object({{"role", role.as_string() == "developer" ? "system" : role.as_string()},
                       {"content", content.value()}});
}

Json tools_of_responses(const JsonView& value) {
  Json tools = Json::array();
  value.for_each_item([&](const JsonView& tool) {
    const JsonView type = tool.at("type"), name = tool.at("name");
    if (type.as_string() != "function")
      type.fail(ErrorCode::kUnsupported, "\"function\" is expected: heddle has no tools of its own");
    Json function = Json::object({{"name", name.as_string()}});
    for (const char* part : {"description", "parameters"})
      if (const auto given = tool.find(part)) function[part] = given->value();
    tools.push_back(Json::object({{"type", "function"}, {"function", std::move(function)}}));
  });
  return tools;
}

class ResponseForm : public AnswerForm {
 public:
  ResponseForm(const Asked& asked, const ServedModel& model)
      : asked_(asked),
        model_(model),
        name_(request_name("resp_")),
        message_(request_name("msg_")),
        reasoning_(request_name("rs_")),
        created_(seconds_since_1970()) {}

  Json whole(const MadeAnswers& made) const override {
    const MadeAnswer& answer = made.answers[0];
    Json told = head("completed");
    if (!answer.reasoning.empty()) told["output"].push_back(reasoning_item(answer.reasoning));
    told["output"].push_back(message_item(&answer.text));
    if (answer.reason == "length" || answer.reason == "context") {
      told["status"] = "incomplete";
      told["incomplete_details"] = Json::object({{"reason", "max_output_tokens"}});
    }
    told["usage"] =
        Json::object({{"input_tokens", made.prompt_tokens},
                      {"input_tokens_details", Json::object({{"cached_tokens", made.cached_tokens}})},
                      {"output_tokens", made.answer_tokens},
                      {"output_tokens_details", Json::object({{"reasoning_tokens", answer.reasoning_count}})},
                      {"total_tokens", made.prompt_tokens + made.answer_tokens}});
    return told;
  }
  std::string begin() override {
    std::string events = tell("response.created", {{"response", head("in_progress")}});
    return events += tell("response.in_progress", {{"response", head("in_progress")}});
  }
  std::string token(size_t, const AnswerToken& token) override {
    std::string events;
    if (!token.reasoning.empty()) {
      if (!std::exchange(has_reasoning_, true))
        events += tell("response.output_item.added", {{"output_index", 0}, {"item", reasoning_item("")}});
      events += tell(
          "response.reasoning_text.delta",
          {{"item_id", reasoning_}, {"output_index", 0}, {"content_index", 0}, {"delta", token.reasoning}});
    }
    if (token.text.empty()) return events;
    events += begin_message();
    return events += tell("response.output_text.delta", {{"item_id", message_},
                                                         {"output_index", place()},
                                                         {"content_index", 0},
                                                         {"delta", token.text},
                                                         {"logprobs", Json::array()}});
  }
  std::string end(const MadeAnswers& made) override {
    const std::string& text = made.answers[0].text;
    std::string events;
    if (has_reasoning_)
      events += tell("response.output_item.done",
                     {{"output_index", 0}, {"item", reasoning_item(made.answers[0].reasoning)}});
    events += begin_message();
    events += tell("response.output_text.done", {{"item_id", message_},
                                                 {"output_index", place()},
                                                 {"content_index", 0},
                                                 {"text", text},
                                                 {"logprobs", Json::array()}});
    events +=
        tell("response.content_part.done",
             {{"item_id", message_}, {"output_index", place()}, {"content_index", 0}, {"part", part(text)}});
    events += tell("response.output_item.done", {{"output_index", place()}, {"item", message_item(&text)}});
    const Json all = whole(made);
    const char* name =
        all.at("status").as_string() == "completed" ? "response.completed" : "response.incomplete";
    return events + tell(name, {{"response", all}});
  }
  std::string failed(const ApiError& error) const override {
    return event(Json::object({{"type", "error"},
                               {"sequence_number", count_},
                               {"code", error.place().code},
                               {"message", error.what()},
                               {"param", Json()}}),
                 "error");
  }

 private:
  Json head(const char* status) const {
    return Json::object({{"id", name_},
                         {"object", "response"},
                         {"created_at", created_},
                         {"status", status},
                         {"error", Json()},
                         {"incomplete_details", Json()},
                         {"instructions", Json()},
                         {"max_output_tokens", asked_.settings.max_tokens},
                         {"model", model_.names[0]},
                         {"output", Json::array()},
                         {"parallel_tool_calls", true},
                         {"previous_response_id", Json()},
                         {"store", false},
                         {"temperature", asked_.settings.sampling.temperature},
                         {"text", Json::object({{"format", Json::object({{"type", "text"}})}})},
                         {"tool_choice", "auto"},
                         {"tools", Json::array()},
                         {"top_p", asked_.settings.sampling.top_p},
                         {"truncation", "disabled"},
                         {"usage", Json()},
                         {"metadata", Json::object()}});
  }
  static Json part(const std::string& text) {
    return Json::object({{"type", "output_text"},
                         {"text", text},
                         {"annotations", Json::array()},
                         {"logprobs", Json::array()}});
  }
  // `text`: null while it is not complete.
  Json message_item(const std::string* text) const {
    return Json::object({{"id", message_},
                         {"type", "message"},
                         {"role", "assistant"},
                         {"status", text ? "completed" : "in_progress"},
                         {"content", text ? Json::array({part(*text)}) : Json::array()}});
  }
  Json reasoning_item(const std::string& text) const {
    Json content = Json::array();
    if (!text.empty()) content.push_back(Json::object({{"type", "reasoning_text"}, {"text", text}}));
    return Json::object({{"id", reasoning_},
                         {"type", "reasoning"},
                         {"summary", Json::array()},
                         {"content", std::move(content)}});
  }
  int place() const { return has_reasoning_ ? 1 : 0; }  // the message's, in the output
  std::string begin_message() {
    if (std::exchange(has_message_, true)) return {};
    std::string events =
        tell("response.output_item.added", {{"output_index", place()}, {"item", message_item(nullptr)}});
    return events +=
           tell("response.content_part.added",
                {{"item_id", message_}, {"output_index", place()}, {"content_index", 0}, {"part", part("")}});
  }
  std::string tell(const char* type, std::initializer_list<JsonMember> members) {
    Json told = Json::object({{"type", type}, {"sequence_number", count_++}});
    for (const auto& [name, value] : members) told[name] = value;
    return event(told, type);
  }

  const Asked& asked_;
  const ServedModel& model_;
  const std::string name_, message_, reasoning_;
  const i64 created_;
  int count_ = 0;  // events
  bool has_reasoning_ = false, has_message_ = false;
};

}  // namespace

Asked read_response(const Json& body, const ServedModel& model) {
  Fields fields(body);
  Asked asked{.settings = model.settings};
  Json variables = Json::object(), messages = Json::array();
  read_model(fields, model);
  fields.take("instructions", [&](const JsonView& value) {
    messages.push_back(Json::object({{"role", "system"}, {"content", value.as_string()}}));
  });
  fields.need("input", [&](const JsonView& value) {
    if (value.is_string())
      messages.push_back(Json::object({{"role", "user"}, {"content", value.as_string()}}));
    else
      value.for_each_item([&](const JsonView& item) { messages.push_back(message_of(item)); });
    messages = read_messages(JsonView(messages, "input"));
  });
  std::optional<i32> most;
  fields.take("max_output_tokens", [&](const JsonView& value) { most = i32(value.as_int(1, INT32_MAX)); });
  fields.take("stream", [&](const JsonView& value) { asked.streams = value.as_bool(); });
  fields.take("tools", [&](const JsonView& value) { variables["tools"] = tools_of_responses(value); });
  fields.take("reasoning", [&](const JsonView& value) {
    if (const auto effort = value.find("effort")) variables["reasoning_effort"] = effort->as_string();
  });
  fields.take("text", [](const JsonView& value) {
    const auto format = value.find("format");
    if (format && format->at("type").as_string() != "text")
      format->fail(ErrorCode::kUnsupported, "type \"text\" is expected: heddle constrains no answer yet");
  });
  fields.refuse({{"previous_response_id", "null"},
                 {"conversation", "null"},
                 {"background", "false"},
                 {"truncation", "\"disabled\""},
                 {"prompt", "null"},
                 {"max_tool_calls", "null"},
                 {"top_logprobs", "0"},
                 {"tool_choice", "\"auto\""},
                 {"include", "[]"}});
  read_settings(fields, model, asked);
  asked.prompts.push_back(prompt_of(messages, variables, model));
  fit(asked, most, "max_output_tokens", model);
  return asked;
}

std::unique_ptr<AnswerForm> response_form(const Asked& asked, const ServedModel& model) {
  return std::make_unique<ResponseForm>(asked, model);
}

}  // namespace heddle
