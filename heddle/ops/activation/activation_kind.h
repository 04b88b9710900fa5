// The activation functions. Read by host and device: no standard headers.
#pragma once

namespace heddle {

enum ActivationKind : int { kSilu, kGelu, kGeluTanh, kRelu, kSigmoid, kReluSquared, kNumActivations };
constexpr const char* kActivationNames = "silu, gelu, gelu_tanh, relu, sigmoid, relu_squared";

}  // namespace heddle
