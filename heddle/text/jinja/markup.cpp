#include "heddle/text/jinja/markup.h"

#include <algorithm>
#include <map>
#include <optional>

#include "heddle/text/jinja/python_text.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle::jinja {
namespace {

// The character of `&#…;`, whose body is given.
std::optional<uint32_t> numbered_character(std::string_view body) {
  const bool hex = body.starts_with("#x") || body.starts_with("#X");
  const std::string digits(body.substr(hex ? 2 : 1));
  constexpr size_t kMostDigits = 8;
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  if (digits.find_first_not_of(hex ? "0123456789abcdefABCDEF" : "0123456789") != std::string::npos)
    return std::nullopt;
  const auto code_point = uint32_t(std::stoull(digits, nullptr, hex ? 16 : 10));
  // HTML gives other meanings to the rest.
  const bool plain = code_point >= 0x20 && code_point <= 0x10FFFF &&
                     (code_point < 0x7F || code_point > 0x9F) &&
                     (code_point < 0xD800 || code_point > 0xDFFF) && (code_point & 0xFFFE) != 0xFFFE &&
                     (code_point < 0xFDD0 || code_point > 0xFDEF);
  return plain || code_point == '\n' || code_point == '\t' ? std::optional(code_point) : std::nullopt;
}

std::string unescape_html(std::string_view text) {
  static const std::map<std::string_view, std::string_view> names = {
      {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}, {"nbsp", "\u00a0"}};
  std::string result;
  while (!text.empty()) {
    const size_t at = std::min(text.find('&'), text.size());
    result += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    const auto* const end = std::find_if_not(text.begin() + 1, text.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '#';
    });
    const std::string_view body = text.substr(1, size_t(end - text.begin()) - 1);
    const bool ends = end != text.end() && *end == ';';
    const auto named = names.find(body);
    const auto numbered = body.starts_with('#') ? numbered_character(body) : std::nullopt;
    if (ends && named != names.end()) {
      result += named->second;
    } else if (ends && numbered) {
      append_utf8(*numbered, result);
    } else if (body.empty() && !ends) {
      result += '&';
    } else {
      fail(ErrorCode::kUnsupported, "the entity '&{}' is not supported", body);
    }
    text.remove_prefix(body.size() + (ends && (named != names.end() || numbered) ? 2 : 1));
  }
  return result;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '\'':
        result += "&#39;";
        break;
      case '"':
        result += "&#34;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

Value escaped(Budget& budget, const Value& value) {
  if (value.is_safe()) return value;
  std::string text = escape_html(to_text(budget, value));
  budget.spend(text.size());
  return Value(std::move(text)).marked_safe();
}

std::string strip_tags(std::string_view text) {
  std::string without;
  size_t at = 0;
  for (size_t start = text.find('<'); start != std::string_view::npos; start = text.find('<', at)) {
    const bool comment = text.substr(start).starts_with("<!--");
    const std::string_view closing = comment ? "-->" : ">";
    const size_t end = text.find(closing, start + (comment ? 4 : 0));
    if (end == std::string_view::npos) break;
    without += text.substr(at, start - at);
    at = end + closing.size();
  }
  without += text.substr(at);
  std::string result;
  for (std::string_view word : split(without, std::nullopt, -1)) {
    if (!result.empty()) result += ' ';
    result += word;
  }
  return unescape_html(result);
}

}  // namespace heddle::jinja
