// Kernels that show what instructions do, for scripts/check_components.py: which thread and register holds which element, where copies
// put elements, what descriptors reach. Each is written with the values of heddle/tile, and its result is known without them.
#pragma once

#include "heddle/kit/kernel_sm90.cuh"
#include "heddle/tile/copy_plan.h"
#include "heddle/tile/mma_plan.h"
#include "heddle/tile/reduce_plan.h"
#include "heddle/tile/tprod_plan.h"

namespace heddle::device {

using tile::CopyPlan;
using tile::CopyWord;
using tile::CopyWords;
using tile::Distribution;
using tile::OperandTile;

struct ComponentArgs {
  const u8 *left, *right;  // rows side by side: [m, k] and [n, k]
  u8* out;
  i64 pitch_bytes;
  i32 rows, cols;  // that are there
};

inline u8* shared_bytes() {
  extern __shared__ __align__(1024) u8 whole_kernel_chip[];
  return whole_kernel_chip;
}

// ---- Matrices of 8 x 8: a lane's halves of each register, and what the distribution says.

// kStated: which distribution is compared.
template <bool kTransposed, bool kStated = kTransposed>
inline void load_matrices_case(const ComponentArgs& args) {
  constexpr Distribution kWho = kStated ? tile::matrices_transposed(4) : tile::matrices(4);
  constexpr tile::Layout kRows = tile::matrix_rows(4);
  auto* chip = reinterpret_cast<u16*>(shared_bytes());
  // Element row + 8 col, 16 bytes for the 8 columns of a matrix's row.
  for (u32 at = threadIdx.x; at < 256; at += 32) chip[at / 64 * 64 + at % 8 * 8 + at / 8 % 8] = u16(at);
  __syncthreads();
  const u32 first =
      kRows(threadIdx.x);  // where the row of this lane begins: row + 8 col, col a multiple of 8
  u32 words[4];
  const arch::OnChip row = arch::on_chip(chip + first / 64 * 64 + first % 8 * 8);
  kTransposed ? arch::load_transposed(words, row) : arch::load_matrices(words, row);
  auto* out = reinterpret_cast<i32*>(args.out);
  for (i32 i = 0; i < 8; ++i) {
    const i32 at = (i32(threadIdx.x) * 8 + i) * 2;
    out[at] = i32(words[i / 2] >> i % 2 * 16 & 0xFFFF);
    out[at + 1] = i32(kWho.thread(threadIdx.x)) + kWho.fragment(i);
  }
}

template <bool kTransposed>
inline void store_matrices_case(const ComponentArgs& args) {
  constexpr Distribution kWho = kTransposed ? tile::matrices_transposed(4) : tile::matrices(4);
  constexpr tile::Layout kRows = tile::matrix_rows(4);
  auto* chip = reinterpret_cast<u16*>(shared_bytes());
  u32 words[4];
  for (i32 i = 0; i < 4; ++i)
    words[i] = (kWho.thread(threadIdx.x) + kWho.fragment(2 * i)) |
               (kWho.thread(threadIdx.x) + kWho.fragment(2 * i + 1)) << 16;
  const u32 first = kRows(threadIdx.x);
  const arch::OnChip row = arch::on_chip(chip + first / 64 * 64 + first % 8 * 8);
  kTransposed ? arch::store_transposed(row, words[0], words[1], words[2], words[3])
              : arch::store_matrices(row, words[0], words[1], words[2], words[3]);
  __syncthreads();
  auto* out = reinterpret_cast<i32*>(args.out);
  for (i32 at = i32(threadIdx.x); at < 256; at += 32) {
    out[2 * at] = chip[at / 64 * 64 + at % 8 * 8 + at / 8 % 8];
    out[2 * at + 1] = at;
  }
}

// ---- Products: the operands are put into registers or on chip as plans say, and the sums are taken from registers as they say.

template <i32 kBytes>
inline u32 register_of(const Distribution& who, i32 i, const u8* from, i32 depth, i32 first_k, u32 thread) {
  u32 word = 0;
  for (i32 part = 0; part < 4 / kBytes; ++part) {
    const i32 at = i32(who.thread(thread)) + who.fragment(i * (4 / kBytes) + part);
    const u8* element = from + (i64(at % who.rows) * depth + first_k + at / who.rows) * kBytes;
    for (i32 b = 0; b < kBytes; ++b) word |= u32(element[b]) << 8 * (part * kBytes + b);
  }
  return word;
}

inline void store_sums_case(const Distribution& who, const float* sums, i32 count, float* out) {
  for (i32 i = 0; i < count; ++i) {
    const i32 at = i32(who.thread(threadIdx.x)) + who.fragment(i);
    out[i64(at % who.rows) * who.cols + at / who.rows] = sums[i];
  }
}

template <arch::Terms kTerms>
inline void multiply_warp(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  if constexpr (kTerms == arch::Terms::kBf16 || kTerms == arch::Terms::kF16) {
    arch::multiply_add<kTerms == arch::Terms::kBf16>(sums, a, b);
  } else if constexpr (kTerms == arch::Terms::kTf32) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    constexpr DType kLeft =
        kTerms == arch::Terms::kE4m3 || kTerms == arch::Terms::kE4m3E5m2 ? DType::kF8E4M3 : DType::kF8E5M2;
    constexpr DType kRight =
        kTerms == arch::Terms::kE4m3 || kTerms == arch::Terms::kE5m2E4m3 ? DType::kF8E4M3 : DType::kF8E5M2;
    arch::multiply_codes<kLeft, kRight>(sums, a, b);
  }
}

