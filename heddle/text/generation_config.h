// generation_config.json: what a checkpoint's makers set for generating with it, under the names and with the
// defaults that transformers has. Settings of transformers' own machinery (caches, outputs, assistants) are
// passed over; a setting that would change the text and is not supported is an error that names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/sampling_params.h"

namespace heddle {

struct GenerationConfig {
  SamplingParams sampling;  // greedy unless the file says do_sample
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> bos_token_id, pad_token_id;
  std::optional<int32_t> max_new_tokens;
  std::optional<int32_t> max_length;  // with the prompt
  std::vector<std::string> stop_strings;

  // Throws Error: kIo where the file is malformed, kUnsupported where it asks for what heddle has not.
  static GenerationConfig load(const std::string& path);
  static GenerationConfig parse(std::string_view json, const std::string& name);
};

}  // namespace heddle
