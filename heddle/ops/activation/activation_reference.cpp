#include "heddle/ops/activation/activation_reference.h"

#include <cmath>

#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

double activation_reference(i32 kind, double x) {
  switch (kind) {
    case kSilu:
      return x / (1 + std::exp(-x));
    case kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case kGeluTanh:
      return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    default:
      return x > 0 ? x : 0;
  }
}

}  // namespace heddle
