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
    case kSigmoid:
      return 1 / (1 + std::exp(-x));
    case kReluSquared:
      return x <= 0 ? 0 : x * x;
    default:
      return x <= 0 ? 0 : x;
  }
}

double activation_slope_reference(i32 kind, double x) {
  const double sigmoid = 1 / (1 + std::exp(-x)), square = x * x;
  const double tanh = std::tanh(0.7978845608028654 * (x + 0.044715 * square * x));
  switch (kind) {
    case kSilu:
      return sigmoid * (1 + x * (1 - sigmoid));
    case kGelu:
      return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-0.5 * square) * 0.3989422804014327;
    case kGeluTanh:
      return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * 0.7978845608028654 * (1 + 0.134145 * square);
    case kSigmoid:
      return sigmoid * (1 - sigmoid);
    case kReluSquared:
      return x <= 0 ? 0 : 2 * x;
    default:
      return x <= 0 ? 0 : 1;
  }
}

}  // namespace heddle
