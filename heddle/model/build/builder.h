// Writes a model's graph in the words of its paper: each function adds one call (or one weight) and returns
// what it makes. Names are "layers.3.attention.qkv": the scope, then the last word.
#pragma once

#include <string>
#include <vector>

#include "heddle/engine/model.h"
#include "heddle/model/build/inventory.h"
#include "heddle/model/build/rotary.h"
#include "heddle/ops/embedding/embedding.h"

namespace heddle {

// A projection's matrix: parts of a checkpoint, stacked by rows.
struct Rows {
  std::vector<WeightSource> sources;
  std::vector<i32> order;
  std::vector<std::string> biases;  // one for each source, or none
};

// The columns of a fused projection that hold the heads of queries, keys and values.
struct Heads {
  i32 query = 1, kv = 1, dim = 1;

  i32 key_column() const { return query * dim; }
  i32 value_column() const { return (query + kv) * dim; }
  i32 columns() const { return (query + 2 * kv) * dim; }
};

// A root mean square norm: its epsilon, and what to add to its stored weights (Gemma stores them minus one).
struct Rms {
  double eps = 1e-5, plus = 0;
};

// A norm of rows: root mean square, or around the mean (`centred`) and then with a bias if it has one.
struct Norm {
  double eps = 1e-5, plus = 0;
  bool centred = false, bias = false;
  bool weights = true;  // false: centred without weights and bias
};

// The change of attention's scores: cap tanh(scale q k / cap) over the last `window` positions. 0: no cap,
// all positions.
struct Scores {
  double scale = 1;
  i32 window = 0;
  double softcap = 0;
  std::string sinks = {};  // a score of each head that has no value; "": none
  Tensor bias = {};        // [heads, positions], added to scores; missing: none
};

// One layer's keys and values of earlier steps.
struct KvPages {
  Tensor keys, values;
};

// Inputs of attention from this step's rows. `latent` (the second part of the queries, see ops/attention) may
// be missing.
struct AttentionRows {
  Tensor q, k, v, latent;
};

// The norms of the query and the key heads.
struct HeadNorms {
  // The weights of a query head and of a key head; `each`: those of all heads, one after another. None: all are 1.
  std::vector<WeightSource> weights = {};
  std::vector<WeightSource> biases = {};  // as weights, or none
  bool each = false;
  bool centred = false;         // around the mean
  std::vector<i32> order = {};  // as Rows::order of the projection; empty: as stored
};

// The way tokens choose among `count` experts (heddle/ops/route).
struct Routing {
  i32 count = 1, taken = 1;
  bool sigmoid = false;      // scores: sigmoid, else softmax of the logits
  bool normalise = false;    // shares add up to `scale`
  std::string bias;          // added to the scores that choose, but not to the shares; "": none
  std::string factors = {};  // a factor of the shares for each expert; "": none
  i32 groups = 1, groups_kept = 1, scores_of_group = 1;
  double scale = 1;
  double logit_scale = 1;
  bool sparse_mixer = false;  // as Route has it
  double threshold = 0;
  bool own_input = false;  // nothing but the router reads x
  bool scales_input =
      false;  // a share is a factor of the expert's input, not of its output; of one expert only
};

// The experts that a step's tokens chose.
struct Routes {
  i32 experts = 1;
  Tensor choice, share;  // [T, taken]
};

// The way logits are made from the product with the head.
struct Logits {
  double softcap = 0;  // 0: none
  double scale = 1;
  std::string bias = {};  // "": none
};

class Builder {
 public:
  Builder(const GraphRequest& request, const ModelInfo& info, const Inventory& tensors);

  // True if the checkpoint has a tensor of this name.
  bool has(const std::string& tensor) const { return tensors_.has(tensor); }
  std::vector<int64_t> shape(const std::string& tensor) const { return tensors_.shape(tensor); }
  // Positions that a sequence may have.
  i32 context() const { return request_.context; }
  // Puts the calls that follow into the scope "name.".
  Builder& in(const std::string& scope) {
    scope_ = scope.empty() ? "" : scope + ".";
    return *this;
  }

