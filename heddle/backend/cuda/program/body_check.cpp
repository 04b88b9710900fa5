#include "heddle/backend/cuda/program/body_check.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/program/body_batch.h"
#include "heddle/backend/cuda/program/known_args.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/base/error.h"
#include "heddle/ir/call/op_call.h"
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
KernelUse sum_of(const std::vector<KernelUse>& kernels) {
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

// The types of a call: what they are, for people, as facts for the compiler, and which floats are multiplied with.
struct CallTypes {
  std::string text, facts;
  std::array<bool, kNumDTypes> uses = {};
};

// On its way through a product f16 takes the paths of bf16, or of f32. All compile unoptimised.
DType stands_for(DType type) {
  return type == DType::kF16 ? DType::kBf16 : type;
}

// An argument, and its type there; -1: it is left out.
using TypesSeen = std::set<std::pair<std::string, int>>;

CallTypes types_of(const OpSpec& op, Case& test, TypesSeen& seen) {
  op.infer(test.args.data());
  mark_given(op, test.args.data());
  CallTypes types;
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    const Tensor& value = field.elements(test.args.data());
    seen.emplace(field.name, value.exists() ? int(stands_for(value.dtype)) : -1);
    if (!value.exists()) continue;
    types.text += fmt::format("{}{} {}", types.text.empty() ? "" : ", ", field.name, name(value.dtype));
    types.uses[size_t(value.dtype)] |= is_wide_float(value.dtype);
  }
  types.facts = known_args(op, test.args.data(), Knowledge::kTypes).front();
  return types;
}

// The types of an op's calls, from few of its cases: among these each argument has each type that it has in a case, but
// for f16, and is left out where a case leaves it out.
std::vector<CallTypes> types_of_calls(const OpSpec& op) {
  std::vector<std::pair<CallTypes, TypesSeen>> cases;
  for (Case& test : op.cases ? op.cases() : std::vector<Case>()) {
    auto& [types, seen] = cases.emplace_back();
    types = types_of(op, test, seen);
  }
  std::ranges::stable_partition(cases, [](const auto& one) { return !one.first.uses[size_t(DType::kF16)]; });
  std::vector<CallTypes> all;
  TypesSeen covered;
  const auto adds = [&](const auto& one) {
    return std::ranges::count_if(one.second, [&](const auto& type) { return !covered.contains(type); });
  };
  while (!cases.empty()) {
    auto& most = *std::ranges::max_element(cases, {}, adds);
    if (adds(most) == 0) break;
    covered.insert(most.second.begin(), most.second.end());
    all.push_back(most.first);
  }
  return all;
}

// Returns what is known of a chain's arguments: the types of its main part, and for each other part those of its first case.
KnownArgs known_of(const Opcode& chain, const CallTypes& types) {
  KnownArgs known;
  for (size_t part = 0; part < chain.ops.size(); ++part) {
    const std::vector<CallTypes> others =
        part == chain.main ? std::vector{types} : types_of_calls(get_op(chain.ops[part]));
    known.push_back(others.empty() ? "" : others.front().facts);
  }
  return known;
}

