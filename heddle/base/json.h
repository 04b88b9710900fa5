// JSON: values, a strict reader and a writer. The library behind it (nlohmann/json) is known to json.cpp alone, since its
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
  Json(std::nullptr_t = nullptr) {}
  Json(bool value) : value_(value) {}
  template <std::integral T>
  Json(T value) {
    if (std::in_range<int64_t>(value))
      value_ = int64_t(value);
    else
      value_ = uint64_t(value);
  }
  template <std::floating_point T>
  Json(T value) : value_(double(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  template <class T>
  Json(const std::vector<T>& items) : value_(Items(items.begin(), items.end())) {}
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
  bool is_integer() const { return is<int64_t>() || is<uint64_t>(); }
  bool is_number() const { return is_integer() || is<double>(); }
  bool is_string() const { return is<std::string>(); }
  bool is_array() const { return is<Items>(); }
  bool is_object() const { return is<Object>(); }
  const char* kind() const;  // "null", "boolean", "number", "string", "array" or "object"

  // These throw Error(kIo) where the value is of another kind.
  bool as_bool() const;
  double as_number() const;
  const std::string& as_string() const;
  const std::vector<Json>& items() const;
  const std::vector<JsonMember>& members() const;
  // An integer of up to 64 bits with a sign; nothing of other numbers and kinds.
  std::optional<int64_t> to_int() const;

  size_t size() const;  // of an array or object; else 0
  // Null where this is no object or has no such member.
  const Json* find(std::string_view name) const;
  const JsonMember* find_member(std::string_view name) const;
  // Throws Error(kIo) where there is none.
  const Json& at(std::string_view name) const;

  // The member of that name, which is added where there is none; null becomes an object.
  Json& operator[](std::string_view name);
  // null becomes an array.
  Json& push_back(Json item);

  // `indent`: spaces for each level; -1 writes one line. What is not UTF-8 gets U+FFFD; `ascii` escapes all else.
  std::string dump(int indent = -1, bool ascii = false) const;
  // As dump, but throws Error(kInvalidArgument) where a text is not UTF-8.
  std::string dump_strictly() const;

  bool operator==(const Json& other) const;

 private:
  friend class JsonBuilder;
  friend struct JsonWriter;
  using Items = std::vector<Json>;
  struct Object {
    std::vector<JsonMember> members;
    std::vector<uint32_t>
        by_name;  // members in the order of their names, for those of large objects that were read
    bool operator==(const Object& other) const;
  };

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  [[noreturn]] void fail_as(const char* wanted) const;

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Items, Object> value_;
};

struct JsonMember {
  std::string name;
  Json value;
  bool operator==(const JsonMember&) const = default;
};

template <class T>
Json::Json(const std::map<std::string, T>& members) {
  Object made;
  for (const auto& [name, value] : members) made.members.push_back({name, Json(value)});
  value_ = std::move(made);
}

struct JsonLimits {
  int depth = 128;             // levels of arrays and objects
  size_t bytes = 100'000'000;  // thousands of times what configurations and indexes take
};

// Reads one value. Refuses what is no JSON, names that stand twice in one object (readers disagree on which counts), and
// what is over the limits: throws Error(kIo) that names `where`, line and column. An integer beyond 64 bits is a float.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});
// The same of a file.
Json load_json(const std::string& path, const JsonLimits& limits = {});

// A value for a message: one line of printable ASCII, cut where it is long. A string comes in quotes.
std::string brief(const Json& value);

// The library's name and version.
std::string json_library();

}  // namespace heddle
