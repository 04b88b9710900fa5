#include "heddle/text/jinja/lexer.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/text/jinja/character_class.h"
#include "heddle/text/jinja/format_spec.h"
#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

// The bytes of the name that `text` begins with; 0 if it begins with none.
size_t name_size(std::string_view text) {
  size_t size = 0;
  while (size < text.size()) {
    const Utf8Char c = first_char(text.substr(size));
    if (!(size == 0 ? begins_identifier(c.code_point) : continues_identifier(c.code_point))) break;
    size += c.size;
  }
  return size;
}

// Reads every line ending as a line feed and drops the template's last one, as Jinja does.
std::string normalize_lines(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text += '\n';
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(normalize_lines(source)) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) read_data();
    add(Token::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(ErrorCode code, std::string_view what) const {
    fail(code, "line {}: {}", line_, what);
  }
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance(size_t size) {
    line_ += int(std::count(text_.begin() + long(at_), text_.begin() + long(at_ + size), '\n'));
    at_ += size;
    if (size > 0) line_starts_ = text_[at_ - 1] == '\n';
  }
  void skip_spaces() { advance(rest().size() - strip(rest(), Sides::kLeft).size()); }
  bool skip(std::string_view what) {
    if (!rest().starts_with(what)) return false;
    advance(what.size());
    return true;
  }

  void read_data();
  void add_data(std::string_view data, char sign, bool is_block);
  void read_comment();
  bool read_raw();
  size_t match_tag(size_t at, std::string_view word, char& sign) const;
  void end_tag(char sign);
  void read_tag(bool is_block);
  bool read_tag_end(bool is_block);
  void read_token();
  void read_number();
  bool read_prefixed_number();
  void read_string();
  void read_escape(std::string& value);
  void read_operator();

  std::string text_;
  std::vector<Token> tokens_;
  std::string open_;  // brackets that are not closed yet
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // the last tag ended a line
};

// Reads the text up to the next tag, and that tag.
void Lexer::read_data() {
  size_t begin = at_;
  while (begin < text_.size()) {
    begin = text_.find('{', begin);
    if (begin == std::string::npos || begin + 1 == text_.size()) begin = text_.size();
    if (begin == text_.size() || std::string_view("{%#").find(text_[begin + 1]) != std::string_view::npos)
      break;
    ++begin;
  }
  const std::string_view data = rest().substr(0, begin - at_);
  if (begin == text_.size()) {
    if (!data.empty()) add(Token::kData, std::string(data));
    return advance(data.size());
  }
  const char kind = text_[begin + 1];
  const char next = begin + 2 < text_.size() ? text_[begin + 2] : 0;
  const char sign = next == '-' || next == '+' ? next : char(0);
  add_data(data, sign, kind != '{');
  advance(data.size() + 2 + (sign ? 1 : 0));
  if (kind == '#') return read_comment();
  if (kind == '%' && read_raw()) return;
  add(kind == '{' ? Token::kOutputBegin : Token::kBlockBegin, "");
  read_tag(kind == '%');
}

// `sign` is the character after the opening brace of the next tag. Without one, lstrip_blocks removes white
// space between the beginning of the line and a block or comment.
void Lexer::add_data(std::string_view data, char sign, bool is_block) {
  if (sign == '-') {
    data = strip(data, Sides::kRight);
  } else if (sign != '+' && is_block) {
    const size_t line = data.rfind('\n') + 1;
    const bool begins_line = line > 0 || line_starts_;
    if (begins_line && strip(data.substr(line), Sides::kLeft).empty()) data = data.substr(0, line);
  }
  if (!data.empty()) add(Token::kData, std::string(data));
}

void Lexer::read_comment() {
  const size_t end = rest().find("#}");
  if (end == std::string_view::npos)
    fail_here(ErrorCode::kInvalidArgument, "a comment has no end; #} would end it");
  const char before = end > 0 ? rest()[end - 1] : char(0);
  advance(end + 2);
  end_tag(before);
}

// Handles the text after the end of a block or comment: `-` removes white space, `+` nothing, and otherwise
// trim_blocks removes one line feed.
void Lexer::end_tag(char sign) {
  if (sign == '-') {
    skip_spaces();
  } else if (sign != '+') {
    skip("\n");
  }
}

