// Bytes of a connection either are requests, whose bodies ask for something within the limits, or are refused with a status of
// 400 to 499, whatever pieces they come in.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heddle/serve/api_error.h"
#include "heddle/serve/asked.h"
#include "heddle/serve/request_reader.h"

namespace heddle {
namespace {

constexpr i32 kContext = 64;

void must(bool condition) {
  if (!condition) std::abort();
}

const ServedModel& model() {
  static const ServedModel made{
      .names = {"m"},
      .tokenizer = Tokenizer::parse(
          R"({"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2}},
              "pre_tokenizer": {"type": "Whitespace"}, "decoder": null, "added_tokens": []})",
          "tokenizer"),
      .chat = ChatTemplate::parse("{% for m in messages %}{{ m.role }} {{ m.content }} {% for c in "
                                  "m.tool_calls or [] %}{{ c | tojson }}"
                                  "{% endfor %}{% endfor %}{{ tools }}",
                                  "template"),
      .vocab = 3,
      .context = kContext};
  return made;
}

// Calls `work`; false where it refuses.
template <class Work>
bool accepted(Work&& work) {
  try {
    work();
    return true;
  } catch (const ApiError& error) {
    must(error.status() >= 400 && error.status() < 500);
    return false;
  }
}

void read(const HttpRequest& request) {
  Json body;
  if (!accepted([&] { body = parse_body(request.body); })) return;
  for (const auto reader : {read_completion, read_chat, read_message, read_response})
    accepted([&] {
      const Asked asked = reader(body, model());
      must(asked.choices() >= 1 && asked.choices() <= size_t(kMostChoices));
      for (const AskedPrompt& prompt : asked.prompts)
        must(!prompt.tokens.empty() && i32(prompt.tokens.size()) + asked.settings.max_tokens <= kContext);
      must(!asked.top || (*asked.top >= 0 && *asked.top <= kMostTop));
    });
}

// `piece`: bytes that come at once.
std::string requests_of(std::string_view bytes, size_t piece, bool reads) {
  RequestReader reader({.header_bytes = 1024, .body_bytes = 4096});
  std::string paths;
  const bool whole = accepted([&] {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      reader.push(bytes.substr(0, piece));
      while (const auto request = reader.next()) {
        paths += request->method + request->path + request->body + "\n";
        if (reads) read(*request);
      }
    }
  });
  return whole ? paths : paths + "refused";
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = heddle::requests_of(bytes, bytes.size() + 1, true);
  const std::string one_by_one = heddle::requests_of(bytes, 1, false);
  // A head that comes in pieces is read when it has come whole, so that what is wrong with it is seen later.
  heddle::must(one_by_one == whole || (whole.ends_with("refused") && whole.starts_with(one_by_one)));
  return 0;
}
