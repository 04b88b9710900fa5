// LFM2's mixtures of experts (Liquid AI, 2025): LFM2 whose later layers have a mixture as MLP.
#include "heddle/model/build/lfm2.h"

namespace heddle::lfm2_moe {
namespace {

Definition define(const Config& config, const Inventory& tensors) {
  return define_lfm2(read_lfm2_moe_config(config), tensors);
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "lfm2_moe",
      .doc = "LFM2, mixtures of experts",
      .supports =
          "convolutions and attention in any order (layer_types), any number of experts by sigmoid and bias, "
          "layers without "
          "(num_dense_layers), grouped heads, every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head; sequences begin with no page of others",
      .define = define};
  return family;
}

}  // namespace heddle::lfm2_moe
