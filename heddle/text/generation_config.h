// generation_config.json: the settings that a checkpoint's makers chose for generation, under the names and
// with the defaults of transformers. Settings of transformers' own machinery (caches, outputs, assistants)
// are skipped. An unsupported setting that would change the text is an error that names it.
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
  std::optional<int32_t> max_length;  // includes the prompt
  std::vector<std::string> stop_strings;

  // Throws Error: kIo when the file is malformed, kUnsupported when it asks for something that heddle lacks.
  static GenerationConfig load(const std::string& path);
  static GenerationConfig parse(std::string_view json, const std::string& name);
};

}  // namespace heddle
