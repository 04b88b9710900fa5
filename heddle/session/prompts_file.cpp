#include "heddle/text/prompts_file.h"

#include <map>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "heddle/text/json_view.h"
#include "heddle/text/token_lists.h"

namespace heddle {
namespace {

// Sets the field `key` of `sampling`; false: there is none.
bool set_sampling(SamplingParams& sampling, const std::string& key, const JsonView& value) {
  bool found = false;
  SamplingParams::visit(sampling, [&](const char* name, auto& field, const char*) {
    using Value = std::remove_reference_t<decltype(field)>;
    if (key != name) return;
    found = true;
    if constexpr (std::is_floating_point_v<Value>)
      field = Value(value.as_number());
    else
      field = Value(value.as_int(0, sizeof(Value) == 4 ? INT32_MAX : INT64_MAX));
  });
  return found;
}

std::string read_id(const JsonView& value) {
  if (value.is_string()) return nlohmann::json(value.as_string()).dump();
  return std::to_string(value.as_int(INT64_MIN, INT64_MAX));
}

void read_stops(PromptLine& line, const JsonView& value) {
  const auto add = [&](const JsonView& text) {
    if (text.as_string().empty()) text.fail(ErrorCode::kIo, "a text is expected: an empty one ends at once");
    line.stops.push_back(text.as_string());
  };
  if (value.is_array())
    value.for_each_item(add);
  else
    add(value);
}

void read_member(PromptLine& line, const std::string& key, const JsonView& value) {
  if (key == "id")
    line.id = read_id(value);
  else if (key == "prompt")
    line.prompt = value.as_string();
  else if (key == "tokens")
    line.tokens = read_token_list(value);
  else if (key == "max_tokens")
    line.max_tokens = int32_t(value.as_int(1, INT32_MAX));
  else if (key == "stop")
    read_stops(line, value);
  else if (key == "eos_token_id")
    line.eos = value.is_array() ? read_token_list(value) : std::vector{int32_t(value.as_int(0, INT32_MAX))};
  else if (key == "bad_words_ids")
    line.sampling.bad_words_ids = read_token_lists(value);
  else if (key == "sequence_bias")
    line.sampling.sequence_bias = read_sequence_bias(value);
  else if (!set_sampling(line.sampling, key, value))
    value.fail(ErrorCode::kIo,
               "no such setting; there are id, prompt, tokens, max_tokens, stop, eos_token_id, and those of "
               "sampling");
}

PromptLine parse_line(std::string_view text, const std::string& where, const SamplingParams& defaults) {
  const JsonDocument document(text, where);
  PromptLine line{.sampling = defaults};
  document.root().for_each_member(
      [&](const std::string& key, const JsonView& value) { read_member(line, key, value); });
  if (line.prompt.has_value() == !line.tokens.empty())
    fail(ErrorCode::kIo, "[{}] has {}; one of them is expected", where,
         line.prompt ? "a prompt and tokens" : "no prompt and no tokens");
  try {
    line.sampling.validate();
  } catch (const Error& error) {
    fail(ErrorCode::kIo, "[{}] {}", where, error.what());
  }
  return line;
}

}  // namespace

std::vector<PromptLine> parse_prompts(std::string_view text, const std::string& name,
                                      const SamplingParams& defaults) {
  std::vector<PromptLine> lines;
  std::map<std::string, size_t> line_of_id;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", name, number);
    PromptLine& made = lines.emplace_back(parse_line(line, where, defaults));
    made.line = number;
    if (made.id.empty()) made.id = std::to_string(number);
    const auto [known, fresh] = line_of_id.emplace(made.id, number);
    if (!fresh)
      fail(ErrorCode::kIo, "[{}] id {} is that of line {}; each must have its own", where, made.id,
           known->second);
  }
  return lines;
}

}  // namespace heddle
