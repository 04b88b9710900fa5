#include "heddle/ops/flash_attention/flash_attention_sinks_backward.h"

#include <cmath>

#include "heddle/ir/rules.h"

namespace heddle::flash_attention_sinks_backward {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<FlashAttentionSinksBackward>(args);
  require_rank("flash_attention_sinks_backward", "lse", a.lse, 3);
  require_dtype("flash_attention_sinks_backward", "lse", a.lse, DType::kF32);
  require_shape("flash_attention_sinks_backward", "delta", a.delta,
                {a.lse.size[0], a.lse.size[1], a.lse.size[2]});
  require_dtype("flash_attention_sinks_backward", "delta", a.delta, DType::kF32);
  require_shape("flash_attention_sinks_backward", "sinks", a.sinks, {a.lse.size[1]});
  require_float("flash_attention_sinks_backward", "sinks", a.sinks);
  set_output("flash_attention_sinks_backward", "dsinks", a.dsinks, a.sinks.dtype, {a.lse.size[1]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return {{.dim = "H", .extent = as<FlashAttentionSinksBackward>(args).lse.size[1], .preferred = 1}};
}

double flops(const std::byte* args, const TileCoord& t) {
  const auto& a = as<FlashAttentionSinksBackward>(args);
  return 16.0 * (t[1] - t[0]) * a.lse.size[0] * a.lse.last();
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<FlashAttentionSinksBackward>(args);
  const std::vector<double> sinks = values.read(a.sinks), lse = values.read(a.lse),
                            delta = values.read(a.delta);
  std::vector<double> dsinks(sinks.size());
  for (size_t i = 0; i < lse.size(); ++i) {
    const size_t head = i / size_t(a.lse.last()) % sinks.size();
    dsinks[head] -= std::exp(sinks[head] - lse[i]) * delta[i];
  }
  values.write(a.dsinks, dsinks);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<FlashAttentionSinksBackward>("flash_attention_sinks_backward",
                                                   "the gradient of flash_attention by its sinks");
    op.infer = infer;
    op.axes = axes;
    op.flops = flops;
    op.reference = reference;
    op.cases = cases;
    return op;
  }();
  return spec;
}

}  // namespace heddle::flash_attention_sinks_backward
