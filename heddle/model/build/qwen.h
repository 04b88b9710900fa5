// The parts that Qwen's mixtures and hybrids have in common.
#pragma once

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/qwen_hybrid_config.h"

namespace heddle {

// The mixture of the layer at `at`, "model.layers.3.": the experts that tokens choose, and next to them one that all take,
// each with a gate of its own.
Tensor mixture_with_shared_expert(Builder& b, const QwenMoeConfig& c, const std::string& at, Tensor h);

// A decoder whose layers have linear attention (gated DeltaNet, Yang et al., 2024) or attention whose heads have gates.
Definition define_qwen_hybrid(const QwenHybridConfig& c, const Inventory& tensors);

}  // namespace heddle
