// Many rows times panels, on tensor cores. Asynchronous copies fill slabs of both operands in shared memory some steps early.
// Warps multiply them as 16 x 8 x 16 blocks with FP32 sums. Tiles are 128 x 256, 128 x 128, 128 x 64 or 64 x 64, whichever fits
// the call; each sum runs over K in order, so that the shape of the tile changes no bit.
//
// A slab of x has rows of 128 bytes. Their 16-byte words are permuted, so that eight rows of one column of words fall into
// different banks. A slab of w has the first word of all rows, then the second word of all rows: the two words that share a
// 32-byte sector of memory, one of each row of a panel, then lie next to each other on chip. (With the words of a sector
// apart, gate and up of a 1B take 165 us instead of 109: an H200, 512 rows.) Codes are expanded to such a slab: threads load those of
// the next slab while they multiply.
#pragma once

#include "heddle/backend/cuda/device/team.cuh"
#include "heddle/backend/cuda/device/view.cuh"
#include "heddle/ir/product.h"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/value/expand.cuh"

namespace heddle::device {

constexpr i32 kSlab = 64;           // k of a slab
constexpr i32 kSlabWords = 8;       // 16-byte words of one row of it
constexpr i32 kSlabRowBytes = 128;  // on chip

// True: four warps multiply slabs in shared memory asynchronously (wgmma). Otherwise each warp loads its blocks into registers. A
// kernel of many ops has no registers for wgmma.
constexpr bool kOnChip = kOneOp && arch::kMultipliesOnChip;
// The number of stages that may still be read when the next slab begins: with wgmma, products of the previous
// slab are under way too.
constexpr i32 kReadStages = kOnChip ? 2 : 1;
constexpr i32 kFewestStages = kReadStages + 1;
constexpr u64 kStageUnit = 1024;  // the alignment of stages: eight rows of a slab

// Bytes from row to row of a fragment: pairs of floats are aligned, and the rows that a warp writes together fall into different
// banks.
inline i64 fragment_stride(i32 cols) {
  return i64(cols + 1) / 2 * 8 + 32;
}

// Where slabs lie. If a fragment is a single tile, its slabs may use the fragment's memory too: the tile stores its sums only
// after the last slab was read.
struct SlabRoom {
  u8* beside;              // the fragment
  i64 bytes, of_fragment;  // of_fragment: bytes of the fragment, just before `beside`

