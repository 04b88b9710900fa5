// Tile body of activation_backward. Included once per target, inside its namespace.
namespace activation_backward {

#include "heddle/ops/activation/activate.cuh"

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const ActivationBackward& a) { return a.x; }
  static constexpr const Tensor& other(const ActivationBackward& a) { return a.dy; }
  static constexpr const Tensor& output(const ActivationBackward& a) { return a.dx; }

  template <class Value>
  static Value value(const ActivationBackward& a, Value x, Value dy) {
    return dy * activation_slope(a.kind, x);
  }
};

}  // namespace activation_backward
