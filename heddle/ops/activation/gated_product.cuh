// Tile body of gated_product. Included once per target, inside its namespace.
namespace gated_product {

#include "heddle/ops/activation/activate.cuh"

struct Body : Epilogue<Body> {
  static const Tensor& input(const GatedProduct& a) { return a.gate; }
  static const Tensor& output(const GatedProduct& a) { return a.y; }

  template <class Block>
  static auto operand(Block& block, const GatedProduct& a, i32 row) {
    return block.row(a.up, row);
  }
  template <class Value>
  static Value value(const GatedProduct& a, Value x, Value operand) {
    return activate(a.kind, x) * operand;
  }
};

}  // namespace gated_product
