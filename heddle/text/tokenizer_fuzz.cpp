// Reading and using any files of a checkpoint either succeeds or throws an Error. The first byte of an input
// says what the rest is; a NUL byte ends its first part:
//   T  a tokenizer.json, then text
//   P  a pattern, then text
//   G  a generation_config.json
//   M  a config.json with settings of generation
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/text/generation_config.h"
#include "heddle/text/oniguruma.h"
#include "heddle/text/stream_decoder.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/unicode/regex.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

void fuzz_tokenizer(std::string_view file, std::string_view text) {
  const Tokenizer tokenizer = Tokenizer::parse(file, "tokenizer.json");
  const auto ids = tokenizer.encode(text, true);
  const std::string decoded = tokenizer.decode(ids, false);
  must(is_valid_utf8(decoded));
  StreamDecoder stream(tokenizer, false);
  std::string streamed;
  for (int32_t id : ids) {
    must(tokenizer.id_to_token(id).has_value());
    streamed += stream.push(id);
  }
  must(streamed + stream.flush() == decoded);
}

void fuzz_pattern(std::string_view pattern, std::string_view text) {
  const Regex regex(pcre2_from_oniguruma(pattern));
  const std::string valid = to_valid_utf8(text);
  Regex::Scratch scratch;
  size_t at = 0;
  regex.for_each_match(valid, scratch, [&](Regex::Span match) {
    must(at <= match.begin && match.begin <= match.end && match.end <= valid.size());
    at = match.end;
  });
}

void fuzz(char kind, std::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view first = input.substr(0, end), rest = input.substr(std::min(end + 1, input.size()));
  switch (kind) {
    case 'T':
      return fuzz_tokenizer(first, rest);
    case 'P':
      return fuzz_pattern(first, rest);
    case 'G':
      GenerationConfig::parse(first, "generation_config.json").sampling.validate();
      return;
    case 'M':
      GenerationConfig::parse_model_config(first, "config.json").sampling.validate();
      return;
    default:
      return;
  }
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  return heddle::fuzz_payload(data, size, 1,
                              [&](std::string_view rest) { heddle::fuzz(char(data[0]), rest); });
}