  Tensor embed(const std::string& name, const Weight& table, double scale = 1);
  Tensor embed_positions(const std::string& name, const Weight& table);
  // Begins the residual stream with x. Every add() continues from the last one.
  Tensor residual(Tensor x);
  // `order`: of the columns, as Rows::order.
  Tensor rms_norm(const std::string& name, Tensor x, const std::string& weight, const Rms& rms,
                  const std::vector<i32>& order = {});
  // Around the mean. `bias` may be "".
  Tensor layer_norm(const std::string& name, Tensor x, const std::string& weight, const std::string& bias,
                    const Rms& rms);
  // The norm whose weights are tensor + ".weight" and ".bias".
  Tensor norm(const std::string& name, Tensor x, const std::string& tensor, const Norm& norm);
  Tensor linear(const std::string& name, Tensor x, const Rows& rows);
  Tensor linear(const std::string& name, Tensor x, const Weight& weight);
  // Multiplies each head's elements of x by that head's rows.
  Tensor head_linear(const std::string& name, Tensor x, const Rows& rows, i32 heads);
  Routes route(const std::string& name, Tensor x, const Rows& rows, const Routing& routing);
  // `rows` stacks the matrices of all experts. x has one row for each token, or one for each pair of a token
  // and its expert.
  Tensor expert_linear(const std::string& name, Tensor x, const Routes& routes, const Rows& rows);
  // Adds the bias of its expert to each pair of a token and its expert. `bias`: [experts, columns of x]
  Tensor expert_bias(const std::string& name, Tensor x, const Routes& routes, const std::string& bias);
  Tensor expert_sum(const std::string& name, Tensor x, const Routes& routes);
  // After experts that no expert_sum follows: calls have a row for each token again, of which dead ones are left out.
  void end_experts();
  // Normalises the query and key heads of a fused projection.
  Tensor head_norm(const std::string& name, Tensor qkv, const HeadNorms& weights, const Heads& heads,
                   const Rms& rms);
  // Biases of scores: [heads, positions].
  Tensor score_bias(const std::string& name, std::vector<float> values, i32 heads);
  // The step's table of cos and sin. Those of `gains` repeat the last one for positions after them.
  Tensor rotary(const std::string& name, const Rotary& rotary, const RotaryGains& gains = {});
  // Each row of x times the factor of its position; x itself without `gains`.
  Tensor gain(const std::string& name, Tensor x, const RotaryGains& gains);
  Tensor rope(const std::string& name, Tensor x, Tensor table, const Heads& heads, i32 rotary_dim);
  // Attention over its own pages, with the new keys and values appended.
  Tensor attend(const std::string& name, Tensor qkv, i32 layer, const Heads& heads, const Scores& scores);
  // Separate parts of attend(): pages, the append to them, attention.
  KvPages pages(i32 layer, i32 kv_heads, i32 key_dim, i32 value_dim);
  void append(const std::string& name, Tensor x, Tensor pages, i32 column = 0);
  Tensor attend(const std::string& name, const AttentionRows& rows, const KvPages& pages,
                const Scores& scores);
  Tensor activate(const std::string& name, Tensor x, i32 kind);
  Tensor gate(const std::string& name, Tensor pairs, i32 kind);
  Tensor clamp(const std::string& name, Tensor x, double limit);  // to [-limit, limit]
  Tensor clamped_gate(const std::string& name, Tensor pairs, double alpha, double limit);
  Tensor sum(const std::string& name, Tensor a, Tensor b);
  Tensor scale(const std::string& name, Tensor x, double factor);
  // x times the only element of a tensor.
  Tensor scale(const std::string& name, Tensor x, const std::string& tensor);
  // x in the type of vectors that calls pass on.
  Tensor travelling(const std::string& name, Tensor x);
  // Element by element: a * b, and f(gate) * x.
  Tensor multiply(const std::string& name, Tensor a, Tensor b);
  Tensor gated_product(const std::string& name, Tensor gate, Tensor x, i32 kind);
  // A causal convolution of each column over the last `width` positions (heddle/ops/recurrence). `tensor`: [columns, 1, width]
  struct Convolution {
    std::string tensor;
    std::string bias = {};  // "": none
    i32 width = 1;
    bool silu = false;
    std::vector<float> factors = {};  // multiply the columns of x; none: they stay
  };
  Tensor convolve(const std::string& name, Tensor x, const Convolution& convolution);
  // The gated delta rule of heddle/ops/recurrence. x: [T, queries, keys and values], gates: [T, b and a of all heads].
  struct DeltaHeads {
    i32 keys = 1, values = 1, key_dim = 1, value_dim = 1;

