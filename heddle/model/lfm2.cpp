// LFM2 (Liquid AI, 2025): short convolutions with gates before and after them, and some layers of attention.
#include "heddle/model/build/lfm2.h"

namespace heddle::lfm2 {
namespace {

Definition define(const Config& config, const Inventory& tensors) {
  return define_lfm2(read_lfm2_config(config), tensors);
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "lfm2",
      .doc = "LFM2, dense",
      .supports =
          "convolutions and attention in any order (layer_types, full_attn_idxs), biases of convolutions, "
          "grouped heads, "
          "every rope_type, tied embeddings",
      .refuses = "rotary embeddings of a part of each head; sequences begin with no page of others",
      .define = define};
  return family;
}

}  // namespace heddle::lfm2
