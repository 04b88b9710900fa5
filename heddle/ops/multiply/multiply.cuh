// Tile body of multiply. Included once per target, inside its namespace.
namespace multiply {

struct Body : Epilogue<Body> {
  static const Tensor& input(const Multiply& a) { return a.a; }
  static const Tensor& output(const Multiply& a) { return a.y; }

  template <class Block>
  static auto operand(Block& block, const Multiply& a, i32 row) {
    return block.row(a.b, row);
  }
  template <class Value>
  static Value value(const Multiply&, Value x, Value operand) {
    return x * operand;
  }
};

}  // namespace multiply
