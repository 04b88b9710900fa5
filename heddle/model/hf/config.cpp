#include "heddle/model/hf/config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/placeholder.h"
#include "heddle/model/hf/gguf_config.h"

namespace heddle {
namespace {

constexpr JsonLimits kLimits{.depth = 32};

// Python's json writes the names Infinity, -Infinity and NaN, which are no JSON. They become what transformers 5 writes: objects.
std::string with_floats_as_objects(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames = {"Infinity", "-Infinity", "NaN"};
  std::string made;
  bool quoted = false;
  for (size_t at = 0; at < text.size();) {
    const auto begins = [&](std::string_view name) { return text.substr(at, name.size()) == name; };
    const auto name = quoted ? kNames.end() : std::ranges::find_if(kNames, begins);
    if (name != kNames.end()) {
      made += fmt::format(R"({{"__float__": "{}"}})", *name);
      at += name->size();
      continue;
    }
    if (text[at] == '"') quoted = !quoted;
    const size_t count = quoted && text[at] == '\\' ? 2 : 1;  // an escape within a string
    made += text.substr(at, count);
    at += count;
  }
  return made;
}

// The number that a value stands for, if it does.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.as_number();
  const Json* name = value.is_object() ? value.find("__float__") : nullptr;
  if (name && *name == "Infinity") return std::numeric_limits<double>::infinity();
  return {};
}

}  // namespace

struct Config::State {
  Json object;
  std::string where;   // the file
  std::string prefix;  // "rope_scaling." inside that section
  std::set<std::string> read;
  std::shared_ptr<std::vector<std::string>> notes = std::make_shared<std::vector<std::string>>();

  static std::shared_ptr<State> make(Json object, const std::string& where) {
    if (!object.is_object())
      fail(ErrorCode::kIo, "[{}] holds {}; it must hold an object", where, brief(object));
    return std::make_shared<State>(
        State{.object = std::move(object), .where = where, .prefix = "", .read = {}});
  }

  // The value of a key, or nullptr when it is absent or null.
  const Json* find(const std::string& key) {
    read.insert(key);
    const Json* found = object.find(key);
    return !found || found->is_null() ? nullptr : found;
  }

  const Json& at(const std::string& key) {
    const Json* value = find(key);
    if (!value) fail(ErrorCode::kIo, "[{}] '{}{}' is missing; the model needs it", where, prefix, key);
    return *value;
  }

  std::string about(const std::string& key, std::string_view rest) const {
    const Json* found = object.find(key);
    return fmt::format("[{}] {}{} = {}: {}", where, prefix, key, found ? brief(*found) : "absent", rest);
  }
  [[noreturn]] void fail_at(ErrorCode code, const std::string& key, std::string_view rest) const {
    throw Error(code, about(key, rest));
  }

  int to_int(const std::string& key, const Json& value, int min, int max) const {
    const std::optional<int64_t> number = value.to_int();
    if (!number || *number < min || *number > max)
      fail_at(ErrorCode::kIo, key, fmt::format("must be a whole number from {} to {}", min, max));
    return int(*number);
  }

  double to_number(const std::string& key, const Json& value, double min, double max) const {
    const std::optional<double> number = number_of(value);
    if (!number || !(*number >= min && *number <= max))
      fail_at(ErrorCode::kIo, key, fmt::format("must be a number from {} to {}", min, max));
    return *number;
  }

  std::string to_string(const std::string& key, const Json& value) const {
    if (!value.is_string()) fail_at(ErrorCode::kIo, key, "must be a string");
    return value.as_string();
  }
};

Config Config::load(const std::string& folder) {
  if (is_gguf(folder)) return parse(gguf_config(Gguf(folder)), folder);
  const std::string path = std::filesystem::path(folder) / "config.json";
  const MappedFile file(path);
  return file.read([&](std::string_view text) {
    refuse_placeholder(path, text);
    return parse(text, path);
  });
}

Config Config::parse(std::string_view text, const std::string& where) {
  return Config(State::make(parse_json(with_floats_as_objects(text), where, kLimits), where));
}

std::string Config::model_type() const {
  return required_string("model_type");
}

std::vector<std::string> Config::architectures() const {
  return optional_strings("architectures");
}

std::optional<DType> Config::dtype() const {
  const std::string key = has("dtype") ? "dtype" : "torch_dtype";
  const std::string text = optional_string(key, "");
  if (text.empty()) return {};
  for (const DTypeInfo& info : kDTypes)
    if (is_wide_float(info.type) && text == info.numpy) return info.type;
  refuse(key, "weights may be float32, float16 or bfloat16");
}

