// Tile body of clamp. Included once per target, inside its namespace.
namespace clamp {

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const Clamp& a) { return a.x; }
  static constexpr const Tensor& output(const Clamp& a) { return a.y; }

  // Comparisons with NaN are false, so NaN stays.
  template <class Value>
  static Value value(const Clamp& a, Value x) {
    const Value low(a.low), high(a.high);
    return where_less(x, low, low, where_less(high, x, high, x));
  }
};

}  // namespace clamp
