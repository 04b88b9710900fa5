// Tile body of softcap. Included once per target, inside its namespace.
namespace softcap {

struct Body : Epilogue<Body> {
  static constexpr const Tensor& input(const Softcap& a) { return a.x; }
  static constexpr const Tensor& output(const Softcap& a) { return a.y; }

  template <class Value>
  static Value value(const Softcap& a, Value x) {
    return tanh(x * (1 / a.cap)) * a.cap;
  }
};

}  // namespace softcap
