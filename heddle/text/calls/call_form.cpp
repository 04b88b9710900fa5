#include "heddle/text/calls/call_form.h"

#include <algorithm>

#include <fmt/format.h>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/json_calls.h"

namespace heddle {
namespace {

constexpr JsonMarks kHermes{.begin = "<tool_call>", .end = "</tool_call>"};

CallPieces json_pieces(std::string_view begin, std::string_view name, std::string_view end) {
  return {.begin = fmt::format("{}{{\"name\": {}, \"arguments\": ", begin, Json(name).dump()),
          .end = fmt::format("}}{}", end)};
}

// The first that fits counts.
constexpr CallForm kForms[] = {
    {.name = "hermes",
     .signs = {"<tool_call>"},
     .tokens = {kHermes.begin, kHermes.end},
     .reader = [](const Json&) -> std::unique_ptr<CallReader> {
       return std::make_unique<JsonCalls>(kHermes);
     },
     .pieces = [](std::string_view name) { return json_pieces("<tool_call>\n", name, "\n</tool_call>"); }}};

}  // namespace

bool reads_tools(std::string_view chat_template) {
  return chat_template.find("tools") != std::string_view::npos;
}

const CallForm* find_call_form(std::string_view chat_template, const Tokenizer& tokenizer) {
  if (!reads_tools(chat_template)) return nullptr;
  const auto has_signs = [&](const CallForm& form) {
    return std::ranges::all_of(form.signs, [&](std::string_view sign) {
      return chat_template.find(sign) != std::string_view::npos;
    });
  };
  const auto has_tokens = [&](const CallForm& form) {
    return !form.tokens[0].empty() && tokenizer.token_to_id(form.tokens[0]);
  };
  auto found = std::ranges::find_if(kForms, has_signs);
  if (found == std::end(kForms)) found = std::ranges::find_if(kForms, has_tokens);
  return found == std::end(kForms) ? nullptr : found;
}

std::span<const CallForm> call_forms() {
  return kForms;
}

std::string call_form_names() {
  std::string names;
  for (const CallForm& form : kForms) names += (names.empty() ? "" : ", ") + std::string(form.name);
  return names;
}

}  // namespace heddle
