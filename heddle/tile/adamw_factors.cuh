// The formulas of a step of AdamW, for the op and for the pass over a list of tensors on a CPU. Each product that is added is
// rounded once with its sum, and quotients and roots are the nearest floats, so that every device gives the same bits. Included
// inside the namespace of its users.

// beta^n in fp64, so that 1 - beta^n keeps its bits for small n.
inline double power_of(double beta, i32 n) {
  double power = 1;
  for (; n > 0; n /= 2, beta *= beta)
    if (n % 2 == 1) power *= beta;
  return power;
}

// The numbers that all elements share.
struct Factors {
  float beta1, rest1, beta2, rest2, decay, minus_rate, of_square, eps, grad_scale;

  template <class Step>
  explicit Factors(const Step& a)
      : beta1(a.beta1),
        rest1(float(1 - double(a.beta1))),
        beta2(a.beta2),
        rest2(float(1 - double(a.beta2))),
        decay(float(1 - double(a.lr) * double(a.weight_decay))),
        minus_rate(float(-double(a.lr) / (1 - power_of(double(a.beta1), a.step)))),
        of_square(float(1 / (1 - power_of(double(a.beta2), a.step)))),
        eps(a.eps),
        grad_scale(a.grad_scale) {}

  template <class V>
  V mean(V m, V g) const {
    return fused(m, V(beta1), g * V(rest1));
  }
  template <class V>
  V square(V v, V g) const {
    return fused(v, V(beta2), g * g * V(rest2));
  }
  template <class V>
  V param(V p, V m, V v) const {
    return fused(V(minus_rate), m / (sqrt(v * V(of_square)) + V(eps)), p * V(decay));
  }
};
