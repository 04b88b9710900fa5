// Reading any prompts file either succeeds or throws an Error that names file and line.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/session/prompts_file.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

void fuzz(std::string_view text) {
  std::set<std::string> ids;
  size_t before = 0;
  for (const PromptLine& line : parse_prompts(text, "prompts", {})) {
    must(line.line > before);
    before = line.line;
    must(ids.insert(line.id).second);
    must(line.prompt ? is_valid_utf8(*line.prompt) && line.tokens.empty() : !line.tokens.empty());
    line.settings.validate();
  }
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    heddle::fuzz(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const heddle::Error& error) {
    heddle::must(std::string_view(error.what()).starts_with("[prompts:"));
    heddle::must(error.code() == heddle::ErrorCode::kIo);
  }
  return 0;
}
