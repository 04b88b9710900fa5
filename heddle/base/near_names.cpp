#include "heddle/base/near_names.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle {
namespace {

constexpr size_t kMost = 3;            // names in a message
constexpr size_t kBeginning = 3;       // letters that a name must share to begin with another
constexpr size_t kLettersAnError = 3;  // one letter of so many may be wrong

std::string plain(std::string_view name) {
  std::string made;
  for (const char c : name)
    if (c != '-' && c != '_') made += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return made;
}

// Letters that are left out, added, changed, or exchanged with the next one.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> earlier(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], earlier[j - 2] + 1);
    }
    std::swap(earlier, row), std::swap(row, next);
  }
  return row[b.size()];
}

// The distance between two names; nothing where they are not alike.
std::optional<size_t> unlikeness(const std::string& a, const std::string& b) {
  const size_t apart = distance(a, b), longer = std::max(a.size(), b.size());
  if (apart <= std::max<size_t>(1, longer / kLettersAnError) && apart < std::min(a.size(), b.size()))
    return apart == 0 ? 0 : 2 * apart - b.starts_with(a);  // the name goes on: likelier than others as near
  const size_t shorter = std::min(a.size(), b.size());
  if (shorter >= kBeginning &&
      std::string_view(a).substr(0, shorter) == std::string_view(b).substr(0, shorter))
    return 2 * (apart + longer);  // after all that are misspelt
  return std::nullopt;
}

}  // namespace

std::vector<std::string> near_names(std::string_view name, std::span<const std::string> known) {
  std::vector<std::pair<size_t, std::string>> found;
  const std::string wanted = plain(name);
  for (const std::string& one : known)
    if (const auto apart = unlikeness(wanted, plain(one))) found.emplace_back(*apart, one);
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<std::string> names;
  for (const auto& [apart, one] : found)
    if (names.size() < kMost && apart == found.front().first) names.push_back(one);
  return names;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const std::vector<std::string> near = near_names(name, known);
  if (near.empty()) return "";
  std::string text = near.front();
  for (size_t i = 1; i < near.size(); ++i) text += (i + 1 == near.size() ? " or " : ", ") + near[i];
  return fmt::format("; did you mean {}?", text);
}

std::string meant_or_all(std::string_view name, std::span<const std::string> known) {
  const std::string meant = did_you_mean(name, known);
  return meant.empty() ? fmt::format("; there are {}", fmt::join(known, ", ")) : meant;
}

}  // namespace heddle
