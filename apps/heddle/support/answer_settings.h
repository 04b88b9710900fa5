// From flags and a model's generation_config.json to what an answer needs.
#pragma once

#include <string>

#include "apps/heddle/support/answer.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/generate_flags.h"

namespace heddle {

// The flags of sampling, and of where a text ends.
void add_sampling_flags(Command& command, GenerateFlags& flags);

// What the flags say, else the model's generation_config.json. Throws Error where a value is out of its range.
AnswerSettings settings_of(const GenerateFlags& flags, const Command& command, const Tokenizer& tokenizer);

// Throws Error where they name a token that a model of this vocabulary has not.
void require_known_tokens(const AnswerSettings& settings, i32 vocab);

}  // namespace heddle
