// An owned handle of the driver, with the context it was made in.
#pragma once

#include <utility>

#include "heddle/backend/cuda/runtime/device.h"

namespace heddle::cuda {

// `kDestroy` is the member of Driver that frees the handle. What it returns is not looked at: a fault of the device
// makes it fail, and was reported by the call that met it.
template <class T, DriverCall<T> Driver::*kDestroy>
class Handle {
 public:
  Handle() = default;
  Handle(ContextHandle context, T value) : context_(context), value_(value) {}
  Handle(Handle&& other) noexcept : context_(other.context_), value_(std::exchange(other.value_, T())) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Handle() {
    if (value_ == T()) return;
    try {
      const ContextScope scope(context_);
      (driver().*kDestroy).try_call(value_);
    } catch (const std::exception&) {  // the caller's context is gone, and the handle with it
    }
  }

  T get() const { return value_; }
  ContextHandle context() const { return context_; }

 private:
  ContextHandle context_ = nullptr;
  T value_ = T();
};

}  // namespace heddle::cuda
