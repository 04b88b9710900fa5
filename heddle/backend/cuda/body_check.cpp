#include "heddle/backend/cuda/body_check.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "heddle/backend/cuda/body_source.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

constexpr const char* kArchs[] = {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"};

// Each breaks a rule of tile bodies.
constexpr const char* kFaults[] = {"#include <vector>", "void f() { throw 1; }"};

void require_strict_compiler(const std::string& arch) {
  std::vector<CompileRequest> requests;
  for (const char* fault : kFaults) requests.push_back({fault, fault, arch, {}});
  const std::vector<Result<Compiled>> results = try_compile(requests);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i]) fail(ErrorCode::kInternal, "[check] the device compiler accepted '{}'", kFaults[i]);
}

// What a kernel and the functions it calls take together, as one.
KernelUse together(const std::vector<KernelUse>& kernels) {
  KernelUse all;
  for (const KernelUse& kernel : kernels) {
    if (kernel.registers > 0) all.name = kernel.name;
    all.registers = std::max(all.registers, kernel.registers);
    all.shared_bytes = std::max(all.shared_bytes, kernel.shared_bytes);
    all.stack_bytes = std::max(all.stack_bytes, kernel.stack_bytes);
    all.spill_store_bytes += kernel.spill_store_bytes;
    all.spill_load_bytes += kernel.spill_load_bytes;
  }
  return all;
}

}  // namespace

std::string over_budget(const KernelUse& use, const Budget& budget) {
  std::string text;
  const auto hold = [&](int value, int limit, const char* what) {
    if (value > limit)
      text += fmt::format("{}{} {} (the budget is {})", text.empty() ? "" : ", ", value, what, limit);
  };
  hold(use.registers, budget.registers, "registers");
  hold(use.shared_bytes, budget.shared_bytes, "bytes of shared memory");
  hold(use.stack_bytes, budget.stack_bytes, "bytes of stack");
  hold(use.spill_store_bytes + use.spill_load_bytes, budget.spill_bytes, "bytes spilled");
  return text;
}

std::span<const char* const> known_archs() {
  return kArchs;
}

std::vector<BodyCheck> check_bodies(std::span<const std::string> archs, int workers) {
  require(!archs.empty(), "[check] no architecture is named; heddle knows {}", fmt::join(kArchs, ", "));
  for (const std::string& arch : archs)
    require(std::find(std::begin(kArchs), std::end(kArchs), arch) != std::end(kArchs),
            "[check] {} is no architecture that heddle has code for; those are {}", arch,
            fmt::join(kArchs, ", "));
  require_strict_compiler(archs.front());
  std::vector<CompileRequest> requests;
  for (const OpSpec* op : all_ops())
    for (const std::string& arch : archs)
      requests.push_back({op->name, body_source(*op, all_ops()), arch, {}});
  const std::vector<Result<Compiled>> results = try_compile(requests, workers);
  std::vector<BodyCheck> checks;
  for (size_t i = 0; i < requests.size(); ++i) {
    BodyCheck check{requests[i].name, requests[i].arch, {}, 0, {}};
    if (results[i]) {
      check.use = together(results[i].value().kernels);
      check.seconds = results[i].value().seconds;
      check.failure = over_budget(check.use, Budget());
    } else {
      check.failure = results[i].message();
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace heddle::cuda
