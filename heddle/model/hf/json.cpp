#include "heddle/model/hf/json.h"

#include <set>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxBytes = 100'000'000;  // thousands of times what configurations and indexes take

using Json = nlohmann::json;

// Sees each event of the parser before the value is built.
class Strictness {
 public:
  explicit Strictness(const std::string& where) : where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kMaxDepth)
      fail(ErrorCode::kIo, "[{}] JSON nested deeper than {} levels; such files are not read", where_,
           kMaxDepth);
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key && !names_.back().insert(value.get<std::string>()).second)
      fail(ErrorCode::kIo, "[{}] the name {} stands twice in one object; each may stand once", where_,
           brief(value));
    return true;
  }

 private:
  const std::string& where_;
  std::vector<std::set<std::string>> names_;  // of the open objects
};

}  // namespace

std::string brief(const nlohmann::json& value) {
  constexpr size_t kMaxChars = 100;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMaxChars ? text : text.substr(0, kMaxChars) + "...";
}

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  try {
    Strictness strictness(where);
    return Json::parse(text, std::ref(strictness));
  } catch (const Json::exception& error) {
    fail(ErrorCode::kIo, "[{}] is not valid JSON: {}", where, error.what());
  }
}

nlohmann::json load_json(const std::string& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.size() > kMaxBytes)
    fail(ErrorCode::kIo, "[{}] has {} bytes; JSON files of at most {} are read", path, bytes.size(),
         kMaxBytes);
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace heddle
