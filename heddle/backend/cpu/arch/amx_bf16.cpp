// Multiplies bf16 matrices on AMX, in tiles of 16 rows by 16 columns. A packed panel already has the layout of the
// second operand: 16 rows of 64 bytes make one tile of 32 k, and each row holds a pair of k for 16 columns.
#include "heddle/backend/cpu/arch/arch.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace heddle {
namespace {

constexpr i32 kTileRows = 16;
constexpr i32 kTileCols = 32;     // k of one tile
constexpr i64 kTileBytes = 1024;  // one tile of a panel
constexpr i32 kLinesOfTile = 16;
constexpr i32 kBlockRows = 2 * kTileRows;
// From this many blocks of rows on, arithmetic is the limit; below it, memory is.
constexpr i32 kManyBlocks = 4;

// Returns how many k tiles a run covers. Where many blocks of rows use a run's panels, these stay in the L1 cache:
// two panels take 16 KB.
constexpr i32 run_tiles(i32 blocks) {
  return blocks >= kManyBlocks ? 8 : 64;
}

struct alignas(64) TileConfig {
  u8 palette = 1;
  u8 start_row = 0;
  u8 reserved[14] = {};
  u16 row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  u8 rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// GCC 12 does not know what the tile instructions read: its _tile_loadd names no memory, its _tile_loadconfig 8 bytes
// of 64. Without this it may drop what is stored for them or move it past them.
inline void store_what_tiles_read() {
  asm volatile("" ::: "memory");
}

// The product of kRows tiles of the operand and kPanels panels over a run of k tiles. Tile registers 0 to 3 hold the
// sums, 4 and 5 the operand, 6 and 7 the panels.
struct Run {
  const u8* x;
  i64 x_stride;  // bytes
  const u8* panel[2];
  i32 tiles;
  float* out;
  i64 out_stride;  // bytes
  bool first;      // the sums begin here
  // The next panels. Each block of rows prefetches a share of them: `lines` cache lines at each k tile.
  const u8* next[2] = {};
  i32 lines = 0;
};

template <int kRows, int kPanels>
__attribute__((target("amx-tile,amx-bf16"))) void multiply_run(const Run& run) {
  store_what_tiles_read();
  float* const below = reinterpret_cast<float*>(reinterpret_cast<u8*>(run.out) + kTileRows * run.out_stride);
  if (run.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, run.out, run.out_stride);
    if constexpr (kPanels > 1) _tile_loadd(1, run.out + 16, run.out_stride);
    if constexpr (kRows > 1) _tile_loadd(2, below, run.out_stride);
    if constexpr (kRows > 1 && kPanels > 1) _tile_loadd(3, below + 16, run.out_stride);
  }
  const u8* x = run.x;
  for (i64 at = 0; at < run.tiles * kTileBytes; at += kTileBytes, x += 64) {
    for (i32 i = 0; i < kPanels; ++i)
      for (i32 line = 0; line < run.lines; ++line)
        _mm_prefetch(reinterpret_cast<const char*>(run.next[i] + at + line * 64), _MM_HINT_T1);
    _tile_loadd(4, x, run.x_stride);
    _tile_loadd(6, run.panel[0] + at, 64);
    if constexpr (kPanels > 1) _tile_loadd(7, run.panel[1] + at, 64);
    if constexpr (kRows > 1) _tile_loadd(5, x + kTileRows * run.x_stride, run.x_stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPanels > 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kRows > 1) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kRows > 1 && kPanels > 1) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, run.out, run.out_stride);
  if constexpr (kPanels > 1) _tile_stored(1, run.out + 16, run.out_stride);
  if constexpr (kRows > 1) _tile_stored(2, below, run.out_stride);
  if constexpr (kRows > 1 && kPanels > 1) _tile_stored(3, below + 16, run.out_stride);
}

// Multiplies all rows by one or two panels.
template <int kPanels>
void multiply_rows(const MatrixTask& task, Run run) {
  for (i32 m = 0, line = 0; m < task.rows; m += kBlockRows) {
    if (task.rows - m > kTileRows)
      multiply_run<2, kPanels>(run);
    else
      multiply_run<1, kPanels>(run);
    run.x += kBlockRows * run.x_stride;
    run.out += kBlockRows * run.out_stride / 4;
    for (const u8*& next : run.next) next += run.lines * 64;
    line += run.lines;
    if (line >= kLinesOfTile) run.lines = 0;  // all lines are on their way
  }
}

