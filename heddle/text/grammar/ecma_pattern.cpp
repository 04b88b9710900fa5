#include "heddle/text/grammar/ecma_pattern.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr u32 kAny = UINT32_MAX;  // times without a limit

struct Range {
  char32_t low, high;
};
using Ranges = std::vector<Range>;

Ranges sorted(Ranges ranges) {
  std::ranges::sort(ranges, {}, &Range::low);
  Ranges made;
  for (const Range& range : ranges)
    if (!made.empty() && range.low <= made.back().high + 1)
      made.back().high = std::max(made.back().high, range.high);
    else
      made.push_back(range);
  return made;
}

Ranges all_but(const Ranges& ranges) {
  Ranges made;
  char32_t from = 0;
  for (const Range& range : sorted(ranges)) {
    if (range.low > from) made.push_back({from, range.low - 1});
    from = range.high + 1;
  }
  if (from <= kLast) made.push_back({from, kLast});
  return made;
}

const Ranges kDigits{{'0', '9'}}, kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
    kSpace{{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
           {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}},
    kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

struct Part {
  enum Kind : u8 { kSet, kAll, kOne, kRepeat, kBegin, kEnd } kind = kAll;  // kAll: one after the other
  Ranges set = {};
  std::vector<Part> parts = {};
  u32 least = 1, most = 1;  // times, for kRepeat
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Part read() {
    Part part = read_choice(0);
    if (!at_end()) fail("')' has no '('");
    return part;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    heddle::fail(ErrorCode::kUnsupported, "at byte {}: {}", at_, what);
  }
  bool at_end() const { return at_ == text_.size(); }
  bool take(std::string_view wanted) {
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  char32_t take_character() {
    if (at_end()) fail("the pattern ends too early");
    const Utf8Char c = first_char(text_.substr(at_));
    if (c.state != Utf8Char::kValid) fail("it is not UTF-8");
    at_ += c.size;
    return c.code_point;
  }

  Part read_choice(int depth) {
    constexpr int kMostDepth = 64;
    if (depth > kMostDepth) fail("too many groups lie in each other");
    Part choice{.kind = Part::kOne};
    do choice.parts.push_back(read_sequence(depth));
    while (take("|"));
    return choice.parts.size() == 1 ? std::move(choice.parts[0]) : choice;
  }
  Part read_sequence(int depth) {
    Part sequence;
    while (!at_end() && text_[at_] != '|' && text_[at_] != ')')
      sequence.parts.push_back(read_repeats(read_atom(depth)));
    return sequence;
  }

  Part read_atom(int depth) {
    if (take("^")) return {.kind = Part::kBegin};
    if (take("$")) return {.kind = Part::kEnd};
    if (take(".")) return {.kind = Part::kSet, .set = all_but(kLineEnds)};
    if (take("[")) return {.kind = Part::kSet, .set = read_class()};
    if (take("(")) {
      if (take("?") && !take(":")) {
        const bool has_name = take("<") && !at_end() && text_[at_] != '=' && text_[at_] != '!';
        const size_t close = has_name ? text_.find('>', at_) : std::string_view::npos;
        if (close == std::string_view::npos) fail("only (...), (?:...) and (?<name>...) are read");
        at_ = close + 1;
      }
      Part group = read_choice(depth + 1);
      if (!take(")")) fail("')' is expected");
      return group;
    }
    if (take("\\")) return {.kind = Part::kSet, .set = read_escape()};
    for (const char c : std::string_view("*+?{"))
      if (text_[at_] == c) fail("there is nothing to repeat");
    const char32_t c = take_character();
    return {.kind = Part::kSet, .set = {{c, c}}};
  }

  Part read_repeats(Part part) {
    u32 least = 1, most = 1;
    if (take("*"))
      least = 0, most = kAny;
    else if (take("+"))
      most = kAny;
    else if (take("?"))
      least = 0;
    else if (take("{"))
      read_times(least, most);
    else
      return part;
    take("?");  // lazy or not, it matches the same texts
    for (const char c : std::string_view("*+?{"))
      if (!at_end() && text_[at_] == c) fail("it repeats twice");
    if (part.kind == Part::kBegin || part.kind == Part::kEnd) fail("^ or $ is repeated");
    return {.kind = Part::kRepeat, .parts = {std::move(part)}, .least = least, .most = most};
  }
  u32 read_number() {
    constexpr u32 kMost = 10000;
    u32 number = 0;
    const size_t begin = at_;
    for (; !at_end() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      number = 10 * number + u32(text_[at_] - '0');
      if (number > kMost) fail("it repeats too often");
    }
    if (at_ == begin) fail("a number of times is expected");
    return number;
  }
  void read_times(u32& least, u32& most) {
    least = most = read_number();
    if (take(",")) most = !at_end() && text_[at_] == '}' ? kAny : read_number();
    if (!take("}") || most < least) fail("{least,most} is expected");
  }

  std::optional<char32_t> take_hex(size_t digits) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char c = at_ + i < text_.size() ? text_[at_ + i] : ' ';
      const size_t digit = std::string_view("0123456789abcdef").find(char(c | 0x20));
      if (digit == std::string_view::npos) return {};
      value = 16 * value + char32_t(digit);
    }
    at_ += digits;
    return value;
  }
  Ranges read_escape() {
    const char32_t c = take_character();
    const auto one = [](char32_t which) { return Ranges{{which, which}}; };
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return all_but(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return all_but(kWord);
      case 's':
        return kSpace;
      case 'S':
        return all_but(kSpace);
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'x':
      case 'u':
        if (const auto value = take_hex(c == 'x' ? 2 : 4)) return one(*value);
        fail("hexadecimal digits are expected");
      default:
        if (c < 128 && (c == '_' || std::isalnum(int(c)) != 0)) fail("this escape is not read");
        return one(c);
    }
  }
  Ranges read_class() {
    const bool negated = take("^");
    Ranges ranges;
    while (!take("]")) {
      Ranges low = read_member();
      if (take("-")) {
        if (take("]")) {
          low.push_back({'-', '-'});
          ranges.insert(ranges.end(), low.begin(), low.end());
          break;
        }
        const Ranges high = read_member();
        if (low.size() != 1 || high.size() != 1 || low[0].low != low[0].high || high[0].low != high[0].high ||
            high[0].low < low[0].low)
          fail("a range of a class is two characters in order");
        low[0].high = high[0].low;
      }
      ranges.insert(ranges.end(), low.begin(), low.end());
    }
    return negated ? all_but(ranges) : sorted(std::move(ranges));
  }
  Ranges read_member() {
    if (take("\\b")) return {{'\b', '\b'}};
    if (take("\\")) return read_escape();
    const char32_t c = take_character();
    return {{c, c}};
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Maker {
 public:
  explicit Maker(Spelling spelling) : json_(spelling == Spelling::kJsonString) {}

  ByteDfa make(const Part& part) {
    const u32 begin = nfa_.add();
    if (!json_) return nfa_.determinised(begin, add(part, begin));
    // ^ and $ read the quotes. Where the pattern does not, quotes and any text lie around what matches.
    const u32 inside = nfa_.add(), found = nfa_.add(), end = nfa_.add();
    const u32 from = nfa_.add();
    nfa_.edge(begin, '"', '"', inside), nfa_.skip(inside, from), nfa_.skip(begin, from);
    add_set(all_but({}), inside, inside);
    const u32 to = add(part, from);
    nfa_.skip(to, found), nfa_.skip(to, end);
    add_set(all_but({}), found, found);
    nfa_.edge(found, '"', '"', end);
    // A string has two quotes, so nothing else is accepted.
    const u32 whole = nfa_.add(), text = nfa_.add(), closed = nfa_.add();
    nfa_.edge(whole, '"', '"', text), add_set(all_but({}), text, text), nfa_.edge(text, '"', '"', closed);
    return ByteDfa::both(nfa_.determinised(begin, end), nfa_.determinised(whole, closed));
  }

 private:
  u32 add(const Part& part, u32 from) {
    switch (part.kind) {
      case Part::kSet: {
        const u32 to = nfa_.add();
        add_set(part.set, from, to);
        return to;
      }
      case Part::kBegin:
      case Part::kEnd: {
        require(json_, "^ and $ are not read here");
        const u32 to = nfa_.add();
        nfa_.edge(from, '"', '"', to);
        return to;
      }
      case Part::kAll:
        for (const Part& one : part.parts) from = add(one, from);
        return from;
      case Part::kOne: {
        const u32 to = nfa_.add();
        for (const Part& one : part.parts) nfa_.skip(add(one, from), to);
        return to;
      }
      default:
        return add_repeat(part, from);
    }
  }
  u32 add_repeat(const Part& part, u32 from) {
    const Part& one = part.parts[0];
    for (u32 i = 0; i < part.least; ++i) {
      const u32 next = add(one, from);
      if (next == from) return from;  // nothing, as often as it may be
      from = next;
    }
    if (part.most == kAny) {
      const u32 again = nfa_.add();
      nfa_.skip(from, again);
      nfa_.skip(add(one, again), again);
      return again;
    }
    const u32 end = nfa_.add();
    for (u32 i = part.least; i < part.most; ++i) nfa_.skip(from, end), from = add(one, from);
    nfa_.skip(from, end);
    return end;
  }

  void add_set(const Ranges& ranges, u32 from, u32 to) {
    for (const Range& range : ranges) add_range(range.low, range.high, from, to);
  }
  void add_range(char32_t low, char32_t high, u32 from, u32 to) {
    for (; json_ && low <= high && low < 0x20; ++low) add_text(json_spelling(low), from, to);
    for (const char32_t escaped : {char32_t('"'), char32_t('\\')}) {
      if (!json_ || escaped < low || escaped > high) continue;
      if (low < escaped) add_range(low, escaped - 1, from, to);
      add_text(json_spelling(escaped), from, to);
      low = escaped + 1;
    }
    constexpr Range kLengths[] = {
        {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, kLast}};  // in UTF-8
    for (const Range& same : kLengths) {
      const char32_t first = std::max(low, same.low), last = std::min(high, same.high);
      if (first > last) continue;
      std::string least, most;
      append_utf8(first, least), append_utf8(last, most);
      add_bytes(least, most, from, to);
    }
  }
  // All between two characters of the same length.
  void add_bytes(std::string_view least, std::string_view most, u32 from, u32 to) {
    const u8 low = u8(least[0]), high = u8(most[0]);
    if (least.size() == 1) return nfa_.edge(from, low, high, to);
    const auto rest = [&](u8 begin, u8 end, std::string_view first, std::string_view last) {
      const u32 middle = nfa_.add();
      nfa_.edge(from, begin, end, middle);
      add_bytes(first, last, middle, to);
    };
    const std::string none(least.size() - 1, '\x80'), all(least.size() - 1, '\xBF');
    if (low == high) return rest(low, high, least.substr(1), most.substr(1));
    rest(low, low, least.substr(1), all);
    if (low + 1 < high) rest(u8(low + 1), u8(high - 1), none, all);
    rest(high, high, none, most.substr(1));
  }
  void add_text(std::string_view text, u32 from, u32 to) {
    for (size_t i = 0; i < text.size(); ++i) {
      const u32 next = i + 1 == text.size() ? to : nfa_.add();
      nfa_.edge(from, u8(text[i]), u8(text[i]), next);
      from = next;
    }
  }

  const bool json_;
  ByteNfa nfa_;
};

}  // namespace

std::string json_spelling(char32_t c) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  if (c < 128)
    if (const size_t at = kEscaped.find(char(c)); at != std::string_view::npos) return {'\\', kLetters[at]};
  if (c < 0x20) return fmt::format("\\u{:04x}", u32(c));
  std::string text;
  append_utf8(c, text);
  return text;
}

ByteDfa dfa_of_pattern(std::string_view pattern, Spelling spelling) {
  return Maker(spelling).make(Reader(pattern).read());
}

}  // namespace heddle
