// The tokenizer that the metadata of a GGUF file describe: BPE of bytes, whose words are cut as a name says (tokenizer.ggml.pre),
// or SentencePiece's pieces with scores.
#pragma once

#include <optional>
#include <string>

#include "heddle/base/gguf.h"
#include "heddle/text/vocabulary/sentencepiece.h"

namespace heddle {

struct GgufVocabulary {
  // As tokenizer_config.json has them: names of special tokens, added tokens, add_bos_token, chat_template.
  Json settings;
  Json tokenizer;  // a tokenizer.json, unless there is a model
  std::optional<SentencePieceModel> model;
};

// Throws Error: kIo when it is malformed, kUnsupported for another kind of vocabulary or way to cut words.
GgufVocabulary read_gguf_vocabulary(const Gguf& file);

// A generation_config.json with the tokens that begin and end a text, and those that end a turn.
Json gguf_generation(const Gguf& file);

}  // namespace heddle
