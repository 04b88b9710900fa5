#include "heddle/trace/page_frame.h"

#include "heddle/base/invariant.h"

namespace heddle {

std::string fill_frame(std::string_view frame,
                       const std::map<std::string, std::string, std::less<>>& fields) {
  std::string page;
  size_t at = 0;
  for (size_t open; (open = frame.find("{{", at)) != frame.npos;) {
    const size_t close = frame.find("}}", open);
    HEDDLE_CHECK(close != frame.npos);
    const auto field = fields.find(frame.substr(open + 2, close - open - 2));
    HEDDLE_CHECK(field != fields.end());
    page.append(frame, at, open - at).append(field->second);
    at = close + 2;
  }
  return page.append(frame, at);
}

std::string json_in_page(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, true)) c == '<' ? text.append("\\u003c") : text.append(1, c);
  return text;
}

}  // namespace heddle
