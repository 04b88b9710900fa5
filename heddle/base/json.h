// JSON: values, a strict reader and a writer. Only json.cpp includes the library (nlohmann/json), because its
// header takes seconds to compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heddle {

struct JsonMember;

// Members of an object keep the order in which they were written or added.
class Json {
 public:
  Json(std::nullptr_t = nullptr);
  Json(bool value);
  template <std::integral T>
  Json(T value);
  template <std::floating_point T>
  Json(T value);
  Json(std::string value);
  Json(std::string_view value);
  Json(const char* value);
  template <class T>
  Json(const std::vector<T>& items);
  template <class T>
  Json(const std::map<std::string, T>& members);
  static Json array(std::initializer_list<Json> items = {});
  static Json object(std::initializer_list<JsonMember> members = {});

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  bool is_null() const { return is<std::nullptr_t>(); }
  bool is_bool() const { return is<bool>(); }
  bool is_integer() const { return is<int64_t>() || is<uint64_t>() || is<Large>(); }
  bool is_number() const { return is_integer() || is<double>(); }
  bool is_string() const { return is<std::string>(); }
  bool is_array() const { return is<Items>(); }
  bool is_object() const { return is<Object>(); }
  const char* kind() const;  // "null", "boolean", "number", "string", "array" or "object"

  // These throw Error(kIo) when the value has another kind.
  bool as_bool() const;
  double as_number() const;
  const std::string& as_string() const;
  const std::vector<Json>& items() const;
  const std::vector<JsonMember>& members() const;
  // A signed integer of up to 64 bits; nothing for other numbers and kinds.
  std::optional<int64_t> to_int() const;
  // The decimal digits of an integer of any size, after a minus if it is negative.
  std::string integer_digits() const;

  size_t size() const;  // members of an array or object; otherwise 0
  // Null when this is not an object or has no such member.
  const Json* find(std::string_view name) const;
  const JsonMember* find_member(std::string_view name) const;
  // Throws Error(kIo) when there is no such member.
  const Json& at(std::string_view name) const;

  // Finds or adds the member of that name. A null value becomes an object first.
  Json& operator[](std::string_view name);
  // A null value becomes an array first.
  Json& push_back(Json item);

  // `indent`: spaces per level; -1 writes one line. Invalid UTF-8 becomes U+FFFD. `ascii` escapes everything
  // outside ASCII.
  std::string dump(int indent = -1, bool ascii = false) const;
  // As dump, but throws Error(kInvalidArgument) when a text is not UTF-8.
  std::string dump_strictly() const;

  bool operator==(const Json& other) const;

 private:
  friend class JsonBuilder;
  friend struct JsonWriter;
  using Items = std::vector<Json>;
  // An integer beyond 64 bits, as it was written.
  struct Large {
    std::string digits;
    bool operator==(const Large&) const = default;
  };
  struct Object {
    std::vector<JsonMember> members;
    std::vector<uint32_t> by_name;  // members in the order of their names; for large objects that were read
    bool operator==(const Object& other) const;
  };

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  [[noreturn]] void fail_as(const char* wanted) const;

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Items, Object, Large> value_;
};

struct JsonMember {
  std::string name;
  Json value;
  bool operator==(const JsonMember&) const = default;
};

// Members of a Json's object are complete from here on.
inline Json::Json(std::nullptr_t) {}
inline Json::Json(bool value) : value_(value) {}
template <std::integral T>
Json::Json(T value) {
  if (std::in_range<int64_t>(value))
    value_ = int64_t(value);
  else
    value_ = uint64_t(value);
}
template <std::floating_point T>
Json::Json(T value) : value_(double(value)) {}
template <class T>
Json::Json(const std::vector<T>& items) : value_(Items(items.begin(), items.end())) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(std::string_view value) : value_(std::string(value)) {}
inline Json::Json(const char* value) : value_(std::string(value)) {}

template <class T>
Json::Json(const std::map<std::string, T>& members) {
  Object made;
  for (const auto& [name, value] : members) made.members.push_back({name, Json(value)});
  value_ = std::move(made);
}

struct JsonLimits {
  int depth = 128;             // levels of arrays and objects
  size_t bytes = 100'000'000;  // thousands of times the size of configurations and indexes
};

// Reads one value. Throws Error(kIo), with `where`, line and column, when the text is not JSON, when an
// object has a name twice (readers disagree on which one counts), or when it exceeds the limits. An integer
// beyond 64 bits keeps its digits; as_number() and dump() give the nearest float.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});
// Parses a file in the same way.
Json load_json(const std::string& path, const JsonLimits& limits = {});

// A value for a message: one line of printable ASCII, shortened if long. Strings are quoted.
std::string brief(const Json& value);

// The library's name and version.
std::string json_library();

}  // namespace heddle
