// A request to the model: prompts as tokens, and settings of their answers.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/serve/answer_parts.h"
#include "heddle/serve/fields.h"
#include "heddle/session/answer.h"
#include "heddle/text/chat_template.h"

namespace heddle {

// The model as requests see it.
struct ServedModel {
  std::vector<std::string> names;  // that a request may give; the first is told
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat;
  Json variables = Json::object();  // the template's, where a request does not set them
  AnswerSettings settings;          // where a request does not set them
  i32 vocab = 0, context = 0;       // tokens, positions
  i64 created = 0;                  // seconds since 1970
};

// Which tools an answer may or must call.
struct ToolChoice {
  bool may = true, must = false;
  std::optional<std::set<std::string>> names = {};  // no others
};

struct Asked {
  std::vector<AskedPrompt> prompts;
  std::vector<std::string> texts;  // the prompts', with `echo`
  AnswerSettings settings;
  AskedCalls calls = {};
  ToolChoice choice = {};
  i32 n = 1;                    // answers to each prompt
  std::optional<i32> top = {};  // log-probabilities are wanted, with so many of the likeliest tokens
  bool streams = false, tells_usage = false, echo = false;

  size_t choices() const { return prompts.size() * size_t(n); }
};

constexpr i32 kMostChoices = 128, kMostTop = 20;

// Parses a body. Throws ApiError.
Json parse_body(const std::string& body);

// Each reads the body of one endpoint. All throw ApiError.
Asked read_completion(const Json& body, const ServedModel& model);  // /v1/completions
Asked read_chat(const Json& body, const ServedModel& model);        // /v1/chat/completions
Asked read_message(const Json& body, const ServedModel& model);     // /v1/messages
Asked read_response(const Json& body, const ServedModel& model);    // /v1/responses

// Parts of these.
void read_model(Fields& fields, const ServedModel& model);
// Reads the settings that heddle names as the request does, and refuses what is not done. Tools are known before.
void read_settings(Fields& fields, const ServedModel& model, Asked& asked);
// OpenAI's "auto", "none" or "required", an object that names a function, or one that lists several.
ToolChoice read_tool_choice(const JsonView& value);
// Lets the model call tools, in OpenAI's form; there may be none. Refuses them where it has no form of calls.
void set_tools(Json tools, const ServedModel& model, Asked& asked, Json& variables);
// Where a call must come, it is the form of the answer.
void force_call(const ServedModel& model, Asked& asked);
// The messages of a conversation in OpenAI's form, with a text each.
Json read_messages(const JsonView& value);
// A conversation in OpenAI's form becomes a prompt. `variables` of the template come from the request.
void add_turn(const Json& messages, const Json& variables, const ServedModel& model, Asked& asked);
// Checks that prompts and answers fit the context. Without `most`, an answer may take what is left of it.
void fit(Asked& asked, std::optional<i32> most, std::string_view most_name, const ServedModel& model);
// The tokens of a prompt are checked.
std::vector<i32> read_tokens(const JsonView& value, i32 vocab);

}  // namespace heddle
