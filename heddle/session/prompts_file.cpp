#include "heddle/session/prompts_file.h"

#include <map>

#include "heddle/base/json_view.h"
#include "heddle/text/token_lists.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

std::string read_id(const JsonView& value) {
  if (value.is_string()) return Json(value.as_string()).dump_strictly();
  return std::to_string(value.as_int(INT64_MIN, INT64_MAX));
}

void read_member(PromptLine& line, const std::string& key, const JsonView& value) {
  if (key == "id")
    line.id = read_id(value);
  else if (key == "prompt")
    line.prompt = value.as_string();
  else if (key == "tokens")
    line.tokens = read_token_list(value);
  else if (!read_setting(line.settings, key, value))
    value.fail(ErrorCode::kIo,
               fmt::format("no such setting; there are id, prompt, tokens, {}", setting_names()));
  line.has_seed |= key == "seed";
}

PromptLine parse_line(std::string_view text, const std::string& where, const AnswerSettings& defaults) {
  const JsonDocument document(text, where);
  PromptLine line{.settings = defaults};
  document.root().for_each_member(
      [&](const std::string& key, const JsonView& value) { read_member(line, key, value); });
  if (line.prompt.has_value() == !line.tokens.empty())
    fail(ErrorCode::kIo, "[{}] has {}; one of them is expected", where,
         line.prompt ? "a prompt and tokens" : "no prompt and no tokens");
  try {
    line.settings.validate();
  } catch (const Error& error) {
    fail(ErrorCode::kIo, "[{}] {}", where, error.what());
  }
  return line;
}

}  // namespace

std::vector<PromptLine> parse_prompts(std::string_view text, const std::string& name,
                                      const AnswerSettings& defaults) {
  std::vector<PromptLine> lines;
  std::map<std::string, size_t> line_of_id;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
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
