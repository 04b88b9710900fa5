// A step of AdamW (Loshchilov and Hutter, 2019), element by element, as torch.optim.AdamW takes it. With g = grad_scale * grad and
// t = step, counted from 1:
//   m' = beta1 * m + (1 - beta1) * g,  v' = beta2 * v + (1 - beta2) * g^2
//   param' = param * (1 - lr * weight_decay) - lr / (1 - beta1^t) * m' / (sqrt(v' / (1 - beta2^t)) + eps)
// The outputs may take the places of param, m and v.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Adamw {
  Tensor param;                // [M, N]
  Tensor grad;                 // [M, N]
  Tensor m;                    // [M, N]: the mean of gradients, usually f32
  Tensor v;                    // [M, N]: the mean of their squares
  Tensor new_param;            // [M, N]
  Tensor new_m;                // [M, N]
  Tensor new_v;                // [M, N]
  float lr = 1e-3f;            // learning rate
  float beta1 = 0.9f;          // 0 to 1
  float beta2 = 0.999f;        // 0 to 1
  float eps = 1e-8f;           // at least 0
  float weight_decay = 1e-2f;  // taken off the parameter itself, times lr
  float grad_scale = 1;        // multiplies the gradient
  i32 step = 1;                // counted from 1

  template <class Self, class V>
  static void visit(Self& s, V&& visitor) {
    visitor.read("param", s.param, "M, N");
    visitor.read("grad", s.grad, "M, N");
    visitor.read("m", s.m, "M, N");
    visitor.read("v", s.v, "M, N");
    visitor.write("new_param", s.new_param, "M, N");
    visitor.write("new_m", s.new_m, "M, N");
    visitor.write("new_v", s.new_v, "M, N");
    visitor.attribute("lr", s.lr);
    visitor.attribute("beta1", s.beta1);
    visitor.attribute("beta2", s.beta2);
    visitor.attribute("eps", s.eps);
    visitor.attribute("weight_decay", s.weight_decay);
    visitor.attribute("grad_scale", s.grad_scale);
    visitor.attribute("step", s.step);
  }
};

}  // namespace heddle
