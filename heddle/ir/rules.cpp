#include "heddle/ir/rules.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace heddle {
namespace {

bool has(const Tensor& tensor, Sizes shape) {
  return std::equal(tensor.size, tensor.size + tensor.rank, shape.begin(), shape.end());
}

}  // namespace

void require_rank(const char* op, const char* argument, const Tensor& tensor, int rank) {
  require(tensor.rank == rank, "[{}] {} is {}; must have {} dimensions", op, argument, shape_text(tensor),
          rank);
  for (int d = 0; d < rank; ++d)
    require(tensor.size[d] > 0, "[{}] {} is {}; sizes must be positive", op, argument, shape_text(tensor));
}

void require_shape(const char* op, const char* argument, const Tensor& tensor, Sizes shape) {
  require(has(tensor, shape), "[{}] {} is {}; its shape must be {}", op, argument, shape_text(tensor), shape);
}

void require_dtype(const char* op, const char* argument, const Tensor& tensor, DType dtype) {
  require(tensor.dtype == dtype, "[{}] {} is {}; must be {}", op, argument, shape_text(tensor), name(dtype));
}

void require_float(const char* op, const char* argument, const Tensor& tensor) {
  require(is_wide_float(tensor.dtype), "[{}] {} is {}; must be f32, f16 or bf16", op, argument,
          shape_text(tensor));
}

void require_weight(const char* op, const char* argument, const Weight& weight, i32 matrices) {
  require_rank(op, argument, weight.data, 2);
  require_float(op, argument, weight.data);
  require(weight.panel_rows > 0 && weight.interleave > 0 && weight.panel_cols >= 0,
          "[{}] {} has panel_rows = {}, interleave = {}, panel_cols = {}; the first two must be positive", op,
          argument, weight.panel_rows, weight.interleave, weight.panel_cols);
  require(weight.holds_coding(),
          "[{}] {} is in code {}, in panels of {} x {} and words of {} codes; panels must have whole rows, "
          "in words of whole "
          "bytes, four bytes of all rows together",
          op, argument, name(weight.coding.code), weight.panel_rows, weight.panel_cols, weight.interleave);
  require(weight.matrices == matrices, "[{}] {} has {} matrices; must have {}", op, argument, weight.matrices,
          matrices);
}

namespace {

// Requires [R or 1, G] with G a divisor of C, for data [R, C].
void require_scales(const char* op, const char* argument, const char* what, const Tensor& values,
                    const Tensor& data) {
  if (!values.exists() && values.rank == 0) return;
  const std::string name = fmt::format("{}.{}", argument, what);
  require_rank(op, name.c_str(), values, 2);
  require_dtype(op, name.c_str(), values, DType::kF32);
  require((values.size[0] == 1 || values.size[0] == data.size[0]) && data.size[1] % values.size[1] == 0,
          "[{}] {} is {}, {} lies as {}; must be [{} or 1, a divisor of {}]", op, name, shape_text(values),
          argument, shape_text(data), data.size[0], data.size[1]);
}

}  // namespace

void require_matrix(const char* op, const char* argument, const Matrix& matrix) {
  require_rank(op, argument, matrix.data, 2);
  const DType type = matrix.data.dtype;
  require(is_float(type) || type == DType::kI8 || type == DType::kI4,
          "[{}] {} is {}; must be of floats, or of i8 or i4", op, argument, shape_text(matrix.data));
  require(matrix.data.dtype != DType::kI4 || matrix.data.size[0] == 1 || matrix.data.stride[0] % 2 == 0,
          "[{}] {} is {} with rows {} elements apart; must be even, as two elements share a byte", op,
          argument, shape_text(matrix.data), matrix.data.stride[0]);
  require_scales(op, argument, "scales", matrix.scales, matrix.data);
  require_scales(op, argument, "zeros", matrix.zeros, matrix.data);
  require(matrix.scales.rank > 0 || matrix.zeros.rank == 0, "[{}] {} has zeros and no scales; must have both",
          op, argument);
}

