// Products of two matrices as they lie in memory, on tensor cores. A *square* holds 64 rows of 64 elements of the data of a or b
// on chip, in the type that they are multiplied as. Its rows are 128 bytes, whose 16-byte words are permuted by the row. So
// blocks of a square are loaded without conflicts both as they are and transposed, and either order of either matrix takes the
// same instructions. A *slab* is the squares of 64 k: one or two of a, then as many of b.
//
// Elements that are multiplied as they lie, in aligned rows, are copied asynchronously, some slabs early. Others pass through
// registers, which convert them (matmul_load.cuh).
#pragma once

#include "heddle/backend/cuda/device/gemm.cuh"
#include "heddle/backend/cuda/device/matmul_load.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

constexpr i32 kSquare = kSlabK, kSquareRow = 2 * kSquare, kSquareBytes = kSquare * kSquareRow;
static_assert(kSlabSide == kSquare);

// Where word `word` of a row of a square lies.
constexpr i32 square_place(i32 row, i32 word) {
  return row * kSquareRow + (word ^ (row & 7)) * 16;
}

// The words of one side's slabs that a thread copies: one word of some rows of each square.
template <i32 kSquares>
class SquareCopy {
 public:
  explicit SquareCopy(const Side& side)
      : stride_(side.matrix.data.stride[0] * 2),
        across_(side.along_k ? kSquare * stride_ : kSquareRow),
        step_(side.along_k ? kSquareRow : kSquare * stride_),
        row_(side.row(0, 0) + row()),
        col_(side.col(0, 0) + 8 * word()),
        end_row_(side.end_row()),
        end_col_(side.end_col()),
        along_k_(side.along_k),
        from_(side.address(row_, col_)) {}

  // True if rows begin at 16-byte words, also the part of them that the tile reads.
  static bool fits(const Side& side) {
    return reinterpret_cast<u64>(side.address(side.row(0, 0), side.col(0, 0))) % 16 == 0 &&
           side.matrix.data.stride[0] % 8 == 0;
  }
  // Begins the copies of the next slab. It writes zeros past the ends and reads no memory there.
  __forceinline__ void copy(u8* to) {
#pragma unroll
    for (i32 s = 0; s < kSquares; ++s)
#pragma unroll
      for (i32 i = 0; i < kRows; ++i) {
        const i32 r = row_ + i * kRowsAtOnce + (along_k_ ? s * kSquare : 0),
                  c = col_ + (along_k_ ? 0 : s * kSquare);
        const i32 bytes = r < end_row_ ? max(0, min(2 * (end_col_ - c), 16)) : 0;
        arch::copy_bytes(to + s * kSquareBytes + square_place(row() + i * kRowsAtOnce, word()),
                         from_ + s * across_ + i * (kRowsAtOnce * stride_), bytes);
      }
    from_ += step_;
    col_ += along_k_ ? kSquare : 0, row_ += along_k_ ? 0 : kSquare;
  }

 private:
  static constexpr i32 kRowsAtOnce = kConsumers / 8, kRows = kSquare / kRowsAtOnce;
  static_assert(kSquares == 0 || kSquare % kRowsAtOnce == 0, "no square for so many warps");
  static i32 row() { return i32(arch::thread()) / 8; }
  static i32 word() { return i32(arch::thread()) % 8; }

  i64 stride_, across_, step_;  // bytes from row to row of the data, from square to square, from slab to slab
  i32 row_, col_, end_row_, end_col_;
  bool along_k_;
  const u8* from_;
};

// The units of one side's slab that a thread loads.
template <i32 kSquares>
class SquareUnits {
 public:
  __forceinline__ void load(const Side& side, i32 k) {
#pragma unroll
    for (i32 i = 0; i < kCount; ++i) units_[i].load(side, row_of(side, i, k), col_of(side, i, k));
  }
  // Stores them as the product's type.
  __forceinline__ void store(const Side& side, i32 k, DType product, u8* to) const {
#pragma unroll
    for (i32 i = 0; i < kCount; ++i) {
      u8* square = to + i / kPerSquare * kSquareBytes;
#pragma unroll
      for (i32 half = 0; half < 2; ++half)
        *reinterpret_cast<uint4*>(square + square_place(row(i), col(i) / 8 + half)) =
            word(side, i, k, product, half);
    }
  }

