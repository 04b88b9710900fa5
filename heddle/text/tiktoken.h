// A vocabulary of tiktoken: a line for each byte string, in base64, and its rank. The file has neither the pattern that cuts words
// nor the special tokens: both are in the code of a model's tokenizer class. Here are those of Llama 3 (the `tokenizer.model` of
// Meta's own folder), Kimi, the first Qwen, and GLM-4 of 2024.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/text/added_tokens.h"
#include "heddle/text/tokenizer_classes.h"

namespace heddle {

// True for lines of a token in base64 and its rank.
bool is_tiktoken(std::string_view text);

// The name of such a file of a folder, by the names that they have; empty if there is none.
std::string find_tiktoken(const std::string& folder);

struct TiktokenTokenizer {
  Json tokenizer;       // a tokenizer.json
  Json defaults;        // settings where the folder has none, as an object
  TokensAround around;  // texts of tokens before and after a text; empty where settings say so
};

// `class_name`: what the folder names, or empty. `listed`: the tokens that it gives ids, which win over those of the class.
// Throws Error(kUnsupported) if nothing says which pattern the file goes with, and Error(kIo) if it is malformed.
TiktokenTokenizer read_tiktoken(std::string_view text, const std::string& path, std::string_view class_name,
                                std::string_view model_type, const std::map<int64_t, AddedToken>& listed);

}  // namespace heddle
