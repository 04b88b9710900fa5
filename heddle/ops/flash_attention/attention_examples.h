// Calls for the cases of the flash_attention family.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "heddle/ir/cases.h"

namespace heddle {

struct AttentionExample {
  i32 batch = 1, queries = 1, keys = 1, heads = 1, groups = 1, dim = 1;
  i32 value_dim = dim;
  bool causal = false;
  i32 left = -1, right = -1;
  float softcap = 0;
  i32 offset = 0;
  std::vector<i32> bias;  // {batch, heads} of it; empty: none
  bool sinks = false, alibi = false;
  std::vector<i32> query_starts, key_starts;  // empty: one sequence
  bool continues = false;                     // an earlier result
};

// Of one sequence.
inline std::vector<AttentionExample> plain_attention_examples() {
  return {
      {.batch = 2,
       .queries = 5,
       .keys = 7,
       .heads = 2,
       .groups = 2,
       .dim = 8,
       .softcap = 0.7f,
       .sinks = true,
       .alibi = true},
      {.batch = 2,
       .queries = 5,
       .keys = 7,
       .heads = 2,
       .groups = 2,
       .dim = 8,
       .softcap = 0.7f,
       .bias = {2, 2},
       .sinks = true,
       .alibi = true},
      {.queries = 1, .keys = 1, .dim = 1},
      {.queries = 70, .keys = 70, .heads = 2, .groups = 2, .dim = 32, .causal = true},
      {.batch = 2, .queries = 37, .keys = 131, .heads = 6, .groups = 2, .dim = 20, .causal = true},
      {.queries = 67, .keys = 40, .dim = 16, .causal = true},  // the first rows see nothing
      {.queries = 67, .keys = 40, .dim = 16, .causal = true, .sinks = true},
      {.queries = 150, .keys = 150, .heads = 2, .groups = 1, .dim = 16, .left = 20, .right = 3},
      {.queries = 33, .keys = 140, .dim = 16, .causal = true, .left = 64, .offset = -70},
      {.batch = 2,
       .queries = 9,
       .keys = 66,
       .heads = 3,
       .groups = 1,
       .dim = 24,
       .value_dim = 10,
       .softcap = 0.5f,
       .bias = {1, 3},
       .alibi = true},
      {.batch = 2, .queries = 35, .keys = 17, .heads = 2, .groups = 1, .dim = 8, .bias = {2, 1}},
      {.batch = 2,
       .queries = 6,
       .keys = 11,
       .heads = 2,
       .groups = 1,
       .dim = 8,
       .causal = true,
       .bias = {1, 1},
       .sinks = true},
  };
}

// Several sequences, earlier results, lists of blocks.
inline std::vector<AttentionExample> special_attention_examples() {
  return {
      {.queries = 60,
       .keys = 90,
       .heads = 2,
       .groups = 1,
       .dim = 16,
       .causal = true,
       .sinks = true,
       .query_starts = {0, 3, 3, 40, 55},
       .key_starts = {0, 5, 20, 80, 80}},
      {.queries = 40,
       .keys = 40,
       .heads = 2,
       .groups = 2,
       .dim = 16,
       .left = 4,
       .alibi = true,
       .query_starts = {2, 20, 40},
       .key_starts = {1, 22, 39}},
      {.queries = 67, .keys = 40, .dim = 16, .causal = true, .continues = true},
      {.batch = 2,
       .queries = 37,
       .keys = 131,
       .heads = 6,
       .groups = 2,
       .dim = 20,
       .value_dim = 24,
       .sinks = true,
       .continues = true},
      {.queries = 40,
       .keys = 40,
       .heads = 2,
       .groups = 2,
       .dim = 16,
       .query_starts = {2, 20, 40},
       .key_starts = {1, 22, 39},
       .continues = true},
  };
}

inline std::vector<AttentionExample> attention_examples() {
  std::vector<AttentionExample> all = plain_attention_examples();
  for (const AttentionExample& e : special_attention_examples()) all.push_back(e);
  return all;
}

// Gives the arguments of an op of the family what an example says.
template <class Args>
void fill_attention(const AttentionExample& e, DType type, Args& args) {
  args.q = input(type, {e.batch, e.queries, e.heads, e.dim});
  args.k = input(type, {e.batch, e.keys, e.groups, e.dim});
  args.v = input(type, {e.batch, e.keys, e.groups, e.value_dim});
  if (!e.bias.empty()) args.bias = input(type, {e.bias[0], e.bias[1], e.queries, e.keys});
  if (e.alibi) args.alibi_slopes = input(DType::kF32, {e.heads});
  args.causal = e.causal, args.window_left = e.left, args.window_right = e.right;
  args.softcap = e.softcap, args.q_offset = e.offset;
}

template <class Args>
void fill_sequences(const AttentionExample& e, Args& args) {
  if (e.query_starts.empty()) return;
  args.cu_seqlens_q = input(DType::kI32, {i32(e.query_starts.size())});
  args.cu_seqlens_k = input(DType::kI32, {i32(e.key_starts.size())});
}

template <class Args>
void fill_given(const AttentionExample& e, DType type, Args& args) {
  args.dy = input(type, {e.batch, e.queries, e.heads, e.value_dim});
  args.lse = input(DType::kF32, {e.batch, e.heads, e.queries});
  args.delta = input(DType::kF32, {e.batch, e.heads, e.queries});
}

// Has no earlier result for some rows.
inline void leave_out_results(const Tensor& lse_in, Values& values) {
  std::vector<double> all = values.read(lse_in);
  for (size_t i = 0; i < all.size(); i += 5) all[i] = -std::numeric_limits<double>::infinity();
  values.write(lse_in, all);
}

// Writes where sequences begin, and slopes that push far keys away.
template <class Args>
std::function<void(std::byte*, Values&)> prepare_attention(const AttentionExample& e) {
  if (e.query_starts.empty() && !e.alibi && !e.continues) return {};
  return [e](std::byte* bytes, Values& values) {
    const auto& a = as<Args>(bytes);
    if (e.alibi) {
      std::vector<double> slopes = values.read(a.alibi_slopes);
      for (double& slope : slopes) slope = std::abs(slope);
      values.write(a.alibi_slopes, slopes);
    }
    if constexpr (requires { a.lse_in; })
      if (e.continues) leave_out_results(a.lse_in, values);
    if constexpr (requires { a.cu_seqlens_q; })
      if (!e.query_starts.empty()) {
        values.write(a.cu_seqlens_q, std::vector<double>(e.query_starts.begin(), e.query_starts.end()));
        values.write(a.cu_seqlens_k, std::vector<double>(e.key_starts.begin(), e.key_starts.end()));
      }
  };
}

}  // namespace heddle
