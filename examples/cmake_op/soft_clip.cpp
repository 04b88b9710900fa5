#include <algorithm>

#include <soft_clip/soft_clip.h>

#include "heddle/backend/cpu/own_body.h"
#include "heddle/base/file.h"
#include "heddle/ir/rules.h"

namespace heddle::bodies {
#include <soft_clip/soft_clip.cuh>
}

namespace heddle {
namespace {

void infer(std::byte* args) {
  auto& a = as<SoftClip>(args);
  require_rank("soft_clip", "x", a.x, 2);
  require_float("soft_clip", "x", a.x);
  require_shape("soft_clip", "shift", a.shift, {a.x.last()});
  require(a.limit > 0, "[soft_clip] limit = {}; must be positive", a.limit);
  set_output("soft_clip", "y", a.y, a.x.dtype, {a.x.size[0], a.x.size[1]});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  return {{.dim = "M", .extent = as<SoftClip>(args).x.size[0], .preferred = 8}};
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<SoftClip>(args);
  std::vector<double> y = values.read(a.x);
  const std::vector<double> shift = values.read(a.shift);
  for (size_t i = 0; i < y.size(); ++i) {
    const double v = y[i] + shift[i % shift.size()];
    const double inside = std::clamp(v, -double(a.limit), double(a.limit));
    y[i] = inside + double(a.slope) * (v - inside);
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& soft_clip_op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<SoftClip>("soft_clip", "y = v up to the limit, and grows by slope beyond, for v = x + shift");
    op.infer = infer;
    op.axes = axes;
    op.flops = rowwise_flops<SoftClip, 5>;
    op.reference = reference;
    op.cases = [] { return std::vector<Case>(); };
    set_body<bodies::soft_clip::Body, SoftClip>(op);
    op.text = [] {  // for a GPU, whose compiler runs at the first call
      return OpText{.args = "SoftClip",
                    .scope = "soft_clip",
                    .header = read_file(SOFT_CLIP_FOLDER "/soft_clip.h"),
                    .body = read_file(SOFT_CLIP_FOLDER "/soft_clip.cuh")};
    };
    return op;
  }();
  return spec;
}

}  // namespace heddle
