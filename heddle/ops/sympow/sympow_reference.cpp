#include "heddle/ops/sympow/sympow_reference.h"

#include <cmath>
#include <limits>

#include "heddle/ops/sympow/sympow_columns.h"

namespace heddle {
namespace {

struct Factors {
  SympowGroup group;
  double leading;

  Factors(i32 power, i64 number, std::span<const double> x) : group(sympow_group(power, number)) {
    leading = std::sqrt(double(group.orders));
    if (group.first >= 0) leading *= x[size_t(group.first)] * x[size_t(group.second)];
  }
  size_t slow(size_t c) const { return size_t(group.slow) + c / kSympowTile; }
  size_t fast(size_t c) const { return size_t(group.fast) + c % kSympowTile; }
};

}  // namespace

std::vector<double> sympow_of(i32 power, std::span<const double> x) {
  std::vector<double> y(size_t(sympow_width(power, i32(x.size()))));
  for (size_t begin = 0; begin < y.size(); begin += kSympowGroup) {
    const Factors of(power, i64(begin / kSympowGroup), x);
    for (size_t c = 0; c < kSympowGroup; ++c) y[begin + c] = of.leading * x[of.slow(c)] * x[of.fast(c)];
  }
  return y;
}

std::vector<double> sympow_gradient(i32 power, std::span<const double> x, std::span<const double> dy) {
  std::vector<double> dx(x.size());
  for (size_t begin = 0; begin < dy.size(); begin += kSympowGroup) {
    const Factors of(power, i64(begin / kSympowGroup), x);
    double sum = 0;
    for (size_t c = 0; c < kSympowGroup; ++c) {
      const double given = dy[begin + c];
      dx[of.slow(c)] += of.leading * given * x[of.fast(c)];
      dx[of.fast(c)] += of.leading * given * x[of.slow(c)];
      sum += given * x[of.slow(c)] * x[of.fast(c)];
    }
    if (of.group.first < 0) continue;
    const double weight = std::sqrt(double(of.group.orders)) * sum;
    const auto first = size_t(of.group.first), second = size_t(of.group.second);
    dx[first] += weight * x[second];
    dx[second] += weight * x[first];
  }
  return dx;
}

i32 require_power(const char* op, const char* argument, i32 power, i32 dim) {
  require(power == 2 || power == 4, "[{}] power = {}; must be 2 or 4", op, power);
  require(dim > 0 && dim % kSympowTile == 0,
          "[{}] {} has rows of {} elements; must be a positive multiple of {}", op, argument, dim,
          kSympowTile);
  constexpr i32 kMost = 4096;  // the products of sympow_width stay within 64 bits
  const i64 width = dim <= kMost ? sympow_width(power, dim) : std::numeric_limits<i64>::max();
  require(width <= std::numeric_limits<i32>::max(),
          "[{}] {} has rows of {} elements, whose power {} has too many columns; must have fewer than 2^31",
          op, argument, dim, power);
  return i32(width);
}

void require_heads(const char* op, const char* argument, const Tensor& tensor, const Tensor& like, i32 last) {
  require_shape(op, argument, tensor, {like.size[0], like.size[1], like.size[2], last});
  require_float(op, argument, tensor);
}

void require_rows(const char* op, const char* argument, const Tensor& tensor, const Tensor& like) {
  require_shape(op, argument, tensor, {like.size[0], like.size[1], like.size[2]});
  require_float(op, argument, tensor);
}

i32 state_rows(const char* op, const ChunkTiles& tiles, i32 width) {
  const i64 rows = i64(tiles.chunks()) * width;
  require(rows <= std::numeric_limits<i32>::max(),
          "[{}] states of {} chunks have {} rows each; must be fewer than 2^31 together", op, tiles.chunks(),
          width);
  return i32(rows);
}

void require_states(const char* op, const char* argument, const Tensor& tensor, const Tensor& x,
                    const ChunkTiles& tiles, i32 width, i32 last) {
  require_shape(op, argument, tensor, {x.size[0], x.size[2], state_rows(op, tiles, width), last});
  require_float(op, argument, tensor);
}

}  // namespace heddle
