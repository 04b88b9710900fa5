// Calls for the cases of the flash_attention family.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "heddle/ir/cases.h"
#include "heddle/ops/flash_attention/attention_blocks.h"

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
  i32 block_q = 0, block_k = 0;               // 0: no block lists
  std::vector<i32> lists = {1, 1};            // {batch, heads} of them
};

// One sequence, all keys.
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
      {.queries = 150, .keys = 150, .heads = 4, .groups = 1, .dim = 16, .left = 20, .right = 3},
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

// Several sequences, earlier results.
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

// Wide heads, and lists of blocks.
inline std::vector<AttentionExample> list_examples() {
  return {
      {.batch = 2,
       .queries = 37,
       .keys = 131,
       .heads = 6,
       .groups = 2,
       .dim = 20,
       .causal = true,
       .block_q = 8,
       .block_k = 16,
       .lists = {2, 6}},
      {.queries = 50,
       .keys = 150,
       .dim = 16,
       .left = 90,
       .right = 3,
       .sinks = true,
       .continues = true,
       .block_q = 16,
       .block_k = 100},
      {.batch = 2,
       .queries = 35,
       .keys = 70,
       .heads = 2,
       .groups = 1,
       .dim = 8,
       .bias = {1, 2},
       .block_q = 16,
       .block_k = 24,
       .lists = {1, 2}},
      {.batch = 2,
       .queries = 70,
       .keys = 150,
       .heads = 2,
       .groups = 1,
       .dim = 192,
       .value_dim = 136,
       .causal = true},
      {.queries = 150, .keys = 100, .dim = 256, .query_starts = {2, 20, 150}, .key_starts = {1, 22, 99}},
      {.queries = 200, .keys = 300, .dim = 136, .block_q = 128, .block_k = 64},
      // Whole kernels have these lists.
      {.batch = 2,
       .queries = 300,
       .keys = 390,
       .heads = 2,
       .groups = 1,
       .dim = 32,
       .causal = true,
       .block_q = 128,
       .block_k = 128,
       .lists = {2, 2}},
      {.queries = 260, .keys = 600, .dim = 96, .value_dim = 64, .block_q = 256, .block_k = 256},
  };
}

inline std::vector<AttentionExample> attention_examples() {
  std::vector<AttentionExample> all = plain_attention_examples();
  for (const auto& more : {special_attention_examples(), list_examples()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Gives an op its lists of blocks of keys, without values.
template <class Args>
void fill_lists(const AttentionExample& e, Args& args) {
  if (e.block_q == 0) return;
  const i32 queries = blocks_of(e.queries, e.block_q), keys = blocks_of(e.keys, e.block_k);
  args.kv_num_blocks = input(DType::kI32, {e.lists[0], e.lists[1], queries});
  args.kv_indices = input(DType::kI32, {e.lists[0], e.lists[1], queries, keys + 1});
  args.block_k = e.block_k;
  if constexpr (requires { args.block_q; }) args.block_q = e.block_q;
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
  fill_lists(e, args);
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

// The blocks that a list names, in no order. Some lists are empty, and some name a block that is not there.
inline std::vector<i32> example_list(size_t line, i32 blocks) {
  std::vector<i32> list;
  if (line % 4 == 2) return list;
  if (line % 4 == 1) list.push_back(blocks);
  for (i32 n = 0; n < blocks; ++n)
    if (const i32 block = (n + i32(line)) % blocks; (block + i32(line)) % 3 != 0) list.push_back(block);
  return list;
}

// Writes the lists; those of blocks of queries are the same, seen from the keys.
template <class Args>
void write_lists(const AttentionExample& e, const Args& a, Values& values) {
  const i32 lines = e.lists[0] * e.lists[1], queries = blocks_of(e.queries, e.block_q),
            keys = blocks_of(e.keys, e.block_k);
  const size_t most = size_t(keys) + 1;
  std::vector<double> counts, indices, q_counts(size_t(lines * keys)),
      q_indices(size_t(lines * keys * queries));
  for (i32 line = 0; line < lines; ++line)
    for (i32 query = 0; query < queries; ++query) {
      const std::vector<i32> list = example_list(counts.size(), keys);
      counts.push_back(double(list.size()));
      indices.insert(indices.end(), list.begin(), list.end());
      indices.resize(counts.size() * most, -1);
      for (const i32 key : list) {
        if (key >= keys) continue;
        const size_t at = size_t(line * keys + key);
        q_indices[at * size_t(queries) + size_t(q_counts[at]++)] = query;
      }
    }
  values.write(a.kv_num_blocks, counts);
  values.write(a.kv_indices, indices);
  if constexpr (requires {
                  a.q_indices;
                  a.q;
                }) {
    values.write(a.q_num_blocks, q_counts);
    values.write(a.q_indices, q_indices);
  }
}

// Writes where sequences begin, and slopes that push far keys away.
template <class Args>
std::function<void(std::byte*, Values&)> prepare_attention(const AttentionExample& e) {
  if (e.query_starts.empty() && !e.alibi && !e.continues && e.block_q == 0) return {};
  return [e](std::byte* bytes, Values& values) {
    const auto& a = as<Args>(bytes);
    if (e.alibi) {
      std::vector<double> slopes = values.read(a.alibi_slopes);
      for (double& slope : slopes) slope = std::abs(slope);
      values.write(a.alibi_slopes, slopes);
    }
    if (e.block_q > 0) write_lists(e, a, values);
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
