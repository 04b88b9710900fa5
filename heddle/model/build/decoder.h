// The parts that decoders have in common. A family writes its layer with them, and says what differs as data.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/model/build/family.h"
#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// Path such as "model.layers.3.".
std::string layer_path(i32 layer);

Heads heads_of(const DecoderConfig& c);

// The projections of a layer. Rows are as stored; self_attention() orders those of heads that turn.
Rows qkv_rows(const std::string& at, const Heads& heads, bool bias);
Rows rows_of(const std::string& tensor, i32 count, bool bias = false);

// The norm of the query and key heads before (or after) their rotation.
struct QkNorm {
  enum class Kind : unsigned char {
    kNone,
    kHead,      // each head, all with the same weights
    kEachHead,  // each head, with weights of its own
    kWhole,     // all heads as one row
  };
  Kind kind = Kind::kNone;
  std::vector<WeightSource> weights = {};  // as HeadNorms has them; kWhole: of all queries, of all keys
  std::vector<WeightSource> biases = {};   // as HeadNorms has them
  Norm norm = {};
  bool after_rope = false;
};
// Norms whose weights, and biases if they have them, lie at + "q_" + what and "k_" + what.
QkNorm qk_norm(const std::string& at, const Heads& heads, QkNorm::Kind kind, const Norm& norm,
               const char* what = "norm");

// The attention of one layer.
struct SelfAttention {
  i32 layer = 0;
  Heads heads;
  Rows qkv = {}, o = {};  // qkv: the heads of queries, keys and values
  Rows gate = {};         // what the heads give is multiplied by the sigmoid of this product; none: it is not
  Tensor rotary = {};     // the step's table; missing: positions turn no heads
  Tensor query_rotary = {};  // the queries' table, if it is another
  RotaryGains gains = {};    // factors of queries by position; none: there are none
  i32 rotary_dim = 0;        // leading elements of a head that turn; 0: all
  bool neighbours = false;   // the two elements of a pair are stored side by side, not rotary_dim / 2 apart
  QkNorm norm = {};
  double clip =
      0;  // queries, keys and values stay within [-clip, clip] after their norms; 0: they may be any
  Scores scores = {};
};
// Llama's: projections at "model.layers.3.self_attn.", scores divided by sqrt(head_dim).
SelfAttention attention_of(const DecoderConfig& c, i32 layer, Tensor rotary, bool qkv_bias = false,
                           bool o_bias = false);
Tensor self_attention(Builder& b, const SelfAttention& a, Tensor h);

// act(gate h) * (up h), projected down (Shazeer, 2020: "GLU Variants Improve Transformer").
Tensor gated_mlp(Builder& b, const DecoderConfig& c, const std::string& at, Tensor h, bool bias = false);
// Same, with `inner` columns and the projections at + gate, up and down.
struct GatedMlp {
  std::string at;
  i32 inner = 0;
  HiddenAct act = HiddenAct::kSilu;
  bool bias = false;
  const char* merged = "";  // gate and up are stored as one of this name; "": by these names
  const char* down = "down_proj";
  const char* gate = "gate_proj";
  const char* up = "up_proj";
};
Tensor gated_mlp(Builder& b, const GatedMlp& mlp, Tensor h);

// act(up h), projected down.
struct PlainMlp {
  std::string up, down;
  i32 inner = 0;
  HiddenAct act = HiddenAct::kGelu;
  bool bias = false;
};
Tensor plain_mlp(Builder& b, const PlainMlp& mlp, Tensor h);

// Layers share these: the step's tables of cos and sin, and biases of scores.
struct Rotaries {
  Tensor table;
  Tensor other;       // made from DecoderModel::other_rope
  Tensor score_bias;  // DecoderModel::score_bias
};

// Adds layer `l` to a graph.
using LayerOfGraph = std::function<Tensor(Builder& b, i32 l, Tensor x, const Rotaries& rotary)>;

// A model of equal layers between an embedding and a head.
struct DecoderModel {
  const char* embedding = "model.embed_tokens.weight";
  const char* last_norm = "model.norm";
  const char* head = "lm_head";
  Norm norm = {};  // the last one
  // Multiplies embeddings by sqrt(hidden_size), rounded to the checkpoint's dtype as in transformers: in bf16
  // sqrt(3072) = 55.4256 becomes 55.5.
  bool scaled_embedding = false;
  double embedding_scale = 1;
  bool adds_only = true;  // nothing but add() changes the residual stream
  Logits logits = {};
  std::optional<RopeConfig> other_rope = {};  // a second one, of some layers or of the queries
  const char* other_name = "local_rope";
  std::vector<float> score_bias = {};  // [heads, positions], in place of a rope; none: there is one
  LayerOfGraph layer = {};
  std::function<LayerOfGraph()> layers =
      {};  // in place of `layer`, where it keeps something from layer to layer
};
Definition define_decoder(const DecoderConfig& c, const Inventory& tensors, DecoderModel model);

// `layer` with its configuration, as DecoderModel has it.
template <class Config>
auto layer_of(const Config& c, Tensor (*layer)(Builder&, const Config&, i32, Tensor, const Rotaries&)) {
  return
      [c, layer](Builder& b, i32 l, Tensor x, const Rotaries& rotary) { return layer(b, c, l, x, rotary); };
}

}  // namespace heddle
