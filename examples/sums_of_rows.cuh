// The kernel of docs/kernels.md, which explains it, for the op of sums_of_rows.py.
#include "heddle/kit/kernel_sm80.cuh"
#include "heddle/tile/budget.h"
#include "heddle/tile/copy_plan.h"
#include "heddle/tile/mma_plan.h"
#include "heddle/tile/reduce_plan.h"

using namespace heddle;
using namespace heddle::device;
using namespace heddle::tile;

// A matrix of 16 x 64. Element row + 16 col lies at 64 row + col.
constexpr Layout kMatrix = by_rows(16, 64);
static_assert(kMatrix == line(16, 64).with(64, 1));
static_assert(kMatrix(3 + 16 * 5) == 64 * 3 + 5);

// compose(a, b)(i) = a(b(i)): row 3 is the indices 3, 19, 35, ...
static_assert(compose(kMatrix, line(64, 16))(5) == kMatrix(16 * 5));
// inverse: from an offset back to the index.
static_assert(kMatrix(inverse(kMatrix)(77)) == 77);
// complement: what a layout leaves out. Eight of each 32 are taken, so four such runs remain to be begun.
static_assert(complement(line(8), 32) == line(4, 8));
// divide: a tile, and the way from tile to tile.
constexpr LayoutPair kByEights = divide(line(64), line(8));
static_assert(kByEights.inner == line(8) && kByEights.outer == line(8, 8));
// product: a layout repeated.
static_assert(product(line(8), line(4)).outer == line(4, 8));

static_assert(common_vector(by_rows(32, 32), by_rows(32, 32)) == 1024);
static_assert(common_vector(by_rows(32, 32), line(32, 36).with(32, 1)) == 32);  // rows with a gap
static_assert(common_vector(by_rows(32, 32), by_columns(32, 32)) == 1);         // turned

constexpr Swizzle kBytes = swizzle_of_span(128);
static_assert(kBytes(0 * 128) / 16 % 8 == 0);
static_assert(kBytes(1 * 128) / 16 % 8 == 1);  // row 1 has its first word second
static_assert(kBytes(2 * 128) / 16 % 8 == 2);

// The sums of mma.sync, 16 x 8: a lane has two neighbours of a row, and the same of the row eight below.
constexpr Distribution kSums = mma_sums();
static_assert(kSums.each() == 4 && kSums.threads() == 32 && kSums.covers());
static_assert(kSums.element(5, 0).row == 1 && kSums.element(5, 0).col == 2);
static_assert(kSums.element(5, 2).row == 9 && kSums.element(5, 3).col == 3);
static_assert(kSums.owner(9 + 16 * 3).thread == 5 && kSums.owner(9 + 16 * 3).index == 3);
// It may store pairs along a row.
static_assert(kSums.widest_in_row() == 2);

// Stores a warp's sums to a matrix in memory.
inline void store_sums(const float (&sums)[4], float* to, i64 pitch) {
  static constexpr Distribution kWho = mma_sums();
  static constexpr auto kElements = offsets<kWho.fragment>();
#pragma unroll
  for (i32 i = 0; i < 4; ++i) {
    const u32 at = kWho.thread(lane()) + u32(kElements.at[i]);
    to[at % 16 * pitch + at / 16] = sums[i];
  }
}

// A tile of 64 x 64 elements of 16 bits, from rows in memory to rows of 128 bytes on chip with their words permuted.
constexpr OperandTile kTile{64, 64, 2};
constexpr CopyPlan kBring = copy_rows(64, 64, 2, 128, kTile.layout(), kTile.swizzle());
static_assert(kBring.width() == 8 && kBring.words().each() == 4 && kBring.words().is_even());
// Which instructions may do it: a tensor copy where there is one and memory is aligned, else cp.async.
static_assert(kBring.engine({.pitch_bytes = 8192, .alignment = 256, .has_bulk = true}) ==
              CopyEngine::kTensor);
static_assert(kBring.engine({.pitch_bytes = 8192, .alignment = 256}) == CopyEngine::kAsync);
static_assert(kBring.engine({.pitch_bytes = 8190, .alignment = 2}) == CopyEngine::kLoadStore);

