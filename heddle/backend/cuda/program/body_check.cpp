#include "heddle/backend/cuda/program/body_check.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/base/error.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/row_classes.h"

namespace heddle::cuda {
namespace {

// Each breaks a rule of tile bodies.
constexpr const char* kFaults[] = {"#include <vector>", "void f() { throw 1; }"};

void require_strict_compiler(const std::string& arch) {
  std::vector<CompileRequest> requests;
  for (const char* fault : kFaults) requests.push_back({fault, fault, arch, {}});
  const std::vector<Result<Compiled>> results = try_compile(requests);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i]) fail(ErrorCode::kInternal, "[check] the device compiler accepted '{}'", kFaults[i]);
}

// Returns what a kernel and the functions that it calls take, as if they were one kernel.
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

constexpr const char* kMeasuredArch = "sm_90a";

// Returns the longest chain that an op can be the main part of.
Opcode longest_chain(const OpSpec& op, std::span<const OpSpec* const> all) {
  Opcode chain{.ops = {op.name}};
  if (!op.traits.main) return chain;
  for (const OpSpec* other : all) {
    if (other->traits.epilogue && !op.traits.output.empty()) chain.ops.push_back(other->name);
    if (other->traits.prologue && chain.main == 0 && !op.traits.input.empty()) {
      chain.ops.insert(chain.ops.begin(), other->name);
      chain.main = 1;
    }
  }
  return chain;
}

// The configurations that the op's cases have, which are few and stand for those of other calls.
std::vector<OpConfig> configs_of_cases(const OpSpec& op) {
  std::vector<OpConfig> all;
  if (!op.configs || !op.cases) return all;
  for (Case& test : op.cases()) {
    op.infer(test.args.data());
    for (const OpConfig& config : configs_of(op, test.args.data(), {.gpu = true}))
      if (std::ranges::find(all, config.values(), &OpConfig::values) == all.end()) all.push_back(config);
  }
  return all;
}

// The whole kernels of an op's cases. Kernels that serve several cases come once.
std::vector<KernelRequest> kernels_of_cases(const OpSpec& op, const std::string& arch, bool all_configs) {
  std::vector<KernelRequest> all;
  for (Case& test : op.kernel&& op.cases ? op.cases() : std::vector<Case>()) {
    op.infer(test.args.data());
    for (KernelRequest& kernel : kernel_requests(op, test.args.data(), arch, all_configs))
      if (std::ranges::none_of(
              all, [&](const KernelRequest& other) { return other.request.source == kernel.request.source; }))
        all.push_back(std::move(kernel));
  }
  return all;
}

// Whole kernels keep all in registers, but for what their constant `spills` says. The assembler says where it had to put products one after the other.
std::string fault_of_kernel(const Compiled& compiled, const BodyCheck& check) {
  for (const char* number : {"C7510", "C7511", "C7512", "C7513", "C7514", "C7515", "C7516", "C7517", "C7518"})
    if (const size_t at = compiled.log.find(number); at != std::string::npos)
      return compiled.log.substr(at, compiled.log.find('\n', at) - at);
  const int spills = check.config.contains("spills") ? int(check.config.at("spills")) : 0;
  return over_budget(check.use, {.stack_bytes = spills, .spill_bytes = spills});
}

KernelTraits traits_for(i32 rows) {
  KernelTraits traits{.rows = rows};
  for (const DTypeInfo& info : kDTypes) traits.types[size_t(info.type)] = is_wide_float(info.type);
  return traits;
}

// Products of many rows on tensor cores hold more sums than there are registers for. The longest chain around them
// begins with a merge, which steps of many rows run by itself. A variant holds a call of the generic body that it
// falls back to, with a copy of the arguments, besides its own paths. Bodies that decode stay on chip on the
// architecture on which that was measured. Those that no model decodes with may take some stack, and more where a whole
// kernel takes the calls that matter.
Budget budget_of(const BodyCheck& check) {
  if (check.rows > 1) return {.stack_bytes = has_variant(check.op) ? 1024 : 768, .spill_bytes = 3584};
  if (has_variant(check.op)) return {.stack_bytes = 1024, .spill_bytes = 2048};
  if (check.arch != kMeasuredArch) return {.stack_bytes = 320, .spill_bytes = 1024};
  if (get_op(check.op).traits.main)
    return {.stack_bytes = 32, .spill_bytes = 128};  // no model has all epilogues
  if (get_op(check.op).kernel) return {.stack_bytes = 1024, .spill_bytes = 256};
  return {.stack_bytes = 32};
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

std::vector<BodyCheck> check_bodies(std::span<const std::string> archs, const BodyCheckOptions& options) {
  require(!archs.empty(), "[check] no architecture is named; heddle knows {}", known_arch_names());
  for (const std::string& arch : archs) require_known_arch(arch);
  const std::vector<const OpSpec*> all = all_ops();
  std::vector<const OpSpec*> wanted;
  for (const std::string& op : options.ops) wanted.push_back(&get_op(op));
  if (options.ops.empty()) wanted = all;
  require_strict_compiler(archs.front());
  std::vector<std::string> compiler_options;
  if (options.unoptimised) compiler_options.push_back("--device-debug");
  std::vector<CompileRequest> requests;
  std::vector<BodyCheck> checks;
  const auto want = [&](const OpSpec& op, const std::string& arch, i32 rows, const OpConfig& config) {
    Opcode chain = longest_chain(op, all);
    chain.config = config;
    requests.push_back({op.name, call_source(chain, traits_for(rows), arch), arch, compiler_options});
    checks.push_back({.op = op.name, .arch = arch, .rows = rows, .config = config});
  };
  for (const OpSpec* op : wanted) {
    const bool has_many =
        op->traits.main || has_variant(op->name);  // else the kernel of one row is that of many
    const std::vector<OpConfig> configs =
        options.all_configs ? configs_of_cases(*op) : std::vector<OpConfig>{};
    for (const std::string& arch : archs) {
      want(*op, arch, 1, {});
      if (has_many) want(*op, arch, kPromptStepRows, {});
      for (const OpConfig& config : configs) want(*op, arch, has_many ? kPromptStepRows : 1, config);
      for (KernelRequest& kernel : kernels_of_cases(*op, arch, options.all_configs)) {
        kernel.request.options = compiler_options;
        checks.push_back(
            {.op = kernel.request.name, .arch = arch, .config = kernel.constants, .is_kernel = true});
        requests.push_back(std::move(kernel.request));
      }
    }
  }
  for (CompileRequest& request : requests) request.may_be_packaged = false;
  const std::vector<Result<Compiled>> results = try_compile(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    BodyCheck& check = checks[i];
    if (results[i]) {
      check.use = together(results[i].value().kernels);
      check.seconds = results[i].value().seconds;
      if (options.keeps_code) check.code = results[i].value().cubin, check.log = results[i].value().log;
      if (options.unoptimised) continue;
      check.failure = check.is_kernel ? fault_of_kernel(results[i].value(), check)
                                      : over_budget(check.use, budget_of(check));
    } else {
      check.failure = results[i].message();
    }
  }
  return checks;
}

}  // namespace heddle::cuda
