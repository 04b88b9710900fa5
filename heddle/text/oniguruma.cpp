#include "heddle/text/oniguruma.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/text/oniguruma_sets.h"
#include "heddle/text/unicode/code_set.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr size_t kNone = std::string::npos;

// Pairs of ASCII letters that one character folds to: ß, ﬀ, ﬁ, ﬂ, ﬆ. Oniguruma matches those too.
constexpr std::string_view kFoldedPairs[] = {"ss", "ff", "fi", "fl", "st"};

std::string literal_text(uint32_t code_point) {
  const bool plain = code_point < 0x80 && std::isalnum(int(code_point));
  return plain ? std::string(1, char(code_point)) : fmt::format("\\x{{{:x}}}", code_point);
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}
  std::string run();

 private:
  struct Group {
    size_t begin;   // in the output
    bool caseless;  // restored after the group
    bool look_around;
  };

  [[noreturn]] void invalid(std::string_view what) const {
    fail(ErrorCode::kInvalidArgument, "[pattern] {}: at byte {} of '{}'", what, at_, in_);
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    fail(ErrorCode::kUnsupported, "[pattern] {} is not supported: at byte {} of '{}'", what, at_, in_);
  }

  bool ahead(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool take(std::string_view text);
  char take_char();
  uint32_t take_code_point();
  uint32_t take_hexadecimal(size_t digits);
  uint32_t take_code_point_in_braces();
  std::string take_digits();

  // Writes something that a quantifier may follow.
  void emit(std::string_view text);
  void emit_class(std::string_view inside, bool negated) {
    emit(fmt::format("[{}{}]", negated ? "^" : "", inside));
  }
  // Writes something that no quantifier may follow.
  void emit_assertion(std::string_view text);

  void item();
  void literal(uint32_t code_point);
  void open_group();
  void close_group();
  bool comment();
  bool quantifier();
  std::optional<std::string> interval();
  void escape();
  uint32_t escaped_literal(char name);
  std::optional<CharSet> escaped_set(char name, bool in_class);
  CharSet property(bool negated, bool in_class);
  void char_class();
  void char_class_by_ranges(size_t begin);
  CodeSet read_class(int depth);
  CodeSet posix_set();
  bool range_ahead();
  uint32_t take_range_end(uint32_t first);
  std::optional<uint32_t> class_item(CharSet& set);

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = kNone;    // where the last repeatable item begins in the output
  bool repeated_ = false;  // it has a quantifier already
  char letter_ = 0;        // it is this letter, in lower case
  bool caseless_ = false;
  std::vector<Group> groups_;
};

std::string Translator::run() {
  constexpr size_t kMaxBytes = 1 << 16;
  if (in_.size() > kMaxBytes) {
    fail(ErrorCode::kUnsupported, "[pattern] a pattern has {} bytes; {} is the most", in_.size(), kMaxBytes);
  }
  if (take("(?i)")) {
    caseless_ = true;
    out_ = "(?i)";
  }
  while (at_ < in_.size()) item();
  if (!groups_.empty()) invalid("a ( has no )");
  return std::move(out_);
}

bool Translator::take(std::string_view text) {
  const bool there = ahead(text);
  if (there) at_ += text.size();
  return there;
}

char Translator::take_char() {
  if (at_ == in_.size()) invalid("the pattern ends too early");
  return in_[at_++];
}

uint32_t Translator::take_code_point() {
  if (at_ == in_.size()) invalid("the pattern ends too early");
  const Utf8Char c = first_char(in_.substr(at_));
  if (c.state != Utf8Char::kValid) invalid("this byte is not UTF-8");
  at_ += c.size;
  return c.code_point;
}

