// Panels of bf16 times one row on tensor cores: a warp for each slot of the ring, so that warps share nothing but the
// order of slots. What of a panel lies in a chunk of 512 bytes, two rows by 128 of K, is a half of the left matrix of
// mma.m16n8k16: its rows are (four quarters of the chunk's K) x (two rows), its other half is the next panel. Columns of
// the right matrix are the same quarters of x, each as a high and a low half of bf16, so that x keeps 16 bits; sums count
// where both sides have the same quarter. Four times the products that are needed, in a tenth of the instructions.
// The order of a sum depends on K alone.
#pragma once

#include "heddle/backend/cuda/device/consumers.cuh"
#include "heddle/backend/cuda/device/ring.cuh"
#include "heddle/backend/cuda/device/trace.cuh"
#include "heddle/backend/cuda/device/view.cuh"

namespace heddle::device {

constexpr i32 kMmaChunk = 512;      // bytes: of a panel, and of x as it is arranged
constexpr i32 kMmaChunkCols = 128;  // of K
constexpr i32 kMmaSegments = kMmaChunkCols / 8;

// Whether x is arranged for products with w.
inline bool by_mma(const Matrix& x, const Weight& w) {
  return kUses[int(DType::kBf16)] && w.data.dtype == DType::kBf16 && x.dtype == DType::kF32 && x.rows == 1;
}

// Where lane l has its 16 bytes of a chunk of a panel: row l / 4 % 2 of quarter l / 8, of which it takes segment l % 4.
inline i32 mma_place() {
  const i32 lane = i32(arch::thread() % 32);
  return (lane / 8 * 4 + lane % 4) * 32 + lane / 4 % 2 * 16;
}

// Splits a row of floats, in place, into what lanes read of the right matrix: 16 bytes are the high, or the low, halves
// of eight elements side by side. A chunk belongs to the lanes of one half of a warp. Columns past the end are zeros.
inline void arrange_row(const Matrix& x) {
  const i32 segments = (x.cols + kMmaChunkCols - 1) / kMmaChunkCols * kMmaSegments;
  for (i32 begin = 0; begin < segments; begin += kConsumers) {
    const i32 at = begin + i32(arch::thread()), inside = at % kMmaSegments;
    Octet values;
    if (at < segments) values.load(x.row(0), at);
    values.decode(DType::kF32);
    __syncwarp();
    if (at < segments) {
      u32 high[4], low[4];
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const float first = values.value[2 * i], second = values.value[2 * i + 1];
        high[i] = arch::pack_bf16(first, second);
        low[i] = arch::pack_bf16(first - __uint_as_float(high[i] << 16),
                                 second - __uint_as_float(high[i] & 0xffff0000u));
      }
      u8* to = x.data + at / kMmaSegments * kMmaChunk + (inside / 4 * 8 + inside % 4) * 16;
      *reinterpret_cast<uint4*>(to) = {high[0], high[1], high[2], high[3]};
      *reinterpret_cast<uint4*>(to + 4 * 16) = {low[0], low[1], low[2], low[3]};
    }
  }
}

// What a warp sums of one panel, or of two at once; in two parts, so that one product need not wait for another.
template <bool kTwo>
class PanelSums {
 public:
  // Chunks of panels `bytes` long, or of as much of one as a slot has; the second panel lies behind the first.
  PanelSums(const u8* panel, i32 bytes, const u8* x) : panel_(panel + mma_place()), bytes_(bytes) {
    x_ = x + arch::thread() % 32 * 16;
    const i32 whole = bytes / kMmaChunk;
    i32 chunk = 0;
#pragma unroll 2
    for (; chunk + 2 <= whole; chunk += 2) add<false>(chunk, 0), add<false>(chunk + 1, 1);
    if (chunk < whole) add<false>(chunk, 0);
    if (bytes % kMmaChunk != 0) add<true>(whole, 1);
  }
  // Of panel (lane & 1) and its row (lane / 4 & 1).
  float result() const {
    const i32 lane = i32(arch::thread() % 32);
    const bool counts = lane % 4 == lane / 8;
    const float first = counts ? sum(0) + sum(1) : 0.0f, second = counts && kTwo ? sum(2) + sum(3) : 0.0f;
    float all = __shfl_xor_sync(~0u, lane & 1 ? first : second, 1) + (lane & 1 ? second : first);
    all += __shfl_xor_sync(~0u, all, 2);
    all += __shfl_xor_sync(~0u, all, 8);
    return all + __shfl_xor_sync(~0u, all, 16);
  }