// Kernels of calls know their types. Without them a product is ten times as large: it is optimised as calls have it.
bool is_made_for_types(const OpSpec& op) {
  return (takes_weight(op) || takes_matrix(op)) && op.cases;
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

void complete(BodyCheck& check, const Result<Compiled>& result, bool keeps_code) {
  if (!result) {
    check.failure = result.message();
    return;
  }
  const Compiled& compiled = result.value();
  check.use = sum_of(compiled.kernels);
  check.seconds = compiled.seconds;
  if (keeps_code) check.code = compiled.cubin, check.log = compiled.log;
  if (!check.optimised) return;
  check.failure =
      check.is_kernel ? fault_of_kernel(compiled, check) : over_budget(check.use, budget_of(check));
}

// Compiles the bodies and completes their checks. Those that are not optimised go many into one text, unless their code is
// wanted.
void compile_bodies(std::vector<WantedBody>& bodies, const BodyCheckOptions& options,
                    std::vector<BodyCheck>& checks) {
  std::vector<size_t> order[2];  // alone, together
  std::vector<WantedBody> together;
  std::vector<CompileRequest> alone;
  // Bodies of many rows take longest: none should begin when the others end.
  std::vector<size_t> longest_first(bodies.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::ranges::stable_sort(longest_first, std::ranges::greater(), [&](size_t i) { return checks[i].rows; });
  for (size_t i : longest_first) {
    const bool in_one_text = !checks[i].optimised && !(options.unoptimised && options.keeps_code);
    order[in_one_text].push_back(i);
    if (in_one_text)
      together.push_back(std::move(bodies[i]));
    else
      alone.push_back(std::move(bodies[i].alone));
  }
  // In this order: after unoptimised code NVRTC optimises less (jit.h).
  std::vector<Result<Compiled>> results[2];
  results[0] = try_compile(alone);
  results[1] = compile_together(together);
  for (const bool in_one_text : {false, true})
    for (size_t n = 0; n < order[in_one_text].size(); ++n)
      complete(checks[order[in_one_text][n]], results[in_one_text][n], options.keeps_code);
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
  if (!options.only_names) require_strict_compiler(archs.front());
  std::vector<WantedBody> bodies;
  std::vector<BodyCheck> checks;
  const auto add = [&](const OpSpec& op, const BodyCheck& check, const CallTypes* types) {
    WantedBody body{
        .alone = {op.name, "", check.arch, {}}, .opcode = longest_chain(op, all), .rows = check.rows};
    body.opcode.config = check.config;
    KernelTraits traits = traits_for(check.rows);
    if (types && std::ranges::count(types->uses, true) > 0) traits.types = types->uses;
    body.alone.source = call_source(body.opcode, traits, types ? known_of(body.opcode, *types) : KnownArgs());
    bodies.push_back(std::move(body));
    checks.push_back(check);
  };
  for (const OpSpec* op : wanted) {
    const bool has_many =
        op->traits.main || has_variant(op->name);  // else the kernel of one row is that of many
    const std::vector<OpConfig> configs =
        options.all_configs ? configs_of_cases(*op) : std::vector<OpConfig>{};
    const bool for_types = !options.unoptimised && is_made_for_types(*op);
    const std::vector<CallTypes> types = for_types ? types_of_calls(*op) : std::vector<CallTypes>{};
    const auto want = [&](const std::string& arch, i32 rows, const OpConfig& config) {
      BodyCheck check{.op = op->name, .arch = arch, .rows = rows, .config = config, .made_for = op->name};
      for (const CallTypes& of_call : types) {
        check.types = of_call.text;
        add(*op, check, &of_call);
      }
      // All paths of a body that is made for types are compiled too.
      check.types = {};
      check.optimised = !options.unoptimised && types.empty();
      add(*op, check, nullptr);
    };
    for (const std::string& arch : archs) {
      if (!options.kernels_alone) {
        want(arch, 1, {});
        if (has_many) want(arch, kPromptStepRows, {});
        for (const OpConfig& config : configs) want(arch, has_many ? kPromptStepRows : 1, config);
      }
      for (KernelRequest& kernel : kernels_of_cases(*op, arch, options.all_configs)) {
        checks.push_back({.op = kernel.request.name,
                          .arch = arch,
                          .config = kernel.plan.constants,
                          .optimised = !options.unoptimised,
                          .is_kernel = true,
                          .made_for = op->name});
        bodies.push_back({.alone = std::move(kernel.request),
                          .opcode = {},
                          .kernel_of = op,
                          .plan = std::move(kernel.plan),
                          .args = std::move(kernel.args)});
      }
    }
  }
  for (size_t i = 0; i < bodies.size(); ++i) {
    bodies[i].alone.may_be_packaged = false;
    if (!checks[i].optimised) bodies[i].alone.options = unoptimised_options();
    checks[i].code_name = code_name(bodies[i].alone);
  }
  if (!options.only_names) compile_bodies(bodies, options, checks);
  return checks;
}

}  // namespace heddle::cuda
