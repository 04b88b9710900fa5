#include "heddle/model/hf/grouped_experts.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "heddle/model/hf/family_config.h"

namespace heddle {
namespace {

int read_count(const Config& config, const std::string& key, int fallback, int most) {
  return fallback > 0 ? config.optional_int(key, fallback, 1, most) : config.required_int(key, 1, most);
}

}  // namespace

void read_grouped_experts(const Config& config, const GroupedExperts& defaults, GroupedExperts& experts,
                          const GroupedExpertsKeys& keys) {
  GroupedExperts e = defaults;
  e.n_routed_experts = read_count(config, keys.routed, defaults.n_routed_experts, kMaxExperts);
  e.n_shared_experts = read_count(config, keys.shared, defaults.n_shared_experts, kMaxExperts);
  e.moe_intermediate_size = config.optional_int("moe_intermediate_size", defaults.moe_intermediate_size, 1,
                                                kMaxWidth / e.n_shared_experts);
  e.n_group = config.optional_int("n_group", defaults.n_group, 1, e.n_routed_experts);
  e.topk_group = config.optional_int("topk_group", defaults.topk_group, 1, kMaxExperts);
  if (e.n_routed_experts % e.n_group != 0)
    config.reject("n_group", fmt::format("must divide {}", keys.routed));
  if (e.topk_group > e.n_group) config.reject("topk_group", "must be at most n_group");
  if (e.scores_of_group == 2 && e.n_routed_experts / e.n_group < 2)
    config.reject("n_group", "leaves groups of one expert; the scores of a group are its best two");
  e.num_experts_per_tok = read_count(config, "num_experts_per_tok", defaults.num_experts_per_tok,
                                     e.n_routed_experts / e.n_group * e.topk_group);
  e.routed_scaling_factor =
      config.optional_number("routed_scaling_factor", defaults.routed_scaling_factor, 0.0, 1e6);
  e.norm_topk_prob = config.optional_bool("norm_topk_prob", defaults.norm_topk_prob);
  experts = e;
}

int read_dense_layers(const Config& config, int layers, int otherwise) {
  if (!config.has("mlp_layer_types")) return otherwise;
  const std::vector<std::string> types = config.optional_strings("mlp_layer_types");
  const auto first = std::ranges::find_if(types, [](const std::string& type) { return type != "dense"; });
  if (types.size() != size_t(layers) ||
      std::any_of(first, types.end(), [](const std::string& type) { return type != "sparse"; }))
    config.refuse("mlp_layer_types", fmt::format("must be {} names, \"dense\" for the first layers and "
                                                 "\"sparse\" for all others",
                                                 layers));
  return int(first - types.begin());
}

}  // namespace heddle
