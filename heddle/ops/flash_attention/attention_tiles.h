// Tiles of the flash_attention family: some rows of all heads that share keys.
#pragma once

#include <algorithm>
#include <vector>

#include "heddle/ir/rules.h"

namespace heddle {

constexpr i32 kAttentionChunk = 64;     // kChunk of the bodies
constexpr i32 kAttentionTileRows = 32;  // pairs of a row and a head that a tile has

template <class Args>
i32 heads_of_group(const Args& a) {
  return a.q.size[2] / a.k.size[2];
}

// Coordinates: batch, group, first row, row after the last.
template <class Args>
std::vector<TileAxis> attention_axes(const Args& a, i32 rows) {
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.q.size[0]},
          {.kind = TileAxis::Kind::kIndex, .extent = a.k.size[2]},
          {.extent = rows, .preferred = std::max(1, kAttentionTileRows / heads_of_group(a))}};
}

// The bytes that a tile touches.
template <class Args>
struct AttentionRegions {
  const Args& a;
  const TileCoord& t;
  std::vector<Region>& out;

  using Range = std::array<i32, 2>;

  i32 heads() const { return heads_of_group(a); }
  Range batch() const { return {t[0], t[0] + 1}; }
  Range group() const { return {t[1], t[1] + 1}; }
  Range group_heads() const { return {t[1] * heads(), (t[1] + 1) * heads()}; }
  // The tile's rows that a tensor with `size` rows has.
  Range rows(i32 size) const { return {std::min(t[2], size), std::min(t[3], size)}; }

  void part(const Tensor& tensor, Access access, Range row, Range head) {
    if (row[0] < row[1]) out.push_back(part_of(tensor, access, {batch(), row, head, {0, tensor.last()}}));
  }
  void queries(const Tensor& tensor, Access access) {
    part(tensor, access, rows(tensor.size[1]), group_heads());
  }
  void all_queries(const Tensor& tensor) { part(tensor, Access::kRead, {0, tensor.size[1]}, group_heads()); }
  void keys(const Tensor& tensor, Access access) { part(tensor, access, rows(tensor.size[1]), group()); }
  void all_keys(const Tensor& tensor) { part(tensor, Access::kRead, {0, tensor.size[1]}, group()); }
  // The tile's rows of a tensor [B, H, S].
  void statistics(const Tensor& tensor, Access access) {
    const Range row = rows(tensor.size[2]);
    if (row[0] < row[1]) out.push_back(part_of(tensor, access, {batch(), group_heads(), row}));
  }
  void all_statistics(const Tensor& tensor) {
    out.push_back(part_of(tensor, Access::kRead, {batch(), group_heads(), {0, tensor.size[2]}}));
  }
  void whole_if_there(const Tensor& tensor) {
    if (tensor.exists()) out.push_back(whole(tensor, Access::kRead));
  }
  // Every op of the family may read these besides q, k and v.
  void common() {
    for (const Tensor* tensor :
         {&a.alibi_slopes, &a.cu_seqlens_q, &a.cu_seqlens_k, &a.kv_num_blocks, &a.kv_indices})
      whole_if_there(*tensor);
    if (!a.bias.exists()) return;
    const Range one{0, 1};
    out.push_back(part_of(a.bias, Access::kRead,
                          {a.bias.size[0] == 1 ? one : batch(),
                           a.bias.size[1] == 1 ? one : group_heads(),
                           {0, a.bias.size[2]},
                           {0, a.bias.size[3]}}));
  }
};
template <class Args>
AttentionRegions(const Args&, const TileCoord&, std::vector<Region>&) -> AttentionRegions<Args>;

}  // namespace heddle
