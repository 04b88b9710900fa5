// Rendering any template with any messages either succeeds or throws an Error. An input is a template, a NUL
// byte, and the messages as JSON; without them there is one message.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/fuzz_payload.h"
#include "heddle/text/chat_template.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

Json messages_of(std::string_view text) {
  try {
    return parse_json(text, "messages");
  } catch (const Error&) {
    return Json::array({Json::object({{"role", "user"}, {"content", to_valid_utf8(text)}}),
                        Json::object({{"role", "assistant"}, {"content", "b"}})});
  }
}

void fuzz(std::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view rest = input.substr(std::min(end + 1, input.size()));
  const Json messages = messages_of(rest);
  const Json function = Json::object({{"name", "f"}, {"parameters", Json::object({{"a", 1.5}})}});
  const Json extra = Json::object({{"tools", Json::array({function})}});
  const ChatTemplate chat = ChatTemplate::parse(input.substr(0, end), "t.jinja", {{"bos_token", "<s>"}});
  constexpr uint64_t kBudget = 10'000;
  const std::string text = chat.render_json(messages, {.extra = &extra, .now = std::tm{}, .budget = kBudget});
  must(is_valid_utf8(text));
  must(text.size() <= kBudget);
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, 0, heddle::fuzz);
}
