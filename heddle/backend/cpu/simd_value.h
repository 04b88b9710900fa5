// A lane vector as the value type of tile bodies, and the primitives of tile/math.cuh over it; loads and
// stores convert by bits, to nearest even. Included once per SIMD target, inside its namespace.
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using D32 = hn::Rebind<u32, D>;
using D16 = hn::Rebind<uint16_t, D>;
using Vec = hn::Vec<D>;
using Vec32 = hn::Vec<D32>;
constexpr D d;
constexpr D32 d32;
constexpr D16 d16;
constexpr i32 kLanes = i32(hn::MaxLanes(D()));

struct Value {
  Vec v;

  Value() = default;
  HWY_INLINE Value(float x) : v(hn::Set(d, x)) {}  // NOLINT: constants are values
  HWY_INLINE Value(Vec x) : v(x) {}                // NOLINT

  friend HWY_INLINE Value operator+(Value a, Value b) { return hn::Add(a.v, b.v); }
  friend HWY_INLINE Value operator-(Value a, Value b) { return hn::Sub(a.v, b.v); }
  friend HWY_INLINE Value operator*(Value a, Value b) { return hn::Mul(a.v, b.v); }
  friend HWY_INLINE Value operator/(Value a, Value b) { return hn::Div(a.v, b.v); }
  friend HWY_INLINE Value operator-(Value a) { return hn::Neg(a.v); }
  HWY_INLINE Value& operator+=(Value b) { return *this = *this + b; }
  HWY_INLINE Value& operator-=(Value b) { return *this = *this - b; }
  HWY_INLINE Value& operator*=(Value b) { return *this = *this * b; }
};

HWY_INLINE Value fma(Value a, Value b, Value c) {
  return hn::MulAdd(a.v, b.v, c.v);
}
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Value fused(Value a, Value b, Value c) {
  return __builtin_fmaf(hn::GetLane(a.v), hn::GetLane(b.v), hn::GetLane(c.v));
}
#elif HWY_TARGET == HWY_EMU128
// Its DemoteTo makes the largest float of infinity.
HWY_INLINE Value fused(Value a, Value b, Value c) {
  HWY_ALIGN float x[kLanes], y[kLanes], z[kLanes];
  hn::Store(a.v, d, x), hn::Store(b.v, d, y), hn::Store(c.v, d, z);
  for (i32 i = 0; i < kLanes; ++i) x[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return hn::Load(d, x);
}
#elif !HWY_NATIVE_FMA
// A product of two floats is exact as a double.
HWY_INLINE Value fused(Value a, Value b, Value c) {
  const hn::Repartition<double, D> wide;
  const hn::Half<D> half;
  const auto low = [&](Value x) { return hn::PromoteTo(wide, hn::LowerHalf(half, x.v)); };
  const auto high = [&](Value x) { return hn::PromoteTo(wide, hn::UpperHalf(half, x.v)); };
  return hn::Combine(d, hn::DemoteTo(half, hn::MulAdd(high(a), high(b), high(c))),
                     hn::DemoteTo(half, hn::MulAdd(low(a), low(b), low(c))));
}
#endif
// The larger one and the smaller one, b where either is NaN: the instructions of x86.
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
HWY_INLINE Vec larger(Vec a, Vec b) {
  return hn::IfThenElse(hn::Gt(a, b), a, b);
}
HWY_INLINE Vec smaller(Vec a, Vec b) {
  return hn::IfThenElse(hn::Lt(a, b), a, b);
}
#else
HWY_INLINE Vec larger(Vec a, Vec b) {
  return hn::Max(a, b);
}
HWY_INLINE Vec smaller(Vec a, Vec b) {
  return hn::Min(a, b);
}
// The sum of exponents. NaN is no power.
HWY_INLINE Value times_power(Value p, Value n) {
  constexpr hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p.v), hn::ShiftLeft<23>(hn::ConvertTo(di, n.v))));
}
#endif
HWY_INLINE Value max(Value a, Value b) {
  return hn::IfThenElse(hn::IsNaN(a.v), a.v, larger(a.v, b.v));
}
HWY_INLINE Value min(Value a, Value b) {
  return hn::IfThenElse(hn::IsNaN(a.v), a.v, smaller(a.v, b.v));
}
HWY_INLINE Value bounded(Value x, Value low, Value high) {
  return smaller(high.v, larger(low.v, x.v));
}
HWY_INLINE Value abs(Value a) {
  return hn::Abs(a.v);
}
HWY_INLINE Value round(Value a) {
  return hn::Round(a.v);
}
HWY_INLINE Value floor(Value a) {
  return hn::Floor(a.v);
}
HWY_INLINE Value sqrt(Value a) {
  return hn::Sqrt(a.v);
}
HWY_INLINE Value exp2i(Value n) {
#if HWY_TARGET == HWY_EMU128  // C++ has no whole number for NaN; instructions give any
  n = hn::IfThenZeroElse(hn::IsNaN(n.v), n.v);
#endif
  const auto exponent =
      hn::Add(hn::ConvertTo(hn::RebindToSigned<D>(), n.v), hn::Set(hn::RebindToSigned<D>(), 127));
  return hn::BitCast(d, hn::ShiftLeft<23>(exponent));
}
HWY_INLINE Value where_less(Value a, Value b, Value x, Value y) {
  return hn::IfThenElse(hn::Lt(a.v, b.v), x.v, y.v);
}

