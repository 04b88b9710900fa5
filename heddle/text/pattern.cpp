#include "heddle/text/pattern.h"

#include "heddle/text/oniguruma.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {

std::unique_ptr<const Regex> read_pattern(const JsonView& pattern) {
  const auto regex = pattern.find("Regex"), text = pattern.find("String");
  if (!regex == !text) pattern.fail(ErrorCode::kIo, "either 'Regex' or 'String' is expected");
  const JsonView& source = regex ? *regex : *text;
  try {
    const std::string& written = source.as_string();
    return std::make_unique<const Regex>(regex ? pcre2_from_oniguruma(written) : pcre2_from_text(written));
  } catch (const Error& error) {
    source.fail(error.code(), error.what());
  }
}

Replacer::Replacer(const JsonView& json) {
  const JsonView pattern = json.at("pattern"), content = json.at("content");
  content_ = content.as_string();
  if (const auto text = pattern.find("String")) from_ = text->as_string();
  if (from_.empty()) pattern_ = read_pattern(pattern);
}

std::string Replacer::run(std::string_view text, Regex::Scratch& scratch, bool* keeps_front) const {
  std::string out;
  size_t done = 0;
  const auto replace = [&](size_t begin, size_t end) {
    // `tokenizers` takes the replacement for the last character that it replaces.
    const bool several = end > 0 && (content_.empty() || first_char(text).size < end);
    if (begin == 0 && several && keeps_front) *keeps_front = false;
    out.append(text.substr(done, begin - done)).append(content_);
    done = end;
  };
  if (pattern_) {
    pattern_->for_each_match(text, scratch, [&](Regex::Span match) { replace(match.begin, match.end); });
  } else {
    for (size_t at = text.find(from_); at != std::string_view::npos; at = text.find(from_, done)) {
      replace(at, at + from_.size());
    }
  }
  return out.append(text.substr(done));
}

}  // namespace heddle
