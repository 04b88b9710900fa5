#include "heddle/ops/flash_attention/flash_attention_earlier_backward.h"

#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::flash_attention_earlier_backward {

std::vector<Case> cases();

namespace {

constexpr const char* kName = "flash_attention_earlier_backward";

void infer(std::byte* args) {
  auto& a = as<FlashAttentionEarlierBackward>(args);
  require_rank(kName, "y_in", a.y_in, 4);
  require_float(kName, "y_in", a.y_in);
  const i32* const size = a.y_in.size;
  require_shape(kName, "dy", a.dy, {size[0], size[1], size[2], size[3]});
  require_float(kName, "dy", a.dy);
  for (auto [name, tensor] : {std::pair{"lse_in", &a.lse_in}, {"lse", &a.lse}, {"delta", &a.delta}}) {
    require_shape(kName, name, *tensor, {size[0], size[2], size[1]});
    require_dtype(kName, name, *tensor, DType::kF32);
  }
  set_output(kName, "dy_in", a.dy_in, a.y_in.dtype, {size[0], size[1], size[2], size[3]});
  set_output(kName, "dlse_in", a.dlse_in, DType::kF32, {size[0], size[2], size[1]});
}

// Coordinates: batch, first row, row after the last.
std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<FlashAttentionEarlierBackward>(args);
  return {{.kind = TileAxis::Kind::kIndex, .extent = a.dy.size[0]},
          {.extent = a.dy.size[1], .preferred = 16}};
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<FlashAttentionEarlierBackward>(args);
  const std::array<i32, 2> batch{t[0], t[0] + 1}, rows{t[1], t[2]}, heads{0, a.dy.size[2]};
  const auto add = [&](const Tensor& tensor, Access access) {
    if (tensor.rank == 4)
      out.push_back(part_of(tensor, access, {batch, rows, heads, {0, tensor.last()}}));
    else
      out.push_back(part_of(tensor, access, {batch, heads, rows}));
  };
  for (const Tensor* tensor : {&a.y_in, &a.lse_in, &a.dy, &a.lse, &a.delta}) add(*tensor, Access::kRead);
  add(a.dy_in, Access::kWrite), add(a.dlse_in, Access::kWrite);
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionEarlierBackward>(args);
  return 3.0 * (t[2] - t[1]) * a.dy.size[2] * a.dy.last();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<FlashAttentionEarlierBackward>(args);
  const std::vector<double> y_in = values.read(a.y_in), lse_in = values.read(a.lse_in),
                            dy = values.read(a.dy), lse = values.read(a.lse), delta = values.read(a.delta);
  std::vector<double> dy_in(y_in.size()), dlse_in(lse_in.size());
  const size_t dim = size_t(a.dy.last()), heads = size_t(a.dy.size[2]), rows = size_t(a.dy.size[1]);
  for (size_t line = 0; line < y_in.size() / dim; ++line) {
    const size_t at = (line / heads / rows * heads + line % heads) * rows + line / heads % rows;
    if (lse_in[at] < -1e38) continue;
    const double weight = std::exp(lse_in[at] - lse[at]);
    double given = 0;
    for (size_t i = line * dim; i < (line + 1) * dim; ++i)
      dy_in[i] = weight * dy[i], given += dy[i] * y_in[i];
    dlse_in[at] = weight * (given - delta[at]);
  }
  values.write(a.dy_in, dy_in);
  values.write(a.dlse_in, dlse_in);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<FlashAttentionEarlierBackward>(
        kName, "the gradient of flash_attention by an earlier result that it continues");
    op.infer = infer;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = [](const std::byte* args, const TileCoord&) {
      return i64(8) * as<FlashAttentionEarlierBackward>(args).dy.size[2];
    };
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::flash_attention_earlier_backward