  u8* begin(bool alone) const {
    u8* first = alone ? beside - of_fragment : beside;
    return first + (kOnChip ? i64(-reinterpret_cast<u64>(first) % kStageUnit) : 0);
  }
  i64 size(bool alone) const { return beside + bytes - begin(alone); }
};

// The widest tile has 128 sums per thread.
constexpr i32 kWidestTile = kOneOp && arch::kMovesRegisters ? 256 : 128;

// The widest tile that a CTA multiplies at once, and its most stages. Ops with the same values share code.
template <i32 kMostColumns = 256, i32 kMostStages = 4>
struct ProductSizes {
  static constexpr i32 kColumns = kMostColumns, kStages = kMostStages;
};

// True if a product of `rows` x `cols` is a single tile of the shapes below.
inline bool is_one_tile(i32 rows, i32 cols) {
  return rows > 64 ? rows <= 128 && cols <= kWidestTile : cols <= 64;
}

// True if `room` bytes on chip hold a fragment of `bytes` and the fewest slabs of one of the shapes below; a single tile's slabs
// may use the fragment's bytes. A call of its own: inlined, it takes 1 % of a prompt of 512 tokens (H100, megakernel).
__noinline__ inline bool leaves_room_for_slabs(i32 rows, i32 cols, i64 bytes, i64 room) {
  const auto slabs = [](i32 sides) { return i64(sides) * kSlabRowBytes * kFewestStages + i64(kStageUnit); };
  if (room - bytes >= slabs(64 + 64)) return true;
  const i32 wide = rows <= 64 || cols <= 64 ? 64 : cols <= 128 ? 128 : kWidestTile;
  return is_one_tile(rows, cols) && room >= slabs((rows > 64 ? 128 : 64) + wide);
}

// Stores a lane's part of kRowBlocks x kColBlocks blocks of 16 x 8 sums at (row, col) of a fragment, as far as it has `rows` rows.
// in_pairs: pairs of floats are aligned there.
template <i32 kRowBlocks, i32 kColBlocks>
__forceinline__ void store_sums(const Plane& fragment, i32 rows, i32 row, i32 col,
                                const float (&sums)[kRowBlocks][kColBlocks][4], bool in_pairs) {
  const i32 lane = i32(arch::thread() % 32);
#pragma unroll
  for (i32 i = 0; i < 2 * kRowBlocks; ++i) {
    const i32 m = row + 8 * i + lane / 4;
    if (m >= rows) continue;
    auto* to = reinterpret_cast<float*>(fragment.data + m * fragment.stride);
#pragma unroll
    for (i32 j = 0; j < kColBlocks; ++j) {
      const i32 n = col + 8 * j + lane % 4 * 2;
      const float* pair = sums[i / 2][j] + i % 2 * 2;
      if (in_pairs && n + 1 < fragment.cols) {
        *reinterpret_cast<Pair*>(to + n) = {pair[0], pair[1]};
      } else {
        if (n < fragment.cols) to[n] = pair[0];
        if (n + 1 < fragment.cols) to[n + 1] = pair[1];
      }
    }
  }
}

// Tiles of kRows x kCols: a warp has kRowBlocks x kColBlocks blocks of sums, and kRowWarps warps share the rows. With wgmma, four
// warps multiply together: 64 rows, the same columns.
// kStored: what panels have, bf16, f16 or codes of bf16.
template <DType kStored, i32 kRowBlocks, i32 kRowWarps, i32 kColBlocks>
class Gemm {
 public:
  static constexpr bool kBf16 = kStored != DType::kF16, kCoded = bits_of(kStored) < 16;
  static constexpr i32 kWarpRows = 16 * kRowBlocks, kWarpCols = 8 * kColBlocks;
  static constexpr i32 kRows = kWarpRows * kRowWarps, kCols = kWarpCols * kWarps / kRowWarps;
  static constexpr i32 kStageBytes = (kRows + kCols) * kSlabRowBytes;
  static_assert(kWarps % kRowWarps == 0, "no shape of tiles for so many warps");

  Gemm(const Plane& x, const Weight& w, u8* stages, i32 count)
      : x_(x), w_(w), stages_(stages), count_(count), steps_((x.cols + kSlab - 1) / kSlab) {}

  // The tile of the fragment, which is f32, at (row, col).
  void multiply(const Plane fragment, i32 row, i32 col) {
    const bool whole = row + kRows <= x_.rows && col + kCols <= fragment.cols && x_.cols % kSlab == 0;
    if constexpr (!kCoded)  // a second copy of the code for codes compiles for seconds
      if (whole) return multiply<true>(fragment, row, col);
    multiply<false>(fragment, row, col);
  }

 private:
  static constexpr i32 kRight = kRows * kSlabRowBytes;  // where a stage has the slab of w
  static constexpr i32 kColumnBytes = kCols * 16;       // one word of all its rows
  static constexpr i32 kRowsAtOnce =
      kConsumers / kSlabWords;  // rows of which all threads together copy a word
  static_assert(kRows % kRowsAtOnce == 0 && kCols % kRowsAtOnce == 0);

  // kWhole: no part of the tile lies past the end of a matrix.
  template <bool kWhole>
  void multiply(const Plane& fragment, i32 row, i32 col) {
    sync_consumers();  // all warps have read the slabs of the previous tile
    Source rows = rows_of_x(row);
    auto cols = columns_of<kWhole>(fragment.n0 + col, fragment.cols - col);
    Sums sums = {};
    for (i32 s = 0; s < count_ - kReadStages; ++s) fill<kWhole>(s, s, rows, cols);
    // The first row of the warps that multiply together.
    const i32 first_row = kOnChip ? warp_row() / 64 * 64 : warp_row();
    const bool has_sums = kWhole || (row + first_row < x_.rows && col + warp_col() < fragment.cols);
    if constexpr (kOnChip)
      add_slabs_on_chip<kWhole>(sums, rows, cols, first_row, has_sums);
    else
      add_slabs<kWhole>(sums, rows, cols, has_sums);
    sync_consumers();  // the sums may overwrite slabs
    store_sums(fragment, x_.rows, row + warp_row(), col + warp_col(), sums, true);
  }

