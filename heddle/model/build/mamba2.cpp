#include "heddle/model/build/mamba2.h"

#include <algorithm>

#include "heddle/ir/rules.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

namespace {

// Returns the factors of the columns of a convolution; none where all are 1.
std::vector<float> column_factors(const Mamba2Config& c) {
  const auto& [z, x, b, c_factor, dt] = c.multipliers;
  if (x == 1 && b == 1 && c_factor == 1) return {};
  std::vector<float> factors(size_t(c.inner()), float(x));
  for (const double factor : {b, c_factor})
    factors.insert(factors.end(), size_t(c.groups * c.state_dim), float(factor));
  return factors;
}

}  // namespace

Tensor mamba2(Builder& b, const Mamba2Config& c, double eps, const std::string& at, Tensor h) {
  const i32 inner = c.inner(), mixed = c.conv_columns(), hidden = h.last();
  const Tensor all = b.linear("zxbcdt", h, rows_of(at + "in_proj", inner + mixed + c.heads, c.in_bias));
  const Tensor x = b.convolve("convolution", columns_of(all, inner, mixed),
                              {.tensor = at + "conv1d.weight",
                               .bias = c.conv_bias ? at + "conv1d.bias" : "",
                               .width = c.conv_width,
                               .silu = true,
                               .factors = column_factors(c)});
  const Tensor gate = b.scale("gate_scale", columns_of(all, 0, inner), c.multipliers.front());
  const Tensor dt = b.scale("dt_scale", columns_of(all, inner + mixed, c.heads), c.multipliers.back());
  Tensor y = b.mamba2_scan("scan", x, dt, at,
                           {c.heads, c.head_dim, c.groups, c.state_dim, c.least_step, c.most_step});
  const auto normalise = [&] {
    y = b.head_norm("norm", y, {.weights = {{at + "norm.weight", inner}}, .each = true},
                    {.query = c.groups, .kv = 0, .dim = inner / c.groups}, {.eps = eps});
  };
  if (c.norm == Mamba2Norm::kBeforeGate) normalise();
  y = b.gated_product("gated", gate, y, kSilu);
  if (c.norm == Mamba2Norm::kAfterGate) normalise();
  return b.linear("o", y, rows_of(at + "out_proj", hidden, c.out_bias));
}

bool has_mamba(const std::vector<bool>& attends) {
  return std::ranges::find(attends, false) != attends.end();
}

}  // namespace heddle
