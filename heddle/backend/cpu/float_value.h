// The primitives of tile/math.cuh for float. Included inside the namespace of each target.
inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline float max(float a, float b) {
  return a != a || a > b ? a : b;
}
inline float min(float a, float b) {
  return a != a || a < b ? a : b;
}
inline float abs(float a) {
  return __builtin_fabsf(a);
}
inline float round(float a) {
  return __builtin_rintf(a);
}
inline float floor(float a) {
  return __builtin_floorf(a);
}
inline float sqrt(float a) {
  return __builtin_sqrtf(a);
}
inline float exp2i(float n) {
  return std::bit_cast<float>((i32(n == n ? n : 0) + 127) << 23);  // NaN is no whole number
}
inline float where_less(float a, float b, float x, float y) {
  return a < b ? x : y;
}
