// A mixture of experts: each token takes some of a layer's gated MLPs (Shazeer et al., 2017: "Outrageously Large
// Neural Networks").
#pragma once

#include <string>

#include "heddle/model/build/builder.h"
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/family_config.h"
#include "heddle/model/hf/grouped_experts.h"

namespace heddle {

// Names of the experts in a checkpoint, which has them in one of two forms:
// 1. a matrix each, `at` + "experts.7." + gate, up or down + ".weight";
// 2. the matrices of all experts stacked as one tensor, [experts, rows, cols], with the gate rows of an expert before its
//    up rows: at + stacked_input or stacked_output. These are the parameters of transformers' own modules.
struct ExpertNames {
  std::string at;  // "model.layers.3.mlp."
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
  const char* stacked_input = "experts.gate_up_proj";
  const char* stacked_output = "experts.down_proj";
  const char* router = "gate.weight";
  enum class Stack : unsigned char {
    kRows,     // stacked matrices are [experts, rows, cols]
    kEither,   // [experts, cols, rows] where they are not [experts, rows, cols]
    kColumns,  // [experts, cols, rows]
  };
  Stack stack = Stack::kRows;
};

// The matrices [rows, cols] of all experts, which `tensor` has as [experts, cols, rows].
Rows transposed_experts(const std::string& tensor, i32 experts, i32 rows, i32 cols);

// at + "block_sparse_moe.", as the first files name a mixture, or at + "mlp.", as transformers' modules do.
std::string block_of_experts(const Builder& b, const std::string& at);

// share_0 expert_0(h) + share_1 expert_1(h) + ..., over the experts that the router chooses; with routing.scales_input
// expert(share h), of one expert. `inner` is their width. `asked`: the router's input, if it is not h.
Tensor mixture(Builder& b, const ExpertNames& names, i32 inner, HiddenAct act, const Routing& routing,
               Tensor h, Tensor asked = {});

// Sums experts without gates, act(up x) projected down, by their shares. Their matrices lie at `at` + "experts.", and x may have
// other columns than the rows that chose.
Tensor plain_experts(Builder& b, const std::string& at, i32 inner, HiddenAct act, const Routes& routes,
                     Tensor x);

// The mixture of DeepSeek V2 and V3 at `at`, "model.layers.3.mlp.": the experts that h chooses, and the shared ones as one wide
// expert. `bias`: the shared ones have biases.
Tensor grouped_mixture(Builder& b, const GroupedExperts& experts, HiddenAct act, const std::string& at,
                       Tensor h, bool bias = false);

// Layer `l` with norms before its attention and before its MLP, which from experts.first_k_dense_replace on is that mixture.
Tensor grouped_layer(Builder& b, const DecoderConfig& c, const GroupedExperts& experts, i32 l, Tensor x,
                     const SelfAttention& attention);

}  // namespace heddle
