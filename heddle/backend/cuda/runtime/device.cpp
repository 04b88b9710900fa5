#include "heddle/backend/cuda/runtime/device.h"

#include <memory>
#include <mutex>
#include <vector>

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// The primary context of a device, retained once: releasing it at the end of the process would race with what else
// of the process uses it.
ContextHandle retained_context(int device) {
  static std::mutex mutex;
  static std::vector<ContextHandle> retained;
  const std::lock_guard lock(mutex);
  if (retained.size() <= size_t(device)) retained.resize(size_t(device) + 1);
  if (!retained[size_t(device)]) driver().primary_context_retain(&retained[size_t(device)], device);
  return retained[size_t(device)];
}

// "0 NVIDIA H200, 1 NVIDIA H200"
std::string names_of_all() {
  std::string names;
  for (int i = 0; i < Device::count(); ++i)
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, Device::listed(i).name());
  return names;
}

}  // namespace

const Device& Device::at(int ordinal) {
  const Device& device = listed(ordinal);
  if (const std::string& why = why_device_unusable(ordinal); !why.empty())
    fail(ErrorCode::kUnsupported, "[cuda] device {} ({}) {}; this machine has {}", ordinal, device.name(),
         why, names_of_all());
  return device;
}

const Device& Device::listed(int ordinal) {
  driver();  // throws where there is none
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Device>> devices(static_cast<size_t>(count()));
  if (ordinal < 0 || size_t(ordinal) >= devices.size())
    fail(ErrorCode::kInvalidArgument, "[cuda] there is no device {}; this machine has {} ({})", ordinal,
         devices.size(), names_of_all());
  const std::lock_guard lock(mutex);
  std::unique_ptr<Device>& device = devices[size_t(ordinal)];
  if (!device) device.reset(new Device(ordinal));
  return *device;
}

const Device& Device::of_handle(int handle) {
  for (int ordinal = 0;; ++ordinal)
    if (const Device& device = listed(ordinal); device.handle_ == handle) return at(ordinal);
}

int Device::count() {
  int count = 0;
  if (why_unavailable().empty()) driver().device_get_count(&count);
  return count;
}

Device::Device(int ordinal) : ordinal_(ordinal) {
  driver().device_get(&handle_, ordinal);
  char name[256] = {};
  driver().device_get_name(name, sizeof name - 1, handle_);
  name_ = name;
  char bus[32] = {};
  if (driver().device_get_bus.try_call(bus, sizeof bus, handle_) == kSuccess) bus_ = bus;
  size_t memory = 0;
  driver().device_total_mem(&memory, handle_);
  memory_ = i64(memory);
  compute_major_ = attribute(DeviceAttribute::kComputeMajor);
  compute_minor_ = attribute(DeviceAttribute::kComputeMinor);
  arch_ = arch_name(compute_major_, compute_minor_);
  multiprocessors_ = attribute(DeviceAttribute::kMultiprocessors);
  shared_per_block_optin_ = attribute(DeviceAttribute::kSharedPerBlockOptin);
  shared_per_multiprocessor_ = attribute(DeviceAttribute::kSharedPerMultiprocessor);
  l2_bytes_ = attribute(DeviceAttribute::kL2Bytes);
  max_clock_khz_ = attribute(DeviceAttribute::kClockKilohertz);
  memory_speed_ = i64(attribute(DeviceAttribute::kMemoryKilohertz)) * 1000 *
                  attribute(DeviceAttribute::kMemoryBits) * 2 / 8;
}

int Device::attribute(DeviceAttribute which) const {
  int value = 0;
  driver().device_get_attribute(&value, which, handle_);
  return value;
}

ContextHandle Device::context() const {
  ContextHandle current = nullptr;
  driver().context_get_current(&current);
  if (current) {
    int device = -1;
    driver().context_get_device(&device);
    if (device == handle_) return current;
  }
  return primary_context();
}

ContextHandle Device::primary_context() const {
  return retained_context(handle_);
}

void Device::synchronize() const {
  const ContextScope scope(*this);
  driver().context_synchronize();
}

std::string arch_name(int compute_major, int compute_minor) {
  const bool specific = compute_major == 9 || compute_major == 10;
  return fmt::format("sm_{}{}{}", compute_major, compute_minor, specific ? "a" : "");
}

MemoryInfo memory_info(const Device& device) {
  const ContextScope scope(device);
  size_t free = 0, total = 0;
  driver().memory_get_info(&free, &total);
  return {i64(free), i64(total)};
}

ContextScope::ContextScope(ContextHandle context) {
  ContextHandle current = nullptr;
  driver().context_get_current(&current);
  if (current == context) return;
  driver().context_push_current(context);
  pushed_ = true;
}

ContextScope::~ContextScope() {
  ContextHandle popped = nullptr;
  if (pushed_) driver().context_pop_current.try_call(&popped);
}

}  // namespace heddle::cuda
