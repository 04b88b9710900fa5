// Reading any text as a tekken.json either throws an Error or makes a tokenizer that encodes a text.
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/fuzz_payload.h"
#include "heddle/text/tekken.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

void fuzz(std::string_view text) {
  const JsonDocument document(text, "tekken.json");
  const JsonView root = document.root();
  const Tokenizer tokenizer = Tokenizer::parse(tokenizer_of_tekken(root).dump(), "tekken.json");
  const auto ids = tokenizer.encode("the loom \xC3\xA9\xE4\xB8\xAD 1\t<s>", true);
  for (const int32_t id : ids) must(tokenizer.id_to_token(id).has_value());
  must(is_valid_utf8(tokenizer.decode(ids, false)));
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, 0, heddle::fuzz);
}
