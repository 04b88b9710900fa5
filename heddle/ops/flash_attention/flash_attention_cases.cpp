#include "heddle/ops/flash_attention/attention_examples.h"
#include "heddle/ops/flash_attention/flash_attention.h"

namespace heddle::flash_attention {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const AttentionExample& e : attention_examples()) {
      FlashAttention args;
      fill_attention(e, type, args);
      fill_sequences(e, args);
      if (e.continues) {
        // A longer sum of softmaxes is best kept in f32; a caller may also have its elements as they were rounded.
        args.y_in = input(e.sinks ? type : DType::kF32, {e.batch, e.queries, e.heads, e.value_dim});
        args.lse_in = input(DType::kF32, {e.batch, e.heads, e.queries});
      }
      if (e.sinks) args.sinks = input(type, {e.heads});
      // Scores are sums over dim; y is a mean of values. A matrix unit rounds weights to its 16-bit operands.
      const double weights = size_of(type) == 2 ? rounding_bound(type, 0) : 0;
      cases.push_back(make_case(args, unit_bound(type, 16 + 0.25 * e.dim) + weights));
      cases.back().prepare = prepare_attention<FlashAttention>(e);
    }
  return cases;
}

}  // namespace heddle::flash_attention