uint32_t Translator::take_hexadecimal(size_t digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = take_char();
    if (!std::isxdigit(uint8_t(c))) invalid("a hexadecimal digit is missing");
    value = value * 16 + uint32_t(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

uint32_t Translator::take_code_point_in_braces() {
  const size_t end = in_.find('}', at_);
  if (end == std::string::npos || end == at_ || end - at_ > 8) invalid("\\x{ needs 1 to 8 digits and a }");
  const uint32_t value = take_hexadecimal(end - at_);
  ++at_;
  return value;
}

std::string Translator::take_digits() {
  const size_t begin = at_;
  while (at_ < in_.size() && std::isdigit(uint8_t(in_[at_]))) ++at_;
  return std::string(in_.substr(begin, at_ - begin));
}

void Translator::emit(std::string_view text) {
  atom_ = out_.size();
  repeated_ = false;
  letter_ = 0;
  out_ += text;
}

void Translator::emit_assertion(std::string_view text) {
  emit(text);
  atom_ = kNone;
}

void Translator::item() {
  if (quantifier() || comment()) return;
  const size_t begin = at_;
  const uint32_t c = take_code_point();
  switch (c) {
    case '\\':
      return escape();
    case '[':
      return char_class();
    case '(':
      return open_group();
    case ')':
      return close_group();
    case '|':
    case '^':
    case '$':
      return emit_assertion(in_.substr(begin, 1));
    case '.':
      return emit(".");
    default:
      return literal(c);
  }
}

void Translator::literal(uint32_t code_point) {
  const bool is_letter = code_point < 0x80 && std::isalpha(int(code_point));
  const char letter = is_letter ? char(std::tolower(int(code_point))) : '\0';
  if (caseless_) {
    const char pair[] = {letter_, letter};
    if (code_point >= 0x80) unsupported("a character beyond ASCII under (?i)");
    if (std::ranges::find(kFoldedPairs, std::string_view(pair, 2)) != std::end(kFoldedPairs)) {
      unsupported("a pair of letters that is also one character under (?i)");
    }
  }
  emit(literal_text(code_point));
  letter_ = letter;
}

void Translator::open_group() {
  struct Kind {
    std::string_view oniguruma, pcre2;
    bool look_around = false;
  };
  constexpr Kind kKinds[] = {{"?:", "(?:"},       {"?>", "(?>"},         {"?=", "(?=", true},
                             {"?!", "(?!", true}, {"?<=", "(?<=", true}, {"?<!", "(?<!", true},
                             {"?i:", "(?i:"},     {"?-i:", "(?-i:"},     {"?m:", "(?s:"}};
  Group group{out_.size(), caseless_, false};
  const Kind* kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return take(k.oniguruma); });
  if (kind == std::end(kKinds)) {
    if (ahead("?")) unsupported("this kind of group");
    out_ += "(?:";
  } else {
    out_ += kind->pcre2;
    group.look_around = kind->look_around;
    if (kind->oniguruma == "?i:") caseless_ = true;
    if (kind->oniguruma == "?-i:") caseless_ = false;
  }
  groups_.push_back(group);
  atom_ = kNone;
  letter_ = 0;
}

void Translator::close_group() {
  if (groups_.empty()) invalid("a ) has no (");
  const Group group = groups_.back();
  groups_.pop_back();
  out_ += ')';
  atom_ = group.look_around ? kNone : group.begin;
  caseless_ = group.caseless;
  repeated_ = false;
  letter_ = 0;
}

bool Translator::comment() {
  if (!take("(?#")) return false;
  while (take_char() != ')') continue;
  return true;
}

// {n}, {n,}, {n,m} or {,m} as PCRE2 writes it; nothing if the brace is a literal.
std::optional<std::string> Translator::interval() {
  const size_t begin = at_;
  if (!take("{")) return std::nullopt;
  const std::string low = take_digits();
  const bool comma = take(",");
  const std::string high = take_digits();
  if (!take("}") || (low.empty() && high.empty())) {
    at_ = begin;
    return std::nullopt;
  }
  constexpr size_t kMaxDigits = 4;
  if (low.size() > kMaxDigits || high.size() > kMaxDigits) unsupported("a repeat of 10,000 and more");
  if (!low.empty() && !high.empty() && std::stoi(low) > std::stoi(high)) unsupported("a falling interval");
  return fmt::format("{{{}{}{}}}", low.empty() ? "0" : low, comma ? "," : "", high);
}

// Oniguruma repeats a repeat where PCRE2 sees a possessive interval or an error, so that atom gets a group.
bool Translator::quantifier() {
  std::string text;
  if (const auto braces = interval()) {
    const bool fixed = braces->find(',') == std::string::npos;
    text = *braces + (!fixed && take("?") ? "?" : "");
  } else if (ahead("*") || ahead("+") || ahead("?")) {
    text = take_char();
    if (ahead("?") || ahead("+")) text += take_char();
  } else {
    return false;
  }
  if (atom_ == kNone) invalid("a repeat follows nothing that repeats");
  if (repeated_) {
    out_.insert(atom_, "(?:");
    out_ += ')';
  }
  out_ += text;
  repeated_ = true;
  letter_ = 0;
  return true;
}

void Translator::escape() {
  const char name = take_char();
  switch (name) {
    case 'A':
    case 'z':
    case 'Z':
    case 'G':
      return emit_assertion(fmt::format("\\{}", name));
    case 'b':
    case 'B': {
      const std::string& word = word_class_text();
      constexpr std::string_view kIn = "(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))";
      constexpr std::string_view kOut = "(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))";
      return emit_assertion(fmt::format(fmt::runtime(name == 'b' ? kIn : kOut), word));
    }
    default:
      if (const auto set = escaped_set(name, false)) return emit_class(set->text, set->negated);
      return literal(escaped_literal(name));
  }
}

uint32_t Translator::escaped_literal(char name) {
  switch (name) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    case 'e':
      return 0x1B;
    case 'u':
      return take_hexadecimal(4);
    case 'x': {
      const bool braces = take("{");
      const uint32_t value = braces ? take_code_point_in_braces() : take_hexadecimal(2);
      if (!braces && value >= 0x80) unsupported("a byte above 7F");
      return value;
    }
    default:
      if (std::isalnum(uint8_t(name))) unsupported(fmt::format("\\{}", name));
      --at_;
      return take_code_point();
  }
}

