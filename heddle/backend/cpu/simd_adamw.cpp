// The pass of AdamW, once for each target of Highway. It goes by blocks of 256 elements.
#include <algorithm>
#include <cstring>
#include <vector>

#include "heddle/backend/cpu/adamw.h"
#include "heddle/backend/cpu/call_pool.h"
#include "heddle/backend/cpu/simd_blocks.h"
#include "heddle/base/dynamic_code.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/backend/cpu/simd_adamw.cpp"
#include "heddle/backend/cpu/simd_targets.h"
// simd_targets.h comes first.
#include <hwy/cache_control.h>
#include <hwy/ops/set_macros-inl.h>

HWY_BEFORE_NAMESPACE();
namespace heddle {
namespace HWY_NAMESPACE {
namespace adamw_pass {

#include "heddle/tile/adamw_factors.cuh"

constexpr i64 kBlock = kDynamicBlock;
constexpr i64 kAhead = 1024;  // bytes between what is read and what is prefetched

using DI32 = hn::RebindToSigned<D>;
using DI16 = hn::Rebind<int16_t, D>;
using DU8 = hn::Rebind<uint8_t, D>;

template <DType kType>
HWY_INLINE Value load_param(const u8* param, const u8* residual, i64 i) {
  if constexpr (kType == DType::kF32) return hn::LoadU(d, reinterpret_cast<const float*>(param) + i);
  const Vec32 upper = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(param) + i));
  const auto rest = hn::PromoteTo(DI32(), hn::LoadU(DI16(), reinterpret_cast<const int16_t*>(residual) + i));
  return hn::BitCast(d, hn::Add(hn::ShiftLeft<16>(upper), hn::BitCast(d32, rest)));
}

// The nearest bf16, away from 0 of two that are as near, so that the rest fits an i16.
template <DType kType>
HWY_INLINE void store_param(u8* param, u8* residual, i64 i, Value value) {
  if constexpr (kType == DType::kF32) return hn::StoreU(value.v, d, reinterpret_cast<float*>(param) + i);
  const auto is_number = hn::RebindMask(d32, hn::Eq(value.v, value.v));
  const Vec32 bits = hn::IfThenElse(is_number, hn::BitCast(d32, value.v), hn::Set(d32, 0x7fc00000u));
  const Vec32 upper = hn::ShiftRight<16>(hn::Add(bits, hn::Set(d32, 0x8000u)));
  const Vec32 rest = hn::Sub(bits, hn::ShiftLeft<16>(upper));
  store_halves(upper, param + 2 * i);
  hn::StoreU(hn::DemoteTo(DI16(), hn::BitCast(DI32(), rest)), DI16(),
             reinterpret_cast<int16_t*>(residual) + i);
}

// 32 random bits of each element (the finalizer of MurmurHash3).
HWY_INLINE Vec32 random_bits(u32 seed, i64 first) {
  Vec32 h = hn::Mul(hn::Iota(d32, u32(first)), hn::Set(d32, 0x9e3779b1u));
  h = hn::Add(h, hn::Set(d32, seed));
  h = hn::Mul(hn::Xor(h, hn::ShiftRight<16>(h)), hn::Set(d32, 0x85ebca6bu));
  h = hn::Mul(hn::Xor(h, hn::ShiftRight<13>(h)), hn::Set(d32, 0xc2b2ae35u));
  return hn::Xor(h, hn::ShiftRight<16>(h));
}

// bf16 by 16 random bits: up where they and the lower half of the value make a carry.
HWY_INLINE void store_by_chance(u8* to, i64 i, Value value, Vec32 chance) {
  const auto is_number = hn::RebindMask(d32, hn::Eq(value.v, value.v));
  const Vec32 moved = hn::ShiftRight<16>(hn::Add(hn::BitCast(d32, value.v), chance));
  store_halves(hn::IfThenElse(is_number, moved, hn::Set(d32, 0x7fc0u)), to + 2 * i);
}

void decode(const DynamicCode& code, const u8* codes, float scale, float* values) {
  for (i64 i = 0; i < kBlock; i += kLanes) {
    const auto at = hn::PromoteTo(DI32(), hn::LoadU(DU8(), codes + i));
    hn::StoreU(hn::Mul(hn::GatherIndex(d, code.values.data(), at), hn::Set(d, scale)), d, values + i);
  }
}

// DynamicCode::code_of of each lane.
HWY_INLINE hn::Vec<DU8> codes_of(const DynamicCode& code, Vec share) {
  const auto upper = hn::BitCast(DI32(), hn::ShiftRight<16>(hn::BitCast(d32, share)));
  const auto* bytes = reinterpret_cast<const int32_t*>(code.first.data());
  const auto least = hn::And(hn::GatherOffset(DI32(), bytes, upper), hn::Set(DI32(), 255));
  const auto is_next = hn::RebindMask(DI32(), hn::Gt(share, hn::GatherIndex(d, code.middles.data(), least)));
  return hn::DemoteTo(DU8(), hn::Add(least, hn::IfThenElseZero(is_next, hn::Set(DI32(), 1))));
}

// Writes the codes of a block; returns its scale.
float encode(const DynamicCode& code, const float* values, u8* codes) {
  Value largest = hn::Zero(d);
  for (i64 i = 0; i < kBlock; i += kLanes) largest = max(largest, abs(Value(hn::LoadU(d, values + i))));
  alignas(64) float lanes[kLanes];
  hn::StoreU(largest.v, d, lanes);
  float scale = 0;
  for (const float lane : lanes) scale = max(scale, lane);
  const Value by = scale == 0 ? 1.0f : scale;
  for (i64 i = 0; i < kBlock; i += kLanes)
    hn::StoreU(codes_of(code, (Value(hn::LoadU(d, values + i)) / by).v), DU8(), codes + i);
  return scale;
}

template <DType kParam, DType kGrad, AdamwState kState>
void run_block(const AdamwTensor& t, const Factors& factors, i64 begin) {
  constexpr i64 kParamBytes = kParam == DType::kF32 ? 4 : 2, kGradBytes = kGrad == DType::kF32 ? 4 : 2;
  constexpr i64 kStateBytes = kState == AdamwState::kF32 ? 4 : kState == AdamwState::kBf16 ? 2 : 1;
  alignas(64) float means[kBlock], squares[kBlock];
  const i64 block = begin / kBlock;
  if constexpr (kState == AdamwState::kDynamic) {
    decode(DynamicCode::of(true), t.m + begin, t.m_scale[block], means);
    decode(DynamicCode::of(false), t.v + begin, t.v_scale[block], squares);
  }
  for (i64 at = 0; at < kBlock; at += kLanes) {
    const i64 i = begin + at;
    hwy::Prefetch(t.param + i * kParamBytes + kAhead);
    hwy::Prefetch(t.grad + i * kGradBytes + kAhead);
    if constexpr (kParam == DType::kBf16) hwy::Prefetch(t.residual + i * 2 + kAhead);
    Value m, v;
    if constexpr (kState == AdamwState::kDynamic) {
      m = hn::LoadU(d, means + at), v = hn::LoadU(d, squares + at);
    } else {
      hwy::Prefetch(t.m + i * kStateBytes + kAhead);
      hwy::Prefetch(t.v + i * kStateBytes + kAhead);
      constexpr DType kStored = kState == AdamwState::kF32 ? DType::kF32 : DType::kBf16;
      m = load_lanes(kStored, t.m + i * kStateBytes), v = load_lanes(kStored, t.v + i * kStateBytes);
    }
    const Value g = load_lanes(kGrad, t.grad + i * kGradBytes) * Value(factors.grad_scale);
    m = factors.mean(m, g), v = factors.square(v, g);
    const Value p = factors.param(load_param<kParam>(t.param, t.residual, i), m, v);
    store_param<kParam>(t.param, t.residual, i, p);
    if constexpr (kState == AdamwState::kBf16) {
      const Vec32 chance = random_bits(t.seed, t.first + i);
      store_by_chance(t.m, i, m, hn::And(chance, hn::Set(d32, 0xffffu)));
      store_by_chance(t.v, i, v, hn::ShiftRight<16>(chance));
    } else {
      const bool is_code = kState == AdamwState::kDynamic;
      hn::StoreU(m.v, d, is_code ? means + at : reinterpret_cast<float*>(t.m) + i);
      hn::StoreU(v.v, d, is_code ? squares + at : reinterpret_cast<float*>(t.v) + i);
    }
  }
  if constexpr (kState == AdamwState::kDynamic) {
    t.m_scale[block] = encode(DynamicCode::of(true), means, t.m + begin);
    t.v_scale[block] = encode(DynamicCode::of(false), squares, t.v + begin);
  }
}

// The last elements, in copies that have room for a block.
template <DType kParam, DType kGrad, AdamwState kState>
void run_rest(const AdamwTensor& t, const Factors& factors, i64 begin, i64 count) {
  constexpr i64 kParamBytes = kParam == DType::kF32 ? 4 : 2, kGradBytes = kGrad == DType::kF32 ? 4 : 2;
  constexpr i64 kStateBytes = kState == AdamwState::kF32 ? 4 : kState == AdamwState::kBf16 ? 2 : 1;
  alignas(64) u8 room[5][kBlock * 4 + kAhead] = {};
  struct Part {
    u8* at;
    i64 bytes;
  };
  const Part parts[] = {{t.param, kParamBytes},
                        {const_cast<u8*>(t.grad), kGradBytes},
                        {t.m, kStateBytes},
                        {t.v, kStateBytes},
                        {t.residual, t.residual ? 2 : 0}};
  for (size_t p = 0; p < 5; ++p)
    if (parts[p].bytes)
      std::memcpy(room[p], parts[p].at + begin * parts[p].bytes, size_t(count * parts[p].bytes));
  AdamwTensor copy = t;
  copy.param = room[0], copy.grad = room[1], copy.m = room[2], copy.v = room[3], copy.residual = room[4];
  copy.first += begin;
  if (t.m_scale) copy.m_scale += begin / kBlock, copy.v_scale += begin / kBlock;
  // The code of 0: what is not there has no part in the scale. Codes of v have 0 for it, as all of the room.
  if constexpr (kState == AdamwState::kDynamic)
    std::memset(room[2] + count, DynamicCode::of(true).code_of(0), size_t(kBlock - count));
  run_block<kParam, kGrad, kState>(copy, factors, 0);
  for (size_t p = 0; p < 5; ++p)
    if (p != 1 && parts[p].bytes)
      std::memcpy(parts[p].at + begin * parts[p].bytes, room[p], size_t(count * parts[p].bytes));
}

template <DType kParam, DType kGrad, AdamwState kState>
void run(const AdamwTensor& t, const AdamwStep& step, i64 begin, i64 end) {
  const Factors factors(step);
  for (; begin + kBlock <= end; begin += kBlock) run_block<kParam, kGrad, kState>(t, factors, begin);
  if (begin < end) run_rest<kParam, kGrad, kState>(t, factors, begin, end - begin);
}

template <DType kParam, DType kGrad>
void run_with_grad(const AdamwTensor& t, const AdamwStep& step, i64 begin, i64 end) {
  switch (step.state) {
    case AdamwState::kF32:
      return run<kParam, kGrad, AdamwState::kF32>(t, step, begin, end);
    case AdamwState::kBf16:
      return run<kParam, kGrad, AdamwState::kBf16>(t, step, begin, end);
    case AdamwState::kDynamic:
      return run<kParam, kGrad, AdamwState::kDynamic>(t, step, begin, end);
  }
}

template <DType kParam>
void run_with_param(const AdamwTensor& t, const AdamwStep& step, i64 begin, i64 end) {
  if (step.grad == DType::kF32) return run_with_grad<kParam, DType::kF32>(t, step, begin, end);
  run_with_grad<kParam, DType::kBf16>(t, step, begin, end);
}

}  // namespace adamw_pass