  // The words of a matrix's slabs that a thread copies: one word of every kRowsAtOnce-th row.
  struct Source {
    const u8* from;   // in the slab that is copied next
    i64 stride;       // from row to row, bytes
    i32 slab_bytes;   // from slab to slab
    i32 row, rows;    // its first row, how many there are
    i32 word, words;  // in the slab that is copied next; of a row of the matrix
    i32 place;        // in a slab on chip
  };

  // The pieces of codes of w's slabs that a thread expands: one of every kRowsAtOnce-th row. Those of the next slab are loaded.
  struct CodeSource {
    static constexpr i32 kBits = bits_of(kStored), kWords = kBits / 4, kCount = kCols / kRowsAtOnce;

    const u8* from;  // the panel of the first row
    i64 stride;      // from row to row, bytes
    CodePanel panel;
    i32 row, rows;  // its first row, how many there are
    i32 half, k;    // which row of a panel; the column of the piece that is loaded next
    i32 place;      // in a slab on chip
    u32 codes[kCount][kWords];
    float scale[kCount];

    // Past the end of either dimension there are zeros.
    template <bool kWhole>
    __forceinline__ void load() {
      const bool inside = kWhole || k < panel.cols;
      const i64 at = inside ? panel.place(half, k) * kBits / 8 : 0,
                scale_at = inside ? panel.scale_place(half, k) : 0;
#pragma unroll
      for (i32 i = 0; i < kCount; ++i) {
        const bool there = kWhole || (inside && row + i * kRowsAtOnce < rows);
        const u8* const of = there ? from + i * stride : from;
        scale[i] = there ? *reinterpret_cast<const float*>(of + scale_at) : 0.0f;
#pragma unroll
        for (i32 j = 0; j < kWords; ++j) codes[i][j] = there ? reinterpret_cast<const u32*>(of + at)[j] : 0;
      }
      k += kSlab;
    }
    __forceinline__ void store(u8* to) const {
#pragma unroll
      for (i32 i = 0; i < kCount; ++i)
        *reinterpret_cast<uint4*>(to + place + i * kRowsAtOnce * 16) = expand(codes[i], scale[i]);
    }

   private:
    static __forceinline__ uint4 expand(const u32 (&codes)[kWords], float scale) {
      if constexpr (kWords == 1)
        return is_narrow(scale) ? expand_i4<true>(codes[0], scale) : expand_i4<false>(codes[0], scale);
      else
        return expand_e4m3(codes[0], codes[1], scale);
    }
  };

  using Sums = float[kRowBlocks][kColBlocks][4];

  template <bool kWhole>
  void add_slabs(Sums& sums, Source& rows, auto& cols, bool has_sums) const {
    const i32 lane = i32(arch::thread() % 32);
    const i32 left = word_place(warp_row() + lane % 16, lane / 16);
    const i32 right = kRight + lane / 8 % 2 * kColumnBytes + (warp_col() + lane / 16 * 8 + lane % 8) * 16;
    i32 stage = 0;
#pragma unroll 1
    for (i32 s = 0; s < steps_; ++s) {
      arch::wait_copies(count_ - 2);
      sync_consumers();
      fill<kWhole>(stage == 0 ? count_ - 1 : stage - 1, s + count_ - 1, rows, cols);
      const u8* at = stages_ + stage * kStageBytes;
      if (has_sums) add_slab(sums, at + left, at + right);
      stage = stage + 1 < count_ ? stage + 1 : 0;
    }
  }
  // The products of a slab run while the program waits for the next slab and fills the stage of the previous one.
  template <bool kWhole>
  void add_slabs_on_chip(Sums& sums, Source& rows, auto& cols, i32 first_row, bool has_sums) const {
    const arch::OnChip stages = arch::on_chip(stages_);
    i32 stage = 0;
#pragma unroll 1
    for (i32 s = 0; s < steps_; ++s) {
      arch::wait_copies(count_ - kReadStages - 1);
      arch::show_copies();
      arch::wait_products<1>();
      sync_consumers();
      if (has_sums) {
        const arch::OnChip left = stages + u32(stage * kStageBytes + first_row * kSlabRowBytes);
        const arch::OnChip right = stages + u32(stage * kStageBytes + kRight + warp_col() * 16);
        arch::begin_products();
#pragma unroll
        for (u32 k = 0; k < kSlabWords; k += 2)
          arch::multiply_on_chip<kBf16>(sums[0], left + k * 16, right + k * kColumnBytes, kColumnBytes);
        arch::commit_products();
      }
      fill<kWhole>(stage < 2 ? stage + count_ - 2 : stage - 2, s + count_ - kReadStages, rows, cols);
      stage = stage + 1 < count_ ? stage + 1 : 0;
    }
    arch::wait_products<0>();
  }

