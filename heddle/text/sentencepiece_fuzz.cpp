// Reading any bytes as a tokenizer.model either throws an Error or makes a tokenizer that encodes a text. The first byte
// of an input says what becomes of the model: U and N stages as SentencePiece has them, else the vocabulary alone.
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/unicode/utf8.h"
#include "heddle/text/vocabulary/sentencepiece.h"

namespace heddle {
namespace {

void fuzz(char kind, std::string_view bytes) {
  const SentencePieceModel model = SentencePieceModel::parse(bytes, "tokenizer.model");
  const Json made = kind == 'U'   ? model.tokenizer({}, true)
                    : kind == 'N' ? model.tokenizer({{1, "</s>"}, {5, "<x>"}}, false)
                                  : model.vocabulary();
  const std::string json = made.dump();
  const Tokenizer tokenizer = Tokenizer::parse(json, "tokenizer.model");
  std::string text = "the loom \xC3\xA9\xE4\xB8\xAD\xEF\xAC\x81 1\t";
  for (const auto& piece : model.pieces) {
    if (text.size() < 1000) text += piece.text;
  }
  for (int32_t id : tokenizer.encode(text, true)) must(tokenizer.id_to_token(id).has_value());
  must(is_valid_utf8(tokenizer.decode(tokenizer.encode(text, true), false)));
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  return heddle::fuzz_payload(data, size, 1,
                              [&](std::string_view rest) { heddle::fuzz(char(data[0]), rest); });
}
