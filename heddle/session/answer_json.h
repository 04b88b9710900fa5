// An answer as JSON, as every command writes it.
#pragma once

#include "heddle/base/json.h"
#include "heddle/session/answer.h"

namespace heddle {

// {"text", "finish_reason": Answer::reason(), "prompt_tokens": [..], "tokens": [..]}, and "reasoning_content" if the
// answer has some. If log probabilities
// were requested, also "logprobs": [{"logprob", "top": [[token, logprob], ..]}, ..], one for each of the
// tokens.
Json json_of(const Answer& answer);

}  // namespace heddle