 private:
  static constexpr i32 kInSquare = kSquare * kSquare / kUnit;
  static constexpr i32 kPerSquare = kInSquare / kConsumers, kCount = kSquares * kPerSquare;
  static_assert(kSquares == 0 || kInSquare % kConsumers == 0, "no square for so many warps");

  // The place of unit i of the thread in its square, and in the data of the slab at k.
  static i32 place(i32 i) { return i32(arch::thread()) + i % kPerSquare * kConsumers; }
  static i32 row(i32 i) { return place(i) / (kSquare / kUnit); }
  static i32 col(i32 i) { return place(i) % (kSquare / kUnit) * kUnit; }
  static i32 row_of(const Side& side, i32 i, i32 k) {
    return side.along_k ? side.row(i / kPerSquare * kSquare + row(i), k) : side.row(0, k + row(i));
  }
  static i32 col_of(const Side& side, i32 i, i32 k) {
    return side.along_k ? side.col(0, k + col(i)) : side.col(i / kPerSquare * kSquare + col(i), k);
  }
  // Eight elements of unit i.
  __forceinline__ uint4 word(const Side& side, i32 i, i32 k, DType product, i32 half) const {
    const Unit<8>& unit = units_[i];
    const u32* bits = unit.bits + 4 * half;
    if (Unit<8>::is_plain(side.matrix, product)) return {bits[0], bits[1], bits[2], bits[3]};
    float a[4], b[4];
    unit.decode(side, row_of(side, i, k), col_of(side, i, k), 2 * half, a);
    unit.decode(side, row_of(side, i, k), col_of(side, i, k), 2 * half + 1, b);
    return {pack_two(product, a[0], a[1]), pack_two(product, a[2], a[3]), pack_two(product, b[0], b[1]),
            pack_two(product, b[2], b[3])};
  }

  Unit<8> units_[kCount];
};

// Tiles of kSide x kSide on tensor cores: a warp has kRowBlocks x kColBlocks blocks of 16 x 8 sums.
template <i32 kSquares>
class SquareProduct {
 public:
  static constexpr i32 kSide = kSquares * kSquare, kSlabBytes = 2 * kSquares * kSquareBytes;

  SquareProduct(const Side& left, const Side& right, DType product, u8* slabs, i32 count)
      : left_(left),
        right_(right),
        product_(product),
        slabs_(slabs),
        count_(count),
        k_(left.matrix.cols()),
        steps_((k_ + kSquare - 1) / kSquare) {}

  __forceinline__ void multiply(const Plane& fragment, i32 row, i32 col) const {
    Sums sums = {};
    sync_consumers();  // all warps have read the slabs of the previous tile
    if (count_ > 1 && is_copied(left_) && is_copied(right_))
      add_copied(sums);
    else
      add_converted(sums);
    sync_consumers();  // the sums may overwrite slabs
    store_sums(fragment, fragment.rows, row + warp_row(), col + warp_col(), sums, fragment.stride % 8 == 0);
  }

 private:
  static constexpr i32 kRowWarps = kSquares == 1 ? 4 : 2, kColWarps = kWarps / kRowWarps;
  static constexpr i32 kRowBlocks = kSide / 16 / kRowWarps, kColBlocks = kSide / 8 / kColWarps;
  static_assert(kWarps % kRowWarps == 0 && kColBlocks % 2 == 0, "no shape of tiles for so many warps");
  // Slabs that are loaded before the one that is multiplied. Where sums take few registers, more are under way.
  static constexpr i32 kAhead = kSquares == 1 && kOneOp && kKnown ? 4 : 1;
  using Sums = float[kRowBlocks][kColBlocks][4];

  bool is_copied(const Side& side) const {
    return Unit<8>::is_plain(side.matrix, product_) && SquareCopy<kSquares>::fits(side);
  }
  // Begins the copies of slab s, which is the next. It always commits one group of copies, an empty one past the end.
  __forceinline__ void fill(u8* slab, i32 s, SquareCopy<kSquares>& left, SquareCopy<kSquares>& right) const {
    if (s < steps_) left.copy(slab), right.copy(slab + kRight);
    arch::commit_copies();
  }
  __forceinline__ void add_copied(Sums& sums) const {
    SquareCopy<kSquares> left(left_), right(right_);
    for (i32 s = 0; s < count_ - 1; ++s) fill(slabs_ + s * kSlabBytes, s, left, right);
    i32 stage = 0;
#pragma unroll 1
    for (i32 s = 0; s < steps_; ++s) {
      arch::wait_copies(count_ - 2);
      sync_consumers();
      fill(slabs_ + (stage == 0 ? count_ - 1 : stage - 1) * kSlabBytes, s + count_ - 1, left, right);
      add_slab(sums, slabs_ + stage * kSlabBytes);
      stage = stage + 1 < count_ ? stage + 1 : 0;
    }
    arch::wait_copies(0);
  }

