// DeepSeek V3 (DeepSeek-AI, 2024: "DeepSeek-V3 Technical Report"): the attention of V2, experts chosen by sigmoid, bias and group.
#include "heddle/model/build/deepseek.h"

namespace heddle::deepseek_v3 {

const Family& family() {
  static const Family family = {
      .model_type = "deepseek_v3",
      .doc = "DeepSeek V3, and Kimi K2",
      .supports =
          "latent attention with a cache of latents, queries with a latent or without, biases of attention, "
          "rope_interleave, experts by sigmoid, bias and groups with shared ones, every rope_type",
      .refuses = "layers that predict several tokens are not used",
      .define =
          [](const Config& config, const Inventory& tensors) {
            return define_deepseek(read_deepseek_v3_config(config), tensors);
          },
      .also = "kimi_k2"};
  return family;
}

}  // namespace heddle::deepseek_v3
