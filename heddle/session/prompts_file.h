// A prompts file: one JSON object per line, with a prompt and its own settings. Keys: "prompt" (text) or
// "tokens" (ids); "id" (text or a whole number; by default the number of the line), and the names of
// AnswerSettings. Empty lines are skipped.
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
  std::vector<i32> tokens;  // used when there is no prompt; not empty
  bool has_seed = false;    // the line sets one
  AnswerSettings settings;  // `defaults` with the line's own settings, within their ranges
};

// `name` is the file's name. Throws Error(kIo) with file and line when a line is not as above, or when an id
// comes twice.
std::vector<PromptLine> parse_prompts(std::string_view text, const std::string& name,
                                      const AnswerSettings& defaults);

}  // namespace heddle
