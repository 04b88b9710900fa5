// bf16 products on AMX: tiles of 16 rows by 16 columns. A packed panel is in the layout of the second operand
// as it stands: 16 rows of 64 bytes, each a pair of k for 16 columns, make one tile of 32 k.
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

constexpr i32 kTileCols = 32;     // k of one tile
constexpr i64 kTileBytes = 1024;  // of one tile of a panel
constexpr i32 kBlockTiles = 16;   // k tiles that are multiplied before the next rows: 32 KB of two panels
constexpr i32 kTileRows = 16;

struct alignas(64) TileConfig {
  u8 palette = 1;
  u8 start_row = 0;
  u8 reserved[14] = {};
  u16 row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  u8 rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// kRows tiles of the operand times kPanels panels, over a run of k tiles. Sums are tiles 0 to 3, operand
// tiles 4 and 5, panels 6 and 7.
struct Run {
  const u8* x;
  i64 x_stride;  // bytes
  const u8* panel[2];
  i32 tiles;
  float* out;
  i64 out_stride;  // bytes
  bool first;      // the sums begin here
};

template <int kRows, int kPanels>
__attribute__((target("amx-tile,amx-bf16"))) void multiply_run(const Run& run) {
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
    _tile_loadd(4, x, run.x_stride);
    _tile_loadd(6, run.panel[0] + at, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPanels > 1) {
      _tile_loadd(7, run.panel[1] + at, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRows > 1) {
      _tile_loadd(5, x + kTileRows * run.x_stride, run.x_stride);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kPanels > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, run.out, run.out_stride);
  if constexpr (kPanels > 1) _tile_stored(1, run.out + 16, run.out_stride);
  if constexpr (kRows > 1) _tile_stored(2, below, run.out_stride);
  if constexpr (kRows > 1 && kPanels > 1) _tile_stored(3, below + 16, run.out_stride);
}

// All rows times one or two panels over a run of k tiles, `from` on.
template <int kPanels>
void multiply_rows(const MatrixTask& task, Run run, i32 from) {
  for (i32 m = 0; m < task.rows; m += 2 * kTileRows) {
    run.x = task.x + m * task.x_stride + i64(from) * 64;
    if (task.rows - m > kTileRows)
      multiply_run<2, kPanels>(run);
    else
      multiply_run<1, kPanels>(run);
    run.out = reinterpret_cast<float*>(reinterpret_cast<u8*>(run.out) + 2 * kTileRows * run.out_stride);
  }
}

// One or two panels, from panel p on.
template <int kPanels>
void multiply_panels(const MatrixTask& task, i32 p) {
  const i32 whole = task.w->cols() / kTileCols, rest = (task.w->cols() + 1) / 2 * 2 - whole * kTileCols;
  Run run{.x_stride = task.x_stride, .out_stride = task.out_stride * 4};
  for (i32 from = 0; from < whole; from += kBlockTiles) {
    for (i32 i = 0; i < kPanels; ++i) run.panel[i] = task.panel(p + i) + from * kTileBytes;
    run.tiles = std::min(kBlockTiles, whole - from);
    run.out = task.out + p * kPanelRows;
    run.first = from == 0;
    multiply_rows<kPanels>(task, run, from);
  }
  if (rest == 0) return;
  alignas(64) u8 last[2][kTileBytes] = {};
  for (i32 i = 0; i < kPanels; ++i) {
    std::memcpy(last[i], task.panel(p + i) + whole * kTileBytes, size_t(rest) * 32);
    run.panel[i] = last[i];
  }
  run.tiles = 1;
  run.out = task.out + p * kPanelRows;
  run.first = whole == 0;
  multiply_rows<kPanels>(task, run, whole);
}

__attribute__((target("amx-tile"))) void multiply(const MatrixTask& task) {
  const TileConfig config;
  _tile_loadconfig(&config);
  i32 p = 0;
  for (; p + 2 <= task.panels; p += 2) multiply_panels<2>(task, p);
  if (p < task.panels) multiply_panels<1>(task, p);
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