  __forceinline__ void add_converted(Sums& sums) const {
    SquareUnits<kSquares> left[kAhead], right[kAhead];
#pragma unroll
    for (i32 i = 0; i < kAhead; ++i) left[i].load(left_, i * kSquare), right[i].load(right_, i * kSquare);
    u8* slab = slabs_;
#pragma unroll 1
    for (i32 begin = 0; begin < steps_; begin += kAhead)
#pragma unroll
      for (i32 i = 0; i < kAhead; ++i) {
        const i32 k = (begin + i) * kSquare;
        if (k >= k_) break;
        if (count_ == 1) sync_consumers();  // all warps have read the previous slab
        left[i].store(left_, k, product_, slab);
        right[i].store(right_, k, product_, slab + kRight);
        sync_consumers();
        left[i].load(left_, k + kAhead * kSquare);
        right[i].load(right_, k + kAhead * kSquare);
        add_slab(sums, slab);
        if (count_ > 1) slab = slab == slabs_ ? slabs_ + kSlabBytes : slabs_;
      }
  }

  static constexpr i32 kRight = kSquares * kSquareBytes;
  static i32 warp_row() { return i32(arch::thread() / 32) % kRowWarps * (16 * kRowBlocks); }
  static i32 warp_col() { return i32(arch::thread() / 32) / kRowWarps * (8 * kColBlocks); }

  __forceinline__ void add_slab(Sums& sums, const u8* slab) const {
    if (left_.first + warp_row() >= left_.last || right_.first + warp_col() >= right_.last) return;
    product_ == DType::kBf16 ? add_slab<true>(sums, slab) : add_slab<false>(sums, slab);
  }
  template <bool kBf16>
  __forceinline__ void add_slab(Sums& sums, const u8* slab) const {
    const u8* left = slab + lane_place(left_.along_k, true, warp_row());
    const u8* right = slab + kRight + lane_place(right_.along_k, false, warp_col());
#pragma unroll
    for (i32 k = 0; k < kSquare / 16; ++k) {
      u32 cols[kColBlocks / 2][4];
#pragma unroll
      for (i32 j = 0; j < kColBlocks / 2; ++j) load_blocks(cols[j], right_.along_k, right, j, k);
#pragma unroll
      for (i32 i = 0; i < kRowBlocks; ++i) {
        u32 rows[4];
        load_blocks(rows, left_.along_k, left, i, k);
#pragma unroll
        for (i32 j = 0; j < kColBlocks; ++j)
          arch::multiply_add<kBf16>(sums[i][j], rows, {cols[j / 2][j % 2 * 2], cols[j / 2][j % 2 * 2 + 1]});
      }
    }
  }
  // Where the lane's words of the first four blocks lie, from row or column `first` of the tile on. The blocks of a are numbered
  // along m first, those of b along k.
  static i32 lane_place(bool along_k, bool is_left, i32 first) {
    const i32 lane = i32(arch::thread() % 32), low = lane / 8 % 2, high = lane / 16;
    const i32 across = is_left ? low : high, along = is_left ? high : low, inside = first % kSquare;
    return first / kSquare * kSquareBytes + (along_k
                                                 ? square_place(inside + 8 * across + lane % 8, along)
                                                 : square_place(8 * along + lane % 8, inside / 8 + across));
  }
  // Four blocks of 8 x 8: number `across` of 16 rows or columns, number k of 16 k. Words of a row are the first one's place xor
  // their distance.
  static __forceinline__ void load_blocks(u32 (&to)[4], bool along_k, const u8* first, i32 across, i32 k) {
    if (along_k)
      arch::load_matrices(to, at_words(first, 2 * k) + across * 16 * kSquareRow);
    else
      arch::load_transposed(to, at_words(first, 2 * across) + k * 16 * kSquareRow);
  }
  static const u8* at_words(const u8* first, i32 words) {
    return reinterpret_cast<const u8*>(reinterpret_cast<u64>(first) ^ u64(16 * words));
  }

  const Side left_, right_;
  const DType product_;
  u8* const slabs_;
  const i32 count_, k_, steps_;
};

}  // namespace heddle::device
