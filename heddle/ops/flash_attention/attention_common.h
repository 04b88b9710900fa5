// Rules and fp64 values that the ops of the flash_attention family share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "heddle/ir/rules.h"
#include "heddle/ops/flash_attention/attention_blocks.h"

namespace heddle {

// Block lists, if there are any: `counts` of entries and `indices` of blocks, for each of `blocks` blocks.
inline void require_lists(const char* op, std::array<const char*, 2> names, const Tensor& counts,
                          const Tensor& indices, const std::array<i32, 3>& most) {
  require((counts.rank > 0) == (indices.rank > 0),
          "[{}] only one of {} and {} is given; must be both or none", op, names[0], names[1]);
  if (counts.rank == 0) return;
  require_rank(op, names[0], counts, 3);
  require_rank(op, names[1], indices, 4);
  for (int n = 0; n < 2; ++n) require_dtype(op, names[size_t(n)], n == 0 ? counts : indices, DType::kI32);
  const bool fits = (counts.size[0] == 1 || counts.size[0] == most[0]) &&
                    (counts.size[1] == 1 || counts.size[1] == most[1]) && counts.size[2] == most[2];
  require(fits, "[{}] {} is {}; must be [{} or 1, {} or 1, {}]", op, names[0], shape_text(counts), most[0],
          most[1], most[2]);
  require_shape(op, names[1], indices, {counts.size[0], counts.size[1], counts.size[2], indices.size[3]});
}

template <class Args>
void require_lists(const char* op, const Args& a) {
  require(a.block_q > 0 && a.block_k > 0, "[{}] block_q = {}, block_k = {}; must be positive", op, a.block_q,
          a.block_k);
  const i32 batch = a.q.size[0], heads = a.q.size[2];
  require_lists(op, {"kv_num_blocks", "kv_indices"}, a.kv_num_blocks, a.kv_indices,
                {batch, heads, blocks_of(a.q.size[1], a.block_q)});
  if constexpr (requires { a.q_num_blocks; }) {
    require_lists(op, {"q_num_blocks", "q_indices"}, a.q_num_blocks, a.q_indices,
                  {batch, heads, blocks_of(a.k.size[1], a.block_k)});
    require((a.kv_num_blocks.rank > 0) == (a.q_num_blocks.rank > 0),
            "[{}] only one of kv_num_blocks and q_num_blocks is given; must be both or none", op);
  }
  require(a.kv_num_blocks.rank == 0 || a.cu_seqlens_q.rank == 0,
          "[{}] kv_num_blocks and cu_seqlens_q are given; block lists are for one sequence", op);
}

// Inputs of every op of the family: shapes, dtypes, heads, attributes.
template <class Args>
void require_attention(const char* op, const Args& a) {
  for (auto [name, tensor] : {std::pair{"q", &a.q}, {"k", &a.k}, {"v", &a.v}}) {
    require_rank(op, name, *tensor, 4);
    require_float(op, name, *tensor);
  }
  const i32 batch = a.q.size[0], heads = a.q.size[2], groups = a.k.size[2];
  require_shape(op, "k", a.k, {batch, a.k.size[1], groups, a.q.last()});
  require_shape(op, "v", a.v, {batch, a.k.size[1], groups, a.v.last()});
  require(heads % groups == 0, "[{}] q has {} heads, k has {}; must be a multiple", op, heads, groups);
  require(a.softcap >= 0, "[{}] softcap = {}; must be positive, or 0 for none", op, a.softcap);
  if (a.alibi_slopes.rank > 0) {
    require_shape(op, "alibi_slopes", a.alibi_slopes, {heads});
    require_dtype(op, "alibi_slopes", a.alibi_slopes, DType::kF32);
  }
  if (a.bias.rank > 0) {
    require_rank(op, "bias", a.bias, 4);
    require_float(op, "bias", a.bias);
    const bool fits =
        (a.bias.size[0] == 1 || a.bias.size[0] == batch) && (a.bias.size[1] == 1 || a.bias.size[1] == heads);
    require(fits && a.bias.size[2] == a.q.size[1] && a.bias.size[3] == a.k.size[1],
            "[{}] bias is {}; must be [{} or 1, {} or 1, {}, {}]", op, shape_text(a.bias), batch, heads,
            a.q.size[1], a.k.size[1]);
  }
  require_lists(op, a);
  const Tensor &starts = a.cu_seqlens_q, &key_starts = a.cu_seqlens_k;
  require((starts.rank > 0) == (key_starts.rank > 0),
          "[{}] only one of cu_seqlens_q and cu_seqlens_k is given; must be both or none", op);
  if (starts.rank == 0) return;
  require_rank(op, "cu_seqlens_q", starts, 1);
  require_dtype(op, "cu_seqlens_q", starts, DType::kI32);
  require_shape(op, "cu_seqlens_k", key_starts, {starts.size[0]});
  require_dtype(op, "cu_seqlens_k", key_starts, DType::kI32);
  require(
      batch == 1 && a.bias.rank == 0,
      "[{}] cu_seqlens_q is given, q has a batch of {}{}; several sequences need a batch of 1 and no bias",
      op, batch, a.bias.rank > 0 ? " and there is a bias" : "");
}

// Checks dy, lse and delta, which a backward op reads besides.
template <class Args>
void require_given(const char* op, const Args& a) {
  const i32 batch = a.q.size[0], rows = a.q.size[1], heads = a.q.size[2];
  require_shape(op, "dy", a.dy, {batch, rows, heads, a.v.last()});
  require_float(op, "dy", a.dy);
  for (auto [name, tensor] : {std::pair{"lse", &a.lse}, {"delta", &a.delta}}) {
    require_shape(op, name, *tensor, {batch, heads, rows});
    require_dtype(op, name, *tensor, DType::kF32);
  }
}

// The values of an attention in fp64, score by score.
template <class Args>
class ExactAttention {
 public:
  ExactAttention(const Args& a, const Values& values)
      : a_(a), q_(values.read(a.q)), k_(values.read(a.k)), v_(values.read(a.v)) {
    if (a.bias.exists()) bias_ = values.read(a.bias);
    if (a.alibi_slopes.exists()) slopes_ = values.read(a.alibi_slopes);
    if (a.kv_num_blocks.exists()) read_lists(values);
    const auto starts = [&](const Tensor& tensor, i32 size) {
      std::vector<double> all = tensor.exists() ? values.read(tensor) : std::vector<double>{0, double(size)};
      for (double& at : all) at = std::clamp(at, 0.0, double(size));
      return std::vector<i32>(all.begin(), all.end());
    };
    const std::vector<i32> queries = starts(a.cu_seqlens_q, a.q.size[1]),
                           keys = starts(a.cu_seqlens_k, a.k.size[1]);
    for (size_t n = 0; n + 1 < queries.size(); ++n)
      sequences_.push_back({queries[n], queries[n + 1], keys[n], std::max(keys[n], keys[n + 1])});
  }

