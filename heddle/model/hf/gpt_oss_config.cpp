#include "heddle/model/hf/gpt_oss_config.h"

namespace heddle {

GptOssConfig read_gpt_oss_config(const Config& config) {
  refuse_foreign(config, "GptOss", {"sliding_window", "num_local_experts", "quantization_config"});
  if (const auto quantised = config.section("quantization_config"))
    if (quantised->optional_string("quant_method", "") != "mxfp4")
      quantised->refuse("quant_method", "it may be mxfp4");
  GptOssConfig c{read_decoder_config(config, {.sizes = {201088, 2880, 2880, 36, 64, 131072},
                                              .num_key_value_heads = 8,
                                              .head_dim = 64,
                                              .eps = 1e-5})};
  c.attention_bias = config.optional_bool("attention_bias", true);
  const Experts experts = read_experts(config, {.count = 128, .taken = 4});
  c.num_local_experts = experts.count, c.num_experts_per_tok = experts.taken;
  c.swiglu_alpha = config.optional_number("swiglu_alpha", 1.702, 0.0, 1e3);
  c.swiglu_limit = config.optional_number("swiglu_limit", 7.0, 1e-3, 1e6);
  const auto every_other = [](int layer, int) { return layer % 2 == 0; };
  c.windows = read_windows(config, c.num_hidden_layers, read_sliding_window(config, 128), every_other, 0);
  RopePlace place = place_of(c);
  place.theta = 150'000.0;
  place.otherwise =
      R"({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                        "original_max_position_embeddings": 4096})";
  c.rope = read_rope(config, place);
  return c;
}

}  // namespace heddle
