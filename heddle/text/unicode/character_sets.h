// Sets of characters that the stages of `tokenizers` treat alike, in the versions of Unicode that they have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace heddle {

struct CodeRange {
  uint32_t first, last;
};
struct ScriptRange {
  uint32_t first, last;
  uint32_t script;  // a number that only tells scripts apart
};

// Ranges in rising order.
std::span<const CodeRange> cleaned();           // BertNormalizer takes them out,
std::span<const CodeRange> clean_spaces();      // makes spaces of these,
std::span<const CodeRange> ideographs();        // puts spaces around these,
std::span<const CodeRange> nonspacing_marks();  // and takes these out after NFD
std::span<const CodeRange> marks();             // StripAccents takes them out
std::span<const CodeRange> nmt_removed();       // Nmt takes them out,
std::span<const CodeRange> nmt_spaces();        // and makes spaces of these
std::span<const ScriptRange> scripts();         // UnicodeScripts cuts between scripts

// The range that has the character; null if there is none.
template <class Range>
const Range* find_range(std::span<const Range> ranges, uint32_t c) {
  const auto after = std::ranges::upper_bound(ranges, c, {}, &Range::first);
  if (after == ranges.begin()) return nullptr;
  const Range& range = *std::prev(after);
  return c <= range.last ? &range : nullptr;
}

}  // namespace heddle
