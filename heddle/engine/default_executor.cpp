#include "heddle/engine/default_executor.h"

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/ir/executor.h"

namespace heddle {
namespace {

constexpr const char* kGpu = "megakernel";
constexpr const char* kCpu = "threads";

bool has_device(const char* executor) {
  try {
    return !backend_of(executor).device(0).empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

DefaultExecutor default_executor() {
  const std::string why = get_executor(kGpu).unavailable();
  if (why.empty()) return {.name = kGpu};
  return {.name = kCpu, .not_taken = fmt::format("{}: {}", kGpu, why), .has_device = has_device(kGpu)};
}

std::string describe_choice(const std::string& executor, i32 device, bool by_default) {
  std::string text = fmt::format("{} on {}", executor, backend_of(executor).device(device));
  if (device > 0) text += fmt::format(", device {}", device);
  const std::string not_taken = by_default ? default_executor().not_taken : "";
  return not_taken.empty() ? text : fmt::format("{}; not {}", text, not_taken);
}

}  // namespace heddle
