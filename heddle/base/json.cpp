#include "heddle/base/json.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <nlohmann/json.hpp>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/placeholder.h"

namespace heddle {
namespace {

constexpr size_t kIndexedMembers = 16;  // objects with at least this many members are found by binary search

// Takes what the library says, without the number of its error: "[json.exception.parse_error.101] ...".
std::string_view text_of(const nlohmann::json::exception& error) {
  std::string_view what = error.what();
  what.remove_prefix(std::min(what.find("] ") + 2, what.size()));
  return what;
}

// Gives the parser its text and knows how far it has read.
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor() = default;
  Cursor(const char* at, const char** read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *read_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_ = nullptr;
  const char** read_ = nullptr;
};

std::vector<uint32_t> order_of_names(const std::vector<JsonMember>& members) {
  std::vector<uint32_t> order(members.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto before = [&](uint32_t a, uint32_t b) {
    const int sign = members[a].name.compare(members[b].name);
    return sign != 0 ? sign < 0 : a < b;
  };
  // Headers of 140,000 tensors are written in order.
  if (!std::ranges::is_sorted(order, before)) std::ranges::sort(order, before);
  return order;
}

}  // namespace

struct JsonWriter {
  using Made = nlohmann::ordered_json;

  static Made of(const Json& json) {
    return std::visit([](const auto& value) { return of(value); }, json.value_);
  }
  static Made of(const Json::Items& items) {
    Made made = Made::array();
    for (const Json& item : items) made.push_back(of(item));
    return made;
  }
  static Made of(const Json::Object& object) {
    Made::object_t made;  // a list, because the names are known to differ
    for (const auto& [name, value] : object.members) made.push_back({name, of(value)});
    return made;
  }
  static Made of(const Json::Large& number) { return std::strtod(number.digits.c_str(), nullptr); }
  template <class T>
  static Made of(const T& value) {
    return value;
  }
};

// Builds the value from the parser's events.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, const std::string& where, const JsonLimits& limits)
      : text_(text), where_(where), limits_(limits), read_(text.data()) {}

