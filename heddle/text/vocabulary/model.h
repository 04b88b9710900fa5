// The `model` of tokenizer.json: it turns the words that the stages before it made into tokens. Each kind of
// model has a file that reads and runs it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/base/json_view.h"

namespace heddle {

struct StringHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the name the library looks for
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using StringToId = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

// Tables are indexed by id, so this limits the size that a file can ask for.
constexpr int64_t kMaxTokenId = (1 << 20) - 1;

// Encodes the words of one text. Words must stay valid as long as the encoder.
class WordEncoder {
 public:
  virtual ~WordEncoder() = default;
  virtual void encode(std::string_view word) = 0;
};

// Immutable, so threads may share it.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // The encoder appends to `out`, which nothing else may shorten meanwhile.
  virtual std::unique_ptr<WordEncoder> encoder(std::vector<int32_t>& out) const = 0;
};

struct Vocabulary {
  StringToId ids;
  std::vector<std::string> tokens;  // by id; empty where there is none
  std::vector<bool> exists;         // by id
  size_t size = 0;                  // as `tokenizers` counts it
  // The file gives both; an id that another token has is an error at `where`.
  void add(const std::string& token, int32_t id, const JsonView& where);
  // Fails with `where` if the token is not there.
  int32_t id_of(const JsonView& where, std::string_view token) const;
};

struct ReadModel {
  Vocabulary vocabulary;
  std::unique_ptr<const TokenModel> model;
  bool takes_bytes = false;  // words after ByteLevel are bytes, not the characters that spell them
};

// `json` was checked (tokenizer_keys.h) and is of type `type`. `after_bytes`: words come from ByteLevel.
// Throws Error when the file contradicts itself.
ReadModel read_model(std::string_view type, const JsonView& json, bool after_bytes);

// Each kind of model; read_model() chooses.
ReadModel read_bpe(const JsonView& json, bool after_bytes);
ReadModel read_unigram(const JsonView& json, bool after_bytes);
ReadModel read_word_piece(const JsonView& json, bool after_bytes);
ReadModel read_word_level(const JsonView& json, bool after_bytes);

// A `vocab` that is an object from token to id.
Vocabulary read_vocabulary(const JsonView& vocab);

}  // namespace heddle
