// A value or a message, for the few places where failure is a normal outcome (probing, foreign files,
// caches). Functions that return it are named try_...
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"

namespace heddle {

struct Failure {
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Failure failure) : state_(std::move(failure)) {}

  explicit operator bool() const { return state_.index() == 0; }
  const T& value() const& {
    HEDDLE_CHECK(*this);
    return std::get<0>(state_);
  }
  T&& value() && {
    HEDDLE_CHECK(*this);
    return std::get<0>(std::move(state_));
  }
  const std::string& message() const {
    HEDDLE_CHECK(!*this);
    return std::get<1>(state_).message;
  }
  // Returns the value, or throws an Error with the message.
  T or_throw(ErrorCode code) && {
    if (!*this) throw Error(code, message());
    return std::get<0>(std::move(state_));
  }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace heddle
