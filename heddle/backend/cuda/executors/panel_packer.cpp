#include "heddle/backend/cuda/executors/panel_packer.h"

#include <algorithm>
#include <vector>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/runtime/kernel.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// The parameters of pack_panels, as the kernel has them.
struct PackParams {
  std::byte* to;
  const u64* rows;  // by row of all matrices: the address of its first column; 0: it stays
  i64 step;         // bytes from one column to the next
  i64 panel_bytes;
  i32 matrix_rows, bands, slices;  // rows of a matrix, bands in one, slices of a band
  i32 cols, slice_cols, panel_rows, interleave;
  i32 element;  // bytes: 2 or 4
};

// A CTA packs the columns of one panel, a group of `interleave` columns of a row at a time. Adjacent threads have
// adjacent rows, whose groups are adjacent in the panel; the lines of the rows stay in L1 for the next groups.
constexpr const char* kKernels = R"(
#include "heddle/base/types.h"
using namespace heddle;
inline i32 lesser(i32 a, i32 b) {
  return a < b ? a : b;
}
struct PackParams {
  u8* to;
  const u64* rows;
  i64 step, panel_bytes;
  i32 matrix_rows, bands, slices;
  i32 cols, slice_cols, panel_rows, interleave;
  i32 element;
};
extern "C" __global__ void pack_panels(PackParams p) {
  const i32 panel = blockIdx.x, band = panel / p.slices, slice = panel % p.slices;
  const i32 matrix = band / p.bands, first = band % p.bands * p.panel_rows;
  const i32 rows = lesser(p.panel_rows, p.matrix_rows - first);
  const i32 begin = slice * p.slice_cols, end = lesser(begin + p.slice_cols, p.cols);
  u8* const to = p.to + panel * p.panel_bytes;
  const i32 groups = (end - begin + p.interleave - 1) / p.interleave, group_bytes = p.interleave * p.element;
  const bool dense = p.step == p.element && group_bytes == 4;
  for (i32 at = threadIdx.x; at < groups * p.panel_rows; at += blockDim.x) {
    const i32 r = at % p.panel_rows, group = at / p.panel_rows;
    const u64 row = r < rows ? p.rows[i64(matrix) * p.matrix_rows + first + r] : 0;
    if (row == 0) continue;
    const i32 from = begin + group * p.interleave, count = lesser(p.interleave, end - from);
    const u64 source = row + u64(from * p.step);
    u8* const place = to + (i64(group) * p.panel_rows + r) * group_bytes;
    if (dense && count == p.interleave && source % 4 == 0) {
      *reinterpret_cast<u32*>(place) = *reinterpret_cast<const u32*>(source);
    } else if (p.element == 2) {
      for (i32 k = 0; k < count; ++k)
        reinterpret_cast<u16*>(place)[k] = *reinterpret_cast<const u16*>(source + u64(k * p.step));
    } else {
      for (i32 k = 0; k < count; ++k)
        reinterpret_cast<u32*>(place)[k] = *reinterpret_cast<const u32*>(source + u64(k * p.step));
    }
  }
}
extern "C" __global__ void find_not_finite(const u8* from, i64 count, u32 exponent, i32 element,
                                                                 u32* found) {
  const i64 stride = i64(gridDim.x) * blockDim.x;
  bool bad = false;
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const u32 value = element == 2 ? reinterpret_cast<const u16*>(from)[i] : reinterpret_cast<const u32*>(from)[i];
    bad |= (value & exponent) == exponent;
  }
  if (bad) *found = 1;
}
)";

constexpr u32 kThreads = 256;

class DevicePanelPacker : public PanelPacker {
 public:
  explicit DevicePanelPacker(const Device& device)
      : device_(device),
        module_(compile({"packing of weights", kKernels, device.arch(), {}}).cubin, device),
        pack_(module_.kernel("pack_panels")),
        look_(module_.kernel("find_not_finite")),
        stream_(device),
        found_(sizeof(u32), device) {
    fill(found_.data(), 0, found_.size(), stream_);
  }
  ~DevicePanelPacker() override {
    try {
      stream_.synchronize();
    } catch (const Error&) {  // finish() throws it
    }
  }

  void look(DType dtype, const std::byte* from, i64 count) override {
    const u32 exponent = not_finite_exponent(dtype);
    const i32 element = size_of(dtype);
    std::byte* const found = found_.data();
    const i64 ctas = std::min<i64>((count + kThreads - 1) / kThreads, i64(device_.multiprocessors()) * 8);
    if (count == 0) return;
    const void* args[] = {&from, &count, &exponent, &element, &found};
    launch(look_, {.grid = u32(ctas), .block = kThreads}, stream_, args);
  }
  bool all_finite() override {
    u32 found = 0;
    download(&found, found_.data(), sizeof found, stream_);
    fill(found_.data(), 0, found_.size(), stream_);
    stream_.synchronize();
    return found == 0;
  }

  void pack(const Weight& weight, std::span<const std::byte* const> rows, i64 step, std::byte* to) override {
    DeviceBuffer& places = places_.emplace_back(rows.size_bytes(), device_);
    upload(places.data(), rows.data(), rows.size_bytes(), stream_);
    const i32 bands = weight.panels() / weight.slices();
    const PackParams params{.to = to,
                            .rows = reinterpret_cast<const u64*>(places.data()),
                            .step = step,
                            .panel_bytes = weight.panel_bytes(),
                            .matrix_rows = weight.rows(),
                            .bands = bands,
                            .slices = weight.slices(),
                            .cols = weight.cols(),
                            .slice_cols = weight.slice_cols(),
                            .panel_rows = weight.panel_rows,
                            .interleave = weight.interleave,
                            .element = size_of(weight.data.dtype)};
    const void* args[] = {&params};
    launch(pack_, {.grid = u32(weight.panels()) * u32(weight.matrices), .block = kThreads}, stream_, args);
  }
  void finish() override {
    stream_.synchronize();
    places_.clear();
  }

 private:
  const Device& device_;
  Module module_;
  Kernel pack_, look_;
  Stream stream_;
  DeviceBuffer found_;                // u32: 1 where a look found a number that is not finite
  std::vector<DeviceBuffer> places_;  // rows' addresses, until the kernels have run
};

}  // namespace

std::unique_ptr<PanelPacker> make_panel_packer(const Device& device) {
  return std::make_unique<DevicePanelPacker>(device);
}

}  // namespace heddle::cuda
