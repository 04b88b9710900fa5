// The fields of a request's body. What is wrong with one is an ApiError that names it.
#pragma once

#include <exception>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "heddle/base/json_view.h"

namespace heddle {

// A field that other servers know and this one does not do. Its neutral value, as JSON, asks for nothing.
struct FieldNotDone {
  const char *name, *neutral;
};

class Fields {
 public:
  using Read = std::function<void(const JsonView& value)>;

  // `body` outlives the fields. Throws ApiError where it is no object.
  explicit Fields(const Json& body);

  // Calls read(value) and returns true if the field is there and not null.
  bool take(std::string_view name, const Read& read);
  // As take(), and throws ApiError where it is not there.
  void need(std::string_view name, const Read& read);
  // Calls read(name, value) for the fields that were not taken; true takes them.
  void take_others(const std::function<bool(const std::string& name, const JsonView& value)>& read);
  // Throws ApiError for the first of these that was not taken and asks for something.
  void refuse(std::initializer_list<FieldNotDone> fields) const;

 private:
  const Json& body_;
  const JsonView root_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace heddle
