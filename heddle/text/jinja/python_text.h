// Methods of Python's str, on valid UTF-8. Positions and lengths count characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/jinja/budget.h"

namespace heddle::jinja {

enum class Sides { kBoth, kLeft, kRight };

bool is_space(uint32_t code_point);
std::vector<std::string_view> characters(std::string_view text);
std::vector<uint32_t> code_points(std::string_view text);

// Strips white space, or the characters of `chars`, from the ends.
std::string_view strip(std::string_view text, Sides sides,
                       std::optional<std::string_view> chars = std::nullopt);
// Splits at white space, or at `separator` (not empty); at most `most` times unless it is negative.
std::vector<std::string_view> split(std::string_view text, std::optional<std::string_view> separator,
                                    int64_t most, Sides from = Sides::kLeft);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);
struct Replacement {
  std::string_view old, with;
  int64_t most = -1;  // limit of replacements, unless negative
};
std::string replace(Budget& budget, std::string_view text, const Replacement& replacement);
// The byte at which `part` begins, in linear time; npos if it is missing.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swapcase(std::string_view text);
std::string casefold(std::string_view text);

// True if there is a cased character, and each is a capital, or each is not: Python's isupper and islower.
bool has_only_case(std::string_view text, bool upper);

// repr()
std::string repr(std::string_view text);
std::string repr(double number);

}  // namespace heddle::jinja
