// The text of Qwen 3.5 (Qwen team, 2026): three of four layers have gated DeltaNet, a linear attention with a state of fixed size.
#include "heddle/model/build/qwen.h"

namespace heddle::qwen3_5 {
namespace {

Definition define(const Config& config, const Inventory& tensors) {
  return define_qwen_hybrid(read_qwen3_5_config(config), tensors);
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "qwen3_5_text",
      .doc = "the text of Qwen 3.5 and 3.6, dense",
      .supports =
          "linear and full attention in any order (layer_types, full_attention_interval), grouped "
          "heads, every rope_type, tied embeddings",
      .refuses = "biases of attention; images; sequences begin with no page of others",
      .define = define,
      .also = {{"qwen3_5_text", "qwen3_5"}}};
  return family;
}

}  // namespace heddle::qwen3_5
