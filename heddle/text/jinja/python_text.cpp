#include "heddle/text/jinja/python_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <utf8proc.h>

#include "heddle/text/jinja/character_class.h"
#include "heddle/text/unicode/case_exceptions.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

bool ends_line(uint32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

const CaseException* exception_of(uint32_t c) {
  if (c < 0x80) return nullptr;
  const auto* found = std::ranges::lower_bound(kCaseExceptions, char32_t(c), {}, &CaseException::character);
  return found != std::end(kCaseExceptions) && found->character == c ? found : nullptr;
}

void append_all(const char32_t (&code_points)[4], std::string& out) {
  for (char32_t c : code_points) {
    if (c) append_utf8(c, out);
  }
}

void append_upper(uint32_t c, std::string& out) {
  if (const CaseException* exception = exception_of(c)) return append_all(exception->upper, out);
  append_utf8(uint32_t(utf8proc_toupper(int32_t(c))), out);
}

void append_title(uint32_t c, std::string& out) {
  if (const CaseException* exception = exception_of(c)) return append_all(exception->title, out);
  append_utf8(uint32_t(utf8proc_totitle(int32_t(c))), out);
}

// A sigma that ends a word: after a cased letter and not before one, across characters that case ignores.
bool is_final_sigma(const std::vector<uint32_t>& text, size_t at) {
  auto before = int64_t(at) - 1;
  while (before >= 0 && is_case_ignorable(text[size_t(before)])) --before;
  if (before < 0 || !is_cased(text[size_t(before)])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(const std::vector<uint32_t>& text, size_t at, std::string& out) {
  constexpr uint32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130, kDotAbove = 0x307;
  const uint32_t c = text[at];
  if (c == kSigma && is_final_sigma(text, at)) return append_utf8(kFinalSigma, out);
  append_utf8(c == kDottedI ? 'i' : uint32_t(utf8proc_tolower(int32_t(c))), out);
  if (c == kDottedI) append_utf8(kDotAbove, out);
}

}  // namespace

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::vector<uint32_t> code_points(std::string_view text) {
  std::vector<uint32_t> result;
  for (std::string_view character : characters(text)) result.push_back(first_char(character).code_point);
  return result;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const size_t size = first_char(text).size;
    result.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return result;
}

std::string_view strip(std::string_view text, Sides sides, std::optional<std::string_view> chars) {
  const auto strips = [&](std::string_view character) {
    return chars ? chars->find(character) != std::string_view::npos
                 : is_space(first_char(character).code_point);
  };
  while (sides != Sides::kRight && !text.empty()) {
    const std::string_view first = text.substr(0, first_char(text).size);
    if (!strips(first)) break;
    text.remove_prefix(first.size());
  }
  while (sides != Sides::kLeft && !text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && (uint8_t(text[begin]) & 0xC0) == 0x80) --begin;
    if (!strips(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (part.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? size_t(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

namespace {

// The words, and one piece with the rest after (or, from the right, before) the first `most` of them.
std::vector<std::string_view> split_at_spaces(std::string_view text, int64_t most, Sides from) {
  std::vector<std::string_view> words;
  const char* word = nullptr;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const Utf8Char c = first_char({at, size_t(end - at)});
    const bool space = is_space(c.code_point);
    if (space && word) words.emplace_back(word, size_t(at - word));
    word = space ? nullptr : word ? word : at;
    at += c.size;
  }
  if (word) words.emplace_back(word, size_t(end - word));
  if (most < 0 || words.size() <= size_t(most)) return words;
  if (from == Sides::kLeft) {
    const char* rest = words[size_t(most)].data();
    words.resize(size_t(most));
    words.emplace_back(rest, size_t(end - rest));
  } else {
    const std::string_view last = words[words.size() - size_t(most) - 1];
    words.erase(words.begin(), words.end() - most);
    words.insert(words.begin(), {text.data(), size_t(last.data() + last.size() - text.data())});
  }
  return words;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, std::optional<std::string_view> separator,
                                    int64_t most, Sides from) {
  if (!separator) return split_at_spaces(text, most, from);
  std::vector<std::string_view> parts;
  while (most < 0 || int64_t(parts.size()) < most) {
    const size_t at = from == Sides::kLeft ? find_text(text, *separator) : text.rfind(*separator);
    if (at == std::string_view::npos) break;
    const size_t behind = at + separator->size();
    parts.push_back(from == Sides::kLeft ? text.substr(0, at) : text.substr(behind));
    text = from == Sides::kLeft ? text.substr(behind) : text.substr(0, at);
  }
  parts.push_back(text);
  if (from == Sides::kRight) std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = first_char(text.substr(at));
    const size_t end = at;
    at += c.size;
    if (!ends_line(c.code_point)) continue;
    if (c.code_point == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string replace(Budget& budget, std::string_view text, const Replacement& replacement) {
  const auto& [old, with, most] = replacement;
  std::string result;
  size_t at = 0;
  for (int64_t count = 0; most < 0 || count < most; ++count) {
    const size_t found = find_text(text, old, at);
    if (found == std::string_view::npos) break;
    budget.spend(Budget::kItem + found - at + with.size());
    result.append(text.substr(at, found - at)).append(with);
    at = found + old.size();
    // The empty string matches before each character and at the end.
    if (old.empty()) {
      if (at == text.size()) return result;
      const size_t size = first_char(text.substr(at)).size;
      result += text.substr(at, size);
      at += size;
    }
  }
  budget.spend(text.size() - at);
  return result.append(text.substr(at));
}

std::string upper(std::string_view text) {
  std::string result;
  for (uint32_t c : code_points(text)) append_upper(c, result);
  return result;
}

std::string lower(std::string_view text) {
  std::string result;
  const auto all = code_points(text);
  for (size_t i = 0; i < all.size(); ++i) append_lower(all, i, result);
  return result;
}

std::string title(std::string_view text) {
  std::string result;
  const auto all = code_points(text);
  bool inside = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (inside) {
      append_lower(all, i, result);
    } else {
      append_title(all[i], result);
    }
    inside = is_cased(all[i]);
  }
  return result;
}

std::string capitalize(std::string_view text) {
  std::string result;
  const auto all = code_points(text);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == 0) {
      append_title(all[i], result);
    } else {
      append_lower(all, i, result);
    }
  }
  return result;
}

std::string swapcase(std::string_view text) {
  std::string result;
  const auto all = code_points(text);
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_uppercase(all[i])) {
      append_lower(all, i, result);
    } else if (is_lowercase(all[i])) {
      append_upper(all[i], result);
    } else {
      append_utf8(all[i], result);
    }
  }
  return result;
}

std::string casefold(std::string_view text) {
  uint8_t* folded = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const uint8_t*>(text.data()), int64_t(text.size()), &folded,
                                 UTF8PROC_CASEFOLD);
  const std::unique_ptr<uint8_t, decltype(&std::free)> owner(folded, std::free);
  require(size >= 0, "the case of a text could not be folded: {}", utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(folded), size_t(size)};
}

bool has_only_case(std::string_view text, bool upper) {
  bool cased = false;
  for (uint32_t c : code_points(text)) {
    if ((upper ? is_lowercase(c) : is_uppercase(c)) || is_titlecase(c)) return false;
    cased |= upper ? is_uppercase(c) : is_lowercase(c);
  }
  return cased;
}

std::string repr(std::string_view text) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string result(1, quote);
  for (uint32_t c : code_points(text)) {
    if (c == uint32_t(quote) || c == '\\') {
      result += '\\';
      result += char(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (is_printable(c)) {
      append_utf8(c, result);
    } else if (c < 0x100) {
      result += fmt::format("\\x{:02x}", c);
    } else {
      result += c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c);
    }
  }
  return result + quote;
}

// The shortest digits that give the number back, with an exponent below 1e-4 and from 1e16 on.
std::string repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace heddle::jinja