// The part of the product that a run covers: panels p and, if there are two, p + 1 over k tiles [from, from + most),
// as far as `whole`.
struct Place {
  i32 p, from, most, whole;

  i32 tiles() const { return std::min(most, whole - from); }
};

// Returns the place of the run after this one: the next panels at the same k; after the last panels, the first ones
// at the next k; after the last k, the panels that the next call may take, at their first k.
Place next_place(const MatrixTask& task, Place at) {
  at.p += 2;
  if (at.p < task.panels) return at;
  at.p = 0, at.from += at.most;
  if (at.from >= at.whole) at.p = task.panels, at.from = 0;
  return at;
}

void multiply_panels(const MatrixTask& task, const Place& at) {
  const i32 panels = std::min(2, task.panels - at.p);
  Run run{.x = task.x + i64(at.from) * 64,
          .x_stride = task.x_stride,
          .tiles = at.tiles(),
          .out = task.out + at.p * kPanelRows,
          .out_stride = task.out_stride * 4,
          .first = at.from == 0};
  for (i32 i = 0; i < panels; ++i) run.panel[i] = task.panel(at.p + i) + at.from * kTileBytes;
  // Prefetches only where arithmetic is the limit; where memory is, more requests do not help. On a Xeon with AMX,
  // 256 rows gain 15 %.
  const i32 blocks = (task.rows + kBlockRows - 1) / kBlockRows;
  const Place next = next_place(task, at);
  if (blocks >= kManyBlocks && task.first_panel + next.p + 2 <= task.w->panels()) {
    for (i32 i = 0; i < 2; ++i) run.next[i] = task.panel(next.p + i) + next.from * kTileBytes;
    run.lines = (kLinesOfTile + blocks - 1) / blocks;
  }
  if (panels == 2)
    multiply_rows<2>(task, run);
  else
    multiply_rows<1>(task, run);
}

// Multiplies the k that do not fill a tile. Copies their part of the panels first, so that nothing past a panel is
// read.
void multiply_rest(const MatrixTask& task, i32 p, i32 from, i32 cols) {
  const i32 panels = std::min(2, task.panels - p);
  alignas(64) u8 last[2][kTileBytes] = {};
  Run run{.x = task.x + i64(from) * 64,
          .x_stride = task.x_stride,
          .panel = {last[0], last[1]},
          .tiles = 1,
          .out = task.out + p * kPanelRows,
          .out_stride = task.out_stride * 4,
          .first = from == 0};
  for (i32 i = 0; i < panels; ++i)
    std::memcpy(last[i], task.panel(p + i) + from * kTileBytes, size_t(cols) * 2 * kPanelRows);
  if (panels == 2)
    multiply_rows<2>(task, run);
  else
    multiply_rows<1>(task, run);
}

__attribute__((target("amx-tile"))) void multiply(const MatrixTask& task) {
  const TileConfig config;
  store_what_tiles_read();
  _tile_loadconfig(&config);
  const i32 cols = task.w->cols(), whole = cols / kTileCols, rest = (cols + 1) / 2 * 2 - whole * kTileCols;
  const i32 most = run_tiles((task.rows + kBlockRows - 1) / kBlockRows);
  for (i32 from = 0; from < whole; from += most)
    for (i32 p = 0; p < task.panels; p += 2) multiply_panels(task, {p, from, most, whole});
  if (rest > 0)
    for (i32 p = 0; p < task.panels; p += 2) multiply_rest(task, p, whole, rest);
  _tile_release();
}

}  // namespace

bool has_amx_bf16() {
  u32 a, b, c, features;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &features)) return false;
  constexpr u32 kBf16 = 1u << 22, kTile = 1u << 24;
  if ((features & kBf16) == 0 || (features & kTile) == 0) return false;
  // The kernel hands out the tile registers on request, to the whole process.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

MatrixKernel amx_bf16_kernel() {
  return multiply;
}

}  // namespace heddle

#else

namespace heddle {

bool has_amx_bf16() {
  return false;
}
MatrixKernel amx_bf16_kernel() {
  return nullptr;
}

}  // namespace heddle

#endif
