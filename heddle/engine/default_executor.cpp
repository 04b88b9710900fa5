#include "heddle/engine/default_executor.h"

#include <fmt/format.h>

#include "heddle/ir/row_classes.h"

namespace heddle {
namespace {

// The devices of an executor's backend that can be used, the best one first.
std::vector<i32> devices_of(const char* executor) {
  const Backend& backend = backend_of(executor);
  return backend.devices ? backend.devices() : std::vector<i32>{0};
}

}  // namespace

DefaultExecutor default_executor() {
  const std::string why = get_executor(kGpuExecutor).unavailable();
  const std::vector<i32> devices = devices_of(kGpuExecutor);
  if (why.empty()) return {.name = kGpuExecutor, .device = devices.front()};
  return {.name = kCpuExecutor,
          .not_taken = fmt::format("{}: {}", kGpuExecutor, why),
          .has_device = !devices.empty()};
}

const ExecutorSpec& executor_for(const std::string& executor, const Program& program) {
  const ExecutorSpec& asked = get_executor(executor);
  return program.shape.rows >= kManyStepRows && asked.many_rows ? get_executor(asked.many_rows) : asked;
}

i32 default_device(const DeviceKind& kind) {
  const Backend& backend = backend_of(kind.executor);
  if (backend.devices && backend.kind)
    for (const i32 device : backend.devices())
      if (const DeviceKind found = backend.kind(device);
          found.arch == kind.arch && (kind.units == 0 || found.units == kind.units))
        return device;
  return 0;
}

std::string describe_choice(const std::string& executor, i32 device, bool by_default) {
  std::string text = fmt::format("{} on {}", executor, backend_of(executor).device(device));
  if (device > 0) text += fmt::format(", cuda:{}", device);
  const std::string not_taken = by_default ? default_executor().not_taken : "";
  return not_taken.empty() ? text : fmt::format("{}; not {}", text, not_taken);
}

}  // namespace heddle