  static i32 warp_row() { return i32(arch::thread() / 32) % kRowWarps * kWarpRows; }
  static i32 warp_col() { return i32(arch::thread() / 32) / kRowWarps * kWarpCols; }
  static i32 word_place(i32 row, i32 word) {
    return row * kSlabRowBytes + (word ^ (row & (kSlabWords - 1))) * 16;
  }

  Source rows_of_x(i32 first) const {
    const i32 row = i32(arch::thread()) / kSlabWords, word = i32(arch::thread()) % kSlabWords;
    return {x_.data + i64(first + row) * x_.stride + word * 16,
            kRowsAtOnce * x_.stride,
            kSlabRowBytes,
            row,
            x_.rows - first,
            word,
            x_.cols / 8,
            word_place(row, word)};
  }
  // Neighbouring threads take neighbouring words of memory, which alternate between two rows. `first` is even, because tiles
  // are whole panels.
  Source rows_of_w(i32 first, i32 cols) const {
    const i32 thread = i32(arch::thread()), row = thread / (2 * kSlabWords) * 2 + thread % 2,
              word = thread / 2 % kSlabWords;
    return {w_.data.data + i64((first + row) / 2) * w_.panel_bytes() + (2 * word + row % 2) * 16,
            kRowsAtOnce / 2 * w_.panel_bytes(),
            2 * kSlabRowBytes,
            row,
            cols,
            word,
            w_.padded_cols() / 8,
            word * kColumnBytes + row * 16};
  }

  template <bool kWhole>
  auto columns_of(i32 first, i32 cols) const {
    const Source words = rows_of_w(first, cols);
    if constexpr (kCoded) {
      CodeSource source{w_.data.data + i64((first + words.row) / 2) * w_.panel_bytes(),
                        kRowsAtOnce / 2 * w_.panel_bytes(),
                        w_.code_panel(),
                        words.row,
                        cols,
                        words.row % 2,
                        words.word * CodePanel::kPiece,
                        words.place,
                        {},
                        {}};
      source.template load<kWhole>();
      return source;
    } else {
      return words;
    }
  }

  // Begins the copies of slab s, which is the next, into a stage. It always commits one group of copies, an empty one past the end.
  template <bool kWhole>
  void fill(i32 stage, i32 s, Source& rows, auto& cols) const {
    if (s < steps_) {
      u8* to = stages_ + stage * kStageBytes;
      copy<kWhole, kRows, kSlabRowBytes>(to, rows);
      if constexpr (kCoded) {
        cols.store(to + kRight);
        if (s + 1 < steps_) cols.template load<kWhole>();
      } else {
        copy<kWhole, kCols, 16>(to + kRight, cols);
      }
    }
    arch::commit_copies();
  }
  // kStride: bytes from row to row on chip. Past the end of either dimension it writes zeros and reads no memory.
  template <bool kWhole, i32 kCount, i32 kStride>
  static void copy(u8* to, Source& source) {
    const bool inside = kWhole || source.word < source.words;
#pragma unroll
    for (i32 i = 0; i < kCount / kRowsAtOnce; ++i)
      arch::copy_word(to + source.place + i * kRowsAtOnce * kStride, source.from + i * source.stride,
                      kWhole || (inside && source.row + i * kRowsAtOnce < source.rows));
    source.from += source.slab_bytes, source.word += kSlabWords;
  }

  // A word's place in a row of x is its number xor bits of the row's number, so the place in step k is the first xor k.
  static const u8* step_of(const u8* first, i32 k) {
    return reinterpret_cast<const u8*>(reinterpret_cast<u64>(first) ^ u64(k * 16));
  }
  // left, right: the lane's words of the slab's first step.
  static void add_slab(Sums& sums, const u8* left, const u8* right) {
#pragma unroll
    for (i32 k = 0; k < kSlabWords; k += 2) {
      u32 cols[kColBlocks / 2][4];
#pragma unroll
      for (i32 j = 0; j < kColBlocks / 2; ++j)
        arch::load_matrices(cols[j], right + k * kColumnBytes + j * 16 * 16);
#pragma unroll
      for (i32 i = 0; i < kRowBlocks; ++i) {
        u32 rows[4];
        arch::load_matrices(rows, step_of(left, k) + i * 16 * kSlabRowBytes);
#pragma unroll
        for (i32 j = 0; j < kColBlocks; ++j)
          arch::multiply_add<kBf16>(sums[i][j], rows, {cols[j / 2][j % 2 * 2], cols[j / 2][j % 2 * 2 + 1]});
      }
    }
  }

