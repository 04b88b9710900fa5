// Tile body of gated_product. Included once per target, inside its namespace.
namespace gated_product {

#include "heddle/ops/activation/activate.cuh"

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const GatedProduct& a) { return a.gate; }
  static constexpr const Tensor& output(const GatedProduct& a) { return a.y; }

  static constexpr const Tensor& other(const GatedProduct& a) { return a.up; }
  template <class Value>
  static Value value(const GatedProduct& a, Value x, Value operand) {
    return activate(a.kind, x) * operand;
  }
};

}  // namespace gated_product