  struct Pair {
    i32 batch, head, query, key;  // as the tensors count
    double score, slope;          // slope: of the score by the scaled product
  };
  // f(Pair) for each key that a query sees, in order of batch, head, query.
  template <class F>
  void each_pair(F&& f) const {
    for (i32 b = 0; b < a_.q.size[0]; ++b)
      for (i32 h = 0; h < a_.q.size[2]; ++h)
        for (const AttentionSequence& s : sequences_) {
          const AttentionMask mask = attention_mask(a_, s);
          for (i32 i = 0; i < s.queries(); ++i) {
            const AttentionRange seen = mask.keys_of(i);
            for (i32 j = seen.begin; j < seen.end; ++j)
              if (is_listed(b, h, i, j))
                f(pair(b, h, s.query_begin + i, s.key_begin + j, double(mask.position(i) - j)));
          }
        }
  }
  i32 group(i32 head) const { return head / (a_.q.size[2] / a_.k.size[2]); }
  // First elements of a query, a key, a value, and of what has y's or lse's shape.
  size_t query_at(const Pair& p) const { return at(a_.q, p.batch, p.query, p.head); }
  size_t key_at(const Pair& p) const { return at(a_.k, p.batch, p.key, group(p.head)); }
  size_t value_at(const Pair& p) const { return at(a_.v, p.batch, p.key, group(p.head)); }
  size_t y_at(const Pair& p) const {
    return (size_t(p.batch * a_.q.size[1] + p.query) * size_t(a_.q.size[2]) + size_t(p.head)) *
           size_t(a_.v.last());
  }
  size_t lse_at(const Pair& p) const {
    return size_t(p.batch * a_.q.size[2] + p.head) * size_t(a_.q.size[1]) + size_t(p.query);
  }
  size_t bias_at(const Pair& p) const {
    const i32 b = a_.bias.size[0] == 1 ? 0 : p.batch, h = a_.bias.size[1] == 1 ? 0 : p.head;
    return size_t((b * a_.bias.size[1] + h) * a_.bias.size[2] + p.query) * size_t(a_.bias.size[3]) +
           size_t(p.key);
  }
  double scale() const { return a_.scale != 0 ? double(a_.scale) : 1 / std::sqrt(double(a_.q.last())); }
  const std::vector<double>& q() const { return q_; }
  const std::vector<double>& k() const { return k_; }
  const std::vector<double>& v() const { return v_; }

