// Reads a text whose end has not come yet. Where that leaves open what the text is, the answer is kMore.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

enum class Fit { kYes, kNo, kMore };

// After a function has failed, all others do, so that only the last need be asked.
class CallCursor {
 public:
  // `is_whole`: nothing follows the text.
  CallCursor(std::string_view text, bool is_whole) : text_(text), is_whole_(is_whole) {}

  Fit fit() const { return fit_; }
  bool is_whole() const { return is_whole_; }
  bool ok() const { return fit_ == Fit::kYes; }
  size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }
  bool fail() { return fit_ = Fit::kNo, false; }

  void skip(size_t bytes) { at_ += bytes; }
  void skip_spaces();
  // Takes `mark`, or fails.
  bool take(std::string_view mark);
  // Takes `mark` if it is there.
  bool take_if(std::string_view mark);
  // The next byte, which stays; 0 where it fails, at the end.
  char peek();
  // Fails if the next byte is another.
  void expect(char byte) {
    if (peek() != byte && ok()) fail();
  }
  // Fails if the next is neither; both stay.
  void expect(std::string_view mark, std::string_view other);
  // Takes up to `most` bytes before `mark`, and the mark.
  std::optional<std::string_view> take_until(std::string_view mark, size_t most);
  // Takes a name: letters, digits, and what else `others` has.
  std::string_view take_name(std::string_view others);
  // Takes a JSON value; its text.
  std::optional<std::string_view> take_json();
  // Takes a JSON string; its content.
  std::optional<std::string> take_json_text();

 private:
  bool fail_at_end() { return fit_ = is_whole_ ? Fit::kNo : Fit::kMore, false; }

  std::string_view text_;
  bool is_whole_;
  size_t at_ = 0;
  Fit fit_ = Fit::kYes;
};

constexpr bool is_call_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

// The number of bytes at the end of `text` that may be the beginning of `mark`.
size_t begun_mark(std::string_view text, std::string_view mark);

}  // namespace heddle
