// The settings that a checkpoint's makers chose for generation, under the names and with the defaults of
// transformers. Settings of transformers' own machinery (caches, outputs) are skipped. An unsupported setting
// that would change the text is an error that names it, unless the caller ignores it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/generation_keys.h"
#include "heddle/text/sampling_params.h"

namespace heddle {

struct GenerationConfig {
  SamplingParams sampling;  // greedy unless the file says do_sample
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> bos_token_id, pad_token_id;
  std::optional<int32_t> max_new_tokens;
  std::optional<int32_t> max_length;  // includes the prompt
  std::vector<std::string> stop_strings;
  std::vector<GenerationSource> sources;  // every setting of transformers' that a file has, ignored ones too

  // Reads the settings of a model's folder as transformers does: generation_config.json if there is one, else
  // config.json, whose text model (decoder, generator or text_config) has what it lacks. Nothing is set if
  // there is neither. Settings named in `ignored` are taken for absent. Throws Error: kIo when a file is
  // malformed, kUnsupported when it asks for something that heddle lacks, kInvalidArgument when `ignored` has a
  // name that no setting has.
  static GenerationConfig load(const std::string& folder, const GenerationNames& ignored = {});
  static GenerationConfig parse(std::string_view json, const std::string& name,
                                const GenerationNames& ignored = {});
  static GenerationConfig parse_model_config(std::string_view json, const std::string& name,
                                             const GenerationNames& ignored = {});
};

}  // namespace heddle