  Json run() {
    nlohmann::json::sax_parse(Cursor(text_.data(), &read_), Cursor(text_.data() + text_.size(), &read_),
                              this);
    return std::move(root_);
  }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& text) {
    if (text.find_first_of(".eE") != std::string::npos) return add(value);
    Json large;
    large.value_ = Json::Large{text};
    return add(std::move(large));
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // texts have none

  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool key(std::string& name) {
    Open& object = open_.back();
    object.name_ends.push_back(read_);
    object.made->members.push_back({std::move(name), Json()});
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool end_object() {
    Open& object = open_.back();
    std::vector<JsonMember>& members = object.made->members;
    std::vector<uint32_t> order = order_of_names(members);
    for (size_t i = 1; i < order.size(); ++i)
      if (members[order[i - 1]].name == members[order[i]].name)
        fail_at(begin_of_string(object.name_ends[order[i]]),
                fmt::format("the name {} appears twice in one object; each may stand once",
                            brief(members[order[i]].name)));
    if (members.size() >= kIndexedMembers) object.made->by_name = std::move(order);
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    // "parse error at line 1, column 2: syntax error ..."
    std::string_view what = text_of(error);
    if (what.starts_with("parse error at ")) what.remove_prefix(std::min(what.find(": ") + 2, what.size()));
    fail_at(text_.data() + std::min(position - 1, text_.size()), fmt::format("not valid JSON: {}", what));
  }

 private:
  // An array or object that has not ended yet.
  struct Open {
    Json::Items* items;
    Json::Object* made;
    std::vector<const char*> name_ends;
  };

  Json& place() {
    if (open_.empty()) return root_;
    Open& in = open_.back();
    return in.items ? in.items->emplace_back() : in.made->members.back().value;
  }
  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (int(open_.size()) >= limits_.depth)
      fail_at(read_ - 1, fmt::format("nested deeper than {} levels; such JSON is not read", limits_.depth));
    Json& made = place();
    made = std::move(value);
    open_.push_back({std::get_if<Json::Items>(&made.value_), std::get_if<Json::Object>(&made.value_), {}});
    return true;
  }

  // Finds the beginning of a string from `end`, which comes right after its last quote.
  const char* begin_of_string(const char* end) const {
    for (const char* quote = end - 2;; --quote) {
      if (*quote != '"') continue;
      const char* before = quote;
      while (before > text_.data() && before[-1] == '\\') --before;
      if ((quote - before) % 2 == 0) return quote;
    }
  }
  [[noreturn]] void fail_at(const char* at, const std::string& what) const {
    const std::string_view before(text_.data(), size_t(at - text_.data()));
    const size_t line = size_t(std::ranges::count(before, '\n')) + 1;
    fail(ErrorCode::kIo, "[{}] line {}, column {}: {}", where_, line,
         before.size() - (before.rfind('\n') + 1) + 1, what);
  }

  std::string_view text_;
  const std::string& where_;
  const JsonLimits& limits_;
  const char* read_;
  Json root_;
  std::vector<Open> open_;
};

Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array(std::initializer_list<Json> items) {
  Json made;
  made.value_ = Items(items);
  return made;
}

Json Json::object(std::initializer_list<JsonMember> members) {
  Json made;
  made.value_ = Object{members, {}};
  return made;
}

const char* Json::kind() const {
  return is_null()     ? "null"
         : is_bool()   ? "boolean"
         : is_number() ? "number"
         : is_string() ? "string"
         : is_array()  ? "array"
                       : "object";
}

void Json::fail_as(const char* wanted) const {
  fail(ErrorCode::kIo, "[json] {} is no {}", brief(*this), wanted);
}

bool Json::as_bool() const {
  if (!is_bool()) fail_as("boolean");
  return std::get<bool>(value_);
}

double Json::as_number() const {
  if (is<int64_t>()) return double(std::get<int64_t>(value_));
  if (is<uint64_t>()) return double(std::get<uint64_t>(value_));
  if (is<Large>()) return std::strtod(std::get<Large>(value_).digits.c_str(), nullptr);
  if (!is<double>()) fail_as("number");
  return std::get<double>(value_);
}

const std::string& Json::as_string() const {
  if (!is_string()) fail_as("string");
  return std::get<std::string>(value_);
}

const std::vector<Json>& Json::items() const {
  if (!is_array()) fail_as("array");
  return std::get<Items>(value_);
}

const std::vector<JsonMember>& Json::members() const {
  if (!is_object()) fail_as("object");
  return std::get<Object>(value_).members;
}

std::optional<int64_t> Json::to_int() const {
  if (!is<int64_t>()) return {};
  return std::get<int64_t>(value_);
}

std::string Json::integer_digits() const {
  if (is<int64_t>()) return std::to_string(std::get<int64_t>(value_));
  if (is<uint64_t>()) return std::to_string(std::get<uint64_t>(value_));
  if (!is<Large>()) fail_as("integer");
  return std::get<Large>(value_).digits;
}

size_t Json::size() const {
  return is_array() ? items().size() : is_object() ? members().size() : 0;
}

const JsonMember* Json::find_member(std::string_view name) const {
  if (!is_object()) return nullptr;
  const auto& [members, by_name] = std::get<Object>(value_);
  if (by_name.empty()) {
    const auto found = std::ranges::find(members, name, &JsonMember::name);
    return found == members.end() ? nullptr : &*found;
  }
  const auto name_of = [&](uint32_t i) { return std::string_view(members[i].name); };
  const auto found = std::ranges::lower_bound(by_name, name, {}, name_of);
  return found == by_name.end() || name_of(*found) != name ? nullptr : &members[*found];
}

const Json* Json::find(std::string_view name) const {
  const JsonMember* found = find_member(name);
  return found ? &found->value : nullptr;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = find(name);
  if (!found) fail(ErrorCode::kIo, "[json] {} has no '{}'", brief(*this), name);
  return *found;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) *this = object();
  if (!is_object()) fail_as("object");
  if (const Json* found = find(name)) return const_cast<Json&>(*found);
  Object& made = std::get<Object>(value_);
  made.by_name.clear();
  return made.members.emplace_back(JsonMember{std::string(name), Json()}).value;
}

Json& Json::push_back(Json item) {
  if (is_null()) *this = array();
  if (!is_array()) fail_as("array");
  return std::get<Items>(value_).emplace_back(std::move(item));
}

bool Json::Object::operator==(const Object& other) const {
  return members == other.members;
}

bool Json::operator==(const Json& other) const {
  if (is_number() && other.is_number()) {
    const bool exact = is_integer() && other.is_integer();
    return exact ? value_ == other.value_ : as_number() == other.as_number();
  }
  return value_ == other.value_;
}

std::string Json::dump(int indent, bool ascii) const {
  return JsonWriter::of(*this).dump(indent, ' ', ascii, nlohmann::ordered_json::error_handler_t::replace);
}

std::string Json::dump_strictly() const {
  try {
    return JsonWriter::of(*this).dump();
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kInvalidArgument, "[json] a text is not UTF-8: {}", text_of(error));
  }
}

Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    fail(ErrorCode::kIo, "[{}] has {} bytes; JSON of at most {} is read", where, text.size(), limits.bytes);
  return JsonBuilder(text, where, limits).run();
}

Json load_json(const std::string& path, const JsonLimits& limits) {
  const MappedFile file(path);
  return file.read([&](std::string_view text) {
    refuse_placeholder(path, text);
    return parse_json(text, path, limits);
  });
}

std::string brief(const Json& value) {
  constexpr size_t kMaxChars = 100;
  std::string text = value.dump(-1, true);
  return text.size() <= kMaxChars ? text : text.substr(0, kMaxChars) + "...";
}

std::string json_library() {
  return fmt::format("nlohmann/json {}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                     NLOHMANN_JSON_VERSION_PATCH);
}

}  // namespace heddle