// Returns the end of a tag that consists of `word` and, optionally, a sign; npos if `at` has something else.
size_t Lexer::match_tag(size_t at, std::string_view word, char& sign) const {
  const auto skip_spaces_at = [&] {
    const std::string_view here = std::string_view(text_).substr(at);
    at += here.size() - strip(here, Sides::kLeft).size();
  };
  skip_spaces_at();
  if (text_.compare(at, word.size(), word) != 0) return std::string::npos;
  at += word.size();
  skip_spaces_at();
  sign = at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at++] : char(0);
  return text_.compare(at, 2, "%}") == 0 ? at + 2 : std::string::npos;
}

bool Lexer::read_raw() {
  char sign = 0;
  const size_t data = match_tag(at_, "raw", sign);
  if (data == std::string::npos || sign == '+') return false;
  advance(data - at_);
  if (sign == '-') skip_spaces();
  for (size_t tag = text_.find("{%", at_); tag != std::string::npos; tag = text_.find("{%", tag + 2)) {
    const char next = tag + 2 < text_.size() ? text_[tag + 2] : char(0);
    const char before = next == '-' || next == '+' ? next : char(0);
    const size_t end = match_tag(tag + (before ? 3 : 2), "endraw", sign);
    if (end == std::string::npos) continue;
    add_data(rest().substr(0, tag - at_), before, true);
    advance(end - at_);
    end_tag(sign);
    return true;
  }
  fail_here(ErrorCode::kInvalidArgument, "a raw block has no end; {% endraw %} would end it");
}

bool Lexer::read_tag_end(bool is_block) {
  const std::string_view end = is_block ? "%}" : "}}";
  const std::string_view here = rest();
  const bool sign = !here.empty() && (here[0] == '-' || (is_block && here[0] == '+'));
  if (!here.substr(sign ? 1 : 0).starts_with(end)) return false;
  const char mark = sign ? here[0] : char(0);
  add(is_block ? Token::kBlockEnd : Token::kOutputEnd, "");
  advance(end.size() + (sign ? 1 : 0));
  if (is_block || mark == '-') end_tag(mark);
  return true;
}

void Lexer::read_tag(bool is_block) {
  const int begin = line_;
  while (true) {
    if (open_.empty() && read_tag_end(is_block)) return;
    if (at_ == text_.size()) {
      fail(ErrorCode::kInvalidArgument, "line {}: a tag has no end; {} would end it", begin,
           is_block ? "%}" : "}}");
    }
    read_token();
  }
}

void Lexer::read_token() {
  const std::string_view here = rest();
  const char c = here[0];
  if (is_space(first_char(here).code_point)) return skip_spaces();
  if (is_digit(c)) return read_number();
  if (c == '\'' || c == '"') return read_string();
  const size_t size = name_size(here);
  if (size == 0) return read_operator();
  add(Token::kName, std::string(here.substr(0, size)));
  advance(size);
}

// Reads 0x1f, 0o17 or 0b11; false if there is no such number.
bool Lexer::read_prefixed_number() {
  const std::string_view here = rest();
  const char letter = here.size() > 2 && here[0] == '0' ? char(here[1] | 0x20) : ' ';
  const unsigned base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (base == 0) return false;
  Wide number = 0;
  size_t size = 2;
  for (; size < here.size() && is_name_part(here[size]); ++size) {
    const char c = here[size];
    if (c == '_') continue;
    const unsigned digit = is_digit(c) ? unsigned(c - '0') : unsigned((c | 0x20) - 'a') + 10;
    if (digit >= base)
      fail_here(ErrorCode::kInvalidArgument, fmt::format("'{}' is no number", here.substr(0, size + 1)));
    if (__builtin_mul_overflow(number, Wide(base), &number) ||
        __builtin_add_overflow(number, Wide(digit), &number))
      fail_here(ErrorCode::kUnsupported, "a number in another base than ten has more than 128 bits");
  }
  add(Token::kInteger, digits_of(number));
  advance(size);
  return true;
}