bool Config::has(const std::string& key) const {
  return state_->find(key) != nullptr;
}

bool Config::is_null(const std::string& key) const {
  return state_->object.find(key) && !state_->find(key);
}

int Config::required_int(const std::string& key, int min, int max) const {
  return state_->to_int(key, state_->at(key), min, max);
}

int Config::optional_int(const std::string& key, int fallback, int min, int max) const {
  const Json* value = state_->find(key);
  if (value) return state_->to_int(key, *value, min, max);
  if (fallback < min || fallback > max)
    reject(key, fmt::format("means {}; must be a whole number from {} to {}", fallback, min, max));
  return fallback;
}

double Config::required_number(const std::string& key, double min, double max) const {
  return state_->to_number(key, state_->at(key), min, max);
}

double Config::optional_number(const std::string& key, double fallback, double min, double max) const {
  const Json* value = state_->find(key);
  if (value) return state_->to_number(key, *value, min, max);
  if (!(fallback >= min && fallback <= max))
    reject(key, fmt::format("means {}; must be a number from {} to {}", fallback, min, max));
  return fallback;
}

bool Config::optional_bool(const std::string& key, bool fallback) const {
  const Json* value = state_->find(key);
  if (!value) return fallback;
  if (!value->is_bool()) reject(key, "must be true or false");
  return value->as_bool();
}

std::string Config::required_string(const std::string& key) const {
  return state_->to_string(key, state_->at(key));
}

std::string Config::optional_string(const std::string& key, const std::string& fallback) const {
  const Json* value = state_->find(key);
  return value ? state_->to_string(key, *value) : fallback;
}

std::vector<int> Config::optional_ints(const std::string& key, int min, int max) const {
  const Json* value = state_->find(key);
  if (!value) return {};
  if (!value->is_array()) return {state_->to_int(key, *value, min, max)};
  std::vector<int> numbers;
  for (const Json& item : value->items()) numbers.push_back(state_->to_int(key, item, min, max));
  return numbers;
}

std::vector<double> Config::optional_numbers(const std::string& key, double min, double max) const {
  const Json* value = state_->find(key);
  if (!value) return {};
  if (!value->is_array()) reject(key, "must be a list of numbers");
  std::vector<double> numbers;
  for (const Json& item : value->items()) numbers.push_back(state_->to_number(key, item, min, max));
  return numbers;
}

std::vector<std::string> Config::optional_strings(const std::string& key) const {
  const Json* value = state_->find(key);
  if (!value) return {};
  if (!value->is_array()) reject(key, "must be a list of strings");
  std::vector<std::string> strings;
  for (const Json& item : value->items()) strings.push_back(state_->to_string(key, item));
  return strings;
}

std::optional<Config> Config::section(const std::string& key) const {
  const Json* value = state_->find(key);
  if (!value) return {};
  if (!value->is_object()) reject(key, "must be an object");
  auto inner = std::make_shared<State>();
  inner->object = *value;
  inner->where = state_->where;
  inner->prefix = state_->prefix + key + ".";
  inner->notes = state_->notes;
  return Config(std::move(inner));
}

void Config::refuse(const std::string& key, std::string_view remedy) const {
  state_->fail_at(ErrorCode::kUnsupported, key, fmt::format("not supported; {}", remedy));
}

void Config::reject(const std::string& key, std::string_view remedy) const {
  state_->fail_at(ErrorCode::kIo, key, remedy);
}

bool Config::is_one_of(const std::string& key, std::initializer_list<std::string_view> accepted) const {
  const Json* value = state_->find(key);
  const bool is_container = value && (value->is_array() || value->is_object());
  if (!value || *value == false || *value == "" || (is_container && value->size() == 0)) return true;
  const std::string text = value->dump();
  return std::find(accepted.begin(), accepted.end(), text) != accepted.end();
}

void Config::refuse_unless(const std::string& key, std::initializer_list<std::string_view> accepted) const {
  if (is_one_of(key, accepted)) return;
  std::string remedy = "it may be absent";
  for (std::string_view other : accepted) remedy += fmt::format(" or {}", other);
  refuse(key, remedy);
}

void Config::note(const std::string& key, std::string_view text) const {
  std::string line = state_->about(key, text);
  if (std::ranges::find(*state_->notes, line) == state_->notes->end())
    state_->notes->push_back(std::move(line));
}

const std::vector<std::string>& Config::notes() const {
  return *state_->notes;
}

std::vector<std::string> Config::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : state_->object.members())
    if (!state_->read.contains(key)) keys.push_back(key);
  std::ranges::sort(keys);
  return keys;
}

}  // namespace heddle
