#include "heddle/text/jinja/arguments.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::jinja {

const Value* Arguments::find(size_t place, std::string_view name) {
  const Value* found = nullptr;
  places_ = std::max(places_, place + 1);
  if (place < positional_.size()) found = &positional_[place];
  for (size_t i = 0; i < named_.size(); ++i) {
    if (named_[i].first != name) continue;
    require(!found, "the argument '{}' is given twice", name);
    asked_[i] = true;
    found = &named_[i].second;
  }
  return found;
}

const Value& Arguments::at(size_t place, std::string_view name) {
  const Value* found = find(place, name);
  require(found, "the argument {} is missing",
          name.empty() ? std::to_string(place + 1) : fmt::format("'{}'", name));
  return *found;
}

bool Arguments::truth(size_t place, std::string_view name, bool fallback) {
  const Value* found = find(place, name);
  return found ? jinja::truth(*found) : fallback;
}

int64_t Arguments::integer(size_t place, std::string_view name, int64_t fallback) {
  const Value* found = find(place, name);
  if (!found) return fallback;
  require(found->is_integer(), "the argument '{}' is {}; a whole number is expected", name, describe(*found));
  return found->as_int();
}

void Arguments::finish() const {
  require(positional_.size() <= places_, "{} arguments are given; at most {} are expected",
          positional_.size(), places_);
  for (size_t i = 0; i < named_.size(); ++i)
    require(asked_[i], "the argument '{}' is not known", named_[i].first);
}

std::optional<Value> Arguments::take(std::string_view name) {
  for (size_t i = 0; i < named_.size(); ++i) {
    if (named_[i].first != name) continue;
    Value value = std::move(named_[i].second);
    named_.erase(named_.begin() + long(i));
    asked_.erase(asked_.begin() + long(i));
    return value;
  }
  return std::nullopt;
}

Value Arguments::take_first(std::string_view what) {
  require(!positional_.empty(), "{} is missing", what);
  Value first = std::move(positional_.front());
  positional_.erase(positional_.begin());
  return first;
}

Arguments::Named Arguments::take_named() {
  require(positional_.empty(), "arguments without names are not expected");
  asked_.clear();
  return std::exchange(named_, {});
}

void Arguments::add(std::string_view name, const Value& value) {
  named_.emplace_back(name, value);
  asked_.push_back(false);
}

}  // namespace heddle::jinja
