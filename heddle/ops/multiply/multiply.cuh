// Tile body of multiply. Included once per target, inside its namespace.
namespace multiply {

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const Multiply& a) { return a.a; }
  static constexpr const Tensor& output(const Multiply& a) { return a.y; }

  static constexpr const Tensor& other(const Multiply& a) { return a.b; }
  template <class Value>
  static Value value(const Multiply&, Value x, Value operand) {
    return x * operand;
  }
};

}  // namespace multiply