void Lexer::read_number() {
  if (read_prefixed_number()) return;
  const std::string_view here = rest();
  size_t size = 0;
  const auto digits = [&] {
    while (size < here.size() && (is_digit(here[size]) || (here[size] == '_' && is_digit(here[size - 1]))))
      ++size;
  };
  const auto digit_at = [&](size_t at) { return at < here.size() && is_digit(here[at]); };
  digits();
  Token::Kind kind = Token::kInteger;
  if (here.substr(size).starts_with('.') && digit_at(size + 1)) {
    ++size;
    digits();
    kind = Token::kFloat;
  }
  if (size < here.size() && (here[size] == 'e' || here[size] == 'E')) {
    const size_t sign = size + 1 < here.size() && (here[size + 1] == '+' || here[size + 1] == '-');
    if (digit_at(size + 1 + sign)) {
      size += 1 + sign;
      digits();
      kind = Token::kFloat;
    }
  }
  std::string number(here.substr(0, size));
  std::erase(number, '_');
  const bool leading_zero = kind == Token::kInteger && number.size() > 1 && number[0] == '0';
  if (leading_zero || (size < here.size() && is_name_part(here[size]))) {
    fail_here(ErrorCode::kUnsupported, fmt::format("'{}' is not a decimal number", here.substr(0, size + 1)));
  }
  add(kind, std::move(number));
  advance(size);
}

void Lexer::read_string() {
  const char quote = text_[at_];
  const int begin = line_;
  std::string value;
  advance(1);
  while (true) {
    if (at_ == text_.size()) {
      fail(ErrorCode::kInvalidArgument, "line {}: a string has no end; {} would end it", begin, quote);
    }
    const char c = text_[at_];
    if (c != '\\') value += c;
    advance(1);
    if (c == quote) break;
    if (c == '\\' && at_ < text_.size()) read_escape(value);
  }
  value.pop_back();
  tokens_.push_back({Token::kString, std::move(value), begin});
}

// Reads an escape after a backslash, as in Python's strings.
void Lexer::read_escape(std::string& value) {
  constexpr std::string_view kPlain = "\\'\"abfnrtv", kMeaning = "\\'\"\a\b\f\n\r\t\v";
  const char c = text_[at_];
  const size_t plain = kPlain.find(c);
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (c == '\n') return advance(1);
  if (plain != std::string_view::npos) {
    value += kMeaning[plain];
    return advance(1);
  }
  if (c >= '0' && c <= '7') {
    uint32_t code = 0;
    size_t size = 0;
    for (; size < 3 && size < rest().size() && rest()[size] >= '0' && rest()[size] <= '7'; ++size)
      code = code * 8 + uint32_t(rest()[size] - '0');
    append_utf8(code, value);
    return advance(size);
  }
  if (c == 'N') fail_here(ErrorCode::kUnsupported, "the escape \\N is not supported");
  if (digits == 0) {
    value += '\\';
    if (uint8_t(c) < 0x80) return;
    // Jinja escapes what is not ASCII before it reads the escapes, so this one takes the backslash away.
    const Utf8Char character = first_char(rest());
    value += to_ascii(rest().substr(0, character.size)).substr(1);
    return advance(character.size);
  }
  const std::string_view hex = rest().substr(1, digits);
  const bool valid = hex.size() == digits && std::ranges::all_of(hex, [](char h) {
                       return is_digit(h) || (h >= 'a' && h <= 'f') || (h >= 'A' && h <= 'F');
                     });
  const auto code_point = valid ? uint32_t(std::stoul(std::string(hex), nullptr, 16)) : 0xFFFFFFFF;
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) {
    fail_here(ErrorCode::kInvalidArgument, fmt::format("the escape \\{}{} names no character", c, hex));
  }
  append_utf8(code_point, value);
  advance(1 + digits);
}

void Lexer::read_operator() {
  const std::string_view here = rest();
  const auto* found =
      std::ranges::find_if(kOperators, [&](std::string_view o) { return here.starts_with(o); });
  if (found == std::end(kOperators)) {
    const std::string_view character = here.substr(0, first_char(here).size);
    fail_here(ErrorCode::kInvalidArgument, fmt::format("'{}' has no meaning inside a tag", character));
  }
  const char c = (*found)[0];
  if (c == '(' || c == '[' || c == '{') open_ += c;
  if (c == ')' || c == ']' || c == '}') {
    const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (!open_.ends_with(opening))
      fail_here(ErrorCode::kInvalidArgument, fmt::format("'{}' closes nothing", c));
    open_.pop_back();
  }
  add(Token::kOperator, std::string(*found));
  advance(found->size());
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace heddle::jinja
