// Whatever a template and the messages hold, rendering ends well or in an Error. An input is a template, a NUL byte,
// and the messages as JSON; without them there is one message.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "heddle/base/error.h"
#include "heddle/text/chat_template.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

using Json = nlohmann::ordered_json;

void must(bool condition) {
  if (!condition) std::abort();
}

void fuzz(std::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view rest = input.substr(std::min(end + 1, input.size()));
  Json messages = Json::parse(rest, nullptr, false);
  if (messages.is_discarded()) {
    messages = {{{"role", "user"}, {"content", to_valid_utf8(rest)}},
                {{"role", "assistant"}, {"content", "b"}}};
  }
  const Json extra = {{"tools", {{{"name", "f"}, {"parameters", {{"a", 1.5}}}}}}};
  const ChatTemplate chat = ChatTemplate::parse(input.substr(0, end), "t.jinja", {{"bos_token", "<s>"}});
  constexpr uint64_t kBudget = 10'000;
  const std::string text = chat.render_json(messages, {.extra = &extra, .now = std::tm{}, .budget = kBudget});
  must(is_valid_utf8(text));
  must(text.size() <= kBudget);
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    heddle::fuzz(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const heddle::Error& error) {
    heddle::must(std::string_view(error.what()).starts_with('['));
    heddle::must(error.code() != heddle::ErrorCode::kInternal);
  }
  return 0;
}
