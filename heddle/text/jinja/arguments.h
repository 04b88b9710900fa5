// The arguments of a filter, test, method, function or macro.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

// The callee asks for each argument that it knows, then calls finish().
class Arguments {
 public:
  using Named = std::vector<std::pair<std::string, Value>>;
  Arguments() = default;
  Arguments(std::vector<Value> positional, Named named)
      : positional_(std::move(positional)), named_(std::move(named)), asked_(named_.size()) {}

  // By place or by name; null if it was left out. An empty name: by place only.
  const Value* find(size_t place, std::string_view name);
  const Value& at(size_t place, std::string_view name);
  bool truth(size_t place, std::string_view name, bool fallback);
  int64_t integer(size_t place, std::string_view name, int64_t fallback);
  // Throws if an argument was given that the callee did not ask for.
  void finish() const;

  // Takes the first argument without a name. Throws with `what` if there is none.
  Value take_first(std::string_view what);
  bool has_positional() const { return !positional_.empty(); }
  std::vector<Value> take_positional() { return std::exchange(positional_, {}); }
  // Takes the argument of this name, unless there is none.
  std::optional<Value> take(std::string_view name);
  Named take_named();
  void add(std::string_view name, const Value& value);
  const Named& named() const { return named_; }

 private:
  std::vector<Value> positional_;
  Named named_;
  std::vector<bool> asked_;  // for arguments with names
  size_t places_ = 0;        // number asked for
};

}  // namespace heddle::jinja
