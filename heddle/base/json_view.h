// Typed access to a JSON file of unknown quality. Every error names the file, the path to the value, the
// value itself and what would be right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {

// One value inside a JsonDocument. A view points at the view that it came from, and at the document; both
// must outlive it, so keep each step of a path in a variable.
class JsonView {
 public:
  JsonView(const Json& value, std::string_view file) : value_(&value), key_(file) {}

  bool is_null() const { return value_->is_null(); }
  bool is_bool() const { return value_->is_bool(); }
  bool is_number() const { return value_->is_number(); }
  bool is_int(int64_t low, int64_t high) const;  // a whole number of this range
  bool is_string() const { return value_->is_string(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }

  // True if there is a member `key`, which may be null.
  bool contains(std::string_view key) const { return value_->find_member(key) != nullptr; }
  // Returns the member `key`. If it is missing, at() fails and find() is empty; find() is also empty if it is
  // null.
  JsonView at(std::string_view key) const&;
  std::optional<JsonView> find(std::string_view key) const&;
  JsonView at(std::string_view key) const&& = delete;
  std::optional<JsonView> find(std::string_view key) const&& = delete;

  const std::string& as_string() const;
  bool as_bool() const;
  int64_t as_int(int64_t low, int64_t high) const;
  double as_number() const;
  // Fails unless it is one of these strings.
  void check_one_of(std::initializer_list<std::string_view> names) const;

  const Json& value() const { return *value_; }
  std::string text() const { return brief(*value_); }  // for people
  size_t size() const { return value_->size(); }       // members of an array or object
  void for_each_item(const std::function<void(const JsonView&)>& visit) const;
  void for_each_member(const std::function<void(const std::string&, const JsonView&)>& visit) const;

  // Throws "[file] path is VALUE: what".
  [[noreturn]] void fail(ErrorCode code, std::string_view what) const;

 private:
  JsonView(const Json& value, const JsonView& parent, std::string_view key, size_t index)
      : value_(&value), parent_(&parent), key_(key), index_(index) {}
  std::string path() const;
  std::string_view file() const;

  const Json* value_;
  const JsonView* parent_ = nullptr;
  std::string_view key_;  // name of this member; the file's name at the root
  size_t index_ = 0;      // index of this item if the key is empty
};

class JsonDocument {
 public:
  // Parses `text`. Errors name the document `file`. Throws Error(kIo).
  JsonDocument(std::string_view text, std::string file)
      : file_(std::move(file)), value_(parse_json(text, file_)) {}
  JsonView root() const { return JsonView(value_, file_); }

 private:
  std::string file_;
  Json value_;
};

}  // namespace heddle
