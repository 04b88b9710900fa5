// From flags and a model's generation_config.json to what an answer needs.
#pragma once

#include <string>

#include "apps/heddle/support/answer.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/generate_flags.h"
#include "heddle/text/chat_template.h"

namespace heddle {

// The flags of sampling, and of where a text ends.
void add_sampling_flags(Command& command, GenerateFlags& flags);

// What the flags say, else the model's generation_config.json. Throws Error where a value is out of its range.
AnswerSettings settings_of(const GenerateFlags& flags, const Command& command, const Tokenizer& tokenizer);

// The template in `file`, or where that is empty the model's. Throws Error that says what to pass where there is none.
ChatTemplate load_chat_template(const std::string& model, const std::string& file);

// Throws Error where they name a token that a model of this vocabulary has not.
void require_known_tokens(const AnswerSettings& settings, i32 vocab);

}  // namespace heddle
