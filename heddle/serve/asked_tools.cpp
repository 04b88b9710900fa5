// The tools that a request gives, and its choice of them.
#include <algorithm>

#include <fmt/format.h>

#include "heddle/serve/api_error.h"
#include "heddle/serve/asked.h"

namespace heddle {
namespace {

std::string name_in(const JsonView& tool) {
  const auto function = tool.find("function");
  const JsonView name = function ? function->at("name") : tool.at("name");
  return name.as_string();
}

// True if a call of the function can be held to its schema.
bool can_be_held(const Json& function, const ServedModel& model, const CallForm& form) {
  try {
    const Json alone = Json::array({function});
    call_format(form, JsonView(alone, "tools"), model.tokenizer, {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Keeps the arguments of a schema and their types, and leaves out all else.
Json outline(const Json& schema) {
  Json properties = Json::object(), required = Json::array();
  const Json *given = schema.find("properties"), *needed = schema.find("required");
  for (const auto& [name, value] :
       given && given->is_object() ? given->members() : std::vector<JsonMember>()) {
    const Json* type = value.is_object() ? value.find("type") : nullptr;
    properties[name] = type ? Json::object({{"type", *type}}) : Json::object();
    if (needed && needed->is_array() &&
        std::ranges::find(needed->items(), Json(name)) != needed->items().end())
      required.push_back(name);
  }
  if (properties.size() == 0) return Json::object({{"type", "object"}});
  return Json::object({{"type", "object"}, {"properties", properties}, {"required", required}});
}

// The functions that may be called. Where nobody asks that arguments keep to a schema ("strict"), and no grammar is made of it, they keep
// to its outline.
Json callable(const ServedModel& model, const Asked& asked) {
  const auto& names = asked.choice.names;
  Json functions = Json::array();
  for (const Json& tool : asked.calls.tools.items()) {
    Json function = tool.at("function");
    if (names && !names->contains(function.at("name").as_string())) continue;
    const Json *strict = function.find("strict"), *schema = function.find("parameters");
    if (schema && !(strict && *strict == Json(true)) && asked.calls.form->pieces &&
        !can_be_held(function, model, *asked.calls.form))
      function["parameters"] = outline(*schema);
    functions.push_back(std::move(function));
  }
  return functions;
}

[[noreturn]] void fail(const std::string& what) {
  throw ApiError(400, "[request] tool_choice " + what, {.param = "tool_choice"});
}

}  // namespace

ToolChoice read_tool_choice(const JsonView& value) {
  const auto of_word = [](const JsonView& word) {
    word.check_one_of({"auto", "none", "required"});
    return ToolChoice{.may = word.as_string() != "none", .must = word.as_string() == "required"};
  };
  if (value.is_string()) return of_word(value);
  const JsonView type = value.at("type");
  type.check_one_of({"function", "allowed_tools"});
  if (type.as_string() == "function") return {.must = true, .names = {{name_in(value)}}};
  const auto inside = value.find("allowed_tools");
  const JsonView& allowed = inside ? *inside : value;
  const JsonView mode = allowed.at("mode"), tools = allowed.at("tools");
  ToolChoice made = of_word(mode);
  made.names.emplace();
  tools.for_each_item([&](const JsonView& tool) { made.names->insert(name_in(tool)); });
  if (!made.must) type.fail(ErrorCode::kUnsupported, "it is done with the mode \"required\"");
  return made;
}

void set_tools(Json tools, const ServedModel& model, Asked& asked, Json& variables) {
  if (tools.size() == 0 || !asked.choice.may) return;
  const std::string_view text = model.chat ? model.chat->text(true) : "";
  asked.calls.form = find_call_form(text, model.tokenizer);
  if (!asked.calls.form)
    throw ApiError(
        400,
        reads_tools(text)
            ? fmt::format("[request] the chat template of {} has no form of calls that heddle "
                          "knows, which are {}; leave out tools",
                          model.names[0], call_form_names())
            : fmt::format("[request] the chat template of {} reads no tools; leave them out", model.names[0]),
        {.code = "tools_not_supported"});
  asked.calls.tools = tools;
  variables["tools"] = std::move(tools);
}

void force_call(const ServedModel& model, Asked& asked) {
  if (!asked.choice.must) return;
  if (!asked.calls.form) fail("asks for a call, and the request has no tools");
  if (asked.settings.response_format.grammar)
    fail("asks for a call, and the request for another form of the answer");
  const Json functions = callable(model, asked);
  for (const std::string& name : asked.choice.names.value_or(std::set<std::string>()))
    if (std::ranges::none_of(functions.items(),
                             [&](const Json& one) { return one.at("name") == Json(name); }))
      fail(fmt::format("names {}, which is none of the tools", brief(Json(name))));
  if (functions.size() == 0) fail("lists no tool");
  asked.calls.only_one = true;
  try {
    asked.settings.response_format = call_format(*asked.calls.form, JsonView(functions, "tools"),
                                                 model.tokenizer, asked.settings.eos_token_id);
  } catch (const Error& error) {
    const bool has_pieces = asked.calls.form->pieces != nullptr;
    throw ApiError(400, error.what(),
                   {.param = has_pieces ? "tools" : "tool_choice",
                    .code = has_pieces ? "unsupported_schema" : "unsupported_field"});
  }
}

}  // namespace heddle
