// OpenAI's /v1/responses, without a memory: a request has the whole conversation.
#include <fmt/format.h>

#include "heddle/serve/answer_form.h"

namespace heddle {
namespace {

// Items of the input as messages of OpenAI's other form, which templates read. Reasoning, text and calls that follow each
// other are one message there.
class Items {
 public:
  void add(const JsonView& item) {
    const auto given = item.find("type");
    const std::string type = given ? given->as_string() : "message";
    if (type == "message") return add_message(item);
    if (type == "function_call") return add_call(item);
    if (type == "reasoning") return add_reasoning(item);
    if (type != "function_call_output")
      item.fail(ErrorCode::kUnsupported,
                "an item of type message, reasoning, function_call or function_call_output is expected");
    const JsonView id = item.at("call_id"), output = item.at("output");
    messages_.push_back(
        Json::object({{"role", "tool"}, {"tool_call_id", id.as_string()}, {"content", output.value()}}));
  }

  std::vector<Json>& messages() { return messages_; }

 private:
  void add_message(const JsonView& item) {
    const JsonView role = item.at("role"), content = item.at("content");
    if (role.as_string() == "assistant" && !messages_.empty() && is_only_reasoning(messages_.back())) {
      messages_.back()["content"] = content.value();
      return;
    }
    messages_.push_back(Json::object({{"role", role.as_string() == "developer" ? "system" : role.as_string()},
                                      {"content", content.value()}}));
  }
  void add_call(const JsonView& item) {
    const JsonView name = item.at("name"), arguments = item.at("arguments"), id = item.at("call_id");
    assistant()["tool_calls"].push_back(Json::object(
        {{"id", id.as_string()},
         {"type", "function"},
         {"function", Json::object({{"name", name.as_string()}, {"arguments", arguments.as_string()}})}}));
  }
  void add_reasoning(const JsonView& item) {
    std::string text;
    if (const auto content = item.find("content"))
      content->for_each_item([&](const JsonView& part) { text += part.at("text").as_string(); });
    if (text.empty()) return;
    messages_.push_back(
        Json::object({{"role", "assistant"}, {"content", ""}, {"reasoning_content", std::move(text)}}));
  }
  // The message that calls belong to.
  Json& assistant() {
    if (messages_.empty() || messages_.back().at("role").as_string() != "assistant")
      messages_.push_back(Json::object({{"role", "assistant"}, {"content", ""}}));
    return messages_.back();
  }
  static bool is_only_reasoning(const Json& message) {
    return message.find("reasoning_content") && !message.find("tool_calls") &&
           message.at("content") == Json("");
  }

  std::vector<Json> messages_;
};

Json tools_of_responses(const JsonView& value) {
  Json tools = Json::array();
  value.for_each_item([&](const JsonView& tool) {
    const JsonView type = tool.at("type"), name = tool.at("name");
    if (type.as_string() != "function")
      type.fail(ErrorCode::kUnsupported, "\"function\" is expected: heddle has no tools of its own");
    Json function = Json::object({{"name", name.as_string()}});
    for (const char* part : {"description", "parameters", "strict"})
      if (const auto given = tool.find(part)) function[part] = given->value();
    tools.push_back(Json::object({{"type", "function"}, {"function", std::move(function)}}));
  });
  return tools;
}

class ResponseForm : public AnswerForm {
 public:
  ResponseForm(const Asked& asked, const ServedModel& model)
      : asked_(asked), model_(model), name_(request_name("resp_")), created_(seconds_since_1970()) {}

