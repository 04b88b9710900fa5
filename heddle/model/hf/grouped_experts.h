// The mixtures of DeepSeek V2 and V3 and of those that follow them: experts in groups, next to shared ones that all tokens take.
#pragma once

#include "heddle/model/hf/config.h"

namespace heddle {

struct GroupedExperts {
  int first_k_dense_replace = 0;  // layers before this one have no experts
  int n_routed_experts = 0, n_shared_experts = 0, num_experts_per_tok = 0;
  int moe_intermediate_size = 0;
  int n_group = 1, topk_group = 1;
  double routed_scaling_factor = 1;
  bool norm_topk_prob = false;
  bool scores_by_sigmoid = true;  // and with a bias for the choice; else by softmax
  int scores_of_group = 2;        // a group's score is the sum of so many of its best
};

// Keys that a family's class names otherwise.
struct GroupedExpertsKeys {
  const char* routed = "n_routed_experts";
  const char* shared = "n_shared_experts";
};

// Reads all but scores_by_sigmoid and scores_of_group. `defaults` has what a file may lack; where it has no n_routed_experts, n_shared_experts or
// num_experts_per_tok, a file must have it.
void read_grouped_experts(const Config& config, const GroupedExperts& defaults, GroupedExperts& experts,
                          const GroupedExpertsKeys& keys = {});

// first_k_dense_replace by mlp_layer_types: "dense" for some layers, then "sparse". `layers` are as many as the model has.
// Without such a list: `otherwise`.
int read_dense_layers(const Config& config, int layers, int otherwise);

}  // namespace heddle