 private:
  float sum(i32 i) const { return (sums_[0][0][i] + sums_[0][1][i]) + (sums_[1][0][i] + sums_[1][1][i]); }
  template <bool kLast>
  void add(i32 chunk, i32 part) {
    const u8* at = panel_ + chunk * kMmaChunk;
    uint4 first{}, second{};
    if (!kLast || chunk * kMmaChunk + mma_place() < bytes_) {
      first = *reinterpret_cast<const uint4*>(at);
      if (kTwo) second = *reinterpret_cast<const uint4*>(at + bytes_);
    }
    const uint4 x = *reinterpret_cast<const uint4*>(x_ + chunk * kMmaChunk);
    arch::multiply_add<true>(sums_[part][0], {first.x, second.x, first.y, second.y}, {x.x, x.y});
    arch::multiply_add<true>(sums_[part][1], {first.z, second.z, first.w, second.w}, {x.z, x.w});
  }

  const u8 *panel_, *x_;
  const i32 bytes_;
  float sums_[2][2][4] = {};
};

// The panels of one slot, of a fragment whose columns are f32; `first`: its first panel.
inline void multiply_slot(const u8* slot, const u8* x, i32 bytes, i32 first, i32 panels, i32 cols,
                          float* out) {
  const i32 lane = i32(arch::thread() % 32);
  for (i32 p = 0; p < panels; p += 2) {
    const float sum = p + 1 < panels ? PanelSums<true>(slot + p * bytes, bytes, x).result()
                                     : PanelSums<false>(slot + p * bytes, bytes, x).result();
    const i32 column = 2 * (first + p + lane % 2) + lane / 4;
    if ((lane & ~5) == 0 && p + lane % 2 < panels && column < cols) out[column] = sum;
  }
}

// Until the consumers have left what was in the slot before. A warp that has not touched the slot for a turn of the ring
// could take panels of the turn before for its own.
inline void wait_for_turn(const RingCursor& ring) {
  while (!arch::barrier_passed(ring.empty(), ring.phase ^ 1))
    if (panel_limit() == 0) return;
}

inline void release_for_all(const RingCursor& ring) {
  __syncwarp();
  if (arch::thread() % 32 < kWarps) arch::arrive(ring.empty());
}

// fragment = x w^T, x arranged. Slots go to warps in turn, to no more warps than the ring has slots. sums: [parts][cols],
// where panels take several slots.
inline void multiply_by_mma(RingCursor& at, const Matrix& fragment, const Matrix& x, const Weight& w,
                            float* sums) {
  const Items items(w);
  const i32 warp = i32(arch::thread() / 32), takers = min(kWarps, i32(at.slots));
  const i32 bytes = i32(items.panel_bytes), cols = fragment.cols, panels = (cols + 1) / 2;
  const i32 slots = items.parts > 1 ? panels * items.parts : (panels + items.panels - 1) / items.panels;
  auto* out = reinterpret_cast<float*>(fragment.data);
  RingCursor ring = at;
  ring.advance(u32(warp));
#pragma unroll 1
  for (i32 slot = warp; warp < takers && slot < slots; slot += takers) {
    wait_for_turn(ring);
    wait_for_panels(ring);
    if (items.parts == 1) {
      const i32 first = slot * items.panels;
      multiply_slot(ring.bytes(), x.data, bytes, first, min(items.panels, panels - first), cols, out);
    } else {
      const i32 panel = slot / items.parts, part = slot % items.parts, before = part * i32(kRingSlotBytes);
      multiply_slot(ring.bytes(), x.data + before, min(bytes - before, i32(kRingSlotBytes)), panel, 1, cols,
                    sums + part * cols);
    }
    release_for_all(ring);
    ring.advance(u32(takers));
  }
  at.advance(u32(slots));
  if (items.parts == 1) return;
  sync_consumers();
  for (i32 c = i32(arch::thread()); c < cols; c += kConsumers) {
    float sum = sums[c];
    for (i32 part = 1; part < items.parts; ++part) sum += sums[part * cols + c];
    out[c] = sum;
  }
}

}  // namespace heddle::device
