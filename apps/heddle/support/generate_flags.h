// What `heddle generate` is asked for, shared by its ways to run: one prompt, or a file of them.
#pragma once

#include <string>
#include <vector>

#include "apps/heddle/support/engine_flags.h"
#include "heddle/text/sampling_params.h"

namespace heddle {

struct GenerateFlags {
  EngineFlags engine;
  std::string prompt, prompts, out, system, form;
  i32 max_tokens = 256, sequences = 16, n = 1, logprobs = -1;
  SamplingParams sampling;
  std::vector<std::string> stops, bad_words, biases, eos;
  bool json = false, chat = false, ignore_eos = false, echo = false;
};

}  // namespace heddle
