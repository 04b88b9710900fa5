#include "heddle/model/hf/gemma4_config.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle {
namespace {

// Reads the sizes of layers that see all positions, where they differ from those of others. Published files name two keys; transformers writes an
// object for each such layer.
void read_global_sizes(const Config& config, Gemma4Config& c) {
  c.global_head_dim = c.head_dim, c.global_kv_heads = c.num_key_value_heads;
  const auto layers = config.section("per_layer_config");
  if (!layers) {
    c.global_head_dim = config.optional_int("global_head_dim", 512, 2, kMaxHeadDim);
    if (c.keys_are_values)
      c.global_kv_heads =
          config.optional_int("num_global_key_value_heads", c.num_key_value_heads, 1, c.num_attention_heads);
  }
  bool first = true;
  for (int l = 0; layers && l < c.num_hidden_layers; ++l) {
    const auto layer = layers->section(std::to_string(l));
    if (c.slides(l) && layer)
      layers->refuse(std::to_string(l), "layers with a window have no sizes of their own");
    if (c.slides(l)) continue;
    const int dim = layer ? layer->optional_int("head_dim", c.head_dim, 2, kMaxHeadDim) : c.head_dim;
    const int heads =
        layer ? layer->optional_int("num_key_value_heads", c.num_key_value_heads, 1, c.num_attention_heads)
              : c.num_key_value_heads;
    if (layer && !layer->unread().empty())
      layer->refuse(layer->unread().front(), "a layer may have its own head_dim and num_key_value_heads");
    if (first) c.global_head_dim = dim, c.global_kv_heads = heads;
    first = false;
    if (dim != c.global_head_dim || heads != c.global_kv_heads)
      config.refuse("per_layer_config", "layers that see all positions may have one size");
  }
  if (c.global_head_dim % 2 != 0)
    config.reject("global_head_dim", "must be even; rotary embeddings turn pairs");
  if (c.num_attention_heads % c.global_kv_heads != 0)
    config.reject("num_global_key_value_heads", "must divide num_attention_heads");
}

// Each kind of layer among those that share must be among those that do not.
void read_sharing(const Config& config, Gemma4Config& c) {
  const int shared = config.optional_int("num_kv_shared_layers", 0, 0, c.num_hidden_layers - 1);
  c.first_shared = c.num_hidden_layers - shared;
  for (int l = c.first_shared; l < c.num_hidden_layers; ++l) {
    bool found = false;
    for (int own = 0; own < c.first_shared; ++own) found |= c.slides(own) == c.slides(l);
    if (!found)
      config.reject("num_kv_shared_layers", fmt::format("leaves layer {} no earlier layer of its kind", l));
  }
  c.wide_shared_mlp = config.optional_bool("use_double_wide_mlp", false);
}

}  // namespace

Gemma4Config read_gemma4_config(const Config& config) {
  refuse_foreign(config, "Gemma4", {"sliding_window", "final_logit_softcapping"});
  Gemma4Config c{read_decoder_config(config, {.sizes = {262144, 2304, 9216, 30, 8, 131072},
                                              .num_key_value_heads = 4,
                                              .head_dim = 256,
                                              .hidden_act_key = "hidden_activation",
                                              .hidden_act = "gelu_pytorch_tanh",
                                              .tie_word_embeddings = true})};
  config.refuse_unless("use_bidirectional_attention", {"\"vision\""});  // images alone have it
  if (config.optional_bool("enable_moe_block", false)) {
    c.experts.count = config.required_int("num_experts", 1, kMaxExperts);
    c.experts.taken = config.required_int("top_k_experts", 1, c.experts.count);
    c.moe_intermediate_size = config.required_int("moe_intermediate_size", 1, kMaxWidth);
  }
  c.attention_bias = config.optional_bool("attention_bias", false);
  const int window = config.optional_int("sliding_window", 512, 1, kMaxPositions);
  c.windows = read_windows(
      config, c.num_hidden_layers, window, [](int l, int pattern) { return (l + 1) % pattern != 0; }, 6);
  c.windows.back() = 0;  // whatever the list says
  c.keys_are_values = config.optional_bool("attention_k_eq_v", false);
  read_global_sizes(config, c);
  read_sharing(config, c);
  c.per_layer_input =
      config.optional_int("hidden_size_per_layer_input", 256, 0, kMaxWidth / c.num_hidden_layers);
  c.per_layer_vocab = config.optional_int("vocab_size_per_layer_input", 262144, 1, kMaxVocab);
  if (c.per_layer_input > 0 && c.per_layer_vocab < c.vocab_size)
    config.reject("vocab_size_per_layer_input", "must not be below vocab_size");
  if (config.has("final_logit_softcapping"))
    c.final_logit_softcapping = config.required_number("final_logit_softcapping", 1e-3, 1e6);

  if (const auto ropes =
          config.section("rope_parameters"))  // whose class in transformers has no defaults for these
    for (const char* kind : {"full_attention", "sliding_attention"}) {
      const auto rope = ropes->section(kind);
      if (!rope) ropes->reject(kind, "must be an object of rope parameters");
      (void)rope->required_number("rope_theta", 1e-3, 1e12);
    }
  RopePlace place{.max_position_embeddings = c.max_position_embeddings, .head_dim = c.head_dim};
  place.otherwise =
      R"({"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}, "full_attention":
                        {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}})";
  c.local_rope = read_layer_rope(config, "sliding_attention", "rope_theta", place);
  place.head_dim = c.global_head_dim, place.proportional = true;
  c.rope = read_layer_rope(config, "full_attention", "rope_theta", place);
  return c;
}

}  // namespace heddle
