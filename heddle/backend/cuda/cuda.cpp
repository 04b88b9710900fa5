// The CUDA backend: which executors it has, and what `heddle env` says of it.
#include <string>

#include "heddle/backend/cuda/bandwidth.h"
#include "heddle/backend/cuda/cubin_cache.h"
#include "heddle/backend/cuda/device.h"
#include "heddle/backend/cuda/nvrtc.h"
#include "heddle/base/error.h"
#include "heddle/ir/executor.h"

namespace heddle {
namespace cuda {
namespace {

std::string describe_gpu(const Device& device) {
  return fmt::format(
      "gpu         {}: {} ({}), {} SMs up to {} MHz, {:.1f} GB, {} KB of shared memory a block\n",
      device.ordinal(), device.name(), device.arch(), device.multiprocessors(), device.max_clock_khz() / 1000,
      double(device.memory()) * 1e-9, device.shared_per_block_optin() / 1024);
}

std::string describe() {
  std::string text;
  if (!why_unavailable().empty()) text += fmt::format("gpu         none: {}\n", why_unavailable());
  for (int i = 0; i < Device::count(); ++i) text += describe_gpu(Device::get(i));
  if (driver_version() > 0)
    text +=
        fmt::format("driver      for CUDA {}.{}\n", driver_version() / 1000, driver_version() % 1000 / 10);
  if (why_no_compiler().empty())
    text += fmt::format("nvrtc       {}, {}\n", Nvrtc::get().version_text(), Nvrtc::get().path());
  else
    text += fmt::format("nvrtc       none: {}\n", why_no_compiler());
  const CubinCache& cache = CubinCache::of_process();
  const CubinCache::Usage usage = cache.usage();
  return text + fmt::format("cache       {}: {} compiled programs, {:.1f} MB of {} MB\n", cache.folder(),
                            usage.entries, double(usage.bytes) * 1e-6, cache.limit_bytes() / 1'000'000);
}

}  // namespace
}  // namespace cuda

const Backend& cuda_backend() {
  static const Backend backend = {
      .name = "cuda",
      .executors = {},
      .describe = cuda::describe,
      .device = [] { return cuda::Device::get().name(); },
      .read_bandwidth = [](int) { return cuda::measure_read_bandwidth(); },
  };
  return backend;
}

}  // namespace heddle
