// Whole kernels of an op: launches with threads, roles, clusters and tensor maps of their own, where a tile body in the
// frame of a CTA per tile would be slower. An op says in OpSpec::kernel how a call would be launched, as plain data; the
// code is in the file x_kernel.<file>.cuh next to the op (kit/kernel_sm80.cuh). A kernel is compiled for the dtypes of the arguments and for
// `KernelPlan::constants`, never for sizes or strides, which it reads when it runs.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "heddle/base/dtype.h"
#include "heddle/base/types.h"
#include "heddle/ir/config.h"

namespace heddle {

// A device that a whole kernel may run on.
struct KernelTarget {
  i32 arch = 0;  // 90 for compute capability 9.0
  i32 multiprocessors = 0;
  i64 shared_bytes = 0;      // the most that a CTA may have
  bool tensor_maps = false;  // bulk copies of boxes of a tensor
  bool fast_memory = false;  // like an H200's: arithmetic between loads and stores shows in the run time
};

// The permutation of the 16-byte words of a box in shared memory: none, or within rows of so many bytes.
enum class BoxSwizzle : u8 { kNone, k32, k64, k128 };

// A tensor as bulk copies see it: a box of it is copied at once. What lies outside of the tensor is read as zero and not
// written. Dimensions begin with the one whose elements are adjacent.
struct KernelMap {
  static constexpr int kMostRank = 5;

  u32 address = 0;            // bytes from the beginning of the arguments to the pointer of the tensor; or
  bool in_workspace = false;  // it lies in the workspace, and `offset` says where
  i64 offset = 0;             // bytes from that address to element 0
  DType dtype = DType::kBf16;
  i32 rank = 2;
  std::array<i64, kMostRank> size = {};    // elements
  std::array<i64, kMostRank> stride = {};  // bytes, a multiple of 16; stride[0] is not read
  std::array<i32, kMostRank> box = {};     // elements, at most 256 of a dimension
  BoxSwizzle swizzle = BoxSwizzle::k128;   // box[0] has at most so many bytes
  bool rounds_to_tf32 = false;             // loads round f32 to the nearest tf32
};

// One launch of a kernel.
struct KernelLaunch {
  std::string name = "Kernel";  // the struct in the device file that runs
  u32 grid = 1;                 // CTAs, a multiple of `cluster`
  u32 cluster = 1;              // CTAs that share memory on chip
  u32 threads = 128;            // a CTA has; the struct's kThreads
  i64 shared_bytes = 0;         // dynamic; aligned to 1,024 bytes
  std::vector<KernelMap> maps;
};

// The plan of a call that runs as a whole kernel.
struct KernelPlan {
  std::string why_not;                 // the reason why it does not, for people; empty: it does
  std::string note;                    // why it is not launched in a faster way, for people
  std::string file;                    // "sm90": the device file is x_kernel.sm90.cuh
  bool of_body = false;                // no file: kit/value_kernel.cuh makes it of the tile body
  bool from_anywhere = false;          // tensors may begin at addresses that are no multiples of 16
  OpConfig constants;                  // replace those of the file's `KernelConfig`
  std::vector<KernelLaunch> launches;  // one after the other
  i64 workspace_bytes = 0;
  i64 cleared_bytes = 0;  // set to zero at the beginning of the workspace before the first launch
};

// Plans a call whose arguments were checked. `config`: one of OpSpec::configs that names a kernel, or without values: the
// best for this call. Whether it fits follows from dtypes, sizes and strides, and from which addresses are multiples of 16 (null
// is one). The caller takes no plan where some are not, unless it is `from_anywhere`. Nothing that orders a sum may follow from the number of
// multiprocessors, or from the number of rows but for the class of the step (ir/row_classes.h).
using KernelRule =
    std::function<KernelPlan(const std::byte* args, const KernelTarget& target, const OpConfig& config)>;

// The value that makes a configuration one of a whole kernel.
constexpr const char* kKernelValue = "kernel";
inline bool is_of_kernel(const OpConfig& config) {
  return config.contains(kKernelValue) && config.at(kKernelValue) != 0;
}

}  // namespace heddle