std::vector<double> read_matrix(const Values& values, const Matrix& matrix) {
  std::vector<double> data = values.read(matrix.data);
  const auto broadcast = [&](const Tensor& by, auto&& apply) {
    if (by.rank == 0) return;
    const std::vector<double> of = values.read(by);
    const size_t cols = size_t(matrix.data.size[1]), groups = size_t(by.size[1]);
    for (size_t i = 0; i < data.size(); ++i)
      apply(data[i], of[(by.size[0] == 1 ? 0 : i / cols * groups) + i % cols / (cols / groups)]);
  };
  broadcast(matrix.zeros, [](double& value, double zero) { value -= zero; });
  broadcast(matrix.scales, [](double& value, double scale) { value *= scale; });
  if (!matrix.transposed) return data;
  std::vector<double> rows(data.size());
  const size_t n = size_t(matrix.rows()), k = size_t(matrix.cols());
  for (size_t i = 0; i < data.size(); ++i) rows[i % n * k + i / n] = data[i];
  return rows;
}

Region rows_of_panels(const Weight& weight, i32 first, i32 last) {
  const i64 row = weight.panel_bytes() * weight.slices();
  Region region{.buffer = weight.data.buffer, .offset = weight.data.offset + first / weight.panel_rows * row};
  region.run = (last + weight.panel_rows - 1) / weight.panel_rows * row - first / weight.panel_rows * row;
  region.count[0] = weight.matrices, region.stride[0] = weight.matrix_bytes();
  return region;
}

void require_record(const char* op, const char* argument, const Tensor& tensor) {
  require_rank(op, argument, tensor, 1);
  require_dtype(op, argument, tensor, DType::kU8);
}

std::vector<TileAxis> row_axes(i32 rows, i32 preferred) {
  return {{.dim = "M", .extent = rows, .preferred = preferred}};
}

std::vector<TileAxis> norm_axes(i32 rows, const TilingTarget& target) {
  constexpr i32 kTiles = 128, kFewest = 4;
  return row_axes(rows, target.gpu ? std::max(kFewest, rows / kTiles) : 16);
}

std::vector<TileAxis> matrix_axes(i32 rows, i32 cols, i32 unit) {
  return {{.dim = "M", .extent = rows, .preferred = 16},
          {.dim = "N", .extent = cols, .unit = unit, .preferred = 4096}};
}

std::string why_no_row_copies(const char* name, const Tensor& rows) {
  constexpr i64 kWord = 16;
  const i64 pitch = rows.stride[0] * size_of(rows.dtype);
  if (pitch % kWord == 0 && rows.offset % kWord == 0) return {};
  return fmt::format("{}'s rows begin at byte {} and are {} bytes apart; must be multiples of {}", name,
                     rows.offset, pitch, kWord);
}

Tensor dense(DType dtype, Sizes shape) {
  constexpr i64 kMostElements = i64(1) << 62;
  require(shape.size() >= 1 && shape.size() <= kMaxRank, "[tensor] {} dimensions; must be 1 to {}",
          shape.size(), kMaxRank);
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.rank = u8(shape.size());
  i64 stride = 1;
  for (int d = int(shape.size()) - 1; d >= 0; --d) {
    require(shape[size_t(d)] > 0, "[tensor] shape {}; sizes must be positive", shape);
    require(stride <= kMostElements / shape[size_t(d)], "[tensor] shape {} has more than 2^62 elements",
            shape);
    tensor.size[d] = shape[size_t(d)];
    tensor.stride[d] = stride;
    stride *= shape[size_t(d)];
  }
  return tensor;
}

Tensor columns_of(Tensor matrix, i32 begin, i32 count) {
  require(matrix.rank == 2 && begin >= 0 && count > 0 && i64(begin) + count <= matrix.last(),
          "[tensor] columns {} to {} of {}; must lie in a matrix", begin, i64(begin) + count,
          shape_text(matrix));
  matrix.offset += i64(begin) * size_of(matrix.dtype);
  matrix.size[1] = count;
  return matrix;
}

void set_output(const char* op, const char* argument, Tensor& output, DType dtype, Sizes shape) {
  if (output.rank == 0) {
    output = dense(dtype, shape);
    return;
  }
  require(has(output, shape), "[{}] {} is {}; the op makes {}", op, argument, shape_text(output), shape);
  if (is_float(dtype))
    require_float(op, argument, output);
  else
    require_dtype(op, argument, output, dtype);
}

}  // namespace heddle
