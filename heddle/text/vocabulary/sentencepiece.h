// A SentencePiece model (tokenizer.model), read without its library: a protobuf with the pieces, their scores, and how
// text is normalized.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json.h"

namespace heddle {

struct SentencePieceModel {
  enum class Type : uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6
  };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::kNormal;
  };
  std::vector<Piece> pieces;  // by id
  bool is_unigram = true;     // else BPE
  bool byte_fallback = false;
  int64_t unknown_id = 0, begin_id = 1, end_id = 2;  // negative: none
  std::string unknown = "<unk>", begin = "<s>", end = "</s>", charsmap;
  // The normalization of text: a space before it, runs of spaces shortened, spaces written as marks.
  bool dummy_prefix = true, removes_spaces = true, escapes_spaces = true;

  // Throws Error(kIo) with `name` when `bytes` are no such model, kUnsupported when it is of another kind.
  static SentencePieceModel parse(std::string_view bytes, const std::string& name);

  // A tokenizer.json without stages, for a class that makes its own: BPE with each merge that makes a piece of two
  // others, whatever the scores are.
  Json vocabulary() const;

  // A tokenizer.json that encodes as SentencePiece does. `names`: new texts of pieces, by id. `legacy`: the dummy prefix
  // comes before each text between added tokens, not only before the first.
  Json tokenizer(const std::map<int64_t, std::string>& names, bool legacy) const;
};

}  // namespace heddle