std::optional<CharSet> Translator::escaped_set(char name, bool in_class) {
  if (caseless_ && (name == 'w' || name == 'W')) unsupported("\\w under (?i)");
  if (name != 'p' && name != 'P') return escaped_char_set(name, in_class);
  if (caseless_) unsupported("\\p under (?i)");
  return property(name == 'P', in_class);
}

CharSet Translator::property(bool negated, bool in_class) {
  if (!take("{")) unsupported("\\p without {");
  if (take("^")) negated = !negated;
  const size_t end = in_.find('}', at_);
  if (end == std::string::npos) invalid("\\p{ has no }");
  const std::string_view name = in_.substr(at_, end - at_);
  auto set = property_char_set(name, in_class);
  if (!set) unsupported(fmt::format("the property '{}'", name));
  at_ = end + 1;
  set->negated = negated;
  return std::move(*set);
}

// A class of plain items keeps its form. One with sets in it that PCRE2 cannot write (negated ones, classes,
// intersections) is written as ranges.
void Translator::char_class() {
  const size_t begin = at_;
  const bool negated = take("^");
  if (ahead("]")) unsupported("a class that begins with ]");
  std::string inside;
  while (!take("]")) {
    if (ahead("[") || ahead("&&")) return char_class_by_ranges(begin);
    CharSet set;
    if (const auto first = class_item(set)) {
      inside += literal_text(*first);
      if (range_ahead()) inside.append("-").append(literal_text(take_range_end(*first)));
    } else if (set.negated) {
      return char_class_by_ranges(begin);
    } else {
      inside += set.text;
    }
  }
  emit_class(inside, negated);
}

bool Translator::range_ahead() {
  return ahead("-") && !ahead("-]") && !ahead("-&&") && !ahead("-[");
}

uint32_t Translator::take_range_end(uint32_t first) {
  take_char();
  CharSet none;
  const auto last = class_item(none);
  if (!last || *last < first) invalid("a range has no end or a falling one");
  return *last;
}

void Translator::char_class_by_ranges(size_t begin) {
  at_ = begin;
  const CodeSet set = read_class(0);
  // PCRE2 takes the ] of [] for a member.
  if (set.ranges().empty()) return emit_class((~set).class_text(), true);
  emit_class(set.class_text(), false);
}

// The rest of a class after its [. Sets on both sides of && are cut with each other.
CodeSet Translator::read_class(int depth) {
  constexpr int kMostClasses = 16;
  if (depth == kMostClasses) unsupported("a class this deep");
  if (caseless_) unsupported("sets of a class under (?i)");
  const bool negated = take("^");
  if (ahead("]")) unsupported("a class that begins with ]");
  std::optional<CodeSet> before;  // what stands before the last &&
  CodeSet set;
  std::vector<CodeRange> literals;  // not in `set` yet
  const auto gather = [&] { set = set | CodeSet(std::exchange(literals, {})); };
  while (!take("]")) {
    if (ahead("[:")) {
      set = set | posix_set();
    } else if (take("[")) {
      set = set | read_class(depth + 1);
    } else if (take("&&")) {
      gather();
      before = before ? *before & set : set;
      set = {};
    } else {
      CharSet item;
      if (const auto first = class_item(item)) {
        literals.push_back({*first, range_ahead() ? take_range_end(*first) : *first});
      } else {
        set = set | item.members();
      }
    }
  }
  gather();
  if (before) set = *before & set;
  return negated ? ~set : set;
}

// [:alpha:] and the like, inside of a class.
CodeSet Translator::posix_set() {
  take("[:");
  const bool negated = take("^");
  const size_t end = in_.find(":]", at_);
  const auto set = end == kNone ? std::nullopt : posix_code_set(in_.substr(at_, end - at_));
  if (!set) unsupported("this POSIX bracket");
  at_ = end + 2;
  return negated ? ~*set : *set;
}

// A literal of a class, or nothing if it was a set, which is then in `set`.
std::optional<uint32_t> Translator::class_item(CharSet& set) {
  uint32_t literal = 0;
  if (!take("\\")) {
    literal = take_code_point();
  } else if (take("b")) {
    literal = '\b';
  } else {
    const char name = take_char();
    if (auto escaped = escaped_set(name, true)) {
      // The class contains ß, and with it Oniguruma matches the two letters "ss".
      if (caseless_ && name == 'S') unsupported("\\S in a class under (?i)");
      set = std::move(*escaped);
      return std::nullopt;
    }
    literal = escaped_literal(name);
  }
  if (caseless_ && literal >= 0x80) unsupported("a character beyond ASCII under (?i)");
  return literal;
}

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern) {
  return Translator(pattern).run();
}

std::string pcre2_from_text(std::string_view text) {
  std::string pattern;
  while (!text.empty()) {
    const Utf8Char c = first_char(text);
    pattern += literal_text(c.code_point);
    text.remove_prefix(c.size);
  }
  return pattern;
}

}  // namespace heddle
