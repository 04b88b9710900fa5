#include "heddle/text/unicode/code_set.h"

#include <cctype>

#include <fmt/format.h>

#include "heddle/text/unicode/regex.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr uint32_t kLast = 0x10FFFF, kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

std::string make_every_character() {
  std::string every;
  for (uint32_t c = 0; c <= kLast; ++c) {
    if (c < kFirstSurrogate || c > kLastSurrogate) append_utf8(c, every);
  }
  return every;
}

}  // namespace

CodeSet::CodeSet(std::vector<CodeRange> ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  for (const CodeRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  }
}

CodeSet CodeSet::matched_by(const std::string& pcre2_pattern) {
  static const std::string every = make_every_character();
  const Regex regex("(?:" + pcre2_pattern + ")++");  // a run at once: one at a time takes 20 times as long
  Regex::Scratch scratch;
  std::vector<CodeRange> ranges;
  regex.for_each_match(every, scratch, [&](Regex::Span match) {
    const std::string_view run = std::string_view(every).substr(match.begin, match.end - match.begin);
    size_t at = run.size() - 1;
    while ((uint8_t(run[at]) & 0xC0) == 0x80) --at;  // inside of the last character
    const uint32_t first = first_char(run).code_point, last = first_char(run.substr(at)).code_point;
    if (first < kFirstSurrogate && last > kLastSurrogate)
      ranges.push_back({first, kFirstSurrogate - 1}), ranges.push_back({kLastSurrogate + 1, last});
    else
      ranges.push_back({first, last});
  });
  return CodeSet(std::move(ranges));
}

CodeSet CodeSet::operator|(const CodeSet& other) const {
  std::vector<CodeRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodeSet(std::move(both));
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
    add(next, range.first);
    next = range.last + 1;
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
