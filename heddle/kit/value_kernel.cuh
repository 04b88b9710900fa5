// The whole kernel of an op that is a function of a value (tile/epilogue.cuh): its tile body says the function.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/elements.cuh"

namespace heddle::device {

#include "heddle/tile/epilogue.cuh"

struct ValueConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0;
  static constexpr i32 kKind = 0;  // the op's attribute `kind`, where it has one
};

// Body: an Epilogue that takes one value at a time, and at most one operand.
template <class Config, class Body, class Args>
struct ValueKernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr Args kTypes = Config::types();
  static constexpr DType kX = Body::input(kTypes).dtype, kY = Body::output(kTypes).dtype;

  static void run(const Args& args, const TensorMap*, u8*) {
    Args a = args;
    if constexpr (requires { a.kind; }) a.kind = Config::kKind;
    const Typed<kX> x{Body::input(args)};
    const Typed<kY> y{Body::output(args)};
    if constexpr (requires { Body::other(args); }) {
      constexpr DType kOther = Body::other(kTypes).dtype;
      map_elements<Config>([&](float value, float other) { return Body::value(a, value, other); }, y, x,
                           Typed<kOther>{Body::other(args)});
    } else {
      map_elements<Config>([&](float value) { return Body::value(a, value); }, y, x);
    }
  }
};

}  // namespace heddle::device
