// tekken.json, in which Mistral keeps its tokenizers: byte strings by rank, in base64, the pattern that cuts words, and
// special tokens, which have the first ids.
#pragma once

#include <string>

#include "heddle/base/json_view.h"

namespace heddle {

inline constexpr const char* kTekkenFile = "tekken.json";

// A tokenizer.json of it, as transformers makes one. Throws Error(kIo) where `tekken` is malformed.
Json tokenizer_of_tekken(const JsonView& tekken);

}  // namespace heddle
