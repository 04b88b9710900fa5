#include "heddle/model/hf/mamba2_config.h"

#include <limits>

#include <fmt/format.h>

namespace heddle {
namespace {

void read_step_limits(const Config& config, Mamba2Config& c) {
  if (!config.has("time_step_limit")) return;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> limits = config.optional_numbers("time_step_limit", 0.0, kInfinity);
  if (limits.size() != 2 || limits[0] > limits[1] || limits[0] > 1e6 || limits[1] < 1e-6)
    config.reject("time_step_limit", "must be the least and the largest step");
  c.least_step = limits[0], c.most_step = limits[1] > 1e6 ? 0 : limits[1];
}

}  // namespace

Mamba2Config read_mamba2(const Config& config, int hidden_size, int inner) {
  if (!config.is_one_of("hidden_act", {R"("silu")", R"("swish")"}))
    config.refuse("hidden_act", "layers of Mamba have silu");
  Mamba2Config c;
  const int expand = config.optional_int("mamba_expand", 2, 1, 64);
  if (inner == 0) {
    if (int64_t(expand) * hidden_size > kMaxWidth)
      config.reject("mamba_expand", fmt::format("must leave layers of Mamba at most {} columns", kMaxWidth));
    inner = expand * hidden_size;
  }
  c.heads = config.optional_int("mamba_n_heads", 128, 1, kMaxHeads);
  if (inner % c.heads != 0)
    config.reject("mamba_n_heads", fmt::format("must divide the {} columns of a layer of Mamba", inner));
  c.head_dim = inner / c.heads;
  if (!config.is_one_of("mamba_d_head", {R"("auto")"}) &&
      config.optional_int("mamba_d_head", c.head_dim, 1, kMaxWidth) != c.head_dim)
    config.reject("mamba_d_head",
                  fmt::format("must be {}, of {} columns in {} heads", c.head_dim, inner, c.heads));
  c.groups = config.optional_int("mamba_n_groups", 1, 1, c.heads);
  if (c.heads % c.groups != 0) config.reject("mamba_n_groups", "must divide mamba_n_heads");
  c.state_dim = config.optional_int("mamba_d_state", 256, 1, kMaxHeadDim);
  c.conv_width = config.optional_int("mamba_d_conv", 4, 1, 64);
  c.conv_bias = config.optional_bool("mamba_conv_bias", true);
  c.in_bias = c.out_bias = config.optional_bool("mamba_proj_bias", false);
  read_step_limits(config, c);
  return c;
}

std::vector<bool> read_attending(const Config& config, const char* types, int layers) {
  std::vector<bool> attends(static_cast<size_t>(layers), false);
  if (!config.has(types)) return attends;
  const std::vector<std::string> names = config.optional_strings(types);
  if (names.size() != attends.size())
    config.reject(types, fmt::format("must be {} names, one for each layer", layers));
  for (size_t l = 0; l < names.size(); ++l) {
    attends[l] = names[l] == "attention" || names[l] == "full_attention";
    if (!attends[l] && names[l] != "mamba" && names[l] != "linear_attention")
      config.refuse(types, "layers may be mamba or attention");
  }
  return attends;
}

}  // namespace heddle
