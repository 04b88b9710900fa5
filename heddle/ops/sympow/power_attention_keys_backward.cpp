#include "heddle/ops/sympow/power_attention_keys_backward.h"

#include "heddle/ops/sympow/power_attention_reference.h"

namespace heddle::power_attention_keys_backward {

std::vector<Case> cases();
KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config);

namespace {

void infer(std::byte* args) {
  auto& a = as<PowerAttentionKeysBackward>(args);
  require_power_attention("power_attention_keys_backward", a);
  require_given("power_attention_keys_backward", a, a.v);
  require_rows("power_attention_keys_backward", "dl_rows", a.dl_rows, a.q);
  const auto* size = a.q.size;
  const i32 columns = a.v.size[3];
  set_output("power_attention_keys_backward", "dk", a.dk, a.k.dtype, {size[0], size[1], size[2], size[3]});
  set_output("power_attention_keys_backward", "dv", a.dv, a.v.dtype, {size[0], size[1], size[2], columns});
  set_output("power_attention_keys_backward", "dl", a.dl, DType::kF32, {size[0], size[1], size[2]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<PowerAttentionKeysBackward>(args);
  return head_axes(a.q, a.tiles());
}

void regions(const std::byte* args, const TileCoord& t, std::vector<Region>& out) {
  const auto& a = as<PowerAttentionKeysBackward>(args);
  const HeadRegions add(a.q, t, out);
  const i32 begin = a.tiles().begin(t[1]), end = a.tiles().end(t[1]);
  for (const Tensor* keys : {&a.k, &a.v, &a.dl_rows}) add.add(*keys, Access::kRead, begin, end);
  for (const Tensor* rows : {&a.q, &a.l, &a.y, &a.total, &a.dy, &a.dtotal})
    add.add(*rows, Access::kRead, begin, a.tiles().chunk_end(a.tiles().chunk_of(t[1])));
  for (const Tensor* made : {&a.dk, &a.dv, &a.dl}) add.add(*made, Access::kWrite, begin, end);
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<PowerAttentionKeysBackward>(args);
  const i32 begin = a.tiles().begin(t[1]), end = a.tiles().end(t[1]);
  const double rows = a.tiles().chunk_end(a.tiles().chunk_of(t[1])) - begin;
  return 4.0 * (end - begin) * rows * (a.q.size[3] + a.v.size[3]);
}

i64 scratch(const std::byte* args, const TileCoord&) {
  const auto& a = as<PowerAttentionKeysBackward>(args);
  return i64(4) * kChunkRows * (5 * a.q.size[3] + 5 * a.v.size[3] + 6 * kChunkRows + 12);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<PowerAttentionKeysBackward>(args);
  PairGradients<PowerAttentionKeysBackward> given(a, values);
  std::vector<double> dk(given.k.size()), dv(given.v.size()), dl = values.read(a.dl_rows);
  for_pairs(a.q, a.tiles(), [&](i32 b, i32 h, i32 i, i32 j) {
    const auto pair = given.of(b, h, i, j);
    const auto query = head_row(given.q, a.q, b, i, h);
    const auto dy = head_row(given.dy, a.dy, b, i, h);
    const auto to_key = head_row(dk, a.dk, b, j, h);
    const auto to_value = head_row(dv, a.dv, b, j, h);
    for (size_t d = 0; d < to_key.size(); ++d) to_key[d] += double(a.scale) * pair.score * query[d];
    const double weight = pair.weight * given.row(b, i, h).inverse;
    for (size_t e = 0; e < to_value.size(); ++e) to_value[e] += weight * dy[e];
    dl[given.decays.at(b, j, h)] -= pair.gate;
  });
  values.write(a.dk, dk);
  values.write(a.dv, dv);
  values.write(a.dl, dl);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<PowerAttentionKeysBackward>("power_attention_keys_backward",
                                                  "dk and dv of power_attention, and dl from its rows' part");
    op.infer = infer;
    op.kernel = kernel;
    op.axes = axes;
    op.regions = regions;
    op.flops = flops;
    op.scratch = scratch;
    op.reference = reference;
    op.cases = cases;
    op.traits = {.spreads_nan = true};
    return op;
  }();
  return spec;
}

}  // namespace heddle::power_attention_keys_backward
