// A vocabulary of byte strings by rank, as tiktoken and Mistral's tekken.json have it: text is cut by a pattern, and of the pairs
// in a word the one that makes the token of the lowest rank is merged first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heddle/text/added_tokens.h"

namespace heddle {

class Json;

struct RankedVocabulary {
  std::vector<std::string> tokens;        // by rank
  int64_t first_id = 0;                   // rank 0 has it
  std::map<int64_t, AddedToken> special;  // by id; only the flag `special` counts
  std::string pattern;
  bool nfc = false;  // text is composed first
};

inline constexpr size_t kMostRankedBytes =
    1024;  // a token has at most so many: all of its parts are looked up

// A tokenizer.json of it, as transformers makes one. `refuse` is called with the reason, and must throw, where a token is there
// twice or a byte has none.
Json tokenizer_of(const RankedVocabulary& vocabulary, const std::function<void(const std::string&)>& refuse);

}  // namespace heddle