void run_adamw(const AdamwTensor& t, const AdamwStep& step, i64 begin, i64 end) {
  if (step.param == DType::kF32) return adamw_pass::run_with_param<DType::kF32>(t, step, begin, end);
  adamw_pass::run_with_param<DType::kBf16>(t, step, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace heddle
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle {

HWY_EXPORT(run_adamw);

void adamw_step(std::span<const AdamwTensor> tensors, const AdamwStep& step, int threads,
                const SimdLevel& level) {
  constexpr i64 kPiece = 128 * kDynamicBlock;  // elements of one thread at once
  struct Piece {
    const AdamwTensor* tensor;
    i64 begin;
  };
  std::vector<Piece> pieces;
  for (const AdamwTensor& tensor : tensors)
    for (i64 begin = 0; begin < tensor.count; begin += kPiece) pieces.push_back({&tensor, begin});
  hwy::ChosenTarget chosen;
  chosen.Update(level.target);
  const auto kernel = HWY_DISPATCH_TABLE(run_adamw)[chosen.GetIndex()];
  share_work(threads, i64(pieces.size()), [&](i64 i) {
    const Piece& piece = pieces[size_t(i)];
    kernel(*piece.tensor, step, piece.begin, std::min(piece.tensor->count, piece.begin + kPiece));
  });
}

}  // namespace heddle
#endif
