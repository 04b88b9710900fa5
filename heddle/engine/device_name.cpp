#include "heddle/engine/device_name.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "heddle/base/near_names.h"

namespace heddle {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kGpu = "cuda";
constexpr const char* kForms = "a device is cpu, cuda, or cuda:1 and so on";

std::optional<i32> number_in(std::string_view text) {
  i32 number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || at != end || number < 0) return std::nullopt;
  return number;
}

// Says why such a text is no device; "" where nothing is known of it.
std::string other_meaning(const std::string& text) {
  for (const Backend* backend : all_backends()) {
    for (const DeviceKind& kind : backend->kinds)
      if (kind.name == text) return "a card that heddle compile makes programs for";
    for (const ExecutorSpec& executor : backend->executors)
      if (executor.name == text) return fmt::format("an executor (--executor {})", text);
  }
  return std::ranges::count(known_archs(), text) > 0
             ? "an architecture that heddle compile makes programs for (--arch)"
             : "";
}

}  // namespace

std::string DeviceName::text() const {
  if (kind == Kind::kCpu) return kCpu;
  return ordinal ? fmt::format("{}:{}", kGpu, *ordinal) : kGpu;
}

DeviceName parse_device(const std::string& text, const std::string& where) {
  using Kind = DeviceName::Kind;
  if (text == kCpu) return {};
  if (text == kGpu) return {.kind = Kind::kGpu};
  const std::string_view rest = text;
  if (const auto number = number_in(rest)) return {.kind = Kind::kNumber, .ordinal = number};
  if (const std::string prefix = kGpu + std::string(":"); rest.starts_with(prefix))
    if (const auto number = number_in(rest.substr(prefix.size())))
      return {.kind = Kind::kGpu, .ordinal = number};
  if (const std::string meaning = other_meaning(text); !meaning.empty())
    fail(ErrorCode::kInvalidArgument, "[{}] {} is {}; {}", where, text, meaning, kForms);
  const std::vector<std::string> known = {kCpu, kGpu, "cuda:1"};
  fail(ErrorCode::kInvalidArgument, "[{}] '{}' is no device; {}{}", where, text, kForms,
       rest.starts_with("gpu") || rest == "nvidia" ? "; did you mean cuda?" : did_you_mean(text, known));
}

DefaultExecutor executor_on(const DeviceName& device) {
  DefaultExecutor chosen = default_executor();
  if (device.kind == DeviceName::Kind::kCpu) chosen = {.name = kCpuExecutor};
  if (device.kind == DeviceName::Kind::kGpu && chosen.name != kGpuExecutor) chosen = {.name = kGpuExecutor};
  if (device.ordinal) chosen.device = *device.ordinal;
  return chosen;
}

i32 ordinal_for(const std::string& executor, const DeviceName& device, const std::string& where) {
  const bool on_gpu = get_executor(executor).space != nullptr;
  if (device.kind != DeviceName::Kind::kNumber)
    require(on_gpu == (device.kind == DeviceName::Kind::kGpu), "[{}] is {}; {} runs on {}", where,
            device.text(), executor, on_gpu ? "a GPU: cuda, cuda:1" : "the CPU: cpu");
  if (device.ordinal || !on_gpu) return device.ordinal.value_or(0);
  const DefaultExecutor chosen = default_executor();
  return chosen.name == kGpuExecutor ? chosen.device : 0;
}

}  // namespace heddle
