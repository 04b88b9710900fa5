#include "heddle/text/calls/cursor.h"

#include <algorithm>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/json_scanner.h"

namespace heddle {

void CallCursor::skip_spaces() {
  while (at_ < text_.size() && is_call_space(text_[at_])) ++at_;
}

bool CallCursor::take(std::string_view mark) {
  if (!ok()) return false;
  const std::string_view next = rest().substr(0, mark.size());
  if (next == mark) return at_ += mark.size(), true;
  return next.size() < mark.size() && mark.starts_with(next) ? fail_at_end() : fail();
}

bool CallCursor::take_if(std::string_view mark) {
  if (!ok()) return false;
  if (take(mark)) return true;
  if (fit_ == Fit::kNo) fit_ = Fit::kYes;
  return false;
}

char CallCursor::peek() {
  if (!ok()) return 0;
  if (at_ < text_.size()) return text_[at_];
  fail_at_end();
  return 0;
}

void CallCursor::expect(std::string_view mark, std::string_view other) {
  CallCursor one = *this, two = *this;
  if (!ok() || one.take(mark) || two.take(other)) return;
  fit_ = one.fit() == Fit::kMore ? Fit::kMore : two.fit();
}

std::optional<std::string_view> CallCursor::take_until(std::string_view mark, size_t most) {
  if (!ok()) return {};
  const size_t found = rest().substr(0, most + mark.size()).find(mark);
  if (found == std::string_view::npos) {
    rest().size() >= most + mark.size() ? fail() : fail_at_end();
    return {};
  }
  const std::string_view taken = rest().substr(0, found);
  at_ += found + mark.size();
  return taken;
}

std::string_view CallCursor::take_name(std::string_view others) {
  constexpr size_t kMostName = 256;
  if (!ok()) return {};
  const auto is_part = [&](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           others.find(byte) != std::string_view::npos;
  };
  const std::string_view next = rest();
  const size_t size = size_t(std::ranges::find_if_not(next, is_part) - next.begin());
  if (size == 0 || size > kMostName) {
    size == next.size() ? fail_at_end() : fail();
    return {};
  }
  at_ += size;
  peek();  // more of the name may come
  return next.substr(0, size);
}

std::optional<std::string_view> CallCursor::take_json() {
  if (!ok()) return {};
  JsonScanner scanner;
  const size_t begin = at_;
  while (at_ < text_.size() && !scanner.is_closed() && scanner.take(text_[at_])) ++at_;
  if (at_ == text_.size() && !scanner.is_closed() && !(is_whole_ && scanner.is_complete()))
    fail_at_end();
  else if (!scanner.is_complete())
    fail();
  if (!ok()) return {};
  return text_.substr(begin, at_ - begin);
}

std::optional<std::string> CallCursor::take_json_text() {
  skip_spaces();
  if (peek() != '"' && ok()) fail();
  const auto text = take_json();
  if (!text) return {};
  try {
    return parse_json(*text, "call").as_string();
  } catch (const Error&) {  // half of a surrogate pair
    fail();
    return {};
  }
}

size_t begun_mark(std::string_view text, std::string_view mark) {
  for (size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size)
    if (text.ends_with(mark.substr(0, size))) return size;
  return 0;
}

}  // namespace heddle
