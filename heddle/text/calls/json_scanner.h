// Checks JSON byte by byte, as it comes: whether a byte may follow, and whether the value is complete.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

class JsonScanner {
 public:
  // Takes the next byte of a value; false if it is no part of it. White space before a value is a part of it.
  bool take(char byte);
  // The value is complete. More digits may still follow a number.
  bool is_complete() const;
  // The value is complete, and nothing can follow.
  bool is_closed() const { return state_ == State::kAfterValue && open_.empty(); }

 private:
  enum class State {
    kValue,
    kFirstItem,  // or the end of the array
    kFirstKey,   // or the end of the object
    kKey,
    kColon,
    kAfterValue,
    kText,
    kEscape,
    kCode,  // four hexadecimal digits
    kWord,
    kMinus,
    kZero,
    kDigits,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits
  };
  bool begin_value(char byte);
  bool take_text(char byte);
  bool take_number(char byte);
  bool after_value(char byte);
  bool close(char bracket);
  bool go_to(State state) { return state_ = state, true; }
  bool is_number() const { return state_ >= State::kMinus; }

  State state_ = State::kValue;
  std::string open_;  // a '{' or '[' for each container that is open
  bool in_key_ = false;
  int code_digits_ = 0;         // missing digits, in kCode
  std::string_view word_rest_;  // the rest of true, false or null
};

}  // namespace heddle