 private:
  void read_lists(const Values& values) {
    const std::vector<double> counts = values.read(a_.kv_num_blocks), indices = values.read(a_.kv_indices);
    const size_t most = size_t(a_.kv_indices.size[3]);
    keys_ = size_t(blocks_of(a_.k.size[1], a_.block_k)), listed_.resize(counts.size() * keys_);
    for (size_t line = 0; line < counts.size(); ++line)
      for (size_t n = 0; n < std::min(most, size_t(std::max(0.0, counts[line]))); ++n)
        if (const double key = indices[line * most + n]; key >= 0 && key < double(keys_))
          listed_[line * keys_ + size_t(key)] = true;
  }
  bool is_listed(i32 b, i32 h, i32 query, i32 key) const {
    if (listed_.empty()) return true;
    const i32* const size = a_.kv_num_blocks.size;
    const size_t line = size_t(((size[0] == 1 ? 0 : b) * size[1] + (size[1] == 1 ? 0 : h)) * size[2]);
    return listed_[(line + size_t(query / a_.block_q)) * keys_ + size_t(key / a_.block_k)];
  }
  static size_t at(const Tensor& tensor, i32 b, i32 row, i32 head) {
    return (size_t(b * tensor.size[1] + row) * size_t(tensor.size[2]) + size_t(head)) * size_t(tensor.last());
  }
  Pair pair(i32 b, i32 h, i32 query, i32 key, double distance) const {
    Pair p{b, h, query, key, 0, 1};
    const size_t from_q = query_at(p), from_k = key_at(p);
    for (size_t i = 0; i < size_t(a_.q.last()); ++i) p.score += q_[from_q + i] * k_[from_k + i];
    p.score *= scale();
    if (const double cap = double(a_.softcap); cap > 0) {
      const double t = std::tanh(p.score / cap);
      p.score = cap * t, p.slope = 1 - t * t;
    }
    if (!slopes_.empty()) p.score -= slopes_[size_t(h)] * std::abs(distance);
    if (!bias_.empty()) p.score += bias_[bias_at(p)];
    if (p.score < -1e38) p.score = -std::numeric_limits<double>::infinity();
    return p;
  }

  const Args& a_;
  std::vector<double> q_, k_, v_, bias_, slopes_;
  std::vector<AttentionSequence> sequences_;
  std::vector<bool> listed_;  // [lists, blocks of keys]; empty: there are no lists
  size_t keys_ = 0;           // blocks of keys
};

// Weights of scores and the gradients of scores, from what a backward op is given.
template <class Args>
class ExactScores {
 public:
  ExactScores(const Args& a, const Values& values)
      : dim_(size_t(a.v.last())),
        dy_(values.read(a.dy)),
        lse_(values.read(a.lse)),
        delta_(values.read(a.delta)) {}

  struct Score {
    double weight, gradient;  // gradient: of the score after the cap
  };
  template <class Exact, class Pair>
  Score of(const Exact& exact, const Pair& p) const {
    if (std::isinf(p.score) && p.score < 0) return {0, 0};
    const double weight = std::exp(p.score - lse_[exact.lse_at(p)]);
    double given = 0;
    for (size_t i = 0; i < dim_; ++i) given += dy_[exact.y_at(p) + i] * exact.v()[exact.value_at(p) + i];
    return {weight, weight * (given - delta_[exact.lse_at(p)])};
  }

 private:
  size_t dim_;
  std::vector<double> dy_, lse_, delta_;
};

}  // namespace heddle
