// Logarithms of single floats. Included in the namespaces of the bodies that use them.

// The natural logarithm of one normal float above 0. Cephes logf: x = m * 2^e with m near 1, then a polynomial of degree 9 in
// m - 1; 1 ulp. Infinity and what is not a number stay.
inline float natural_log(float x) {
  if (!(x - x == 0.0f)) return x;
  const int bits = __builtin_bit_cast(int, x);
  int e = (bits >> 23) - 127;
  float m = __builtin_bit_cast(float, (bits & 0x7fffff) | 0x3f800000);
  if (m > 1.41421356f) m = m * 0.5f, ++e;
  const float t = m - 1.0f, n = float(e);
  float p = 7.0376836292e-2f;
  p = p * t - 1.1514610310e-1f;
  p = p * t + 1.1676998740e-1f;
  p = p * t - 1.2420140846e-1f;
  p = p * t + 1.4249322787e-1f;
  p = p * t - 1.6668057665e-1f;
  p = p * t + 2.0000714765e-1f;
  p = p * t - 2.4999993993e-1f;
  p = p * t + 3.3333331174e-1f;
  p = p * t * t * t - 2.12194440e-4f * n - 0.5f * t * t;
  return t + p + 0.693359375f * n;
}

// log(1 + e^x). The factor corrects the rounding of 1 + e^x, and beyond 20 nothing is left of log(1 + e^-x).
inline float softplus(float x) {
  if (!(x <= 20.0f)) return x;
  const float power = exp(x), sum = 1.0f + power;
  return sum == 1.0f ? power : natural_log(sum) * (power / (sum - 1.0f));
}