template <CopyPlan kPlan>
inline void bring(const u8* from, i64 pitch_bytes, i32 rows, i32 cols, u8* chip) {
  static constexpr CopyWords kWords = kPlan.words();
  static constexpr i32 kBytes = kPlan.element_bytes;
  static_assert(kWords.width * kBytes == 16);
#pragma unroll
  for (u32 i = 0; i < u32(kWords.each()); ++i) {
    if (!kWords.is_even() && !kWords.has(threadIdx.x, i)) break;
    const CopyWord word = kWords.word(threadIdx.x, i);
    const i32 valid = kWords.valid(word, rows, cols);
    const u8* source = from + (valid > 0 ? word.row * pitch_bytes + word.col * kBytes : 0);
    arch::copy_bytes(chip + word.to * kBytes, source, valid * kBytes);
  }
  arch::commit_copies();
}

constexpr MmaPlan kPlan{mma_atom(2), 64, 64, 64, 4, 1};
static_assert(kPlan.exists() && kPlan.threads() == 128 && kPlan.sum_registers() == 32);
constexpr Budget kBudget =
    Budget{}.role("all", 4, 96).part("left", kTile.bytes(), 1024).part("right", kTile.bytes(), 1024);
static_assert(kBudget.fits() && kBudget.shared_bytes() == 16384);

// The 16 bytes at (row, k) of a tile.
inline const u8* word_at(const u8* tile, u32 row, u32 k) {
  static constexpr Layout kPlaces = kTile.layout();
  static constexpr Swizzle kSwizzle = kTile.swizzle();
  return tile + kSwizzle(kPlaces(row + 64 * k)) * 2;
}

// A kernel of an op is a struct. Its `run` gets the op's arguments; a CTA has 64 rows of `left` here.
template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 128;

  static void run(const Args& args, const TensorMap*, u8*) {
    const i32 first = i32(blockIdx.x) * 64, rows = args.left.size[0] - first, cols = args.right.size[0];
    u8* chip = arch::dynamic_shared();
    u8 *a = chip + kBudget.offset("left"), *b = chip + kBudget.offset("right");
    bring<kBring>(row_of(args.left, first), args.left.stride[0] * 2, rows, 64, a);
    bring<kBring>(args.right.data, args.right.stride[0] * 2, cols, 64, b);
    arch::wait_copies(0);
    __syncthreads();

    const u32 warp = threadIdx.x / 32;
    float sums[8][4] = {};
#pragma unroll
    for (u32 k = 0; k < 64; k += 16) {
      u32 x[4];
      arch::load_matrices(x, word_at(a, warp * 16 + lane() % 16, k + lane() / 16 * 8));
#pragma unroll
      for (u32 n = 0; n < 8; n += 2) {
        u32 y[4];
        arch::load_matrices(y, word_at(b, n * 8 + lane() / 16 * 8 + lane() % 8, k + lane() / 8 % 2 * 8));
        arch::multiply_add<true>(sums[n], x, {y[0], y[1]});
        arch::multiply_add<true>(sums[n + 1], x, {y[2], y[3]});
      }
    }

    // A thread has two rows: it adds its 16 elements of each, then four lanes exchange their sums.
    static constexpr ReduceStages kStages = reduce_stages(kPlan.sums(), Over::kColumns);
    static_assert(kStages.outputs.size() == 2 && kStages.in_thread.size() == 16 && kStages.masks == 2);
    static_assert(kStages.stays_in_warp());
    static constexpr auto kElements = offsets<join(kStages.in_thread, kStages.outputs)>();
    static constexpr Distribution kWho = kPlan.sums();
    static constexpr auto kRows = offsets<compose(kWho.fragment, kStages.outputs)>();
    float* const out = reinterpret_cast<float*>(args.y.data);
#pragma unroll
    for (i32 j = 0; j < 2; ++j) {
      float sum = 0;
#pragma unroll
      for (i32 i = 0; i < 16; ++i) sum += (&sums[0][0])[kElements.at[16 * j + i]];
#pragma unroll
      for (i32 m = 0; m < kStages.masks; ++m) sum += __shfl_xor_sync(~0u, sum, kStages.mask[m]);
      const u32 row = (kWho.thread(threadIdx.x) + u32(kRows.at[j])) % 64;
      if (lane() % 4 == 0 && i32(row) < rows) out[first + i32(row)] = sum;
    }
  }
};
