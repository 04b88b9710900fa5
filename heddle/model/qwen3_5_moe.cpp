// The text of Qwen 3.5's mixtures of experts (Qwen team, 2026): Qwen 3.5 with a mixture as MLP in each layer.
#include "heddle/model/build/qwen.h"

namespace heddle::qwen3_5_moe {
namespace {

Definition define(const Config& config, const Inventory& tensors) {
  return define_qwen_hybrid(read_qwen3_5_moe_config(config), tensors);
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "qwen3_5_moe_text",
      .doc = "the text of Qwen 3.5 and 3.6, mixtures of experts",
      .supports =
          "linear and full attention in any order (layer_types, full_attention_interval), any number "
          "of experts, grouped heads, every rope_type, tied embeddings",
      .refuses = "biases of attention; images; sequences begin with no page of others",
      .define = define,
      .also = {{"qwen3_5_moe_text", "qwen3_5_moe"}}};
  return family;
}

}  // namespace heddle::qwen3_5_moe
