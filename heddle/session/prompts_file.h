// A prompts file: a JSON object a line, with a prompt and what is different for it. Keys: "prompt" (text) or "tokens"
// (ids); "id" (text or a whole number; else the number of the line), and the names of AnswerSettings. Empty lines are
// passed over.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/session/settings.h"

namespace heddle {

struct PromptLine {
  size_t line = 0;  // from 1
  std::string id;   // as JSON
  std::optional<std::string> prompt;
  std::vector<i32> tokens;  // where there is no prompt; not empty
  AnswerSettings settings;  // `defaults` with what the line says, in their ranges
};

// `name` is that of the file. Throws Error(kIo) with file and line where one is not as above, or an id comes twice.
std::vector<PromptLine> parse_prompts(std::string_view text, const std::string& name,
                                      const AnswerSettings& defaults);

}  // namespace heddle
