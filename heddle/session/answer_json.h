// An answer as JSON: what every command that makes one writes of it.
#pragma once

#include "heddle/base/json.h"
#include "heddle/session/answer.h"

namespace heddle {

// {"text", "finish_reason": Answer::reason(), "prompt_tokens": [..], "tokens": [..]}; where they were asked for also
// "logprobs": [{"logprob", "top": [[token, logprob], ..]}, ..], for each of the tokens.
Json json_of(const Answer& answer);

}  // namespace heddle
