// The symmetric power in fp64, and what the shape rules of its ops share.
#pragma once

#include <span>
#include <vector>

#include "heddle/ir/rules.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

// phi(x), as sympow_columns.h orders it.
std::vector<double> sympow_of(i32 power, std::span<const double> x);
// The gradient of <phi(x), dy> with respect to x.
std::vector<double> sympow_gradient(i32 power, std::span<const double> x, std::span<const double> dy);

// Requires power 2 or 4, and that `dim`, the elements of a row of `argument`, are whole tiles.
// Returns the number of columns of phi.
i32 require_power(const char* op, const char* argument, i32 power, i32 dim);
// Requires a tensor of floats [B, T, H, `last`].
void require_heads(const char* op, const char* argument, const Tensor& tensor, const Tensor& like, i32 last);
// Requires [B, T, H] of floats.
void require_rows(const char* op, const char* argument, const Tensor& tensor, const Tensor& like);
// The number of rows of all chunks' states of a head.
i32 state_rows(const char* op, const ChunkTiles& tiles, i32 width);
// Requires states [B, H, chunks * width, `last`] for the rows of `x`.
void require_states(const char* op, const char* argument, const Tensor& tensor, const Tensor& x,
                    const ChunkTiles& tiles, i32 width, i32 last);

// Row t of head h of batch b, of a tensor [B, T, H, N] whose values lie row-major.
template <class Values>
auto head_row(Values& values, const Tensor& tensor, i32 b, i32 t, i32 h) {
  const size_t row = (size_t(b) * size_t(tensor.size[1]) + size_t(t)) * size_t(tensor.size[2]) + size_t(h);
  return std::span(values).subspan(row * size_t(tensor.size[3]), size_t(tensor.size[3]));
}
// Row n of head h of batch b, of states [B, H, rows, E].
template <class Values>
auto state_row(Values& values, const Tensor& tensor, i32 b, i32 h, i32 n) {
  const size_t row = (size_t(b) * size_t(tensor.size[1]) + size_t(h)) * size_t(tensor.size[2]) + size_t(n);
  return std::span(values).subspan(row * size_t(tensor.size[3]), size_t(tensor.size[3]));
}

}  // namespace heddle
