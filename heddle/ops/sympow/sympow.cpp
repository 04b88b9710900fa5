#include "heddle/ops/sympow/sympow.h"

#include "heddle/ops/sympow/sympow_reference.h"

namespace heddle::sympow {

std::vector<Case> cases();

namespace {

void infer(std::byte* args) {
  auto& a = as<Sympow>(args);
  require_rank("sympow", "x", a.x, 2);
  require_float("sympow", "x", a.x);
  set_output("sympow", "y", a.y, a.x.dtype, {a.x.size[0], require_power("sympow", "x", a.power, a.x.last())});
}

std::vector<TileAxis> axes(const std::byte* args, const TilingTarget&) {
  const auto& a = as<Sympow>(args);
  return matrix_axes(a.x.size[0], a.y.last(), kSympowGroup);
}

void reference(const std::byte* args, Values& values) {
  const auto& a = as<Sympow>(args);
  const auto x = values.read(a.x);
  std::vector<double> y;
  for (size_t row = 0; row < x.size(); row += size_t(a.x.last())) {
    const auto made = sympow_of(a.power, std::span(x).subspan(row, size_t(a.x.last())));
    y.insert(y.end(), made.begin(), made.end());
  }
  values.write(a.y, y);
}

}  // namespace

const OpSpec& op() {
  static const OpSpec spec = [] {
    OpSpec op =
        op_of<Sympow>("sympow", "y = phi(x), the symmetric power of rows: <phi(q), phi(k)> = <q, k>^power");
    op.infer = infer;
    op.axes = axes;
    op.flops = elementwise_flops<2>;
    op.reference = reference;
    op.cases = cases;
    op.gradient = {{"sympow_backward"}};
    return op;
  }();
  return spec;
}

}  // namespace heddle::sympow
