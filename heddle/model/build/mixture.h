// A mixture of experts: each token takes some of a layer's gated MLPs (Shazeer et al., 2017: "Outrageously Large
// Neural Networks").
#pragma once

#include <string>

#include "heddle/model/build/builder.h"
#include "heddle/model/hf/family_config.h"

namespace heddle {

// Names of the experts in a checkpoint: `at` + "experts.7." + gate, up or down.
struct ExpertNames {
  std::string at;  // "model.layers.3.mlp."
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
  // The matrices of all experts stacked as one tensor each, gate and up of an expert together: these names instead,
  // at + input and output.
  const char* stacked_input = "";
  const char* stacked_output = "";
  const char* router = "gate";
};

// share_0 expert_0(h) + share_1 expert_1(h) + ..., over the experts that the router chooses.
// `inner` is their width.
Tensor mixture(Builder& b, const ExpertNames& names, i32 inner, HiddenAct act, const Routing& routing,
               Tensor h);

}  // namespace heddle
