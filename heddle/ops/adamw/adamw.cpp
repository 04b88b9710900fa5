#include "heddle/ops/adamw/adamw.h"

#include <cmath>

#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle::adamw {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Adamw>(args);
  require_rank("adamw", "param", a.param, 2);
  require_float("adamw", "param", a.param);
  const std::vector<i32> shape = {a.param.size[0], a.param.last()};
  for (auto [name, tensor] : {std::pair{"grad", &a.grad}, {"m", &a.m}, {"v", &a.v}}) {
    require_shape("adamw", name, *tensor, shape);
    require_float("adamw", name, *tensor);
  }
  for (auto [name, beta] : {std::pair{"beta1", a.beta1}, {"beta2", a.beta2}})
    require(beta >= 0 && beta < 1, "[adamw] {} = {}; must be 0 or more and below 1", name, beta);
  require(a.eps >= 0, "[adamw] eps = {}; must not be negative", a.eps);
  require(a.step >= 1, "[adamw] step = {}; the first step is 1", a.step);
  set_output("adamw", "new_param", a.new_param, a.param.dtype, shape);
  set_output("adamw", "new_m", a.new_m, a.m.dtype, shape);
  set_output("adamw", "new_v", a.new_v, a.v.dtype, shape);
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Adamw>(args);
  return matrix_axes(a.param.size[0], a.param.last());
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Adamw>(args);
  auto param = values.read(a.param), grad = values.read(a.grad), m = values.read(a.m), v = values.read(a.v);
  const double beta1 = double(a.beta1), beta2 = double(a.beta2), lr = double(a.lr);
  for (size_t i = 0; i < param.size(); ++i) {
    const double g = grad[i] * double(a.grad_scale);
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    const double square = v[i] / (1 - std::pow(beta2, a.step));
    param[i] = param[i] * (1 - lr * double(a.weight_decay)) -
               lr / (1 - std::pow(beta1, a.step)) * m[i] / (std::sqrt(square) + double(a.eps));
  }
  values.write(a.new_param, param);
  values.write(a.new_m, m);
  values.write(a.new_v, v);
}

RowWork row_work(const std::byte* args) {
  const auto& a = as<Adamw>(args);
  return {.matrices = {&a.param, &a.grad, &a.m, &a.v, &a.new_param, &a.new_m, &a.new_v}, .adds_up = false};
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Adamw>("adamw", "a step of AdamW: new param, m and v, also in their places");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<20>;
    op.reference = reference;
    op.cases = cases;
    set_row_kernel(op, row_work);
    op.traits = {.input = "param", .output = "new_param", .in_place = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::adamw
