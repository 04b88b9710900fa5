// Mistral Small 4 (Mistral AI, 2026): the attention of DeepSeek V2 with queries that grow with the logarithm of their position
// (Llama 4, 2025), and experts chosen by softmax.
#include "heddle/model/build/deepseek.h"

namespace heddle::mistral4 {

const Family& family() {
  static const Family family = {
      .model_type = "mistral4",
      .doc = "Mistral Small 4",
      .supports =
          "the text model of a mistral3 with images, latent attention with a cache of latents, "
          "llama_4_scaling_beta, rope_interleave, experts by softmax and groups with shared ones, every "
          "rope_type",
      .refuses = "the indexed attention of Mistral Large 4",
      .define =
          [](const Config& config, const Inventory& tensors) {
            return define_deepseek(read_mistral4_config(config), tensors);
          },
      .also = {{"mistral4", "mistral3"}}};
  return family;
}

}  // namespace heddle::mistral4
