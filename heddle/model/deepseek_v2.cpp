// DeepSeek V2 (DeepSeek-AI, 2024: "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model").
#include "heddle/model/build/deepseek.h"

namespace heddle::deepseek_v2 {

const Family& family() {
  static const Family family = {
      .model_type = "deepseek_v2",
      .doc = "DeepSeek V2",
      .supports =
          "latent attention with a cache of latents, queries with a latent or without, biases of attention "
          "and MLP, experts by softmax (greedy, group_limited_greedy) with shared ones, every rope_type",
      .refuses = "norm_topk_prob",
      .define = [](const Config& config, const Inventory& tensors) {
        return define_deepseek(read_deepseek_v2_config(config), tensors);
      }};
  return family;
}

}  // namespace heddle::deepseek_v2
