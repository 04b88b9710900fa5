// Qwen 3 Next (Qwen team, 2025): three of four layers have gated DeltaNet, a linear attention with a state of fixed size, and
// all have a mixture of experts.
#include "heddle/model/build/qwen.h"

namespace heddle::qwen3_next {
namespace {

Definition define(const Config& config, const Inventory& tensors) {
  return define_qwen_hybrid(read_qwen3_next_config(config), tensors);
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "qwen3_next",
      .doc = "Qwen 3 Next and Qwen 3 Coder Next",
      .supports =
          "linear and full attention in any order (layer_types, full_attention_interval), layers "
          "without experts, grouped heads, every rope_type, tied embeddings",
      .refuses = "biases of attention; sequences begin with no page of others",
      .define = define};
  return family;
}

}  // namespace heddle::qwen3_next
