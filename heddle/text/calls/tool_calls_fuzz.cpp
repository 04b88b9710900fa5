// Whatever a model writes becomes the same events, wherever it is cut. Text, names and arguments are made of what was written,
// and where a call begins it ends. The first byte of an input chooses the form.
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/fuzz_payload.h"
#include "heddle/base/json_view.h"
#include "heddle/text/calls/call_form.h"

namespace heddle {
namespace {

using Kind = CallEvent::Kind;

const Json& fuzzed_tools() {
  static const Json made = parse_json(
      R"([{"type": "function", "function": {"name": "f", "parameters": {"properties": {"s": {"type": "string"},
          "n": {"type": "integer"}, "o": {"type": ["string", "null"]}}}}},
          {"type": "function", "function": {"name": "python"}}])",
      "tools");
  return made;
}

void append(std::vector<CallEvent>& all, const std::vector<CallEvent>& more) {
  for (const CallEvent& event : more) {
    must(event.kind == Kind::kEnd || !event.text.empty());
    if (!all.empty() && all.back().kind == event.kind && event.kind != Kind::kBegin)
      all.back().text += event.text;
    else
      all.push_back(event);
  }
}

std::vector<CallEvent> read(const CallForm& form, std::string_view text, size_t piece) {
  const auto reader = form.reader(fuzzed_tools());
  std::vector<CallEvent> events;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    append(events, reader->push(text.substr(0, piece)));
  append(events, reader->flush());
  append(events, reader->flush());
  return events;
}

void fuzz(const CallForm& form, std::string_view text) {
  const std::vector<CallEvent> whole = read(form, text, text.size() + 1);
  for (const size_t piece : {1, 2, 3, 7}) must(read(form, text, piece) == whole);
  bool in_call = false;
  size_t texts = 0;
  for (const CallEvent& event : whole) {
    if (event.kind == Kind::kText) must(!in_call && text.find(event.text) != std::string_view::npos);
    if (event.kind == Kind::kText) texts += event.text.size();
    if (event.kind == Kind::kArguments || event.kind == Kind::kEnd) must(in_call);
    if (event.kind == Kind::kBegin) must(!std::exchange(in_call, true));
    if (event.kind == Kind::kEnd) in_call = false;
  }
  must(!in_call);
  must(texts <= text.size());
  if (whole.size() == 1 && whole[0].kind == Kind::kText) must(whole[0].text == text);
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto forms = heddle::call_forms();
  if (size > 0) heddle::fuzz(forms[size_t(data[0]) % forms.size()], bytes.substr(1));
  return 0;
}
