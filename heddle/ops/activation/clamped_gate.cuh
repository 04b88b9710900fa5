// Tile body of clamped_gate. Included once per target, inside its namespace.
namespace clamped_gate {

struct Body : Epilogue<Body> {
  static constexpr i32 kTakes = 2;  // gate, up

  static const Tensor& input(const ClampedGate& a) { return a.x; }
  static const Tensor& output(const ClampedGate& a) { return a.y; }

  template <class Pair>
  static auto value(const ClampedGate& a, Pair x) {
    using V = decltype(x.first);
    const V gate = min(x.first, V(a.limit)), up = max(min(x.second, V(a.limit)), V(-a.limit));
    return (up + V(1.0f)) * gate * sigmoid(gate * V(a.alpha));
  }
};

}  // namespace clamped_gate
