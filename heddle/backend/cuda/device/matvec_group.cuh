// Panels of bf16 that a slot holds two of or more, times one row on tensor cores: four panels at a time, eight rows of the
// weight, are the right matrix of mma.m16n8k16. The 16 bytes of a lane are its registers of two products as they lie. The
// left matrix has x in two of its rows, the high halves in row 0 and the low ones in row 8. So lanes 0 to 3 end with the
// sums of two columns each over all that their warp has of K: nothing goes from lane to lane.
#pragma once

#include "heddle/backend/cuda/device/matvec_mma.cuh"
#include "heddle/backend/cuda/device/trace.cuh"

namespace heddle::device {

constexpr i32 kGroupPanels = 4;
constexpr i32 kGroupChunkBytes = 128;                    // of a panel, for one load of a warp: 32 of K
constexpr i32 kGroupStride = kWarps * kGroupChunkBytes;  // warps take chunks in turn
constexpr i32 kGroupChunks = kRingSlotBytes / 2 / kGroupStride;  // of a warp at most

inline bool by_groups(const Weight& w) {
  return 2 * w.panel_bytes() <= kRingSlotBytes;
}

// What one lane has of x.
class GroupPart {
 public:
  GroupPart(const Matrix& x, i32 panel_bytes) : panel_bytes_(panel_bytes) {
    const i32 lane = i32(arch::thread() % 32), begin = warp() * kGroupChunkBytes;
    const u8* at = x.data + begin + lane * 32;  // a float of x for each pair of weights
#pragma unroll
    for (i32 c = 0; c < kGroupChunks; ++c) {
      if (lane >= 4 || begin + c * kGroupStride >= panel_bytes) continue;
      x_[c][0] = *reinterpret_cast<const uint4*>(at + c * kGroupStride);
      x_[c][1] = *reinterpret_cast<const uint4*>(at + c * kGroupStride + 16);
    }
  }
  // Where the lane has its 16 bytes of a panel's first stride: of the panel lane / 8 of a group.
  static i32 place() {
    const i32 lane = i32(arch::thread() % 32);
    return warp() * kGroupChunkBytes + (lane % 4 * 2 + lane / 4 % 2) * kStreamWord;
  }
  // Sums of this warp, in lanes 0 to 3: of both rows of panel `lane`. `bytes`: at place() of the lane's panel.
  Pair dot(const u8* bytes) const {
    float sums[4][4] = {};
#pragma unroll
    for (i32 c = 0; c < kGroupChunks; ++c) {
      if (c * kGroupStride >= panel_bytes_) continue;
      uint4 word{};
      if (panel_bytes_ % kGroupStride == 0 || place() + c * kGroupStride < panel_bytes_)
        word = *reinterpret_cast<const uint4*>(bytes + c * kGroupStride);
      const uint4 &first = x_[c][0], &second = x_[c][1];
      arch::multiply_add<true>(sums[c % 2 * 2], {first.x, first.y, first.z, first.w}, {word.x, word.y});
      arch::multiply_add<true>(sums[c % 2 * 2 + 1], {second.x, second.y, second.z, second.w},
                               {word.z, word.w});
    }
    float columns[2];
#pragma unroll
    for (i32 i = 0; i < 2; ++i) {
      const float high = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
      columns[i] = high + ((sums[0][i + 2] + sums[1][i + 2]) + (sums[2][i + 2] + sums[3][i + 2]));
    }
    return {columns[0], columns[1]};
  }

 private:
  // Said to be one of kWarps, so that the compiler sees which chunks a panel of known size has.
  static i32 warp() { return i32(arch::thread() / 32) % kWarps; }

  uint4 x_[kGroupChunks][2] = {};
  i32 panel_bytes_;
};

// out[0, c] = sum_k x[k] w[c, k] for the columns of a fragment, whole items of the ring. partial: [cols][kWarps].
inline void multiply_groups(RingCursor& ring, const Matrix& x, const Weight& w, i32 cols, float* partial) {
  const Items items(w);
  const i32 bytes = i32(items.panel_bytes), panels = (cols + 1) / 2, warp = i32(arch::thread() / 32);
  const i32 lane = i32(arch::thread() % 32), mine = lane / 8;  // of a group's panels
  const bool in_two_slots = items.panels < kGroupPanels;
  const GroupPart part(x, bytes);
  i32 inside = 0;  // the group's first panel in its slot
#pragma unroll 1
  for (i32 panel = 0; panel < panels; panel += kGroupPanels) {
    const bool has_second = in_two_slots && panel + 2 < panels;
    RingCursor second = ring;
    if (inside == 0) wait_for_panels(ring);
    if (has_second) second.advance(), wait_for_panels(second);
    const u8* at = mine < 2 ? ring.bytes() : second.bytes();
    at += (in_two_slots ? mine % 2 : inside + mine) * bytes;
    const Pair sums = part.dot(at + GroupPart::place());
    inside += kGroupPanels;
    if (inside >= items.panels || panel + kGroupPanels >= panels) {
      release_slot(ring);
      if (has_second) release_slot(ring);
      inside = 0;
    }
    const i32 column = 2 * (panel + lane);
    if (lane < kGroupPanels && column < cols) {
      partial[column * kWarps + warp] = sums.first;
      if (column + 1 < cols) partial[(column + 1) * kWarps + warp] = sums.second;
    }
  }
}

}  // namespace heddle::device
