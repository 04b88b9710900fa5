// Tile body of add. Included once per target, inside its namespace.
namespace add {

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const Add& a) { return a.a; }
  static constexpr const Tensor& output(const Add& a) { return a.y; }

  static constexpr const Tensor& other(const Add& a) { return a.b; }
  template <class Value>
  static Value value(const Add&, Value x, Value operand) {
    return x + operand;
  }
  template <class Block, class Index, class Value>
  static void keep(Block& block, const Add& a, i32 row, i32 column, Index i, Value sum) {
    if (a.copy.exists()) block.row(a.copy, row).from(column).store(i, sum);
  }
};

}  // namespace add
