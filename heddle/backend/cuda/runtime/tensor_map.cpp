#include "heddle/backend/cuda/runtime/tensor_map.h"

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

constexpr int kMostBox = 256;
constexpr i64 kMostSize = i64{1} << 32, kMostStride = i64{1} << 40;
constexpr int kRoundedToTf32 = 11;               // CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
constexpr int kPromote128 = 2, kPromote256 = 3;  // CU_TENSOR_MAP_L2_PROMOTION_L2_128B, ..._256B

// Chooses what L2 brings for an access. Rows of a box that begin between lines of 128 bytes touch two of them, and pairs of lines would bring
// four: a product of 1000 x 5000 x 3000 took 77 us with pairs and 67 without, one of 4477 x 7800 x 6912 859 and 765 (H200, 30 November
// 2026, ops.mm in bf16, settings in turns); where rows begin at lines, pairs are as fast or faster.
int promotion_of(const KernelMap& map) {
  for (size_t d = 1; d < size_t(map.rank); ++d)
    if (map.stride[d] % 128 != 0) return kPromote128;
  return kPromote256;
}

int element_of(DType type) {  // CUtensorMapDataType
  switch (type) {
    case DType::kF32:
      return 7;
    case DType::kF16:
      return 6;
    case DType::kBf16:
      return 9;
    case DType::kI32:
      return 3;
    case DType::kI64:
      return 5;
    default:
      if (bits_of(type) != 8)
        fail(ErrorCode::kInternal, "[cuda] a tensor map of {} cannot be made", name(type));
      return 0;  // bytes
  }
}

int swizzle_bytes(BoxSwizzle swizzle) {
  return swizzle == BoxSwizzle::kNone ? 0 : 16 << int(swizzle);
}

void require_map(bool holds, const KernelMap& map, u64 address, const char* must) {
  if (holds) return;
  std::string dims;
  for (int d = 0; d < map.rank && d < KernelMap::kMostRank; ++d)
    dims += fmt::format("{}{} (stride {}, box {})", d == 0 ? "" : ", ", map.size[size_t(d)],
                        map.stride[size_t(d)], map.box[size_t(d)]);
  fail(ErrorCode::kInternal, "[cuda] a tensor map of {} at {:#x}, {}: {}", name(map.dtype), address, dims,
       must);
}

}  // namespace

TensorMap make_tensor_map(const KernelMap& map, u64 address) {
  const auto rank = size_t(map.rank);
  require_map(rank >= 1 && rank <= KernelMap::kMostRank, map, address, "must have 1 to 5 dimensions");
  require_map(address % 16 == 0, map, address, "must begin at a multiple of 16");
  const i64 row = i64(map.box[0]) * size_of(map.dtype);
  const int swizzle = swizzle_bytes(map.swizzle);
  require_map(row % 16 == 0, map, address, "rows of a box must be multiples of 16 bytes");
  require_map(swizzle == 0 || row <= swizzle, map, address,
              "rows of a box must not be longer than its swizzle");
  std::array<u64, KernelMap::kMostRank> size = {}, stride = {};
  std::array<u32, KernelMap::kMostRank> box = {}, step = {};
  for (size_t d = 0; d < rank; ++d) {
    require_map(map.size[d] >= 1 && map.size[d] <= kMostSize, map, address, "sizes must be 1 to 2^32");
    require_map(map.box[d] >= 1 && map.box[d] <= kMostBox, map, address, "a box must have 1 to 256 elements");
    if (d > 0)
      require_map(map.stride[d] >= 0 && map.stride[d] < kMostStride && map.stride[d] % 16 == 0, map, address,
                  "strides must be multiples of 16 below 2^40");
    size[d] = u64(map.size[d]), box[d] = u32(map.box[d]), step[d] = 1;
    if (d > 0) stride[d - 1] = u64(map.stride[d]);
  }
  TensorMap made;
  require_map(!map.rounds_to_tf32 || map.dtype == DType::kF32, map, address, "only f32 is rounded to tf32");
  const int element = map.rounds_to_tf32 ? kRoundedToTf32 : element_of(map.dtype);
  driver().encode_tensor_map(made.bytes, element, u32(rank), reinterpret_cast<void*>(address), size.data(),
                             stride.data(), box.data(), step.data(), 0, int(map.swizzle), promotion_of(map),
                             0);
  return made;
}

}  // namespace heddle::cuda
