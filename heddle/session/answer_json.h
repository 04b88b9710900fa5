// An answer as JSON: what every command that makes one writes of it.
#pragma once

#include <nlohmann/json.hpp>

#include "heddle/session/answer.h"

namespace heddle {

// {"text", "finish_reason": Answer::reason(), "prompt_tokens": [..], "tokens": [..]}; where they were asked for also
// "logprobs": [{"logprob", "top": [[token, logprob], ..]}, ..], for each of the tokens.
nlohmann::ordered_json json_of(const Answer& answer);
// On one line, without its end. Bytes that are not UTF-8 become U+FFFD.
std::string line_of(const nlohmann::ordered_json& json);

}  // namespace heddle
