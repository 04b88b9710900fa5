// Panels times one or a few rows, from the ring. A team of warps takes a panel: each of them chunks of 512 bytes, summed
// over its lanes; the warps' sums meet in shared memory. Teams take panels in turn, so that a warp has enough of a panel
// to be worth its sums. The order of a sum depends on K and the number of warps alone.
#pragma once

#include "heddle/backend/cuda/device/consumers.cuh"
#include "heddle/backend/cuda/device/matvec_group.cuh"
#include "heddle/backend/cuda/device/matvec_mma.cuh"
#include "heddle/backend/cuda/device/ring.cuh"
#include "heddle/backend/cuda/device/trace.cuh"
#include "heddle/backend/cuda/device/view.cuh"

namespace heddle::device {

// Sums over the lanes that agree in bit 0: of one row of a panel. kFrom: the lowest bit that is not summed yet.
template <i32 kFrom>
inline float sum_of_row(float value) {
#pragma unroll
  for (i32 step = kFrom; step < 32; step *= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// The same in all lanes of a warp, and known to be so: addresses of barriers then need no loop over the lanes.
inline u32 uniform(u32 value) {
  return __shfl_sync(~0u, value, 0);
}
inline RingCursor uniform(const RingCursor& ring) {
  RingCursor same = ring;
  same.slot = uniform(ring.slot), same.phase = uniform(ring.phase);
  return same;
}

// Chunks of a panel that one warp takes. So few that each team has a part of every slot but a product's last: one that
// left a slot out could take what lay there a turn before for its own.
constexpr i32 kTeamChunks = 16 / kWarps;
static_assert(2 * kTeamChunks * kWarps * kChunkBytes <= kRingSlotBytes);

// Warps that take a panel together: as many as its chunks are enough for.
struct Team {
  i32 shift = 0;  // of the number of warps

  explicit Team(i64 panel_bytes) {
    while ((1 << shift) < kWarps && (kTeamChunks * kChunkBytes << shift) < panel_bytes) ++shift;
  }
  i32 warps() const { return 1 << shift; }
  i32 count() const { return kWarps >> shift; }  // teams
  // This warp's team, and its place there.
  i32 index() const { return i32(arch::thread() / 32) >> shift; }
  i32 member() const { return i32(arch::thread() / 32) & (warps() - 1); }
};

// Gives a slot back after `units` units of panels, of which the first belongs to team `first`: as many arrivals as if
// each warp had come.
inline void release_slot(const RingCursor& ring, const Team& team, i32 units, i32 first) {
  const i32 comers = min(team.count(), units) << team.shift, each = kWarps / comers;
  const bool takes_rest = team.index() == first && team.member() == 0;
  const i32 arrivals = each + (takes_rest ? kWarps - each * comers : 0);
  __syncwarp();
  if (i32(arch::thread() % 32) < arrivals) arch::arrive(ring.empty());
}

// What one lane has of x for products in f32: 16 bytes of weights, rows alternating, stand against kPer values of each
// chunk. Otherwise as MmaPart.
template <DType kType, i32 kChunks>
class RowPart {
 public:
  RowPart(const Matrix& x, i64 panel_bytes, i32 first, i32 step) {
    const i32 lane = i32(arch::thread() % 32);
#pragma unroll
    for (i32 c = 0; c < kChunks; ++c) {
      const i32 chunk = first + c * step;
      inside_[c] = chunk * kChunkBytes + place() < panel_bytes;
#pragma unroll
      for (i32 i = 0; i < kPer; ++i) {
        const i32 k = (chunk * 16 + lane / 2) * kPer + i;
        values_[c][i] = k < x.cols ? reinterpret_cast<const float*>(x.data)[k] : 0.0f;
      }
    }
  }
  static i32 place() { return i32(arch::thread() % 32) * 16; }
  template <i32 kFirst, i32 kCount>
  float dot(const u8* bytes, i32 stride) const {
    float a = 0, b = 0;
#pragma unroll
    for (i32 c = 0; c < kCount; ++c) {
      if (!inside_[kFirst + c]) continue;
      const Packed<kType> weight(*reinterpret_cast<const uint4*>(bytes + c * stride));
#pragma unroll
      for (i32 i = 0; i < kPer; i += 2) {
        a = fma(weight.value[i], values_[kFirst + c][i], a);
        b = fma(weight.value[i + 1], values_[kFirst + c][i + 1], b);
      }
    }
    return a + b;
  }
  static float join(float first, float second) {
    const bool takes_second = arch::thread() & 2;
    const float sum =
        __shfl_xor_sync(~0u, takes_second ? first : second, 2) + (takes_second ? second : first);
    return sum_of_row<4>(sum);
  }
  static i32 column() { return arch::thread() % 32 < 4 ? i32(arch::thread() % 32) : kNoColumn; }

 private:
  static constexpr i32 kPer = Packed<kType>::kCount;
  float values_[kChunks][kPer];
  bool inside_[kChunks];  // the chunk's bytes of this lane are in the panel
};

// How products with weights of a type are made, and how many slots a panel may take for that.
template <DType kType>
struct Parts {
  template <i32 kChunks>
  using Of = RowPart<kType, kChunks>;
  static constexpr i32 kSlots = 2;
};
template <>
struct Parts<DType::kBf16> {
  template <i32 kChunks>
  using Of = MmaPart<kChunks>;
  static constexpr i32 kSlots = kMmaSlots;
};

// out[0, c] = sum_k x[k] w[c, k] for the columns of a fragment, panels of half a slot at most: units of two panels, whose
// four sums go through the lanes together. x: f32, or arranged. partial: [cols][kWarps] floats, of which a team fills the
// first. Loops are not unrolled: code that is passed through once a tile costs more to fetch than it saves.
template <DType kType>
inline void multiply_row(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial,
                         const Team& team) {
  using Part = typename Parts<kType>::template Of<kTeamChunks>;
  const i32 panels = (cols + 1) / 2, stride = kChunkBytes << team.shift, column = Part::column();
  const Items items(w);
  const i32 bytes = i32(items.panel_bytes), in_slot = items.panels / 2, units = (panels + 1) / 2;
  const Part part(x, bytes, team.member(), team.warps());
  i32 begin = 0;  // the first unit of the slot that the ring stands at
#pragma unroll 1
  for (i32 unit = team.index(); unit < units;) {
    for (; begin + in_slot <= unit; begin += in_slot) ring.advance();
    wait_for_panels(ring);
    const u8* slot = ring.bytes() + team.member() * kChunkBytes + Part::place();
    const i32 end = min(begin + in_slot, units);
#pragma unroll 1
    for (; unit < end; unit += team.count()) {
      const u8* at = slot + (unit - begin) * 2 * bytes;
      const float first = part.template dot<0, kTeamChunks>(at, stride);
      const float second =
          2 * unit + 1 < panels ? part.template dot<0, kTeamChunks>(at + bytes, stride) : 0.0f;
      const float sum = Part::join(first, second);
      if (column < 4 && 4 * unit + column < cols) partial[(4 * unit + column) * kWarps + team.member()] = sum;
    }
    release_slot(ring, team, end - begin, begin & (team.count() - 1));
  }
  for (; begin < units; begin += in_slot) ring.advance();
}

template <i32 kFirst, i32 kChunks, i32 kInSlot, class Part>
inline void each_slot(RingCursor& ring, const Part& part, i32 parts, i32 offset, float& sum) {
  if (kFirst / kInSlot < parts) {
    wait_for_panels(ring);
    sum += part.template dot<kFirst, kInSlot>(ring.bytes() + offset, kWarps * kChunkBytes);
    release_slot(ring);
  }
  if constexpr (kFirst + kInSlot < kChunks)
    each_slot<kFirst + kInSlot, kChunks, kInSlot>(ring, part, parts, offset, sum);
}

// The same where a panel takes a slot or several, and all warps.
template <DType kType>
inline void multiply_long_row(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial) {
  constexpr i32 kInSlot = i32(kRingSlotBytes) / (kWarps * kChunkBytes);  // chunks of a warp
  constexpr i32 kChunks = Parts<kType>::kSlots * kInSlot;
  using Part = typename Parts<kType>::template Of<kChunks>;
  const i32 warp = i32(arch::thread() / 32), panels = (cols + 1) / 2, column = Part::column();
  const Items items(w);
  const Part part(x, items.panel_bytes, warp, kWarps);
#pragma unroll 1
  for (i32 panel = 0; panel < panels; ++panel) {
    float sum = 0;
    each_slot<0, kChunks, kInSlot>(ring, part, items.parts, warp * kChunkBytes + Part::place(), sum);
    sum = Part::join(sum, 0.0f);
    if (column < 2 && 2 * panel + column < cols) partial[(2 * panel + column) * kWarps + warp] = sum;
  }
}

// kCount floats from elements that are f32 or of the weight's type.
template <DType kType, i32 kCount>
inline void load_values(const u8* at, float (&values)[kCount]) {
  constexpr i32 kPer = Packed<kType>::kCount;
#pragma unroll
  for (i32 i = 0; i < kCount; i += kPer) {
    const Packed<kType> part(*reinterpret_cast<const uint4*>(at + i * size_of(kType)));
#pragma unroll
    for (i32 k = 0; k < kPer; ++k) values[i + k] = part.value[k];
  }
}

// The same for up to kStreamRows rows of type kRow, padded with zeros to whole 16-byte words of the weight.
// partial: [kStreamRows][cols][kWarps].
template <DType kType, DType kRow>
inline void multiply_rows(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial) {
  constexpr i32 kPer = Packed<kType>::kCount;
  const i32 warp = i32(arch::thread() / 32), lane = i32(arch::thread() % 32), panels = (cols + 1) / 2;
  const Items items(w);
  const i32 bytes = i32(items.panel_bytes);
  i32 inside = 0;  // panels taken of the item
#pragma unroll 1
  for (i32 panel = 0; panel < panels; ++panel) {
    float sum[kStreamRows] = {};
#pragma unroll 1
    for (i32 begin = 0; begin < bytes; begin += i32(kRingSlotBytes)) {
      if (inside == 0) wait_for_panels(ring);
      const u8* slot = ring.bytes() + inside * bytes - begin;
      const i32 end = min(begin + i32(kRingSlotBytes), bytes);
#pragma unroll 1
      for (i32 at = begin + warp * kChunkBytes + lane * 16; at < end; at += kWarps * kChunkBytes) {
        const Packed<kType> values(*reinterpret_cast<const uint4*>(slot + at));
        const i32 k = (at / kChunkBytes * 16 + lane / 2) * kPer;
#pragma unroll
        for (i32 m = 0; m < kStreamRows; ++m) {
          if (m >= x.rows) break;
          float row[kPer];
          load_values<kRow>(x.data + m * x.stride + k * size_of(kRow), row);
#pragma unroll
          for (i32 i = 0; i < kPer; ++i) sum[m] = fma(values.value[i], row[i], sum[m]);
        }
      }
      if (items.parts > 1 || ++inside == items.panels || panel == panels - 1) {
        release_slot(ring);
        inside = 0;
      }
    }
#pragma unroll
    for (i32 m = 0; m < kStreamRows; ++m) {
      if (m >= x.rows) break;
      const float mine = sum_of_row<2>(sum[m]);
      if (lane < 2 && 2 * panel + lane < cols) partial[(m * cols + 2 * panel + lane) * kWarps + warp] = mine;
    }
  }
}

// One row, in registers where it is not too long. Returns how many warps have sums of a column.
template <DType kType>
inline i32 multiply_one(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial) {
  if constexpr (kType == DType::kBf16) {
    if (by_groups(w)) return multiply_groups(ring, x, w, cols, partial), kWarps;
  } else if (2 * w.panel_bytes() <= kRingSlotBytes) {
    const Team team(w.panel_bytes());
    return multiply_row<kType>(ring, x, w, cols, partial, team), team.warps();
  }
  if (w.panel_bytes() <= Parts<kType>::kSlots * kRingSlotBytes)
    multiply_long_row<kType>(ring, x, w, cols, partial);
  else
    multiply_rows<kType, DType::kF32>(ring, x, w, cols, partial);
  return kWarps;
}

// The sum of the first `count` of kWarps floats, a power of two.
inline float sum_of_warps(const float* row, i32 count) {
  if (count < 4) return count == 1 ? row[0] : row[0] + row[1];
  float sum = 0;
  for (i32 j = 0; j < count; j += 4) {
    const float4 part = *reinterpret_cast<const float4*>(row + j);
    sum += (part.x + part.y) + (part.z + part.w);
  }
  return sum;
}

// fragment = x w^T with panels from the ring, `columns` at a time, so that the warps' sums fit on chip. partial: two
// times [x.rows][columns][kWarps], used in turn.
template <DType kType>
__forceinline__ void multiply_from_ring(RingCursor& at, const Matrix& fragment, const Matrix& x,
                                        const Weight& w, float* partial, i32 columns) {
  RingCursor ring = uniform(at);
  for (i32 from = 0, turn = 0; from < fragment.cols; from += columns, turn ^= 1) {
    const i32 cols = fragment.cols - from < columns ? fragment.cols - from : columns;
    float* sums = partial + turn * x.rows * columns * kWarps;
    i32 warps = kWarps;
    if (!kFewRows || (x.rows == 1 && x.dtype == DType::kF32))
      warps = multiply_one<kType>(ring, x, w, cols, sums);
    else
      multiply_rows<kType, kType>(ring, x, w, cols, sums);
    sync_consumers();
    const i32 rows = kFewRows ? x.rows : 1;
    for (i32 m = 0; m < rows; ++m, sums += cols * kWarps)
      for (i32 i = i32(arch::thread()); i < cols; i += kConsumers)
        fragment.row(m).store(Index{from + i}, sum_of_warps(sums + i * kWarps, warps));
  }
  at = ring;
}

}  // namespace heddle::device
