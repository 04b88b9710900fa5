#include "heddle/backend/cuda/runtime/free_memory.h"

#include <type_traits>

#include <dlfcn.h>

namespace heddle::cuda {
namespace {

using NvmlDevice = struct nvmlDevice_st*;
struct NvmlMemory {  // nvmlMemory_t
  unsigned long long total = 0, free = 0, used = 0;
};

// Functions of nvml.h. The library stays open, as the process may ask again.
struct Nvml {
  int (*init)() = nullptr;
  int (*device_by_bus)(const char*, NvmlDevice*) = nullptr;
  int (*memory_info)(NvmlDevice, NvmlMemory*) = nullptr;
  bool ready = false;

  Nvml() {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      return function != nullptr;
    };
    ready = find(init, "nvmlInit_v2") && find(device_by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
            find(memory_info, "nvmlDeviceGetMemoryInfo") && init() == 0;
  }
};

}  // namespace

std::optional<i64> free_memory(const Device& device) {
  static const Nvml nvml;
  NvmlDevice handle = nullptr;
  NvmlMemory memory;
  if (!nvml.ready || nvml.device_by_bus(device.bus().c_str(), &handle) != 0 ||
      nvml.memory_info(handle, &memory) != 0)
    return {};
  return i64(memory.free);
}

}  // namespace heddle::cuda
