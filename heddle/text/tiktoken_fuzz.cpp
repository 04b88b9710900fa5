// Reading any text as a vocabulary of tiktoken either throws an Error or makes a tokenizer that encodes a text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heddle/base/fuzz_payload.h"
#include "heddle/text/tiktoken.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

// The first line gives an id a token: "300 [gMASK]".
void fuzz(std::string_view text) {
  std::map<int64_t, AddedToken> listed;
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t space = line.find(' ');
  if (space != std::string_view::npos && space + 1 < line.size()) {
    const int64_t id = std::strtoll(std::string(line.substr(0, space)).c_str(), nullptr, 10);
    listed[id] = {.content = std::string(line.substr(space + 1)), .special = true};
  }
  const std::string_view ranks = text.substr(std::min(line.size() + 1, text.size()));
  for (const char* name : {"", "TikTokenTokenizer", "QWenTokenizer", "ChatGLM4Tokenizer"}) {
    const TiktokenTokenizer made = read_tiktoken(ranks, "x.tiktoken", name, "llama", listed);
    const Tokenizer tokenizer = Tokenizer::parse(made.tokenizer.dump(), "x.tiktoken");
    const auto ids = tokenizer.encode("the Loom \xC3\xA9\xE4\xB8\xAD 1\t<|im_end|>", true);
    for (const int32_t id : ids) must(tokenizer.id_to_token(id).has_value());
    must(is_valid_utf8(tokenizer.decode(ids, false)));
  }
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, 0, heddle::fuzz);
}