// 2 x 2 warps, each with 2 x 3 products of mma.sync, two steps along k.
template <arch::Terms kTerms, i32 kBytes>
inline void warp_product_case(const ComponentArgs& args) {
  constexpr tile::MmaPlan kPlan{tile::mma_atom(kBytes), 64, 48, 2 * tile::depth_of(kBytes), 2, 2};
  constexpr Distribution kLeft = kPlan.atom.left_fragment(), kRight = kPlan.atom.right_fragment(),
                         kSums = kPlan.sums();
  const i32 warp = i32(threadIdx.x) / 32, row_warp = warp % 2, col_warp = warp / 2;
  const u32 in_warp = threadIdx.x % 32;
  float sums[3][2][4] = {};
  for (i32 step = 0; step < kPlan.steps(); ++step)
    for (i32 c = 0; c < 3; ++c)
      for (i32 r = 0; r < 2; ++r) {
        const i32 row = (2 * r + row_warp) * 16, col = (2 * c + col_warp) * 8, k = step * kPlan.atom.k();
        u32 a[4], b[2];
        for (i32 i = 0; i < 4; ++i)
          a[i] = register_of<kBytes>(kLeft, i, args.left + i64(row) * kPlan.depth * kBytes, kPlan.depth, k,
                                     in_warp);
        for (i32 i = 0; i < 2; ++i)
          b[i] = register_of<kBytes>(kRight, i, args.right + i64(col) * kPlan.depth * kBytes, kPlan.depth, k,
                                     in_warp);
        multiply_warp<kTerms>(sums[c][r], a, b);
      }
  store_sums_case(kSums, &sums[0][0][0], kSums.each(), reinterpret_cast<float*>(args.out));
}

template <i32 kBytes>
inline void fill_tile(const OperandTile& tile, const u8* from, u8* to) {
  for (i32 at = i32(threadIdx.x); at < tile.rows * tile.depth; at += i32(blockDim.x)) {
    const i32 row = at % tile.rows, k = at / tile.rows, place = tile.place(row, k) * kBytes;
    for (i32 b = 0; b < kBytes; ++b) to[place + b] = from[(i64(row) * tile.depth + k) * kBytes + b];
  }
}

template <arch::Terms kTerms, i32 kBytes, tile::From kFrom, tile::Major kLeft, tile::Major kRight, i32 kSpan,
          i32 kN, i32 kDescribed = kSpan>
inline void group_product_case(const ComponentArgs& args) {
  constexpr i32 kDepth = kSpan == 128 ? 256 / kBytes : 128 / kBytes;  // two spans at least
  constexpr tile::MmaPlan kPlan{
      tile::wgmma_atom(kN, kBytes, kFrom, kLeft, kRight), 64, kN, kDepth, 1, 1, kSpan};
  static_assert(kPlan.exists());
  constexpr OperandTile kA = kPlan.left_tile(), kB = kPlan.right_tile();
  constexpr Distribution kSums = kPlan.sums(), kFragment = kPlan.atom.left_fragment();
  u8 *a = shared_bytes(), *b = a + kA.bytes() / 1024 * 1024 + 1024;
  fill_tile<kBytes>(kA, args.left, a);
  fill_tile<kBytes>(kB, args.right, b);
  arch::show_to_copies();
  __syncthreads();
  const u64 at_a = (arch::on_chip(a).at & 0x3FFFF) >> 4, at_b = (arch::on_chip(b).at & 0x3FFFF) >> 4;
  constexpr auto kMajorA = arch::Major(kLeft), kMajorB = arch::Major(kRight);
  float sums[kN / 2] = {};
  u32 words[kPlan.steps()][4];
  for (i32 step = 0; step < kPlan.steps(); ++step)
    for (i32 i = 0; i < 4; ++i)
      words[step][i] =
          kFrom == tile::From::kRegisters
              ? register_of<kBytes>(kFragment, i, args.left, kDepth, step * kPlan.atom.k(), threadIdx.x)
              : 0;
  arch::keep(sums);
  for (i32 step = 0; step < kPlan.steps(); ++step) arch::keep(words[step]);
  arch::begin_products();
#pragma unroll
  for (i32 step = 0; step < kPlan.steps(); ++step) {
    const u64 da = tile::descriptor({kA.rows, kA.depth, kBytes, kLeft, kDescribed}).bits() + at_a +
                   u64(tile::step_bytes(kA, step) >> 4);
    const u64 db = tile::descriptor(kB).bits() + at_b + u64(tile::step_bytes(kB, step) >> 4);
    if constexpr (kFrom == tile::From::kRegisters)
      arch::multiply<kTerms, kMajorB>(sums, words[step], db, step > 0);
    else
      arch::multiply<kTerms, kMajorA, kMajorB>(sums, da, db, step > 0);
  }
  arch::commit_products();
  arch::wait_products<0>();
  arch::keep(sums);
  for (i32 step = 0; step < kPlan.steps(); ++step) arch::keep(words[step]);
  store_sums_case(kSums, sums, kSums.each(), reinterpret_cast<float*>(args.out));
}

