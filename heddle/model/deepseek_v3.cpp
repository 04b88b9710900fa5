// DeepSeek V3 (DeepSeek-AI, 2024: "DeepSeek-V3 Technical Report"): the attention of V2, experts chosen by sigmoid, bias and group.
#include "heddle/model/build/deepseek.h"

namespace heddle::deepseek_v3 {

const Family& family() {
  static const Family family = {
      .model_type = "deepseek_v3",
      .doc = "DeepSeek V3, Kimi K2 and K2.5, GLM-4.7-Flash",
      .supports =
          "latent attention with a cache of latents, queries with a latent or without, biases of attention, "
          "rope_interleave, experts by sigmoid, bias and groups with shared ones, every rope_type",
      .refuses = "layers that predict several tokens are not used",
      .define =
          [](const Config& config, const Inventory& tensors) {
            const bool glm = config.model_type() == "glm4_moe_lite";
            return define_deepseek(glm ? read_glm4_moe_lite_config(config) : read_deepseek_v3_config(config),
                                   tensors);
          },
      .also = {{"kimi_k2"}, {"glm4_moe_lite"}, {"deepseek_v3", "kimi_k25"}, {"kimi_k2", "kimi_k25"}}};
  return family;
}

}  // namespace heddle::deepseek_v3
