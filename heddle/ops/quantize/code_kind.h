// The codes that numbers are rounded to. Read by host and device: no standard headers.
#pragma once

#include "heddle/base/dtype.h"

namespace heddle {

enum CodeKind : int { kCodeE4M3, kCodeE5M2, kCodeI8, kNumCodeKinds };
constexpr const char* kCodeNames = "e4m3, e5m2, i8";
constexpr float kLargestCode[] = {448.0f, 57344.0f, 127.0f};
constexpr DType kCodeTypes[] = {DType::kF8E4M3, DType::kF8E5M2, DType::kI8};

constexpr int kCodeBlock = 128;  // elements that share a scale where rows are cut into blocks

}  // namespace heddle
