#include "heddle/text/calls/call_reader.h"

#include <algorithm>

#include "heddle/base/json_view.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr size_t kMostHead = 64 << 10;  // bytes that are held back because a call may begin with them

size_t size_without_spaces_behind(std::string_view text) {
  while (!text.empty() && is_call_space(text.back())) text.remove_suffix(1);
  return text.size();
}

// The bytes of `text` up to a character that it ends within.
size_t size_of_whole_characters(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const std::string_view last = text.substr(text.size() - back);
    if ((static_cast<unsigned char>(last[0]) & 0xC0) == 0x80) continue;
    return first_char(last).state == Utf8Char::kIncomplete ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

std::vector<CallEvent> CallReader::push(std::string_view text) {
  tail_ += text;
  const size_t size = size_of_whole_characters(tail_);
  held_ += std::string_view(tail_).substr(0, size);
  tail_.erase(0, size);
  run();
  return std::exchange(events_, {});
}

std::vector<CallEvent> CallReader::flush() {
  held_ += std::exchange(tail_, {});
  is_whole_ = true;
  run();
  return std::exchange(events_, {});
}

void CallReader::run() {
  for (bool goes_on = true; goes_on;) {
    CallCursor cursor(held_, is_whole_);
    switch (state_) {
      case State::kText:
        goes_on = read_text();
        break;
      case State::kArguments: {
        const bool is_end = read_arguments(cursor, is_whole_);
        held_.erase(0, cursor.at());
        goes_on = is_end || is_whole_;
        if (goes_on) end();
        break;
      }
      case State::kClosing:
        close_call(cursor);
        goes_on = cursor.fit() != Fit::kMore;
        if (cursor.ok()) held_.erase(0, cursor.at());
        if (goes_on) state_ = State::kNext;
        break;
      case State::kNext:
        goes_on = read_next();
        break;
    }
  }
}

bool CallReader::read_text() {
  if (after_call_) held_.erase(0, std::min(held_.find_first_not_of(" \t\r\n"), held_.size()));
  const std::string_view held = held_;
  size_t shown = held.size();  // bytes that are text
  bool is_call = false;
  for (size_t at = held.find_first_of(first_); at != std::string_view::npos;
       at = held.find_first_of(first_, at + 1)) {
    const size_t before = size_without_spaces_behind(held.substr(0, at));
    CallCursor cursor(held.substr(at), is_whole_);
    Head head;
    read_head(cursor, at_start_ && before == 0 ? Where::kStart : Where::kLater, head);
    if (cursor.fit() == Fit::kNo || (!cursor.ok() && held.size() - at > kMostHead)) continue;
    add(CallEvent::Kind::kText, held.substr(0, before));
    if (cursor.ok()) begin(head);
    shown = cursor.ok() ? at + cursor.at() : before;
    is_call = true;
    break;
  }
  if (!is_call) {
    if (!is_whole_) shown = size_without_spaces_behind(held);
    add(CallEvent::Kind::kText, held.substr(0, shown));
  }
  held_.erase(0, shown);
  return state_ != State::kText;
}

// After a call: another one, or what ends them all.
bool CallReader::read_next() {
  Head head;
  CallCursor next(held_, is_whole_);
  next.skip_spaces();
  read_head(next, Where::kNext, head);
  if (next.fit() == Fit::kMore && held_.size() <= kMostHead) return false;
  if (next.ok()) {
    held_.erase(0, next.at());
    begin(head);
    return true;
  }
  CallCursor cursor(held_, is_whole_);
  close_all(cursor);
  if (cursor.fit() == Fit::kMore) return false;
  if (cursor.ok()) held_.erase(0, cursor.at());
  state_ = State::kText;
  return true;
}

void CallReader::begin(const Head& head) {
  at_start_ = false;
  is_broken_ = false;
  scanner_ = {};
  events_.push_back({CallEvent::Kind::kBegin, head.name});
  state_ = State::kArguments;
  if (!head.arguments) return;
  write(*head.arguments);
  end();
}

void CallReader::end() {
  events_.push_back({CallEvent::Kind::kEnd});
  state_ = State::kClosing;
  after_call_ = true;
}

void CallReader::add(CallEvent::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (kind == CallEvent::Kind::kText) at_start_ = after_call_ = false;
  if (!events_.empty() && events_.back().kind == kind)
    events_.back().text += text;
  else
    events_.push_back({kind, std::string(text)});
}

void CallReader::write_text(std::string_view text) {
  const std::string quoted = Json(text).dump();
  write(std::string_view(quoted).substr(1, quoted.size() - 2));
}

bool CallReader::read_arguments(CallCursor& cursor, bool is_whole) {
  const std::string_view text = cursor.rest();
  size_t size = 0;
  while (!is_broken_ && size < text.size() && !scanner_.is_closed())
    if (scanner_.take(text[size]))
      ++size;
    else
      is_broken_ = true;
  if (is_broken_) {
    const std::string_view mark = closing_mark();
    const size_t found = mark.empty() ? std::string_view::npos : text.find(mark, size);
    size = found != std::string_view::npos ? found
           : is_whole || mark.empty()      ? text.size()
                                           : text.size() - begun_mark(text.substr(size), mark);
    write(text.substr(0, size));
    cursor.skip(size);
    return found != std::string_view::npos;
  }
  write(text.substr(0, size));
  cursor.skip(size);
  return scanner_.is_closed();
}

}  // namespace heddle
