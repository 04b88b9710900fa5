// The keys that each section of tokenizer.json may and must have. `tokenizers` refuses a file in which a key is
// missing or has a value of another kind, and ignores keys that it does not know, except at the top.
#pragma once

#include <cstddef>
#include <string_view>

#include "heddle/base/json_view.h"

namespace heddle {

// Limits of a section: its stages, and Sequences in one another.
constexpr size_t kMostStages = 64;
constexpr int kMostSequenceLevels = 16;

enum class Section { kNormalizer, kPreTokenizer, kModel, kDecoder, kPostProcessor };

// The type of a stage, after its keys were checked. Where `tokenizers` infers a missing or unknown type from the
// keys, so does this. Throws Error(kIo) when no type fits, or when the keys of the type are not as they must be.
std::string_view checked_type(Section section, const JsonView& json);

// Checks the keys at the top, `truncation` and `padding`.
void check_top(const JsonView& root);
// Checks one of `added_tokens`.
void check_added_token(const JsonView& json);
// Checks one of the pieces, and one of the special tokens, of a TemplateProcessing.
void check_template_piece(const JsonView& json);
void check_template_token(const JsonView& json);

}  // namespace heddle
