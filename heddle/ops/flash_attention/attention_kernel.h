// Plans that the whole kernels of the flash_attention family share (flash_attention_kernel.sm90.cuh and its backward).
#pragma once

#include <cstddef>
#include <string>

#include "heddle/ir/kernel.h"
#include "heddle/ir/op.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/move/box.h"
#include "heddle/ops/flash_attention/attention_memory.h"

namespace heddle {

// The head dims that kernels have; a narrower head is filled up with zeros on chip. 0: none is wide enough.
inline i32 kernel_dim(i32 dim) {
  for (const i32 most : {64, 96, 128, 192, 256})
    if (dim <= most) return most;
  return 0;
}

// Returns why bulk copies cannot load rows of [B, S, H, D], or "" if they can.
inline std::string why_no_boxes(const char* argument, const Tensor& tensor, DType dtype) {
  constexpr i64 kPitch = 16;
  if (tensor.dtype != dtype || size_of(dtype) != 2 || !is_wide_float(dtype))
    return fmt::format("{} is {}; q, k, v and the result must all be bf16 or all f16", argument,
                       name(tensor.dtype));
  for (int d = 0; d < 3; ++d) {
    const i64 pitch = tensor.stride[d] * size_of(dtype);
    if (tensor.size[d] > 1 && (pitch % kPitch != 0 || pitch <= 0))
      return fmt::format("{}'s dimension {} has a stride of {} bytes; must be a multiple of {}", argument, d,
                         pitch, kPitch);
  }
  return {};
}

// Boxes of one head of a tensor [B, S, H, D] at `offset` of the arguments: the blocks of its tile on chip.
inline KernelMap head_map(size_t offset, const Tensor& tensor, const tile::OperandTile& tile) {
  KernelMap map{.address = u32(offset + offsetof(Tensor, data)), .dtype = tensor.dtype, .rank = 4};
  // The stride of a dimension of one element is never used, and may be any multiple of 16 bytes.
  const auto stride = [&](int d) {
    return tensor.size[d] == 1 ? i64(tile.span) : tensor.stride[d] * size_of(tensor.dtype);
  };
  map.size = {tensor.size[3], tensor.size[1], tensor.size[2], tensor.size[0]};
  map.stride = {0, stride(1), stride(2), stride(0)};
  map.box = {tile.span_elements(), tile.lines(), 1, 1};
  map.swizzle = swizzle_of(tile);
  return map;
}

}  // namespace heddle
