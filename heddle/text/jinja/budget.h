// Limits the cost of rendering: a template of unknown origin must neither hang nor fill the memory.
#pragma once

#include <cstdint>

#include "heddle/base/error.h"

namespace heddle::jinja {

// For values that Python can represent and 64 bits cannot.
template <class... Args>
void require_room(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) fail(ErrorCode::kUnsupported, format, std::forward<Args>(args)...);
}

// One unit is about a byte made or a nanosecond; evaluating a node costs kNode.
class Budget {
 public:
  static constexpr uint64_t kNode = 32, kItem = 32;

  explicit Budget(uint64_t units) : units_(units), left_(units) {}

  void spend(uint64_t units) {
    if (units > left_) {
      fail(ErrorCode::kUnsupported,
           "the template takes more than {} units of work; does a loop grow its own text?", units_);
    }
    left_ -= units;
  }

 private:
  uint64_t units_, left_;
};

}  // namespace heddle::jinja
