// The activation functions and their slopes. Included inside the namespace of each body of the family.

// f(x) of an ActivationKind.
template <class V>
inline V activate(int kind, V x) {
  if (kind == kSilu) return silu(x);
  if (kind == kGelu) return gelu(x);
  if (kind == kGeluTanh) return gelu_tanh(x);
  if (kind == kSigmoid) return sigmoid(x);
  const V positive = max(x, V(0.0f));
  return kind == kRelu ? positive : positive * positive;
}

// f'(x). Beyond |x| = 10 the last term of kGeluTanh is 0, and the bound of the square keeps it finite. kRelu: 0 for x <= 0, else 1,
// as torch has it for NaN too.
template <class V>
inline V activation_slope(int kind, V x) {
  const V half(0.5f), one(1.0f);
  if (kind == kSilu) {
    const V s = sigmoid(x);
    return s * (one + x * (one - s));
  }
  if (kind == kGelu)
    return half * (one + erf(x * V(0.70710678118f))) + x * V(0.3989422804f) * exp(-half * x * x);
  if (kind == kGeluTanh) {
    const V square = min(x * x, V(100.0f));
    const V t = tanh(V(0.7978845608f) * fma(V(0.044715f) * square, x, x));
    return half * (one + t) + half * x * (one - t * t) * V(0.7978845608f) * fma(V(0.134145f), square, one);
  }
  if (kind == kSigmoid) {
    const V s = sigmoid(x);
    return s * (one - s);
  }
  if (kind == kReluSquared) return max(x, V(0.0f)) + max(x, V(0.0f));
  return where_less(V(0.0f), x, one, where_less(x, one, V(0.0f), one));
}
