// Attention on a GPU from sm_80 on: chooses the pass that takes a tile. With 16-bit operands both products run on tensor cores:
// attention_mma.sm80.cuh takes many queries (rows of prompts), 16 per warp; attention_few.sm80.cuh takes few, all of them in each
// warp. Both count steps of positions from multiples of their size, so that no cut of a prompt changes a bit.
// Included once per device program, after attention.cuh, whose body takes all other tiles.
#include "heddle/ops/attention/attention_few.sm80.cuh"
#include "heddle/ops/attention/attention_mma.sm80.cuh"

namespace attention {

// Tiles of many queries: positions of a step, fewer where keys are long, and stages that steps lie in, at most.
struct DefaultConfig {
  static constexpr i32 kStep = 64, kStages = 4;
};

template <class Config>
struct DeviceBodyWith {
  static constexpr i32 kMostQueries = 16;  // at most so many queries are few

  // True if FewQueries takes a tile. The rows that a tile may have decide it, not those that it has: the cut of a prompt must not
  // matter. A sequence that answers has one row.
  template <class Block>
  static bool has_few(Block& block, const Attention& a, const Body::Work& work) {
    if (a.head_dim() != 64 && a.head_dim() != 128) return false;
    if (a.block_rows * a.block_heads <= kMostQueries)
      return true;  // a kernel that knows sizes needs no other body
    return work.queries <= kMostQueries && block.host(a.step).sequence(work.plan.sequence)->row_count == 1;
  }
  template <DType kType, i32 kDim, class Block>
  static void run_few(Block& block, const Attention& a, const Body::Work& work) {
    // A row's tile has all its heads. As a rule the compiler knows that they are one pass, and keeps nothing for another.
    const i32 queries = Kernel::kSeveralRows ? work.queries : a.block_heads;
    for (i32 query = 0; query < queries; query += FewQueries<kType, kDim>::kQueries) {
      if (query > 0) block.sync();
      block.release_scratch();
      FewQueries<kType, kDim>(a, work, query).run(block);
    }
  }
  template <DType kType, class Block>
  static void run_few(Block& block, const Attention& a, const Body::Work& work) {
    if (a.head_dim() == 64)
      run_few<kType, 64>(block, a, work);
    else
      run_few<kType, 128>(block, a, work);
  }
  template <DType kType, i32 kDim, class Block>
  static bool run_many(Block& block, const Attention& a, const Body::Work& work) {
    if (a.head_dim() != kDim) return false;
    block.inputs();
    const ChipMemory chip = block.chip();
    ManyQueries<kType == DType::kBf16, kDim, Config>(a, work, chip.data, chip.bytes).run();
    return true;
  }
  template <DType kType, class Block>
  static bool run_type(Block& block, const Attention& a, const Body::Work& work) {
    if (a.keys.dtype != kType) return false;
    if (has_few(block, a, work)) return run_few<kType>(block, a, work), true;
    if constexpr (Kernel::kSeveralRows)
      return run_many<kType, 64>(block, a, work) || run_many<kType, 128>(block, a, work) ||
             run_many<kType, 256>(block, a, work);
    return false;
  }

  static bool in_words(const Tensor& rows) {
    return reinterpret_cast<u64>(rows.data) % 16 == 0 && rows.stride[0] % 8 == 0;
  }
  // 16-byte words of one type everywhere, queries of one part, and scores without a bias.
  static bool fits(const Attention& a) {
    const DType type = a.keys.dtype;
    return a.joins == 0 && size_of(type) == 2 && a.values.dtype == type && a.q.dtype == type &&
           a.k.dtype == type && a.v.dtype == type && a.head_dim() % 8 == 0 && a.value_dim() == a.head_dim() &&
           !a.is_latent() && !a.has_bias() && in_words(a.q) && in_words(a.k) && in_words(a.v);
  }

  // A function of its own, because inside the others it would take registers. It has its own block, because a block whose address is
  // taken lies in local memory.
  template <class Block>
  static __noinline__ void run_generic(Block block, const Attention& a, const TileCoord& t) {
    Body::run(block, a, t);
  }

  template <class Block>
  static void run(Block& block, const Attention& a, const TileCoord& t) {
    if (!block.knows_device()) block.inputs();
    const Body::Work work = Body::work_of(block, a, t);
    if (work.queries == 0) return block.dead();
    if (fits(a)) {
      if constexpr (Kernel::uses(DType::kBf16))
        if (run_type<DType::kBf16>(block, a, work)) return;
      if constexpr (Kernel::uses(DType::kF16))
        if (run_type<DType::kF16>(block, a, work)) return;
    }
    block.inputs();
    run_generic(block, Attention(a), t);  // a copy, as arguments whose address is taken lie in local memory
  }
};
using DeviceBody = DeviceBodyWith<DefaultConfig>;

}  // namespace attention
