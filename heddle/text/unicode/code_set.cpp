#include "heddle/text/unicode/code_set.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace heddle {
namespace {

constexpr uint32_t kLast = 0x10FFFF, kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

}  // namespace

CodeSet::CodeSet(std::vector<CodeRange> ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  join(ranges);
}

// `ranges` are rising, and may overlap.
void CodeSet::join(const std::vector<CodeRange>& ranges) {
  ranges_.reserve(ranges.size());
  for (const CodeRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  }
}

CodeSet CodeSet::operator|(const CodeSet& other) const {
  std::vector<CodeRange> both(ranges_.size() + other.ranges_.size());
  std::ranges::merge(ranges_, other.ranges_, both.begin(), {}, &CodeRange::first, &CodeRange::first);
  CodeSet joined;
  joined.join(both);
  return joined;
}

CodeSet CodeSet::operator~() const {
  std::vector<CodeRange> gaps;
  const auto add = [&](uint32_t first, uint32_t end) {  // before `end`
    if (first < std::min(end, kFirstSurrogate)) gaps.push_back({first, std::min(end, kFirstSurrogate) - 1});
    first = std::max(first, kLastSurrogate + 1);
    if (first < end) gaps.push_back({first, end - 1});
  };
  uint32_t next = 0;
  for (const CodeRange& range : ranges_) {
    add(next, std::min(range.first, kLast + 1));
    next = std::min(range.last, kLast) + 1;
  }
  add(next, kLast + 1);
  return CodeSet(std::move(gaps));
}

std::string CodeSet::class_text() const {
  std::string text;
  for (const CodeRange& range : ranges_)
    text += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", range.first, range.last);
  return text;
}

std::string plain_name(std::string_view name) {
  std::string plain;
  for (char c : name) {
    if (c != ' ' && c != '-' && c != '_') plain += char(std::tolower(uint8_t(c)));
  }
  return plain;
}

std::optional<CodeSet> named_code_set(std::string_view name) {
  const std::string plain = plain_name(name);
  if (plain == "any") return ~CodeSet();
  if (plain == "ascii") return CodeSet({{0, 0x7F}});
  if (plain == "assigned") return ~*named_code_set("Cn");
  if (plain == "c" || plain == "other")
    return *named_code_set("Cc") | *named_code_set("Cf") | *named_code_set("Cn") | *named_code_set("Co");
  for (const auto names : {script_names(), property_names()}) {
    const auto found = std::ranges::find(names, plain, &NamedRanges::name);
    if (found != names.end()) return CodeSet({found->ranges.begin(), found->ranges.end()});
  }
  if (plain.starts_with("in")) {
    const auto blocks = block_names();
    const auto found = std::ranges::find(blocks, plain.substr(2), &NamedRanges::name);
    if (found != blocks.end()) return CodeSet({found->ranges.begin(), found->ranges.end()});
  }
  return std::nullopt;
}

}  // namespace heddle
