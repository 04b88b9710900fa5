// Phi 3 and 4 (Abdin et al., 2024: "Phi-3 Technical Report"): Llama with merged projections, of whose heads only a
// part may turn, and longrope.
#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/llama_kin_config.h"

namespace heddle::phi3 {
namespace {

Tensor layer(Builder& b, const DecoderConfig& c, i32 l, Tensor x, const Rotaries& rotary) {
  const std::string at = layer_path(l);
  const Norm norm{.eps = c.rms_norm_eps};
  SelfAttention attention = attention_of(c, l, rotary.table);
  attention.qkv = rows_of(at + "self_attn.qkv_proj", attention.heads.columns());

  Tensor h = b.norm("input_norm", x, at + "input_layernorm", norm);
  x = b.add("attention_residual", self_attention(b, attention, h), x);
  h = b.norm("post_norm", x, at + "post_attention_layernorm", norm);
  h = gated_mlp(
      b, {.at = at + "mlp.", .inner = c.intermediate_size, .act = c.hidden_act, .merged = "gate_up_proj"}, h);
  return b.add("mlp_residual", h, x);
}

Definition define(const Config& config, const Inventory& tensors) {
  const DecoderConfig c = read_phi3_config(config);
  return define_decoder(c, tensors, {.norm = {.eps = c.rms_norm_eps}, .layer = layer_of(c, layer)});
}

}  // namespace

const Family& family() {
  static const Family family = {
      .model_type = "phi3",
      .doc = "Phi 3, 3.5 and 4",
      .supports =
          "grouped heads, partial_rotary_factor, a sliding window or none, longrope (also as su or yarn) "
          "with the factors of the context that is asked for, tied embeddings",
      .refuses = "nothing that transformers runs",
      .define = define};
  return family;
}

}  // namespace heddle::phi3
