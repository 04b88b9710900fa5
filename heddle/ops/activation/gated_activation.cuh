// Tile body of gated_activation. Included once per target, inside its namespace.
namespace gated_activation {

#include "heddle/ops/activation/activate.cuh"

struct Body : Epilogue<Body> {
  static constexpr i32 kTakes = 2;  // gate, up

  static const Tensor& input(const GatedActivation& a) { return a.x; }
  static const Tensor& output(const GatedActivation& a) { return a.y; }

  template <class Pair>
  static auto value(const GatedActivation& a, Pair x) {
    return activate(a.kind, x.first) * x.second;
  }
};

}  // namespace gated_activation
