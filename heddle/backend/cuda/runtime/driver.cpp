#include "heddle/backend/cuda/runtime/driver.h"

#include <vector>

#include <dlfcn.h>

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int kOldestDriver = 12000;  // launch attributes and graphs as they are used here
constexpr int kErrorNotInitialized = 3;
constexpr int kOldestComputeMajor = 8;  // cp.async, bf16

struct LoadedDriver {
  Driver driver;
  int version = 0;
  std::string why_not;
  std::vector<std::string> why_not_device;  // for each of them, and empty where it can be used

  LoadedDriver() { why_not = initialise(); }

 private:
  // Makes the driver usable; returns why that cannot be. Functions that every driver has are called before it is known
  // that all others are there, because the version says more than the name of a function.
  std::string initialise() {
    if (!driver.library.is_open()) return driver.library.why_not();
    driver.driver_get_version.try_call(&version);
    if (version < kOldestDriver)
      return fmt::format(
          "the NVIDIA driver is too old: it is for CUDA {}.{}; heddle needs one for {}.{} or newer",
          version / 1000, version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10);
    int status = driver.init.try_call(0), count = 0;
    if (status == kSuccess) status = driver.device_get_count.try_call(&count);
    if (status == kErrorNoDevice || (status == kSuccess && count == 0))
      return "there is an NVIDIA driver but no GPU";
    if (status != kSuccess) return "the NVIDIA driver does not start: " + text(status);
    if (!driver.library.why_not().empty()) return driver.library.why_not();
    for (int ordinal = 0; ordinal < count; ++ordinal) why_not_device.push_back(why_no_use(ordinal));
    // One that can be used is enough.
    std::string all;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      const std::string& why = why_not_device[size_t(ordinal)];
      if (why.empty()) return {};
      all += fmt::format("{}GPU {} {}", ordinal == 0 ? "" : "; ", ordinal, why);
    }
    return all;
  }

  std::string why_no_use(int ordinal) const {
    int device = 0, major = 0, minor = 0;
    int status = driver.device_get.try_call(&device, ordinal);
    if (status == kSuccess)
      status = driver.device_get_attribute.try_call(&major, DeviceAttribute::kComputeMajor, device);
    if (status == kSuccess)
      status = driver.device_get_attribute.try_call(&minor, DeviceAttribute::kComputeMinor, device);
    if (status != kSuccess) return "does not answer: " + text(status);
    if (major >= kOldestComputeMajor) return {};
    return fmt::format("has compute capability {}.{}; heddle needs {}.0 or newer", major, minor,
                       kOldestComputeMajor);
  }

 public:
  std::string text(int status) const {
    const char *symbol = nullptr, *meaning = nullptr;
    driver.get_error_name.try_call(status, &symbol);
    driver.get_error_string.try_call(status, &meaning);
    return fmt::format("{} ({})", symbol ? symbol : "error " + std::to_string(status),
                       meaning ? meaning : "the driver has no text for it");
  }
};

const LoadedDriver& loaded() {
  static const LoadedDriver loaded;
  return loaded;
}

}  // namespace

DriverLibrary::DriverLibrary() : handle_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) why_not_ = fmt::format("no NVIDIA driver here ({})", ::dlerror());
}

void* DriverLibrary::find(const char* symbol) {
  void* address = handle_ ? ::dlsym(handle_, symbol) : nullptr;
  if (!address && why_not_.empty())
    why_not_ = fmt::format("the NVIDIA driver is not complete: {} has no {}", kLibrary, symbol);
  return address;
}

std::string status_text(int status) {
  return loaded().text(status);
}

void check_status(int status, const char* function) {
  if (status == kSuccess) return;
  if (status == kErrorNotInitialized)
    fail(ErrorCode::kDevice,
         "[cuda] {}: {}; a process that was forked from one that uses a GPU cannot use it: start it with "
         "spawn or forkserver",
         function, status_text(status));
  fail(ErrorCode::kDevice, "[cuda] {}: {}", function, status_text(status));
}

const std::string& why_unavailable() {
  return loaded().why_not;
}

const std::string& why_device_unusable(int ordinal) {
  return loaded().why_not_device.at(size_t(ordinal));
}

const Driver& driver() {
  if (!why_unavailable().empty())
    fail(ErrorCode::kUnsupported, "[cuda] no GPU can be used: {}", why_unavailable());
  return loaded().driver;
}

int driver_version() {
  return loaded().version;
}

}  // namespace heddle::cuda
