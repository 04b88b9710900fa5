// Reading any text as a schema either throws an Error or makes a grammar whose texts can always go on, and are JSON when they are complete.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/text/grammar/answer_grammar.h"
#include "heddle/text/grammar/schema_reader.h"

namespace heddle {
namespace {

const std::shared_ptr<const TokenTrie>& vocabulary() {
  static const auto made = [] {
    std::vector<std::string> texts{"",   "{\"", "\":", "\", \"", "tru",   "e}",
                                   "12", "]}",  "\"}", "  ",     "\\u00", "null,"};
    for (int byte = 0; byte < 256; ++byte) texts.push_back(std::string(1, char(byte)));
    return std::make_shared<const TokenTrie>(std::move(texts));
  }();
  return made;
}

// The first line chooses tokens: of those that may come, the one that each byte counts off.
void fuzz(std::string_view input) {
  const size_t line = std::min(input.find('\n'), input.size());
  const std::string_view choices = input.substr(0, line),
                         text = input.substr(std::min(line + 1, input.size()));
  constexpr JsonLimits kLimits{.depth = 64};
  const Json schema = parse_json(text, "schema", kLimits);
  GrammarState state(
      std::make_shared<const AnswerGrammar>(read_schema(JsonView(schema, "schema")), vocabulary()));
  std::string made;
  std::array<u32, 9> mask;
  const std::array<i32, 1> ends{0};
  for (const char choice : choices) {
    must(state.mask(ends, mask));
    must((mask[0] & 1) == u32(state.is_complete()));
    std::vector<i32> allowed;
    for (i32 token = 1; token < i32(32 * mask.size()); ++token)
      if ((mask[size_t(token) / 32] >> (token % 32) & 1) != 0) allowed.push_back(token);
    if (allowed.empty()) break;
    const i32 token = allowed[uint8_t(choice) % allowed.size()];
    state.accept(token);
    made += vocabulary()->text(token);
  }
  if (!state.is_complete()) return;
  GrammarState again(
      std::make_shared<const AnswerGrammar>(read_schema(JsonView(schema, "schema")), vocabulary()));
  must(again.accept(made) && again.is_complete());
  try {
    parse_json(made, "made");
  } catch (const Error& error) {  // other properties may come twice
    must(std::string_view(error.what()).find("twice") != std::string_view::npos);
  }
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, 0, heddle::fuzz);
}
