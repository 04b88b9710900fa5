#include "heddle/model/hf/llama_config.h"

namespace heddle {

LlamaConfig read_llama_config(const Config& config) {
  refuse_foreign(config, "Llama", {"sliding_window"});
  note_unless(config, "pretraining_tp", {"1"}, "it only splits products in training; it has no effect here");
  note_unless(config, "sliding_window", {}, "Llama has no window in transformers; all positions are seen");
  LlamaConfig c{read_decoder_config(config, {.sizes = {32000, 4096, 11008, 32, 32, 2048}})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

LlamaConfig read_arcee_config(const Config& config) {
  refuse_foreign(config, "Arcee");
  LlamaConfig c{read_decoder_config(
      config, {.sizes = {32000, 2560, 18432, 32, 32, 4096}, .hidden_act = "relu2", .eps = 1e-5})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

LlamaConfig read_cwm_config(const Config& config) {
  refuse_foreign(config, "Cwm", {"sliding_window"});
  note_unless(config, "pretraining_tp", {"1"}, "it only splits products in training; it has no effect here");
  LlamaConfig c{read_decoder_config(config, {.sizes = {128256, 6144, 21504, 64, 48, 131072},
                                             .num_key_value_heads = 8,
                                             .head_dim = 128,
                                             .eps = 1e-5})};
  const auto but_every = [](int layer, int pattern) { return layer % pattern != 0; };
  c.windows = read_windows(config, c.num_hidden_layers, read_sliding_window(config, 8192), but_every, 4);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  RopePlace place = place_of(c);
  place.theta = 1'000'000.0;
  place.otherwise =
      R"({"rope_type": "llama3", "rope_theta": 1000000.0, "factor": 16.0, "high_freq_factor": 4.0,
                        "low_freq_factor": 1.0, "original_max_position_embeddings": 8192})";
  c.rope = read_rope(config, place);
  return c;
}

}  // namespace heddle
