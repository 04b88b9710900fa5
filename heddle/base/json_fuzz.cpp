// Any text is either refused with an Error that names a line and a column, or it parses to a value that is
// the same after it is written and read again, keeps to the depth limit, and has every name once.
#include <cstdint>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr JsonLimits kLimits{.depth = 20};

void check(const Json& json, int depth) {
  HEDDLE_CHECK(depth <= kLimits.depth || json.size() == 0);
  if (json.is_array())
    for (const Json& item : json.items()) check(item, depth + 1);
  if (!json.is_object()) return;
  for (const JsonMember& member : json.members()) {
    HEDDLE_CHECK(json.find_member(member.name) == &member);
    check(member.value, depth + 1);
  }
}

void fuzz(std::string_view text) {
  Json json;
  try {
    json = parse_json(text, "fuzz", kLimits);
  } catch (const Error& error) {
    HEDDLE_CHECK(error.code() == ErrorCode::kIo &&
                 std::string_view(error.what()).starts_with("[fuzz] line "));
    return;
  }
  check(json, 1);
  for (int indent : {-1, 2}) HEDDLE_CHECK(parse_json(json.dump(indent), "again", kLimits) == json);
  HEDDLE_CHECK(json.dump() == json.dump_strictly());
}

}  // namespace
}  // namespace heddle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
