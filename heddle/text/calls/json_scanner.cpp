#include "heddle/text/calls/json_scanner.h"

namespace heddle {
namespace {

constexpr size_t kMostOpen = 128;  // containers in each other, as in parse_json

bool is_json_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}
bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}
bool is_hex(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

}  // namespace

bool JsonScanner::is_complete() const {
  const bool is_whole_number = state_ == State::kZero || state_ == State::kDigits ||
                               state_ == State::kFraction || state_ == State::kExponentDigits;
  return open_.empty() && (state_ == State::kAfterValue || is_whole_number);
}

bool JsonScanner::take(char byte) {
  switch (state_) {
    case State::kText:
    case State::kEscape:
    case State::kCode:
      return take_text(byte);
    case State::kWord:
      if (byte != word_rest_.front()) return false;
      word_rest_.remove_prefix(1);
      return word_rest_.empty() ? go_to(State::kAfterValue) : true;
    case State::kAfterValue:
      return !open_.empty() && after_value(byte);
    default:
      break;
  }
  if (is_number()) return take_number(byte);
  if (is_json_space(byte)) return true;
  switch (state_) {
    case State::kColon:
      return byte == ':' && go_to(State::kValue);
    case State::kFirstKey:
      if (byte == '}') return close('{');
      [[fallthrough]];
    case State::kKey:
      in_key_ = true;
      return byte == '"' && go_to(State::kText);
    case State::kFirstItem:
      if (byte == ']') return close('[');
      [[fallthrough]];
    default:
      return begin_value(byte);
  }
}

bool JsonScanner::begin_value(char byte) {
  in_key_ = false;
  if (byte == '{' || byte == '[') {
    if (open_.size() == kMostOpen) return false;
    open_ += byte;
    return go_to(byte == '{' ? State::kFirstKey : State::kFirstItem);
  }
  if (byte == '"') return go_to(State::kText);
  if (byte == '-') return go_to(State::kMinus);
  if (is_digit(byte)) return go_to(byte == '0' ? State::kZero : State::kDigits);
  for (const std::string_view word : {"true", "false", "null"}) {
    if (byte != word.front()) continue;
    word_rest_ = word.substr(1);
    return go_to(State::kWord);
  }
  return false;
}

bool JsonScanner::take_text(char byte) {
  if (state_ == State::kCode) {
    if (!is_hex(byte)) return false;
    return --code_digits_ == 0 ? go_to(State::kText) : true;
  }
  if (state_ == State::kEscape) {
    if (byte == 'u') {
      code_digits_ = 4;
      return go_to(State::kCode);
    }
    return std::string_view("\"\\/bfnrt").find(byte) != std::string_view::npos && go_to(State::kText);
  }
  if (byte == '\\') return go_to(State::kEscape);
  if (byte == '"') return go_to(in_key_ ? State::kColon : State::kAfterValue);
  return static_cast<unsigned char>(byte) >= 0x20;
}

bool JsonScanner::take_number(char byte) {
  const bool digit = is_digit(byte);
  switch (state_) {
    case State::kMinus:
      return digit && go_to(byte == '0' ? State::kZero : State::kDigits);
    case State::kPoint:
    case State::kFraction:
      if (digit) return go_to(State::kFraction);
      if (state_ == State::kPoint) return false;
      break;
    case State::kExponent:
      if (byte == '+' || byte == '-') return go_to(State::kExponentSign);
      [[fallthrough]];
    case State::kExponentSign:
      return digit && go_to(State::kExponentDigits);
    case State::kExponentDigits:
      if (digit) return true;
      break;
    default:  // kZero, kDigits
      if (digit) return state_ == State::kDigits;
      if (byte == '.') return go_to(State::kPoint);
      break;
  }
  if ((byte == 'e' || byte == 'E') && state_ != State::kExponentDigits) return go_to(State::kExponent);
  if (open_.empty() || !after_value(byte)) return false;
  if (is_json_space(byte)) state_ = State::kAfterValue;  // no digit may follow now
  return true;
}

bool JsonScanner::after_value(char byte) {
  if (is_json_space(byte)) return true;
  if (byte == ',') return go_to(open_.back() == '{' ? State::kKey : State::kValue);
  return (byte == '}' && close('{')) || (byte == ']' && close('['));
}

bool JsonScanner::close(char bracket) {
  if (open_.back() != bracket) return false;
  open_.pop_back();
  return go_to(State::kAfterValue);
}

}  // namespace heddle
