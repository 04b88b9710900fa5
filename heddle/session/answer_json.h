// An answer as JSON: what every command that makes one writes of it.
#pragma once

#include <nlohmann/json.hpp>

#include "apps/heddle/support/answer.h"

namespace heddle {

// text, finish_reason, prompt_tokens, tokens, and logprobs where there are some.
nlohmann::ordered_json json_of(const Answer& answer);
// On one line. Text that is not UTF-8 gets U+FFFD.
std::string line_of(const nlohmann::ordered_json& json);

}  // namespace heddle
