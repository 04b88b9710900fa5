#include "heddle/ir/config.h"

#include <algorithm>
#include <charconv>

#include <xxhash.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr std::string_view kReorders = "reorders", kDefault = "default";

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

OpConfig::OpConfig(std::initializer_list<std::pair<std::string_view, i64>> values) {
  for (const auto& [name, value] : values) add(name, value);
}

OpConfig OpConfig::reordering() const {
  OpConfig marked = *this;
  marked.reorders_ = true;
  return marked;
}

const i64* OpConfig::find(std::string_view name) const {
  const auto at =
      std::find_if(values_.begin(), values_.end(), [&](const Value& v) { return v.first == name; });
  return at == values_.end() ? nullptr : &at->second;
}

i64 OpConfig::at(std::string_view name) const {
  const i64* value = find(name);
  require(value != nullptr, "[config] {} has no value named '{}'", text(), name);
  return *value;
}

void OpConfig::add(std::string_view name, i64 value) {
  require(is_name(name) && name != kReorders && name != kDefault,
          "[config] a value is named '{}'; must be a letter, then letters, digits and _, in lower case, and "
          "neither '{}' nor '{}'",
          name, kReorders, kDefault);
  require(find(name) == nullptr, "[config] '{}' is set twice", name);
  const auto place =
      std::find_if(values_.begin(), values_.end(), [&](const Value& v) { return v.first > name; });
  values_.emplace(place, name, value);
}

std::string OpConfig::text() const {
  std::string text;
  for (const auto& [name, value] : values_)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  if (text.empty()) text = kDefault;
  return reorders_ ? fmt::format("{},{}", text, kReorders) : text;
}

OpConfig OpConfig::parse(std::string_view text) {
  OpConfig config;
  for (std::string_view rest = text; !rest.empty() || text.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, end);
    const size_t equals = std::min(part.find('='), part.size());
    const char* const last = part.data() + part.size();
    i64 value = 0;
    if (part == kReorders) {
      config.reorders_ = true;
    } else if (part != kDefault) {
      const char* const first = std::min(part.data() + equals + 1, last);
      const auto [stop, error] = std::from_chars(first, last, value);
      require(equals < part.size() && error == std::errc{} && stop == last,
              "[config] '{}' in '{}' is no value; must be a name, = and an integer", part, text);
      config.add(part.substr(0, equals), value);
    }
    require(end + 1 != rest.size(), "[config] '{}' ends with a comma", text);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return config;
}

u64 OpConfig::hash() const {
  const std::string all = text();
  return XXH3_64bits(all.data(), all.size());
}

}  // namespace heddle
