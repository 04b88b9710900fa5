// Writes a model's graph in the words of its paper: each function adds one call (or one weight) and returns
// what it makes. Names are "layers.3.attention.qkv": the scope, then the last word.
#pragma once

#include <string>
#include <vector>

#include "heddle/engine/model.h"
#include "heddle/model/build/rotary.h"
#include "heddle/ops/embedding/embedding.h"

namespace heddle {

// A projection's matrix: parts of a checkpoint, one below the other.
struct Rows {
  std::vector<WeightSource> sources;
  std::vector<i32> order;
  std::vector<std::string> biases;  // one for each source, or none
};

// Where the heads of queries, keys and values lie in the columns of a fused projection.
struct Heads {
  i32 query = 1, kv = 1, dim = 1;

  i32 key_column() const { return query * dim; }
  i32 value_column() const { return (query + kv) * dim; }
  i32 columns() const { return (query + 2 * kv) * dim; }
};

// A root mean square norm: its epsilon, and what its weights lack (Gemma stores them less one).
struct Rms {
  double eps = 1e-5, plus = 0;
};

// What becomes of the scores of attention: cap tanh(scale q k / cap) of the last `window` positions. 0: no cap, all
// positions.
struct Scores {
  double scale = 1;
  i32 window = 0;
  double softcap = 0;
};

// One layer's keys and values of earlier steps.
struct KvPages {
  Tensor keys, values;
};

// What attention reads of this step's rows. `latent` may be missing: the queries' second part (ops/attention).
struct AttentionRows {
  Tensor q, k, v, latent;
};

// The weights that normalise the query and the key heads.
struct HeadNorms {
  std::string query, key;
};

// How tokens choose their experts, of `count` ones (heddle/ops/route).
struct Routing {
  i32 count = 1, taken = 1;
  bool sigmoid = false;    // scores: sigmoid, else softmax of the logits
  bool normalise = false;  // shares add up to `scale`
  std::string bias;        // added to the scores that choose; "": none
  i32 groups = 1, groups_kept = 1, scores_of_group = 1;
  double scale = 1;
};

// What a step's tokens chose.
struct Routes {
  i32 experts = 1;
  Tensor choice, share;  // [T, taken]
};

class Builder {
 public:
  Builder(const GraphRequest& request, const ModelInfo& info);

  // Calls inside the scope of "name.".
  Builder& in(const std::string& scope) {
    scope_ = scope.empty() ? "" : scope + ".";
    return *this;
  }

  Tensor embed(const std::string& name, const Weight& table, double scale = 1);
  Tensor embed_positions(const std::string& name, const Weight& table);
  // The stream of residuals begins with x: every add() after it goes on from the last one.
  Tensor residual(Tensor x);
  Tensor rms_norm(const std::string& name, Tensor x, const std::string& weight, const Rms& rms);
  Tensor layer_norm(const std::string& name, Tensor x, const std::string& weight, const std::string& bias,
                    double eps);
  Tensor linear(const std::string& name, Tensor x, const Rows& rows);
  Tensor linear(const std::string& name, Tensor x, const Weight& weight);
  // Each head's elements of x times its own rows.
  Tensor head_linear(const std::string& name, Tensor x, const Rows& rows, i32 heads);
  Routes route(const std::string& name, Tensor x, const Rows& rows, const Routing& routing);
  // Of each expert's matrix, one below the other in `rows`: a row of x for each token, or for each of its experts.
  Tensor expert_linear(const std::string& name, Tensor x, const Routes& routes, const Rows& rows);
  Tensor expert_sum(const std::string& name, Tensor x, const Routes& routes);
  // The query and key heads of a fused projection whose rows pair_rotary_rows ordered.
  Tensor head_norm(const std::string& name, Tensor qkv, const HeadNorms& weights, const Heads& heads,
                   const Rms& rms);
  Tensor rotary(const std::string& name, const Rotary& rotary);  // the step's table of cos and sin
  Tensor rope(const std::string& name, Tensor x, Tensor table, const Heads& heads, i32 rotary_dim);
  // Attention over pages of its own, to which the new keys and values go.
  Tensor attend(const std::string& name, Tensor qkv, i32 layer, const Heads& heads, const Scores& scores);
  // The same in parts: pages, what goes to them, attention.
  KvPages pages(i32 layer, i32 kv_heads, i32 key_dim, i32 value_dim);
  void append(const std::string& name, Tensor x, Tensor pages, i32 column = 0);
  Tensor attend(const std::string& name, const AttentionRows& rows, const KvPages& pages,
                const Scores& scores);
  Tensor activate(const std::string& name, Tensor x, i32 kind);
  Tensor gate(const std::string& name, Tensor pairs, i32 kind);
  Tensor sum(const std::string& name, Tensor a, Tensor b);
  // a added to the stream of residuals, b.
  Tensor add(const std::string& name, Tensor a, Tensor b);
  Tensor wanted(Tensor x);  // its wanted rows
  // The logits of x in f32, bent by a softcap (0: none), and the choice of tokens where the request asks for it.
  void head(Tensor x, const Weight& weight, double softcap = 0);

  // The table [rows, cols] of a look-up or of the head.
  Weight table(const std::string& name, const std::string& tensor, i32 rows, i32 cols);

  ModelGraph take() { return std::move(made_); }

 private:
  Tensor look_up(const std::string& name, Embedding args);
  Weight matrix(const std::string& name, const Rows& rows, i32 cols, i32 panel_rows, i32 matrices = 1);
  Tensor vector(const std::string& name, VectorSpec spec);
  Tensor like(Tensor x, i32 cols) const;
  std::string path(const std::string& name) const { return scope_ + name; }

  const GraphRequest& request_;
  const ModelInfo& info_;
  ModelGraph made_;
  Tensor step_, state_;
  Tensor residual_;  // where the request keeps it resident
  std::string scope_;
};

// Row orders. Heads [0, rotated) of `heads` have their partners i and i + rotary/2 side by side.
std::vector<i32> pair_rotary_rows(i32 rows, i32 rotated, i32 head_dim, i32 rotary_dim);
// Rows [0, n) and [n, 2n) alternate.
std::vector<i32> interleave_halves(i32 n);

}  // namespace heddle