// Conversions of 16-bit elements that lie in the low half of 32-bit lanes.
HWY_INLINE Vec bf16_to_value(Vec32 bits) {
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

HWY_INLINE Vec32 value_to_bf16(Vec value) {
  const Vec32 bits = hn::BitCast(d32, value), high = hn::ShiftRight<16>(bits);
  const Vec32 odd = hn::And(high, hn::Set(d32, 1u));
  const Vec32 rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fffu))));
  const auto ordered = hn::RebindMask(d32, hn::Eq(value, value));
  return hn::IfThenElse(ordered, rounded, hn::Or(high, hn::Set(d32, 0x40u)));
}

// The exponent moves by a multiplication, which is exact for subnormals too.
HWY_INLINE Vec f16_to_value(Vec32 bits) {
  const Vec32 magnitude = hn::And(bits, hn::Set(d32, 0x7fffu));
  const Vec32 sign = hn::ShiftLeft<16>(hn::AndNot(hn::Set(d32, 0x7fffu), bits));
  const Vec scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 0x1p112f));
  const auto special = hn::RebindMask(d, hn::Gt(magnitude, hn::Set(d32, 0x7bffu)));
  const Vec whole =
      hn::IfThenElse(special, hn::Or(scaled, hn::BitCast(d, hn::Set(d32, 0x7f800000u))), scaled);
  return hn::Or(whole, hn::BitCast(d, sign));
}

HWY_INLINE Vec32 value_to_f16(Vec value) {
  const Vec32 bits = hn::BitCast(d32, value), sign = hn::ShiftRight<31>(bits);
  const Vec32 magnitude = hn::And(bits, hn::Set(d32, 0x7fffffffu));
  const Vec32 rebiased = hn::Sub(magnitude, hn::Set(d32, 112u << 23));
  const Vec32 odd = hn::And(hn::ShiftRight<13>(rebiased), hn::Set(d32, 1u));
  const Vec32 normal = hn::ShiftRight<13>(hn::Add(rebiased, hn::Add(odd, hn::Set(d32, 0xfffu))));
  // Below 2^-14 an addition in f32 rounds to multiples of 2^-24.
  const Vec32 tiny = hn::Sub(hn::BitCast(d32, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f))),
                             hn::Set(d32, 0x3f000000u));
  Vec32 half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d32, 0x38800000u)), tiny, normal);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, 0x477fefffu)), hn::Set(d32, 0x7c00u), half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, 0x7f800000u)), hn::Set(d32, 0x7e00u), half);
  return hn::Or(half, hn::ShiftLeft<15>(sign));
}

// Loads kLanes consecutive elements.
HWY_INLINE Value load_lanes(DType dtype, const u8* at) {
  if (dtype == DType::kBf16)
    return bf16_to_value(hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(at))));
  if (dtype == DType::kF16)
    return f16_to_value(hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(at))));
  return hn::LoadU(d, reinterpret_cast<const float*>(at));
}

HWY_INLINE void store_halves(Vec32 bits, u8* at) {
  const auto halves = hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<D>(), bits));
  hn::StoreU(halves, d16, reinterpret_cast<uint16_t*>(at));
}

HWY_INLINE void store_lanes(DType dtype, u8* at, Value value) {
  if (dtype == DType::kBf16)
    store_halves(value_to_bf16(value.v), at);
  else if (dtype == DType::kF16)
    store_halves(value_to_f16(value.v), at);
  else
    hn::StoreU(value.v, d, reinterpret_cast<float*>(at));
}

// Rounds a value as storing it as `dtype` does.
HWY_INLINE Value round_to(DType dtype, Value value) {
  if (dtype == DType::kBf16) return bf16_to_value(value_to_bf16(value.v));
  if (dtype == DType::kF16) return f16_to_value(value_to_f16(value.v));
  return value;
}

struct ValuePair {
  Value first, second;
};

// Loads 2 * kLanes consecutive elements: even ones into `first`, odd ones into `second`.
HWY_INLINE ValuePair load_lane_pairs(DType dtype, const u8* at) {
  if (dtype == DType::kF32) {
    Vec first, second;
    hn::LoadInterleaved2(d, reinterpret_cast<const float*>(at), first, second);
    return {first, second};
  }
  const Vec32 both = hn::LoadU(d32, reinterpret_cast<const u32*>(at));
  if (dtype == DType::kBf16)
    return {bf16_to_value(both), hn::BitCast(d, hn::And(both, hn::Set(d32, 0xffff0000u)))};
  return {f16_to_value(hn::And(both, hn::Set(d32, 0xffffu))), f16_to_value(hn::ShiftRight<16>(both))};
}

HWY_INLINE void store_lane_pairs(DType dtype, u8* at, ValuePair pair) {
  if (dtype == DType::kF32)
    return hn::StoreInterleaved2(pair.first.v, pair.second.v, d, reinterpret_cast<float*>(at));
  const bool bf16 = dtype == DType::kBf16;
  const Vec32 low = bf16 ? value_to_bf16(pair.first.v) : value_to_f16(pair.first.v);
  const Vec32 high = bf16 ? value_to_bf16(pair.second.v) : value_to_f16(pair.second.v);
  hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), d32, reinterpret_cast<u32*>(at));
}
