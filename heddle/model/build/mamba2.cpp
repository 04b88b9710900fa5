#include "heddle/model/build/mamba2.h"

#include <algorithm>

#include "heddle/ir/rules.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

Tensor mamba2(Builder& b, const Mamba2Config& c, double eps, const std::string& at, Tensor h) {
  const i32 inner = c.inner(), mixed = c.conv_columns(), hidden = h.last();
  const Tensor all = b.linear("zxbcdt", h, rows_of(at + "in_proj", inner + mixed + c.heads, c.in_bias));
  const Tensor x = b.convolve("convolution", columns_of(all, inner, mixed),
                              {.tensor = at + "conv1d.weight",
                               .bias = c.conv_bias ? at + "conv1d.bias" : "",
                               .width = c.conv_width,
                               .silu = true});
  Tensor y = b.mamba2_scan("scan", x, columns_of(all, inner + mixed, c.heads), at,
                           {c.heads, c.head_dim, c.groups, c.state_dim, c.least_step, c.most_step});
  y = b.gated_product("gated", columns_of(all, 0, inner), y, kSilu);
  y = b.head_norm("norm", y, {.weights = {{at + "norm.weight", inner}}, .each = true},
                  {.query = c.groups, .kv = 0, .dim = inner / c.groups}, {.eps = eps});
  return b.linear("o", y, rows_of(at + "out_proj", hidden, c.out_bias));
}

bool has_mamba(const std::vector<bool>& attends) {
  return std::ranges::find(attends, false) != attends.end();
}

}  // namespace heddle
