// Functions of values, written once over the few primitives a backend supplies for its value type V:
//   fma(a, b, c)  max(a, b)  min(a, b)  abs(a)  round(a)  floor(a)  sqrt(a)  exp2i(n): 2^n for integral n in
//   [-126, 127]  where_less(a, b, x, y): a < b ? x : y, per lane. max and min are NaN where either argument is.
// Included once per target, inside its namespace.

// A body stores it where a value is missing, so that the gap shows.
constexpr float kNaN = __builtin_bit_cast(float, 0x7fc00000);
// NVRTC has no __builtin_inff.
constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000);

// x, at least `low` and at most `high`; NaN stays.
template <class V>
inline V bounded(V x, V low, V high) {
  return where_less(x, low, low, where_less(high, x, high, x));
}

// p * 2^n, a normal float, for p in [0.5, 2) and n in [-126, 128]: two factors, so that 2^n stays in range at both ends.
template <class V>
inline V times_power(V p, V n) {
  V half = floor(n * V(0.5f));
  return p * exp2i(half) * exp2i(n - half);
}

// e^x. Cephes expf: n = round(x / ln 2), then a polynomial of degree 6 on [-ln2/2, ln2/2]; 2 ulp. It is 0 where it would be
// subnormal, infinite where it is above the largest float, and NaN stays.
template <class V>
inline V exp(V x) {
  const V least(-87.33654f), most(88.72283f), given = x;
  x = bounded(x, least, most);
  V n = round(x * V(1.44269504088896341f));
  V r = fma(n, V(-0.693359375f), x);
  r = fma(n, V(2.12194440e-4f), r);
  V p = V(1.9875691500e-4f);
  p = fma(p, r, V(1.3981999507e-3f));
  p = fma(p, r, V(8.3334519073e-3f));
  p = fma(p, r, V(4.1665795894e-2f));
  p = fma(p, r, V(1.6666665459e-1f));
  p = fma(p, r, V(5.0000001201e-1f));
  p = fma(p * r, r, r) + V(1.0f);
  const V over = given * V(kInfinity);  // NaN stays
  return where_less(given, least, V(0.0f), where_less(given, V(88.72284f), times_power(p, n), over));
}

// e^x for x <= 0, of what is summed with others: a backend may leave out what is too small to count.
template <class V>
inline V weight_of(V x) {
  return exp(x);
}

template <class V, class W>
inline V quotient(V a, W b) {
  return a / b;
}

// The score of a token that was there before, after the repetition penalty.
template <class V>
inline V repeated_score(V score, float penalty) {
  return where_less(score, V(0.0f), score * penalty, quotient(score, penalty));
}

template <class V>
inline V rsqrt(V x) {
  return V(1.0f) / sqrt(x);
}

template <class V>
inline V sigmoid(V x) {
  return quotient(V(1.0f), V(1.0f) + exp(-x));
}

template <class V>
inline V silu(V x) {
  return x * sigmoid(x);
}

// tanh x = 1 - 2 / (e^2x + 1); near 0, where that difference cancels, Cephes tanhf: an odd polynomial.
template <class V>
inline V tanh(V x) {
  V square = x * x;
  V p = V(-5.70498872745e-3f);
  p = fma(p, square, V(2.06390887954e-2f));
  p = fma(p, square, V(-5.37397155531e-2f));
  p = fma(p, square, V(1.33314422036e-1f));
  p = fma(p, square, V(-3.33332819422e-1f));
  V near = fma(p * square, x, x), far = V(1.0f) - V(2.0f) / (exp(x + x) + V(1.0f));
  return where_less(abs(x), V(0.625f), near, far);
}

// erf by Abramowitz and Stegun 7.1.26, absolute error below 1.5e-7.
template <class V>
inline V erf(V x) {
  V a = abs(x);
  V t = V(1.0f) / fma(V(0.3275911f), a, V(1.0f));
  V p = V(1.061405429f);
  p = fma(p, t, V(-1.453152027f));
  p = fma(p, t, V(1.421413741f));
  p = fma(p, t, V(-0.284496736f));
  p = fma(p, t, V(0.254829592f));
  V y = V(1.0f) - p * t * exp(-a * a);
  return where_less(x, V(0.0f), -y, y);
}

// GELU, exact: x * Phi(x).
template <class V>
inline V gelu(V x) {
  return V(0.5f) * x * (V(1.0f) + erf(x * V(0.70710678118f)));
}

// GELU by tanh: the approximation of Hendrycks and Gimpel (2016).
template <class V>
inline V gelu_tanh(V x) {
  return V(0.5f) * x * (V(1.0f) + tanh(V(0.7978845608f) * fma(V(0.044715f) * x * x, x, x)));
}

// a * b + c, rounded once. Where fma(a, b, c) rounds the product too, the value type has its own.
template <class V>
inline V fused(V a, V b, V c) {
  return fma(a, b, c);
}

// sin and cos of angles up to 2^18: Cody-Waite reduction by pi/2 in three parts, Cephes polynomials.
template <class V>
inline void sincos(V x, V& sin_x, V& cos_x) {
  V q = round(x * V(0.636619772367581343f));
  V r = fused(q, V(-1.5707855224609375f), x);
  r = fused(q, V(-1.08042732e-5f), r);
  r = fused(q, V(-6.0770999e-11f), r);
  V z = r * r;
  V s = fma(fma(fma(V(-1.9515295891e-4f), z, V(8.3321608736e-3f)), z, V(-1.6666654611e-1f)) * z, r, r);
  V c = fma(fma(fma(V(2.443315711809948e-5f), z, V(-1.388731625493765e-3f)), z, V(4.166664568298827e-2f)) * z,
            z, fma(z, V(-0.5f), V(1.0f)));
  V quadrant = q - V(4.0f) * floor(q * V(0.25f));  // 0, 1, 2 or 3
  V odd = quadrant - V(2.0f) * floor(quadrant * V(0.5f));
  V sine = where_less(V(0.5f), odd, c, s), cosine = where_less(V(0.5f), odd, s, c);
  sin_x = where_less(V(1.5f), quadrant, -sine, sine);
  // cos is negative in quadrants 1 and 2
  cos_x = where_less(abs(quadrant - V(1.5f)), V(1.0f), -cosine, cosine);
}
