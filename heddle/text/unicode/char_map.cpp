#include "heddle/text/unicode/char_map.h"

#include <utf8proc.h>

#include "heddle/base/error.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

// A longer cluster is looked up character by character.
constexpr size_t kMostClusterBytes = 5;

uint32_t read_u32(std::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | uint8_t(bytes[size_t(i)]);
  return value;
}

// Fields of a unit, as Darts-clone packs them.
bool has_leaf(uint32_t unit) {
  return unit >> 8 & 1;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFF;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000FF;
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

// The size of the grapheme cluster that begins `text`, which is not empty.
size_t cluster_size(std::string_view text) {
  Utf8Char c = first_char(text);
  size_t size = c.size;
  for (int32_t state = 0; size < text.size(); size += c.size) {
    const auto before = int32_t(c.code_point);
    c = first_char(text.substr(size));
    if (utf8proc_grapheme_break_stateful(before, int32_t(c.code_point), &state)) break;
  }
  return size;
}

}  // namespace

CharMap::CharMap(std::string_view bytes) {
  const size_t size = bytes.size() < 4 ? 0 : read_u32(bytes) / 4;
  if (bytes.size() < 4 || (bytes.size() - 4) / 4 < size)
    fail(ErrorCode::kIo, "[charsmap] it has {} bytes, fewer than its array", bytes.size());
  units_.reserve(size);
  for (size_t i = 0; i < size; ++i) units_.push_back(read_u32(bytes.substr(4 + 4 * i)));
  replacements_ = bytes.substr(4 + 4 * size);
  if (!is_valid_utf8(replacements_)) fail(ErrorCode::kIo, "[charsmap] its replacements are not UTF-8");
}

uint32_t CharMap::unit(size_t at) const {
  if (at < units_.size()) return units_[at];
  fail(ErrorCode::kIo, "[charsmap] its array of {} entries links to entry {}", units_.size(), at);
}

// The replacement for the shortest text of the map that begins `text`.
std::optional<std::string_view> CharMap::find(std::string_view text) const {
  size_t at = offset_of(unit(0));
  for (char byte : text) {
    if (byte == 0) return std::nullopt;
    at ^= uint8_t(byte);
    const uint32_t found = unit(at);
    if (label_of(found) != uint8_t(byte)) return std::nullopt;
    at ^= offset_of(found);
    if (!has_leaf(found)) continue;
    const std::string_view all = replacements_;
    const size_t begin = value_of(unit(at));
    if (begin > all.size()) fail(ErrorCode::kIo, "[charsmap] it has no replacement at byte {}", begin);
    const std::string_view made = all.substr(begin, std::min(all.find('\0', begin), all.size()) - begin);
    if (!is_valid_utf8(made))
      fail(ErrorCode::kIo, "[charsmap] the replacement at byte {} is not UTF-8", begin);
    return made;
  }
  return std::nullopt;
}

std::string CharMap::run(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    std::string_view cluster = text.substr(0, cluster_size(text));
    text.remove_prefix(cluster.size());
    if (cluster.size() <= kMostClusterBytes) {
      if (const auto made = find(cluster)) {
        out += *made;
        continue;
      }
    }
    while (!cluster.empty()) {
      const std::string_view c = cluster.substr(0, first_char(cluster).size);
      out += find(c).value_or(c);
      cluster.remove_prefix(c.size());
    }
  }
  return out;
}

}  // namespace heddle
