#include "heddle/ops/flash_attention/attention_examples.h"
#include "heddle/ops/flash_attention/flash_attention_query_blocks.h"

namespace heddle::flash_attention_query_blocks {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const AttentionExample& e : attention_examples()) {
    if (e.block_q == 0) continue;
    FlashAttentionQueryBlocks args{.k = input(DType::kF32, {e.batch, e.keys, e.groups, e.dim})};
    fill_lists(e, args);
    cases.push_back(make_case(args, 0));
    cases.back().prepare = [e](std::byte* bytes, Values& values) {
      write_lists(e, as<FlashAttentionQueryBlocks>(bytes), values);
    };
  }
  return cases;
}

}  // namespace heddle::flash_attention_query_blocks