  Json whole(const MadeAnswers& made) const override {
    const MadeAnswer& answer = made.answers[0];
    Json told = head("completed");
    for (size_t i = 0; i < answer.parts.size(); ++i) told["output"].push_back(item(i, answer.parts[i], true));
    if (lacks_message(answer)) told["output"].push_back(item(answer.parts.size(), kNoText, true));
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
  std::string token(size_t, const AnswerToken&, const MadeAnswer& made,
                    const std::vector<PartEvent>& events) override {
    std::string told;
    for (const PartEvent& event : events) told += tell_part(event, made.parts[event.part]);
    return told;
  }
  std::string end(const MadeAnswers& made) override {
    const MadeAnswer& answer = made.answers[0];
    std::string events;
    if (lacks_message(answer))
      for (const auto step : {PartEvent::Step::kBegin, PartEvent::Step::kEnd})
        events += tell_part({step, answer.parts.size()}, kNoText);
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
                         {"parallel_tool_calls", !asked_.calls.only_one},
                         {"previous_response_id", Json()},
                         {"store", false},
                         {"temperature", asked_.settings.sampling.temperature},
                         {"text", Json::object({{"format", Json::object({{"type", "text"}})}})},
                         {"tool_choice", "auto"},
                         {"tools", tools()},
                         {"top_p", asked_.settings.sampling.top_p},
                         {"truncation", "disabled"},
                         {"usage", Json()},
                         {"metadata", Json::object()}});
  }
  // The request's tools, in this endpoint's form.
  Json tools() const {
    Json all = Json::array();
    for (const Json& tool : asked_.calls.tools.items()) {
      Json& made = all.push_back(Json::object({{"type", "function"}}));
      for (const auto& [name, value] : tool.at("function").members()) made[name] = value;
    }
    return all;
  }
  static Json text_part(const std::string& text) {
    return Json::object({{"type", "output_text"},
                         {"text", text},
                         {"annotations", Json::array()},
                         {"logprobs", Json::array()}});
  }
  static bool lacks_message(const MadeAnswer& answer) {
    return !answer.has(AnswerPart::Kind::kText) && !answer.has(AnswerPart::Kind::kCall);
  }
  std::string item_id(size_t index, AnswerPart::Kind kind) const {
    const char* prefix = kind == AnswerPart::Kind::kReasoning ? "rs"
                         : kind == AnswerPart::Kind::kCall    ? "fc"
                                                              : "msg";
    return fmt::format("{}_{}_{}", prefix, name_.substr(5), index);
  }
  // The item of a part, with its content or as it begins.
  Json item(size_t index, const AnswerPart& part, bool is_whole) const {
    const std::string id = item_id(index, part.kind), text = is_whole ? part.text : "";
    const char* status = is_whole ? "completed" : "in_progress";
    Json content = Json::array();
    if (part.kind == AnswerPart::Kind::kReasoning) {
      if (is_whole) content.push_back(Json::object({{"type", "reasoning_text"}, {"text", text}}));
      return Json::object(
          {{"id", id}, {"type", "reasoning"}, {"summary", Json::array()}, {"content", std::move(content)}});
    }
    if (part.kind == AnswerPart::Kind::kCall)
      return Json::object({{"id", id},
                           {"type", "function_call"},
                           {"call_id", part.id},
                           {"name", part.name},
                           {"arguments", text},
                           {"status", status}});
    if (is_whole) content.push_back(text_part(text));
    return Json::object({{"id", id},
                         {"type", "message"},
                         {"role", "assistant"},
                         {"status", status},
                         {"content", std::move(content)}});
  }
  std::string tell_part(const PartEvent& event, const AnswerPart& part) {
    const auto tell_here = [&](const char* type, std::initializer_list<JsonMember> members) {
      std::vector<JsonMember> all = {{"item_id", item_id(event.part, part.kind)},
                                     {"output_index", event.part}};
      if (part.kind != AnswerPart::Kind::kCall) all.push_back({"content_index", 0});
      all.insert(all.end(), members);
      return tell(type, all);
    };
    const bool is_text = part.kind == AnswerPart::Kind::kText, is_call = part.kind == AnswerPart::Kind::kCall;
    if (event.step == PartEvent::Step::kMore) {
      if (is_call) return tell_here("response.function_call_arguments.delta", {{"delta", event.text}});
      if (!is_text) return tell_here("response.reasoning_text.delta", {{"delta", event.text}});
      return tell_here("response.output_text.delta", {{"delta", event.text}, {"logprobs", Json::array()}});
    }
    const bool is_end = event.step == PartEvent::Step::kEnd;
    const std::vector<JsonMember> whole = {{"output_index", event.part},
                                           {"item", item(event.part, part, is_end)}};
    if (!is_end) {
      std::string events = tell("response.output_item.added", whole);
      if (is_text) events += tell_here("response.content_part.added", {{"part", text_part("")}});
      return events;
    }
    std::string events;
    if (is_text) {
      events += tell_here("response.output_text.done", {{"text", part.text}, {"logprobs", Json::array()}});
      events += tell_here("response.content_part.done", {{"part", text_part(part.text)}});
    } else if (is_call) {
      events +=
          tell_here("response.function_call_arguments.done", {{"name", part.name}, {"arguments", part.text}});
    }
    return events + tell("response.output_item.done", whole);
  }
  std::string tell(const char* type, const std::vector<JsonMember>& members) {
    Json told = Json::object({{"type", type}, {"sequence_number", count_++}});
    for (const auto& [name, value] : members) told[name] = value;
    return event(told, type);
  }

