// The CUDA backend: which executors it has, and what `heddle env` says of it.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/compiler/cubin_cache.h"
#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/compiler/packaged_code.h"
#include "heddle/backend/cuda/compiler/sources.h"
#include "heddle/backend/cuda/executors/bandwidth.h"
#include "heddle/backend/cuda/executors/device_program.h"
#include "heddle/backend/cuda/executors/device_space.h"
#include "heddle/backend/cuda/executors/op_call.h"
#include "heddle/backend/cuda/program/body_check.h"
#include "heddle/backend/cuda/program/launches_code.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/backend/cuda/runtime/free_memory.h"
#include "heddle/base/error.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

std::unique_ptr<Executor> create_launches(const Program&, const Memory&, const ExecutorOptions&);
std::unique_ptr<Executor> create_megakernel(const Program&, const Memory&, const ExecutorOptions&);

namespace cuda {
namespace {

std::string describe_gpu(const Device& device) {
  const std::optional<i64> free = free_memory(device);
  const std::string& why = why_device_unusable(device.ordinal());
  return fmt::format(
      "gpu         cuda:{}: {} ({}), {} SMs up to {} MHz, {:.1f} GB{}, {} KB of shared memory a block{}\n",
      device.ordinal(), device.name(), device.arch(), device.multiprocessors(), device.max_clock_khz() / 1000,
      double(device.memory()) * 1e-9, free ? fmt::format(" ({:.1f} GB free)", double(*free) * 1e-9) : "",
      device.shared_per_block_optin() / 1024, why.empty() ? "" : "; cannot be used: it " + why);
}

// The devices that can be used, the one with the most free memory first. An earlier one stays before those that have
// a little more: what is free changes all the time, and the choice should not.
std::vector<i32> devices_by_room() {
  constexpr double kClearlyMore = 1.1;
  std::vector<i32> devices;
  for (int i = 0; i < Device::count(); ++i)
    if (why_device_unusable(i).empty()) devices.push_back(i);
  if (devices.size() < 2) return devices;
  std::vector<double> free(static_cast<size_t>(Device::count()));
  for (const i32 i : devices) free[size_t(i)] = double(free_memory(Device::at(i)).value_or(0));
  for (size_t next = 1; next < devices.size(); ++next)
    for (size_t at = next; at > 0; --at)
      if (free[size_t(devices[at])] > kClearlyMore * free[size_t(devices[at - 1])])
        std::swap(devices[at], devices[at - 1]);
  return devices;
}

std::string describe_cache() {
  try {
    const CubinCache& cache = CubinCache::of_process();
    const CubinCache::Usage usage = cache.usage();
    return fmt::format("cache       {}: {} compiled programs, {:.1f} MB of {} MB\n", cache.folder(),
                       usage.entries, double(usage.bytes) * 1e-6, cache.limit_bytes() / 1'000'000);
  } catch (const Error& error) {
    return fmt::format("cache       none: {}\n", error.what());
  }
}

std::string describe() {
  std::string text;
  if (!why_unavailable().empty()) text += fmt::format("gpu         none: {}\n", why_unavailable());
  for (int i = 0; i < Device::count(); ++i) text += describe_gpu(Device::listed(i));
  if (driver_version() > 0)
    text +=
        fmt::format("driver      for CUDA {}.{}\n", driver_version() / 1000, driver_version() % 1000 / 10);
  if (why_no_compiler().empty()) {
    const Nvrtc& nvrtc = Nvrtc::get();
    text += fmt::format("nvrtc       {}, {}{}\n", nvrtc.version_text(), nvrtc.path(),
                        nvrtc.passed_over().empty()
                            ? ""
                            : "; not taken, because the driver is older: " + nvrtc.passed_over());
  } else {
    text += fmt::format("nvrtc       none: {}\n", why_no_compiler());
  }
  if (const std::string packaged = PackagedCode::of_process().text(); !packaged.empty())
    text += fmt::format("packages    {}\n", packaged);
  if (const SourceTree& tree = source_tree(); tree.replaced > 0)
    text += fmt::format("sources     {} of {} device sources are those of {}\n", tree.replaced,
                        tree.files.size(), tree.folder);
  return text + describe_cache();
}

DeviceKind kind_of_device(i32 ordinal) {
  const Device& device = Device::at(ordinal);
  return {.name = device.name(),
          .executor = "megakernel",
          .arch = device.arch(),
          .units = device.multiprocessors()};
}

CodeCache cache_of(const CubinCache::Usage& usage) {
  const CubinCache& cache = CubinCache::of_process();
  return {cache.folder(), usage.entries, usage.bytes, cache.limit_bytes()};
}

std::vector<std::string> arch_names() {
  std::vector<std::string> names;
  for (const Arch& arch : known_archs()) names.emplace_back(arch.name);
  return names;
}

std::vector<DeviceKind> kinds() {
  std::vector<DeviceKind> all;
  for (const GpuModel& model : known_models())
    all.push_back(
        {.name = model.name, .executor = "megakernel", .arch = model.arch, .units = model.multiprocessors});
  return all;
}

const DeviceCompiler& compiler() {
  static const DeviceCompiler compiler = {
      .name = [] { return "NVRTC " + Nvrtc::get().version_text(); },
      .archs = arch_names(),
      .compile = compile_ahead,
      .compile_calls = compile_calls,
      .save_for_package = save_for_package,
      .check_bodies = check_bodies,
      .cache = [] { return cache_of(CubinCache::of_process().usage()); },
      .clear_cache = [] { return cache_of(CubinCache::of_process().clear()); },
  };
  return compiler;
}

}  // namespace

const Backend& backend() {
  set_driver_version(driver_version);
  static const auto why_not = [] {
    if (!why_unavailable().empty()) return why_unavailable();
    // Packages may have all that will be wanted. What they lack is refused by name when it is.
    return PackagedCode::of_process().is_there() ? std::string() : why_no_compiler();
  };
  static const auto no_device = [] { return why_unavailable(); };
  static const auto space = [](i32 device) -> MemorySpace& { return device_space(Device::at(device)); };
  static const auto multiprocessors = [](i32 device) { return i32(Device::at(device).multiprocessors()); };
  static const Backend backend = {
      .name = "cuda",
      .executors = {{.name = "launches",
                     .doc = "a GPU kernel for each op call, in a graph",
                     .create = create_launches,
                     .unavailable = why_not,
                     .no_device = no_device,
                     .space = space,
                     .workers = multiprocessors,
                     .bodies = bodies_on},
                    {.name = "megakernel",
                     .doc = "one persistent GPU kernel for whole steps",
                     .create = create_megakernel,
                     .unavailable = why_not,
                     .no_device = no_device,
                     .space = space,
                     .workers = multiprocessors,
                     .many_rows = "launches"}},
      .describe = describe,
      .device = [](i32 device) { return Device::at(device).name(); },
      .devices = devices_by_room,
      .read_bandwidth = [](i32 device, int) { return measure_read_bandwidth(Device::at(device)); },
      .op_calls = op_calls,
      .kinds = kinds(),
      .kind = kind_of_device,
      .compiler = &compiler(),
  };
  return backend;
}

}  // namespace cuda
}  // namespace heddle
