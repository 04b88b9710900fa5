// The metadata of any bytes as a GGUF file are either refused with an Error, or make a tokenizer that encodes a text.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heddle/base/fuzz_payload.h"
#include "heddle/base/invariant.h"
#include "heddle/text/generation_config.h"
#include "heddle/text/gguf_vocabulary.h"
#include "heddle/text/tokenizer.h"
#include "heddle/text/unicode/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, 0, [](std::string_view bytes) {
    const heddle::Gguf file(std::as_bytes(std::span(bytes)), "fuzz.gguf");
    (void)heddle::GenerationConfig::parse(heddle::gguf_generation(file).dump(), "fuzz.gguf");
    const heddle::GgufVocabulary read = heddle::read_gguf_vocabulary(file);
    const heddle::Json json = read.model ? read.model->tokenizer({}, true) : read.tokenizer;
    const auto tokenizer = heddle::Tokenizer::parse(json.dump(), "fuzz.gguf");
    const std::string text = "the loom \xC3\xA9\xE4\xB8\xAD\xEF\xAC\x81 1\t";
    for (const int32_t id : tokenizer.encode(text, true)) HEDDLE_CHECK(tokenizer.id_to_token(id).has_value());
    HEDDLE_CHECK(heddle::is_valid_utf8(tokenizer.decode(tokenizer.encode(text, true), false)));
  });
}
