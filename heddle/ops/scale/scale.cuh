// Tile body of scale. Included once per target, inside its namespace.
namespace scale {

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const Scale& a) { return a.x; }
  static constexpr const Tensor& output(const Scale& a) { return a.y; }

  template <class Value>
  static Value value(const Scale& a, Value x) {
    return x * a.factor;
  }
};

}  // namespace scale
