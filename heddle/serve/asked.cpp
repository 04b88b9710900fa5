#include "heddle/serve/asked.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "heddle/serve/api_error.h"
#include "heddle/text/token_lists.h"

namespace heddle {
namespace {

constexpr JsonLimits kBodyLimits{.depth = 64};

// Texts of a message's parts, one after the other: templates read one text.
Json joined(const JsonView& parts) {
  std::string text;
  parts.for_each_item([&](const JsonView& part) {
    const std::string& type = part.at("type").as_string();
    if (type != "text" && type != "input_text" && type != "output_text")
      part.fail(ErrorCode::kUnsupported,
                "a part of type \"text\" is expected: heddle reads nothing else yet");
    text += part.at("text").as_string();
  });
  return text;
}

// Where the arguments of a message's calls are JSON, they become objects, or texts.
Json with_arguments(Json message, bool as_objects) {
  const Json* given = message.find("tool_calls");
  if (!given || !given->is_array()) return message;
  Json calls = Json::array();
  for (Json call : given->items()) {
    const Json* function = call.find("function");
    const Json* found = function ? function->find("arguments") : nullptr;
    if (const Json arguments = found ? *found : Json(); arguments.is_string() && as_objects)
      call["function"]["arguments"] = arguments.as_string().empty()
                                          ? Json::object()
                                          : parse_json(arguments.as_string(), "arguments of a tool call");
    else if (arguments.is_object() && !as_objects)
      call["function"]["arguments"] = arguments.dump();
    calls.push_back(std::move(call));
  }
  message["tool_calls"] = std::move(calls);
  return message;
}

Json as_templates_read(const JsonView& message) {
  const JsonView role = message.at("role");
  role.as_string();
  Json made = message.value();
  const auto content = message.find("content");
  if (!content)
    made["content"] = "";
  else if (!content->is_string())
    made["content"] = joined(*content);
  return made;
}

void read_tools(Fields& fields, const ServedModel& model, Asked& asked, Json& variables) {
  fields.take("tool_choice", [&](const JsonView& value) { asked.choice = read_tool_choice(value); });
  fields.take("parallel_tool_calls", [&](const JsonView& value) { asked.calls.only_one = !value.as_bool(); });
  fields.take("tools", [&](const JsonView& value) {
    Json tools = Json::array();
    value.for_each_item([&](const JsonView& tool) {
      const JsonView function = tool.at("function");
      function.at("name").as_string();
      tools.push_back(tool.value());
    });
    set_tools(std::move(tools), model, asked, variables);
  });
}

void read_stream(Fields& fields, Asked& asked) {
  fields.take("stream", [&](const JsonView& value) { asked.streams = value.as_bool(); });
  fields.take("stream_options", [&](const JsonView& value) {
    if (!asked.streams) value.fail(ErrorCode::kIo, "it is for \"stream\": true");
    if (const auto usage = value.find("include_usage")) asked.tells_usage = usage->as_bool();
  });
}

void read_n(Fields& fields, Asked& asked) {
  fields.take("n", [&](const JsonView& value) { asked.n = i32(value.as_int(1, kMostChoices)); });
}

std::optional<i32> read_most(Fields& fields, const char* name) {
  std::optional<i32> most;
  fields.take(name, [&](const JsonView& value) { most = i32(value.as_int(0, INT32_MAX)); });
  return most;
}

// A prompt, or a list of them: texts, or lists of tokens.
void read_prompts(const JsonView& value, const ServedModel& model, Asked& asked) {
  const auto add_text = [&](const JsonView& text) {
    asked.texts.push_back(text.as_string());
    asked.prompts.push_back({.tokens = model.tokenizer.encode(text.as_string(), true)});
  };
  const auto add_tokens = [&](const JsonView& tokens) {
    asked.prompts.push_back({.tokens = read_tokens(tokens, model.vocab)});
    asked.texts.push_back(model.tokenizer.decode(asked.prompts.back().tokens, false));
  };
  if (value.is_string()) return add_text(value);
  if (!value.is_array() || value.size() == 0)
    value.fail(ErrorCode::kIo, "a text, a list of tokens, or a list of such prompts is expected");
  if (value.size() > size_t(kMostChoices) && !value.value().items()[0].is_integer())
    value.fail(ErrorCode::kIo, fmt::format("at most {} prompts are expected", kMostChoices));
  if (value.value().items()[0].is_integer()) return add_tokens(value);
  value.for_each_item([&](const JsonView& one) { one.is_string() ? add_text(one) : add_tokens(one); });
}

}  // namespace

Json parse_body(const std::string& body) {
  try {
    return parse_json(body, "request", kBodyLimits);
  } catch (const Error& error) {
    throw ApiError(400, error.what(), {.code = "invalid_json"});
  }
}

std::vector<i32> read_tokens(const JsonView& value, i32 vocab) {
  std::vector<i32> tokens;
  value.for_each_item([&](const JsonView& token) { tokens.push_back(i32(token.as_int(0, vocab - 1))); });
  return tokens;
}

Json read_messages(const JsonView& value) {
  Json messages = Json::array();
  value.for_each_item([&](const JsonView& message) { messages.push_back(as_templates_read(message)); });
  if (messages.size() == 0) value.fail(ErrorCode::kIo, "at least one message is expected");
  return messages;
}

void read_model(Fields& fields, const ServedModel& model) {
  fields.take("model", [&](const JsonView& value) {
    if (std::ranges::find(model.names, value.as_string()) == model.names.end())
      throw ApiError(404,
                     fmt::format("[request] model is {}; this server has {}", value.text(), model.names[0]),
                     {.code = "model_not_found"});
  });
}

void read_settings(Fields& fields, const ServedModel& model, Asked& asked) {
  fields.take("stop_token_ids", [&](const JsonView& value) {
    for (const i32 token : read_tokens(value, model.vocab)) asked.settings.eos_token_id.push_back(token);
  });
  fields.take("ignore_eos", [&](const JsonView& value) {
    if (value.as_bool()) asked.settings.eos_token_id.clear();
  });
  bool has_seed = false;
  fields.take_others([&](const std::string& name, const JsonView& value) {
    if (!read_setting(asked.settings, name, value)) return false;
    asked.settings.sampling.validate();
    require_known_tokens(asked.settings, model.vocab);
    has_seed |= name == "seed";
    return true;
  });
  if (!has_seed && !asked.settings.sampling.greedy()) asked.settings.sampling.seed = random_seed();
  fields.refuse({{"use_beam_search", "false"},
                 {"length_penalty", "1.0"},
                 {"prompt_logprobs", "0"},
                 {"truncate_prompt_tokens", "null"},
                 {"guided_json", "null"},
                 {"guided_regex", "null"},
                 {"guided_choice", "null"},
                 {"guided_grammar", "null"},
                 {"structured_outputs", "null"},
                 {"grammar", "null"},
                 {"json_schema", "null"},
                 {"return_token_ids", "false"},
                 {"return_tokens_as_token_ids", "false"}});
  force_call(model, asked);
}

void add_turn(const Json& messages, const Json& variables, const ServedModel& model, Asked& asked) {
  if (!model.chat)
    throw ApiError(400,
                   "[chat] this model has no chat template; ask /v1/completions, or start the server with "
                   "--template FILE",
                   {.code = "no_chat_template"});
  Json all = model.variables;
  for (const auto& [name, value] : variables.members()) all[name] = value;
  const auto render = [&](bool as_objects) {
    Json opened = Json::array();
    for (const Json& message : messages.items()) opened.push_back(with_arguments(message, as_objects));
    return model.chat->render_json(opened, {.extra = &all});
  };
  std::string text;
  try {
    text = render(true);
  } catch (const Error& refused) {
    // Some templates join arguments to a text, and refuse objects.
    try {
      text = render(false);
    } catch (const Error&) {
      throw ApiError(400, refused.what(), {.param = "messages", .code = "refused_by_template"});
    }
  }
  asked.prompts.push_back(asked_turn(*model.chat, std::move(text), model.tokenizer));
  asked.prompts.back().form.calls = asked.calls.form;
}

void fit(Asked& asked, std::optional<i32> most, std::string_view most_name, const ServedModel& model) {
  if (asked.choices() > size_t(kMostChoices))
    throw ApiError(400,
                   fmt::format("[request] it asks for {} answers; at most {} are made at once",
                               asked.choices(), kMostChoices),
                   {.param = "n"});
  i32 longest = 0;
  for (const AskedPrompt& prompt : asked.prompts) {
    if (prompt.tokens.empty())
      throw ApiError(400, "[request] a prompt has no tokens; give it some text", {.param = "prompt"});
    longest = std::max(longest, i32(prompt.tokens.size()));
  }
  const i32 left = model.context - longest;
  if (left < 1 || most.value_or(1) > left)
    throw ApiError(
        400,
        most && left >= 1
            ? fmt::format("[request] the prompt has {} tokens and {} is {}, together {}; the context "
                          "of this model holds {}",
                          longest, most_name, *most, i64(longest) + *most, model.context)
            : fmt::format("[request] the prompt has {} tokens; the context of this model holds {}, of "
                          "which one is for an answer",
                          longest, model.context),
        {.param = most ? std::string(most_name) : "", .code = "context_length_exceeded"});
  asked.settings.max_tokens = most.value_or(left);
}

Asked read_completion(const Json& body, const ServedModel& model) {
  Fields fields(body);
  Asked asked{.settings = model.settings};
  read_model(fields, model);
  fields.need("prompt", [&](const JsonView& value) { read_prompts(value, model, asked); });
  read_stream(fields, asked);
  read_n(fields, asked);
  fields.take("echo", [&](const JsonView& value) { asked.echo = value.as_bool(); });
  fields.take("logprobs", [&](const JsonView& value) {
    if (!value.is_bool())
      asked.top = i32(value.as_int(0, kMostTop));
    else if (value.as_bool())
      asked.top = 1;
  });
  const std::optional<i32> most = read_most(fields, "max_tokens");
  fields.refuse({{"suffix", "\"\""}, {"best_of", "1"}});
  read_settings(fields, model, asked);
  fit(asked, most, "max_tokens", model);
  if (asked.streams && asked.echo && asked.top)
    throw ApiError(400, "[request] echo with logprobs comes whole; leave out stream", {.param = "stream"});
  return asked;
}

Asked read_chat(const Json& body, const ServedModel& model) {
  Fields fields(body);
  Asked asked{.settings = model.settings};
  Json variables = Json::object(), messages = Json::array();
  read_model(fields, model);
  fields.need("messages", [&](const JsonView& value) { messages = read_messages(value); });
  read_stream(fields, asked);
  read_n(fields, asked);
  read_tools(fields, model, asked, variables);
  fields.take("reasoning_effort",
              [&](const JsonView& value) { variables["reasoning_effort"] = value.as_string(); });
  fields.take("chat_template_kwargs", [&](const JsonView& value) {
    value.for_each_member([&](const std::string& name, const JsonView& one) {
      if (name == "messages") one.fail(ErrorCode::kIo, "it is the conversation; leave it out");
      variables[name] = one.value();
    });
  });
  bool wants_logprobs = false;
  fields.take("logprobs", [&](const JsonView& value) { wants_logprobs = value.as_bool(); });
  fields.take("top_logprobs", [&](const JsonView& value) {
    if (!wants_logprobs) value.fail(ErrorCode::kIo, "it is for \"logprobs\": true");
    asked.top = i32(value.as_int(0, kMostTop));
  });
  if (wants_logprobs && !asked.top) asked.top = 0;
  std::optional<i32> most = read_most(fields, "max_completion_tokens");
  const std::string_view most_name = most ? "max_completion_tokens" : "max_tokens";
  if (const auto older = read_most(fields, "max_tokens"); !most) most = older;
  fields.refuse({{"functions", "[]"},
                 {"function_call", "\"none\""},
                 {"modalities", "[\"text\"]"},
                 {"audio", "null"},
                 {"prediction", "null"},
                 {"web_search_options", "null"},
                 {"store", "false"},
                 {"add_generation_prompt", "true"},
                 {"continue_final_message", "false"},
                 {"documents", "null"}});
  read_settings(fields, model, asked);
  add_turn(messages, variables, model, asked);
  fit(asked, most, most_name, model);
  return asked;
}

}  // namespace heddle