    i32 key_columns() const { return keys * key_dim; }
    i32 value_columns() const { return values * value_dim; }
    i32 columns() const { return 2 * key_columns() + value_columns(); }
  };
  Tensor delta_rule(const std::string& name, Tensor x, Tensor gates, const std::string& at,
                    const DeltaHeads& heads);
  // The state space of Mamba-2 of heddle/ops/recurrence. x: [T, x of all heads, B and C of all groups], dt: [T, heads]
  struct StateHeads {
    i32 heads = 1, dim = 1, groups = 1, state_dim = 1;
    double least = 0, most = 0;  // limits of steps; 0: none
  };
  Tensor mamba2_scan(const std::string& name, Tensor x, Tensor dt, const std::string& at,
                     const StateHeads& heads);
  // Each row of x times the sigmoid of its gate. [T, N], [T, 1]
  Tensor gate_rows(const std::string& name, Tensor x, Tensor gate);
  // Adds a to the residual stream b.
  Tensor add(const std::string& name, Tensor a, Tensor b);
  Tensor wanted(Tensor x);  // its wanted rows
  // Adds the logits of x in f32, and the choice of tokens if the request asks for it.
  void head(Tensor x, const Weight& weight, const Logits& logits = {});

  // A table [rows, cols] for a look-up or the head.
  Weight table(const std::string& name, const std::string& tensor, i32 rows, i32 cols);
  // The weight of the head: the `embedding` if they are tied and the checkpoint has no `tensor` that differs.
  Weight head_table(const Weight& embedding, const std::string& tensor, bool tied);

  ModelGraph take() { return std::move(made_); }

 private:
  Tensor route_logits(const std::string& name, Tensor x, const Weight& weight, bool own_input);
  Tensor vectors(const std::string& name, VectorSpec spec, i32 rows);
  Tensor grow(const std::string& path, Tensor x, const RotaryGains& gains);
  Tensor memory(const std::string& name, const std::vector<i32>& sizes);
  Tensor look_up(const std::string& name, Embedding args);
  DType dtype_of(const Rows& rows) const;
  Coding take_coding(WeightSpec& spec) const;
  Weight matrix(const std::string& name, const Rows& rows, i32 cols, i32 panel_rows, i32 matrices = 1);
  Tensor vector(const std::string& name, VectorSpec spec);
  Tensor like(Tensor x, i32 cols) const;
  std::string path(const std::string& name) const { return scope_ + name; }

  const GraphRequest& request_;
  const ModelInfo& info_;
  const Inventory& tensors_;
  ModelGraph made_;
  Tensor step_, state_;
  Tensor residual_;  // set while the request keeps it resident
  std::string scope_;
};

// Row orders. Makes the partners i and i + rotary/2 of heads [0, rotated) of `heads` adjacent.
std::vector<i32> pair_rotary_rows(i32 rows, i32 rotated, i32 head_dim, i32 rotary_dim);
// Rows [0, n) and [n, 2n) alternate.
std::vector<i32> interleave_halves(i32 n);

}  // namespace heddle
