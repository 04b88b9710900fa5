#include "heddle/text/calls/call_form.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/forms.h"
#include "heddle/text/calls/json_calls.h"

namespace heddle {
namespace {

constexpr JsonMarks kHermes{.begin = "<tool_call>", .end = "</tool_call>"},
    kGranite{.begin = "<|tool_call|>", .end = "<|/tool_call|>"},
    kCohere{.begin = "<|START_ACTION|>", .end = "<|END_ACTION|>"},
    kNemotron{.begin = "<TOOLCALL>", .end = "</TOOLCALL>"};
constexpr TagMarks kQwenCoder{.begin = "<tool_call>",
                              .end = "</tool_call>",
                              .name_begin = "<function=",
                              .name_end = ">",
                              .call_end = "</function>",
                              .key_begin = "<parameter=",
                              .key_end = ">",
                              .value_end = "</parameter>",
                              .has_lines = true,
                              .can_lack_begin = true},
    kSeed{.begin = "<seed:tool_call>",
          .end = "</seed:tool_call>",
          .name_begin = "<function=",
          .name_end = ">",
          .call_end = "</function>",
          .key_begin = "<parameter=",
          .key_end = ">",
          .value_end = "</parameter>"},
    kGlm{.begin = "<tool_call>",
         .call_end = "</tool_call>",
         .key_begin = "<arg_key>",
         .key_end = "</arg_key>",
         .value_begin = "<arg_value>",
         .value_end = "</arg_value>"},
    kMiniMax{.begin = "<minimax:tool_call>",
             .end = "</minimax:tool_call>",
             .name_begin = "<invoke name=\"",
             .name_end = "\">",
             .call_end = "</invoke>",
             .key_begin = "<parameter name=\"",
             .key_end = "\">",
             .value_end = "</parameter>"};
constexpr std::array<std::string_view, 6> kDeepSeekTokens = {"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                                                             "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
                                                             "<｜tool▁sep｜>"};
constexpr GemmaMarks kFunctionGemma{"<start_function_call>", "<end_function_call>", "<escape>"},
    kGemma4{"<|tool_call>", "<tool_call|>", "<|\"|>"};

template <const JsonMarks& kMarks>
std::unique_ptr<CallReader> read_json(const Json&) {
  return std::make_unique<JsonCalls>(kMarks);
}
template <const TagMarks& kMarks>
std::unique_ptr<CallReader> read_tags_of(const Json& tools) {
  return read_tags(kMarks, tools);
}
template <const GemmaMarks& kMarks>
std::unique_ptr<CallReader> read_gemma_of(const Json&) {
  return read_gemma(kMarks);
}

CallPieces around(std::string begin, std::string end) {
  return {.begin = std::move(begin), .end = std::move(end)};
}
// An object with a name and arguments, between `begin` and `end`.
CallPieces object(std::string_view name, std::string_view begin, std::string_view end,
                  std::string_view keys = "name arguments") {
  const size_t space = keys.find(' ');
  return around(fmt::format("{}{{\"{}\": {}, \"{}\": ", begin, keys.substr(0, space), Json(name).dump(),
                            keys.substr(space + 1)),
                fmt::format("}}{}", end));
}
template <const TagMarks& kMarks>
CallPieces tags(std::string_view name) {
  const char* line = kMarks.has_lines ? "\n" : "";
  const char* gap = kMarks.value_begin.empty() ? "" : "\n";
  return {.begin = fmt::format("{}\n{}{}{}\n", kMarks.begin, kMarks.name_begin, name, kMarks.name_end),
          .end = fmt::format("{}{}{}", kMarks.call_end, kMarks.end.empty() ? "" : "\n", kMarks.end),
          .style = CallPieces::Style::kTags,
          .tags = {std::string(kMarks.key_begin),
                   fmt::format("{}{}{}{}", kMarks.key_end, gap, kMarks.value_begin, line),
                   fmt::format("{}{}\n", line, kMarks.value_end)}};
}
CallPieces glm_pieces(std::string_view name) {
  CallPieces made = tags<kGlm>(name);
  made.begin = fmt::format("{}{}\n", kGlm.begin, name);
  return made;
}
CallPieces deepseek_pieces(std::string_view name, bool has_kind) {
  return around(fmt::format("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{}<｜tool▁sep｜>{}",
                            has_kind ? "function" : name, has_kind ? fmt::format("{}\n```json\n", name) : ""),
                fmt::format("{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", has_kind ? "\n```" : ""));
}

using Name = std::string_view;

// The first that fits counts.
constexpr CallForm kForms[] = {
    {.name = "harmony", .signs = {"<|channel|>", "<|call|>"}, .reader = read_harmony},
    {.name = "seed",
     .signs = {kSeed.begin},
     .tokens = {kSeed.begin, kSeed.end},
     .reader = read_tags_of<kSeed>,
     .pieces = tags<kSeed>},
    {.name = "minimax",
     .signs = {kMiniMax.begin},
     .tokens = {kMiniMax.begin, kMiniMax.end},
     .reader = read_tags_of<kMiniMax>,
     .pieces = tags<kMiniMax>},
    {.name = "qwen3-coder",
     .signs = {kQwenCoder.name_begin, kQwenCoder.key_begin},
     .tokens = {"", kQwenCoder.begin, kQwenCoder.end},
     .reader = read_tags_of<kQwenCoder>,
     .pieces = tags<kQwenCoder>},
    {.name = "glm",
     .signs = {kGlm.key_begin, kGlm.value_begin},
     .tokens = {kGlm.key_begin, kGlm.key_end, kGlm.value_begin, kGlm.value_end, kGlm.begin, kGlm.call_end},
     .reader = read_tags_of<kGlm>,
     .pieces = glm_pieces},
    {.name = "deepseek-v3",
     .signs = {"<｜tool▁call▁begin｜>", "```json"},
     .tokens = kDeepSeekTokens,
     .reader = read_deepseek,
     .pieces = [](Name name) { return deepseek_pieces(name, true); }},
    {.name = "deepseek-v3.1",
     .signs = {"<｜tool▁call▁begin｜>"},
     .tokens = kDeepSeekTokens,
     .reader = read_deepseek,
     .pieces = [](Name name) { return deepseek_pieces(name, false); }},
    {.name = "mistral-named",
     .signs = {"[TOOL_CALLS]", "[ARGS]"},
     .tokens = {"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"},
     .reader = read_mistral,
     .pieces = [](Name name) { return around(fmt::format("[TOOL_CALLS]{}[ARGS]", name), ""); },
     .has_short_ids = true},
    {.name = "mistral",
     .signs = {"[TOOL_CALLS]"},
     .tokens = {"[TOOL_CALLS]"},
     .reader = read_mistral,
     .pieces = [](Name name) { return object(name, "[TOOL_CALLS] [", "]"); },
     .has_short_ids = true},
    {.name = "granite",
     .signs = {kGranite.begin},
     .tokens = {kGranite.begin, kGranite.end},
     .reader = read_json<kGranite>,
     .pieces = [](Name name) { return object(name, "<|tool_call|>[", "]"); }},
    {.name = "cohere",
     .signs = {kCohere.begin},
     .tokens = {kCohere.begin, kCohere.end},
     .reader = read_json<kCohere>,
     .pieces =
         [](Name name) {
           return object(name, "<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>", "tool_name parameters");
         }},
    {.name = "nemotron",
     .signs = {kNemotron.begin},
     .reader = read_json<kNemotron>,
     .pieces = [](Name name) { return object(name, "<TOOLCALL>[", "]</TOOLCALL>"); }},
    {.name = "functiongemma",
     .signs = {kFunctionGemma.begin},
     .tokens = {kFunctionGemma.begin, kFunctionGemma.end, kFunctionGemma.quote},
     .reader = read_gemma_of<kFunctionGemma>},
    {.name = "gemma4",
     .signs = {kGemma4.begin},
     .tokens = {kGemma4.begin, kGemma4.end, kGemma4.quote},
     .reader = read_gemma_of<kGemma4>},
    {.name = "hermes",
     .signs = {kHermes.begin},
     .tokens = {kHermes.begin, kHermes.end},
     .reader = read_json<kHermes>,
     .pieces = [](Name name) { return object(name, "<tool_call>\n", "\n</tool_call>"); }},
    {.name = "llama",
     .signs = {"<|python_tag|>"},
     .tokens = {"<|python_tag|>"},
     .reader = read_llama,
     .pieces = [](Name name) { return object(name, "", "", "name parameters"); }}};

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
