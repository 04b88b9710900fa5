// Tile body of bias. Included once per target, inside its namespace.
namespace bias {

struct Body : Epilogue<Body> {
  static const Tensor& input(const Bias& a) { return a.x; }
  static const Tensor& output(const Bias& a) { return a.y; }

  template <class Block>
  static auto operand(Block& block, const Bias& a, i32) {
    return block.row(a.bias);
  }
  template <class Value>
  static Value value(const Bias&, Value x, Value operand) {
    return x + operand;
  }
};

}  // namespace bias
