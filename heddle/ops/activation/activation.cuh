// Tile body of activation. Included once per target, inside its namespace.
namespace activation {

#include "heddle/ops/activation/activate.cuh"

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const Activation& a) { return a.x; }
  static constexpr const Tensor& output(const Activation& a) { return a.y; }

  template <class Value>
  static Value value(const Activation& a, Value x) {
    return activate(a.kind, x);
  }
};

}  // namespace activation
