#include <algorithm>
#include <cmath>

#include "heddle/ops/flash_attention/attention_examples.h"
#include "heddle/ops/flash_attention/flash_attention_backward.h"

namespace heddle::flash_attention_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const AttentionExample& e : attention_examples()) {
      FlashAttentionBackward args;
      fill_attention(e, type, args);
      fill_sequences(e, args);
      fill_given(e, type, args);
      if (e.block_q > 0) {
        const i32 queries = blocks_of(e.queries, e.block_q), keys = blocks_of(e.keys, e.block_k);
        args.q_num_blocks = input(DType::kI32, {e.lists[0], e.lists[1], keys});
        args.q_indices = input(DType::kI32, {e.lists[0], e.lists[1], keys, queries});
      }
      // Weights here are exp(score - lse) of random values: up to e^3, and their sum is not 1.
      // A matrix unit rounds them, and the gradients of scores, to its 16-bit operands; the error grows with the root of their
      // number. The largest of 40,000 gradients of 150 products was 18 roundings off (H200); weights rounded on a CPU make as much
      // in one of 20 draws.
      const double products = std::max(e.queries * e.heads / e.groups, e.keys);
      const double terms = std::max(1.0, std::sqrt(products / 100.0));
      const double rounded = size_of(type) == 2 ? 20 * terms * rounding_bound(type, 0) : 0;
      cases.push_back(make_case(args, unit_bound(type, 64 + 2.0 * (e.queries + e.keys) + e.dim) + rounded));
      cases.back().prepare = prepare_attention<FlashAttentionBackward>(e);
    }
  return cases;
}

}  // namespace heddle::flash_attention_backward