  const Plane x_;  // copies: an argument that was passed by reference would lie in local memory
  const Weight w_;
  u8* stages_;
  i32 count_, steps_;
};

// False: there is no room for the stages.
template <DType kStored, i32 kRowBlocks, i32 kRowWarps, i32 kColBlocks, i32 kStages>
__forceinline__ bool multiply_slabs_inline(const Plane& fragment, const Plane& x, const Weight& w,
                                           const SlabRoom& room) {
  using Tiles = Gemm<kStored, kRowBlocks, kRowWarps, kColBlocks>;
  const bool alone = x.rows <= Tiles::kRows && fragment.cols <= Tiles::kCols;
  static_assert(kStages >= kFewestStages);
  const i32 count = min(kStages, i32(room.size(alone) / Tiles::kStageBytes));
  if (count < kFewestStages) return false;
  Tiles gemm(x, w, room.begin(alone), count);
  for (i32 row = 0; row < x.rows; row += Tiles::kRows)
    for (i32 col = 0; col < fragment.cols; col += Tiles::kCols) gemm.multiply(fragment, row, col);
  return true;
}

// A kernel of many ops has one copy of the code for each shape of tiles. A kernel of one op inlines it, with known sizes.
template <DType kStored, i32 kRowBlocks, i32 kRowWarps, i32 kColBlocks, i32 kStages>
__noinline__ bool multiply_slabs_apart(const Plane& fragment, const Plane& x, const Weight& w,
                                       const SlabRoom& room) {
  return multiply_slabs_inline<kStored, kRowBlocks, kRowWarps, kColBlocks, kStages>(fragment, x, w, room);
}
template <DType kStored, i32 kRowBlocks, i32 kRowWarps, i32 kColBlocks, i32 kStages>
__forceinline__ bool multiply_slabs(const Plane& fragment, const Plane& x, const Weight& w,
                                    const SlabRoom& room) {
  return kOneOp ? multiply_slabs_inline<kStored, kRowBlocks, kRowWarps, kColBlocks, kStages>(fragment, x, w,
                                                                                             room)
                : multiply_slabs_apart<kStored, kRowBlocks, kRowWarps, kColBlocks, kStages>(fragment, x, w,
                                                                                            room);
}

// Multiplies in tiles of kRows x kCols, split over the warps as their instructions want it.
template <DType kStored, i32 kRows, i32 kCols, i32 kStages>
inline bool multiply_tiles(const Plane& fragment, const Plane& x, const Weight& w, const SlabRoom& room) {
  constexpr i32 kRowWarps = kOnChip ? kRows / 16 : kCols == 64 ? 4 : 2;
  return multiply_slabs<kStored, kRows / 16 / kRowWarps, kRowWarps, kCols / 8 * kRowWarps / kWarps, kStages>(
      fragment, x, w, room);
}

// fragment = x w^T, in tiles no larger than needed, and no wider than Sizes has them.
template <DType kStored, class Sizes>
inline bool multiply_many_rows(const Plane& fragment, const Plane& x, const Weight& w, const SlabRoom& room) {
  constexpr i32 kStages = Sizes::kStages;
  if constexpr (kWidestTile > 128 && Sizes::kColumns > 128)
    if (x.rows > 64 && fragment.cols > 128 &&
        multiply_tiles<kStored, 128, 256, kStages>(fragment, x, w, room))
      return true;
  if constexpr (Sizes::kColumns > 64)
    if (x.rows > 64 && fragment.cols > 64 && multiply_tiles<kStored, 128, 128, kStages>(fragment, x, w, room))
      return true;
  if (x.rows > 64 && multiply_tiles<kStored, 128, 64, kStages>(fragment, x, w, room)) return true;
  return multiply_tiles<kStored, 64, 64, kStages>(fragment, x, w, room);
}

}  // namespace heddle::device
