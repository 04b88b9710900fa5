// A prompts file: a JSON object a line, with a prompt and what is different for it. Keys: "prompt" (text) or "tokens"
// (ids); "id" (text or a whole number; else the number of the line), "max_tokens", "stop" (text or a list),
// "eos_token_id" (one or a list), and the names of SamplingParams, lists as transformers writes them. Empty lines are passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/sampling_params.h"

namespace heddle {

struct PromptLine {
  size_t line = 0;  // from 1
  std::string id;   // as JSON
  std::optional<std::string> prompt;
  std::vector<int32_t> tokens;  // where there is no prompt; not empty
  SamplingParams sampling;
  std::optional<int32_t> max_tokens;
  std::vector<std::string> stops;
  std::optional<std::vector<int32_t>> eos;  // instead of the model's
};

// `name` is that of the file. Throws Error(kIo) with file and line where one is not as above, or an id comes twice.
std::vector<PromptLine> parse_prompts(std::string_view text, const std::string& name,
                                      const SamplingParams& defaults);

}  // namespace heddle
