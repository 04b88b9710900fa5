#include "apps/heddle/support/input.h"

#include <charconv>
#include <iostream>
#include <iterator>

#include "heddle/base/error.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {

std::string read_stdin() {
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

std::vector<int64_t> parse_ids(std::string_view text, const std::string& where) {
  constexpr std::string_view kBetween = " ,\t\r\n";
  std::vector<int64_t> ids;
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const std::string_view word = text.substr(at, text.find_first_of(kBetween, at) - at);
    int64_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    require(error == std::errc() && end == word.data() + word.size(),
            "[{}] '{}' is not a token id; whole numbers are expected, such as 1,2,3", where,
            word.substr(0, 40));
    ids.push_back(id);
    at = text.find_first_not_of(kBetween, at + word.size());
  }
  return ids;
}

std::vector<int32_t> parse_tokens(std::string_view text, const std::string& where) {
  std::vector<int32_t> tokens;
  for (int64_t id : parse_ids(text, where)) {
    require(id == int32_t(id), "[{}] {} is not a token id; they are below 2^31", where, id);
    tokens.push_back(int32_t(id));
  }
  require(!tokens.empty(), "[{}] no token ids are given; give some, such as 1,2,3", where);
  return tokens;
}

void require_utf8(std::string_view text, const std::string& where) {
  const size_t at = find_invalid_utf8(text);
  require(at == std::string_view::npos, "[{}] is not UTF-8: byte {:#04x} at byte {}; convert it first", where,
          at < text.size() ? unsigned(static_cast<unsigned char>(text[at])) : 0u, at);
}

}  // namespace heddle
