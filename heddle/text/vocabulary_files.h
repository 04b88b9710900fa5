// A vocabulary in files of its own, as tokenizers had it before tokenizer.json: vocab.json with merges.txt, or vocab.txt.
// The stages around it are made by a class of transformers (tokenizer_classes.h).
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/json.h"

namespace heddle {

// Their names.
inline constexpr const char *kVocabFile = "vocab.json", *kMergesFile = "merges.txt",
                            *kWordsFile = "vocab.txt";

// A tokenizer.json with this vocabulary and no stages; null if the folder lacks the files that the class reads. Throws
// Error(kIo) when a file is malformed.
Json read_vocabulary_files(const std::string& folder, std::string_view class_name);

// Throws Error(kUnsupported) that names what the folder has instead of a tokenizer that heddle reads, and the way on.
[[noreturn]] void fail_without_vocabulary(const std::string& folder, std::string_view class_name);

// The way on where transformers reads files that heddle does not.
inline constexpr const char* kMakeTokenizerJson =
    "AutoTokenizer.from_pretrained(..).save_pretrained(..) of transformers makes a tokenizer.json of it";

}  // namespace heddle