  const Asked& asked_;
  const ServedModel& model_;
  inline static const AnswerPart kNoText{
      .kind = AnswerPart::Kind::kText};  // stands for the message of an answer that has none
  const std::string name_;
  const i64 created_;
  int count_ = 0;  // events
};

}  // namespace

Asked read_response(const Json& body, const ServedModel& model) {
  Fields fields(body);
  Asked asked{.settings = model.settings};
  Json variables = Json::object(), messages = Json::array();
  Items items;
  read_model(fields, model);
  fields.take("instructions", [&](const JsonView& value) {
    items.messages().push_back(Json::object({{"role", "system"}, {"content", value.as_string()}}));
  });
  fields.need("input", [&](const JsonView& value) {
    if (value.is_string())
      items.messages().push_back(Json::object({{"role", "user"}, {"content", value.as_string()}}));
    else
      value.for_each_item([&](const JsonView& item) { items.add(item); });
    const Json given(items.messages());
    messages = read_messages(JsonView(given, "input"));
  });
  std::optional<i32> most;
  fields.take("max_output_tokens", [&](const JsonView& value) { most = i32(value.as_int(1, INT32_MAX)); });
  fields.take("stream", [&](const JsonView& value) { asked.streams = value.as_bool(); });
  fields.take("tool_choice", [&](const JsonView& value) { asked.choice = read_tool_choice(value); });
  fields.take("parallel_tool_calls", [&](const JsonView& value) { asked.calls.only_one = !value.as_bool(); });
  fields.take("tools",
              [&](const JsonView& value) { set_tools(tools_of_responses(value), model, asked, variables); });
  fields.take("reasoning", [&](const JsonView& value) {
    if (const auto effort = value.find("effort")) variables["reasoning_effort"] = effort->as_string();
  });
  fields.take("text", [&](const JsonView& value) {
    if (const auto format = value.find("format"))
      asked.settings.response_format = read_response_format(*format);
  });
  fields.refuse({{"previous_response_id", "null"},
                 {"conversation", "null"},
                 {"background", "false"},
                 {"truncation", "\"disabled\""},
                 {"prompt", "null"},
                 {"max_tool_calls", "null"},
                 {"top_logprobs", "0"},
                 {"include", "[]"}});
  read_settings(fields, model, asked);
  add_turn(messages, variables, model, asked);
  fit(asked, most, "max_output_tokens", model);
  return asked;
}

std::unique_ptr<AnswerForm> response_form(const Asked& asked, const ServedModel& model) {
  return std::make_unique<ResponseForm>(asked, model);
}

}  // namespace heddle
