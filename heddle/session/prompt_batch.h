// Answers all prompts of a file, many at once, into a file of results.
#pragma once

#include "apps/heddle/support/answer.h"
#include "apps/heddle/support/generate_flags.h"

namespace heddle {

// `settings`: of a line that says nothing else.
void generate_batch(const GenerateFlags& flags, const AnswerSettings& settings, const Tokenizer& tokenizer);

}  // namespace heddle
