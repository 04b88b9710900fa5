// Panels times one or a few rows, from the ring: every warp takes chunks of 512 bytes of every panel, sums over its
// lanes, and the warps' sums meet in shared memory. The order of a sum depends on K and the number of warps alone.
#pragma once

#include "heddle/backend/cuda/device/consumers.cuh"
#include "heddle/backend/cuda/device/ring.cuh"
#include "heddle/backend/cuda/device/trace.cuh"
#include "heddle/backend/cuda/device/view.cuh"

namespace heddle::device {

constexpr i32 kChunkBytes = 512;  // a warp's load of a panel: 16 bytes a lane, rows alternating

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

inline void release_slot(RingCursor& ring) {
  __syncwarp();
  if (arch::thread() % 32 == 0) arch::arrive(ring.empty());
  ring.advance();
}

// What one lane has of x: 16 bytes of weights stand against kPer values of each chunk.
template <DType kType, i32 kChunks>
struct RowPart {
  static constexpr i32 kPer = Packed<kType>::kCount;
  float values[kChunks][kPer];
  bool inside[kChunks];  // the chunk's bytes of this lane are in the panel

  RowPart(const Matrix& x, i64 panel_bytes) {
    const i32 warp = i32(arch::thread() / 32), lane = i32(arch::thread() % 32);
#pragma unroll
    for (i32 c = 0; c < kChunks; ++c) {
      inside[c] = (warp + c * kWarps) * kChunkBytes + lane * 16 < panel_bytes;
#pragma unroll
      for (i32 i = 0; i < kPer; ++i) {
        const i32 k = ((warp + c * kWarps) * 16 + lane / 2) * kPer + i;
        values[c][i] = k < x.cols ? reinterpret_cast<const float*>(x.data)[k] : 0.0f;
      }
    }
  }
  // Products with chunks [kFirst, kFirst + kCount) of a panel; `bytes` is this lane's place in the first.
  template <i32 kFirst, i32 kCount>
  float dot(const u8* bytes) const {
    float a = 0, b = 0;
#pragma unroll
    for (i32 c = 0; c < kCount; ++c) {
      if (!inside[kFirst + c]) continue;
      const Packed<kType> weight(*reinterpret_cast<const uint4*>(bytes + c * kWarps * kChunkBytes));
#pragma unroll
      for (i32 i = 0; i < kPer; i += 2) {
        a = fma(weight.value[i], values[kFirst + c][i], a);
        b = fma(weight.value[i + 1], values[kFirst + c][i + 1], b);
      }
    }
    return a + b;
  }
};

// out[0, c] = sum_k x[k] w[c, k] for the columns of a fragment, panels of one slot at most: two panels at a time, whose
// four sums go through the lanes together. x: f32. partial: [cols][kWarps] floats. kChunks: chunks of a panel that one
// warp takes at most. Loops are not unrolled: code that is passed through once a tile costs more to fetch than it saves.
template <DType kType, i32 kChunks>
inline void multiply_row(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial) {
  const i32 warp = i32(arch::thread() / 32), lane = i32(arch::thread() % 32), panels = (cols + 1) / 2;
  const Items items(w);
  const i32 bytes = i32(items.panel_bytes);
  const RowPart<kType, kChunks> part(x, bytes);
#pragma unroll 1
  for (i32 panel = 0; panel < panels;) {
    wait_for_panels(ring);
    const u8* at = ring.bytes() + warp * kChunkBytes + lane * 16;
    const i32 end = min(panel + items.panels, panels);
#pragma unroll 1
    for (; panel < end; panel += 2, at += 2 * bytes) {
      const float first = part.template dot<0, kChunks>(at);
      const float second = panel + 1 < end ? part.template dot<0, kChunks>(at + bytes) : 0.0f;
      const bool takes_second = lane & 2;
      float sum = __shfl_xor_sync(~0u, takes_second ? first : second, 2) + (takes_second ? second : first);
      sum = sum_of_row<4>(sum);
      if (lane < 4 && 2 * panel + lane < cols) partial[(2 * panel + lane) * kWarps + warp] = sum;
    }
    panel = end;
    release_slot(ring);
  }
}

template <i32 kFirst, i32 kChunks, i32 kInSlot, class Part>
inline void each_slot(RingCursor& ring, const Part& part, i32 parts, i32 offset, float& sum) {
  if (kFirst / kInSlot < parts) {
    wait_for_panels(ring);
    sum += part.template dot<kFirst, kInSlot>(ring.bytes() + offset);
    release_slot(ring);
  }
  if constexpr (kFirst + kInSlot < kChunks)
    each_slot<kFirst + kInSlot, kChunks, kInSlot>(ring, part, parts, offset, sum);
}

// The same where a panel takes several slots.
template <DType kType, i32 kChunks>
inline void multiply_long_row(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial) {
  constexpr i32 kInSlot = i32(kRingSlotBytes) / (kWarps * kChunkBytes);  // chunks of a warp
  const i32 warp = i32(arch::thread() / 32), lane = i32(arch::thread() % 32), panels = (cols + 1) / 2;
  const Items items(w);
  const RowPart<kType, kChunks> part(x, items.panel_bytes);
#pragma unroll 1
  for (i32 panel = 0; panel < panels; ++panel) {
    float sum = 0;
    each_slot<0, kChunks, kInSlot>(ring, part, items.parts, warp * kChunkBytes + lane * 16, sum);
    sum = sum_of_row<2>(sum);
    if (lane < 2 && 2 * panel + lane < cols) partial[(2 * panel + lane) * kWarps + warp] = sum;
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

// One row, in registers where it is not too long.
template <DType kType>
inline void multiply_one(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial) {
  const i64 turns = (w.panel_bytes() + kWarps * kChunkBytes - 1) / (kWarps * kChunkBytes);
  static_assert(2 * kWarps * kChunkBytes == kRingSlotBytes);
  if (turns <= 1) return multiply_row<kType, 1>(ring, x, w, cols, partial);
  if (turns <= 2) return multiply_row<kType, 2>(ring, x, w, cols, partial);
  if (turns <= 4) return multiply_long_row<kType, 4>(ring, x, w, cols, partial);
  multiply_rows<kType, DType::kF32>(ring, x, w, cols, partial);
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
    if (!kFewRows || x.rows == 1)
      multiply_one<kType>(ring, x, w, cols, sums);
    else
      multiply_rows<kType, kType>(ring, x, w, cols, sums);
    sync_consumers();
    for (i32 i = i32(arch::thread()); i < x.rows * cols; i += kConsumers) {
      const float4* row = reinterpret_cast<const float4*>(sums + i * kWarps);
      float sum = 0;
#pragma unroll
      for (i32 j = 0; j < kWarps / 4; ++j) sum += (row[j].x + row[j].y) + (row[j].z + row[j].w);
      fragment.row(i / cols).store(Index{from + i % cols}, sum);
    }
  }
  at = ring;
}

}  // namespace heddle::device
