// Elements of matrices as floats, once for each target of Highway: a group of lanes at a time, because a look-up in a
// table of values takes as long for a row of codes as its product.
#include <cstring>

#include "heddle/backend/cpu/arch/matrix.h"
#include "heddle/backend/cpu/simd_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/backend/cpu/simd_codes.cpp"
#include "heddle/backend/cpu/simd_targets.h"
// simd_targets.h comes first.
#include <hwy/ops/set_macros-inl.h>

HWY_BEFORE_NAMESPACE();
namespace heddle {
namespace HWY_NAMESPACE {

using I32 = hn::RebindToSigned<D>;
using I8 = hn::Rebind<int8_t, D>;
using U8 = hn::Rebind<uint8_t, D>;

// The bits of an fp8 become those of an f32 whose exponent is too small, and a multiplication makes it right, which is
// exact for subnormals too. Magnitudes above `kLast` are no numbers.
template <i32 kMantissa, u32 kLast>
HWY_INLINE Vec from_f8(const u8* at, float factor) {
  constexpr bool kHasInfinity = kMantissa == 2;
  const Vec32 code = hn::PromoteTo(d32, hn::LoadU(U8(), at)), magnitude = hn::And(code, hn::Set(d32, 0x7fu));
  const Vec32 sign = hn::ShiftLeft<24>(hn::AndNot(hn::Set(d32, 0x7fu), code));
  const Vec finite = hn::Mul(hn::BitCast(d, hn::ShiftLeft<23 - kMantissa>(magnitude)), hn::Set(d, factor));
  Vec32 bits = hn::BitCast(d32, finite);
  if constexpr (kHasInfinity)
    bits = hn::IfThenElse(hn::Eq(magnitude, hn::Set(d32, kLast)), hn::Set(d32, 0x7f800000u), bits);
  bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d32, kLast)), hn::Set(d32, 0x7fc00000u), bits);
  return hn::BitCast(d, hn::Or(bits, sign));
}

// Two codes of a byte, the low one first.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Vec from_i4(const u8* at) {
  return hn::Set(d, float((*at & 0xf) ^ 8) - 8);
}
#else
HWY_INLINE Vec from_i4(const u8* at) {
  const hn::Half<D16> pairs;
  const auto both = hn::PromoteTo(pairs, hn::LoadU(hn::Rebind<uint8_t, hn::Half<D16>>(), at));
  const auto apart = hn::Or(hn::And(both, hn::Set(pairs, 0xf)), hn::ShiftLeft<8>(hn::ShiftRight<4>(both)));
  const auto eight = hn::Set(I8(), 8);
  const auto code = hn::Sub(hn::Xor(hn::BitCast(I8(), apart), eight), eight);
  return hn::ConvertTo(d, hn::PromoteTo(I32(), code));
}
#endif

template <DType kType>
HWY_INLINE Vec load_codes(const u8* at) {
  if constexpr (kType == DType::kI4) return from_i4(at);
  if constexpr (kType == DType::kI8)
    return hn::ConvertTo(d, hn::PromoteTo(I32(), hn::LoadU(I8(), reinterpret_cast<const int8_t*>(at))));
  if constexpr (kType == DType::kF8E4M3) return from_f8<3, 0x7e>(at, 0x1p120f);
  if constexpr (kType == DType::kF8E5M2) return from_f8<2, 0x7c>(at, 0x1p112f);
  return load_lanes(kType, at).v;
}

// The scales or zeros of elements from i on, of which `values` has `step` for each: none or one.
HWY_INLINE Vec load_factor(const float* values, i32 step, i32 i) {
  return step == 0 ? hn::Set(d, *values) : hn::LoadU(d, values + i);
}

// Stores a group of lanes from i on.
template <DType kType>
HWY_INLINE void decode_group(const CodeRun& run, const u8* at, i32 i) {
  Vec value = load_codes<kType>(at);
  if (run.scales) {
    if (run.zeros) value = hn::Sub(value, load_factor(run.zeros, run.each_zero, i));
    value = hn::Mul(value, load_factor(run.scales, run.each_scale, i));
  }
  hn::StoreU(value, d, run.to + i);
}

// Fewer elements than lanes: copies them to where a whole group may be read and written.
template <DType kType>
void decode_few(const CodeRun& run, const u8* at, i32 i, i32 count) {
  alignas(64) u8 codes[4 * kLanes] = {};
  alignas(64) float scales[kLanes] = {}, zeros[kLanes] = {}, values[kLanes];
  std::memcpy(codes, at, size_t(bytes_of(kType, count)));
  CodeRun few = run;
  few.to = values;
  const auto copy = [&](const float*& from, bool each, float* to) {
    if (!from) return;
    std::memcpy(to, from + (each ? i : 0), size_t(each ? count : 1) * sizeof(float));
    from = to;
  };
  copy(few.scales, run.each_scale, scales);
  copy(few.zeros, run.each_zero, zeros);
  decode_group<kType>(few, codes, 0);
  std::memcpy(run.to + i, values, size_t(count) * sizeof(float));
}

template <DType kType>
void decode_all(const CodeRun& run) {
  i32 i = 0;
  const auto at = [&] { return run.data + bytes_of(kType, run.first + i); };
  if constexpr (kType == DType::kI4) {
    // The high half of a byte, where no whole byte follows or the low half is another run's.
    const auto high = [&] {
      const u8 code = u8(*(run.data + (run.first + i) / 2) >> 4);
      decode_few<kType>(run, &code, i, 1);
      ++i;
    };
    if (run.first % 2 != 0) high();
    if constexpr (kLanes == 1) {
      while (i < run.count) {
        decode_few<kType>(run, at(), i, 1);
        if (++i < run.count) high();
      }
      return;
    }
  }
  for (; i + kLanes <= run.count; i += kLanes) decode_group<kType>(run, at(), i);
  if (i < run.count) decode_few<kType>(run, at(), i, run.count - i);
}

void decode(const CodeRun& run) {
  switch (run.dtype) {
    case DType::kI4:
      return decode_all<DType::kI4>(run);
    case DType::kI8:
      return decode_all<DType::kI8>(run);
    case DType::kF8E4M3:
      return decode_all<DType::kF8E4M3>(run);
    case DType::kF8E5M2:
      return decode_all<DType::kF8E5M2>(run);
    case DType::kF16:
      return decode_all<DType::kF16>(run);
    case DType::kBf16:
      return decode_all<DType::kBf16>(run);
    default:
      return decode_all<DType::kF32>(run);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heddle
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle {

HWY_EXPORT(decode);

CodeDecoder code_decoder(long long target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return HWY_DISPATCH_TABLE(decode)[chosen.GetIndex()];
}

}  // namespace heddle
#endif