// ---- Copies: a tile of 16-bit elements goes on chip as its plan says, and is read back where the layout says it lies.

template <CopyPlan kPlan>
inline void read_back(const ComponentArgs& args, const u16* chip) {
  for (i32 at = i32(threadIdx.x); at < kPlan.size(); at += kPlan.threads)
    reinterpret_cast<u16*>(args.out)[at % kPlan.rows * kPlan.cols + at / kPlan.rows] =
        chip[kPlan.swizzle(kPlan.to(at))];
}

template <CopyPlan kPlan>
inline void box_case(const ComponentArgs& args, const TensorMap* map) {
  static_assert(kPlan.boxes() > 0);
  auto* chip = reinterpret_cast<u16*>(shared_bytes());
  const arch::OnChip full = arch::on_chip(chip + kPlan.size());  // after the tile
  if (threadIdx.x == 0) {
    arch::init_barrier(full, 1);
    arch::fence_barriers();
    arch::expect_bytes(full, u32(kPlan.size() * 2));
    constexpr i32 kWide = kPlan.span_bytes() / 2;
    for (i32 box = 0; box < kPlan.boxes(); ++box)
      arch::load_box(arch::on_chip(chip + box * kWide * kPlan.lines()), map, full,
                     arch::Corner2{box * kWide, 0});
  }
  __syncthreads();
  arch::wait_barrier(full, 0);
  read_back<kPlan>(args, chip);
}

template <CopyPlan kPlan>
inline void copy_case(const ComponentArgs& args) {
  constexpr CopyWords kWords = kPlan.words();
  auto* chip = reinterpret_cast<u16*>(shared_bytes());
  for (i32 at = i32(threadIdx.x); at < kPlan.to.cosize(); at += kPlan.threads) chip[at] = 0xEEEE;
  __syncthreads();
#pragma unroll
  for (i32 i = 0; i < kWords.each(); ++i) {
    if (!kWords.is_even() && !kWords.has(threadIdx.x, u32(i))) continue;
    const CopyWord word = kWords.word(threadIdx.x, u32(i));
    const i32 valid = kWords.valid(word, args.rows, args.cols);
    const u8* from = args.left + (kWords.along_rows ? word.row * args.pitch_bytes + word.col * 2
                                                    : word.col * args.pitch_bytes + word.row * 2);
    if constexpr (kWords.width == 8) {
      arch::copy_bytes(chip + word.to, valid > 0 ? from : args.left, 2 * valid);
    } else {
      for (i32 e = 0; e < kWords.width; ++e)
        chip[word.to + e] = e < valid ? reinterpret_cast<const u16*>(from)[e] : u16(0);
    }
  }
  arch::commit_copies();
  arch::wait_copies(0);
  __syncthreads();
  read_back<kPlan>(args, chip);
}

// ---- Sums over the rows of a fragment: each row's sum, from every thread that holds it.

template <Distribution kWho, tile::Over kOver>
inline void reduce_case(const ComponentArgs& args) {
  constexpr tile::ReduceStages kStages = tile::reduce_stages(kWho, kOver);
  static_assert(kStages.stays_in_warp());
  for (i32 j = 0; j < kStages.outputs.size(); ++j) {
    float sum = 0;
    for (i32 i = 0; i < kStages.in_thread.size(); ++i)
      sum += float(i32(kWho.thread(threadIdx.x)) + kWho.fragment(kStages.outputs(j) + kStages.in_thread(i)));
#pragma unroll
    for (i32 m = 0; m < kStages.masks; ++m) sum += __shfl_xor_sync(~0u, sum, kStages.mask[m]);
    const i32 at = i32(kWho.thread(threadIdx.x)) + kWho.fragment(kStages.outputs(j));
    const i32 output = kOver == tile::Over::kColumns ? at % kWho.rows : at / kWho.rows;
    const i32 copy =
        kOver == tile::Over::kColumns ? at / kWho.rows : at % kWho.rows;  // which other lanes hold
    reinterpret_cast<float*>(args.out)[output * 512 + copy] = sum;
  }
}

}  // namespace heddle::device
