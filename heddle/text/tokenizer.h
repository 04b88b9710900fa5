// The tokenizer of a Hugging Face checkpoint as tokenizer.json describes it: a normalizer, a pre-tokenizer, a model
// (BPE, Unigram, WordPiece or WordLevel), a post-processor and a decoder. encode() and decode() give the results
// of the `tokenizers` package for the same file.
// Known and intended differences:
// - Truncation and padding in the file are ignored, as in transformers: they are settings of a caller.
// - Text that is not UTF-8 is encoded with U+FFFD in place of each ill-formed part.
// - An added token whose id is not the one that `tokenizers` would give it is an error; `tokenizers` only warns.
// - Two tokens with one id, and dropout, are errors: `tokenizers` draws one of two answers.
// - If the normalizer spells the first character as several, and these are cut apart, `tokenizers` takes each for the
//   first word, before which Metaspace puts its mark; here only the first one is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/added_tokens.h"
#include "heddle/text/decoder.h"
#include "heddle/text/normalizer.h"
#include "heddle/text/pre_tokenizer.h"
#include "heddle/text/vocabulary/model.h"

namespace heddle {

class TokenTrie;

// Immutable after loading, so threads may share it.
class Tokenizer {
 public:
  // Reads a tokenizer.json. Throws Error: kIo when it is malformed, kUnsupported with key and value when it
  // asks for something that is not supported.
  // `path` may be a folder: then its other files count too, as in transformers (tokenizer_files.h).
  static Tokenizer load(const std::string& path);
  static Tokenizer parse(std::string_view json, const std::string& name);

  // `add_special_tokens` adds what the file's template puts around a text, such as a begin-of-text token.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const;

  // Skips ids that are not tokens. Bytes that are not UTF-8 become U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  // Number of tokens. Ids may have holes, so an id can be larger.
  size_t vocab_size() const { return id_of_token_.size(); }
  std::optional<int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string_view> id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;
  // True if decode() can leave the token out, because it is special.
  bool is_skipped(int32_t id) const;
  int32_t id_limit() const { return int32_t(tokens_.size()); }  // all ids are below it
  // The bytes of a token within a text, maybe a part of a character; empty if there is no such token, and nothing if they depend on
  // the tokens around it.
  std::optional<std::string> token_bytes(int32_t id) const;
  // All tokens as bytes, special ones after TokenTrie::kSpecial, made at the first call. Throws Error where token_bytes() has nothing
  // for another one.
  std::shared_ptr<const TokenTrie> trie() const;
  // One step of decode(), for StreamDecoder.
  std::string decode_next(int32_t id, Decoder::State& state) const;
  std::string decode_end(Decoder::State& state) const { return decoder_.flush(state); }

 private:
  friend class TokenizerReader;
  struct Token {
    std::string text;                  // as in the file
    std::optional<std::string> shown;  // decoded instead of it
    bool exists = false;
    bool special = false;
    bool skipped = false;  // left out with skip_special
  };
  struct Parts {
    Normalizer normalizer;
    PreTokenizer words;
    std::unique_ptr<const TokenModel> model;
    Decoder decoder;
    TokenMatcher added, added_normalized;
  };
  explicit Tokenizer(Parts parts);
  const Token* find(int32_t id) const;
  void encode_text(std::string_view text, std::vector<int32_t>& out) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::shared_ptr<const TokenModel> model_;
  Decoder decoder_;
  TokenMatcher added_, added_normalized_;
  std::vector<int32_t> template_;  // what post_processor.h reads
  std::vector<Token> tokens_;      // by id
  StringToId id_of_token_;
  struct LazyTrie;
  std::shared_ptr<LazyTrie> trie_;
};

}  // namespace heddle
