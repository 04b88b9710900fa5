// Classes of transformers that take only the vocabulary, the merges and the post-processor from tokenizer.json, and
// make the other stages themselves, by the settings of tokenizer_config.json.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json.h"

namespace heddle {

// The class that loads a checkpoint; empty if that is the one that takes tokenizer.json as it is. `named`: the class
// that the checkpoint names, or empty; `byte_level` says whether its tokenizer.json works on bytes, and is seldom asked.
std::string choose_tokenizer_class(std::string_view model_type, std::string_view named,
                                   const std::function<bool()>& byte_level);

// The special tokens that a class has where the checkpoint names none, as an object; empty for other classes.
Json default_special_tokens(std::string_view class_name);

// Finds a setting; null if there is none.
using FindSetting = std::function<const Json*(std::string_view name)>;

// Gives `tokenizer` the stages that the class makes.
void rebuild_stages(std::string_view class_name, const FindSetting& find, Json& tokenizer);

// Names of the special tokens before and after a text, where the class makes the post-processor.
struct TokensAround {
  std::vector<std::string> before, after;
};
std::optional<TokensAround> tokens_around(std::string_view class_name);

}  // namespace heddle
