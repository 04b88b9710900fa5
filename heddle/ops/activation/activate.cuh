// f(x) of an ActivationKind. Included inside the namespace of each body of the family.
template <class V>
inline V activate(int kind, V x) {
  if (kind == kSilu) return silu(x);
  if (kind == kGelu) return gelu(x);
  if (kind == kGeluTanh) return gelu_tanh(x);
  return max(x, V(0.0f));
}
