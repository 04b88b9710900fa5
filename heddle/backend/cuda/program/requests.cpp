#include "heddle/backend/cuda/program/requests.h"

#include <algorithm>
#include <map>
#include <optional>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/program/kernel_source.h"
#include "heddle/backend/cuda/program/launches_code.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/base/error.h"
#include "heddle/ir/call/op_call.h"
#include "heddle/ir/registry.h"

namespace heddle::cuda {
std::vector<CompileRequest> megakernel_requests(const Program& program, const std::string& arch,
                                                Knowledge knowledge) {
  // The kernel is made for one program alone only where steps have few rows. For many rows, the whole kernel takes
  // long to compile.
  if (program.shape.rows > kStreamRows) knowledge = std::min(knowledge, Knowledge::kForms);
  return {{program.name + ", megakernel", megakernel_source(program, arch, knowledge), arch, {}}};
}

namespace {

// Compiles anew, or takes what this compiler has made before.
DeviceCode compile_fresh(const std::map<std::string, CompileRequest>& wanted) {
  std::vector<CompileRequest> requests;
  for (const auto& [name, request] : wanted) {
    requests.push_back(request);
    requests.back().may_be_packaged = false;
  }
  const std::vector<Compiled> compiled = compile(requests);
  DeviceCode code;
  for (size_t i = 0; i < requests.size(); ++i) code.emplace(code_name(requests[i]), compiled[i].cubin);
  return code;
}

}  // namespace

DeviceCode compile_ahead(std::span<const Program> programs, const std::string& arch) {
  require_known_arch(arch);
  std::map<std::string, CompileRequest> wanted;  // programs of other sizes share kernels
  const auto want = [&](const std::vector<CompileRequest>& requests) {
    for (const CompileRequest& request : requests) wanted.emplace(code_name(request), request);
  };
  for (const Program& program : programs) {
    // The code runs on every device of the architecture, whether or not its driver has tensor maps.
    for (const bool tensor_maps : {true, false})
      want(launches_code(program, arch, tensor_maps, Knowledge::kSizes).requests);
    if (program.shape.rows < kManyStepRows) want(megakernel_requests(program, arch, Knowledge::kSizes));
  }
  return compile_fresh(wanted);
}

CompileRequest standalone_request(const OpSpec& op, const std::byte* args, const std::string& arch,
                                  const OpConfig& config) {
  return {op.name, standalone_source(op, args, Knowledge::kTypes, config), arch, {}};
}

CompileRequest kernel_request(const OpSpec& op, const std::byte* args, const KernelPlan& plan,
                              const std::string& arch) {
  return {kernel_name(op, plan), kernel_source(op, args, plan), arch, {}};
}

namespace {

// True if some card of that architecture has such memory: an H100 and an H200 differ, every B200 has it, no other does.
bool may_have(const KernelTarget& target, bool fast_memory) {
  return target.arch == 90 || fast_memory == (target.arch == 100);
}

}  // namespace

std::vector<KernelRequest> kernel_requests(const OpSpec& op, const std::byte* args, const std::string& arch,
                                           bool all_configs) {
  if (!op.kernel) return {};
  // As in a call: what is given exists, though it may have no memory.
  std::vector<std::byte> given(args, args + op.args_size());
  mark_given(op, given.data());
  args = given.data();
  std::vector<KernelRequest> requests;
  for (const bool fast_memory : {false, true}) {
    KernelTarget target = kernel_target_of(arch);
    if (!may_have(target, fast_memory)) continue;
    target.fast_memory = fast_memory;
    std::vector<OpConfig> wanted = {OpConfig()};
    if (all_configs)
      for (const OpConfig& config : configs_of(op, args, {.gpu = true, .kernels = &target}))
        if (is_of_kernel(config)) wanted.push_back(config);
    for (const OpConfig& config : wanted) {
      const KernelPlan plan = op.kernel(args, target, config);
      if (!plan.why_not.empty()) continue;
      KernelRequest request{given, plan, kernel_request(op, args, plan, arch)};
      const auto same = [&](const KernelRequest& other) {
        return other.request.source == request.request.source;
      };
      if (std::ranges::none_of(requests, same)) requests.push_back(std::move(request));
    }
  }
  return requests;
}

namespace {

// A case's arguments with tensors of `dtype` where they are of a wide float type and may be of others, as the op's rules
// complete them; nothing where they refuse that.
std::optional<std::vector<std::byte>> with_dtype(const OpSpec& op, std::vector<std::byte> args, DType dtype) {
  for (const Field& field : op.fields) {
    if (field.is_attribute() || field.dtypes.size() < 2) continue;
    Tensor& tensor = field.elements(args.data());
    if (is_wide_float(tensor.dtype)) tensor.dtype = dtype;
  }
  try {
    // The second time, the outputs that the first one has made are given.
    return check_call(op, check_call(op, args.data()).args.data()).args;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The arguments, and those without the tensors that a call may leave out.
std::vector<std::vector<std::byte>> with_and_without_options(const OpSpec& op, const Case& test) {
  std::vector<std::vector<std::byte>> all(2, test.args);
  for (const Field& field : op.fields)
    if (field.optional && !field.is_attribute()) field.elements(all[1].data()) = Tensor();
  return all;
}

}  // namespace

DeviceCode compile_calls(std::span<const std::string> ops, const std::string& arch, bool all_configs) {
  require_known_arch(arch);
  std::map<std::string, CompileRequest> wanted;
  for (const std::string& name : ops) {
    const OpSpec& op = get_op(name);
    const auto want = [&](const std::vector<std::byte>& args, const OpConfig& config) {
      const CompileRequest request = standalone_request(op, args.data(), arch, config);
      wanted.emplace(code_name(request), request);
    };
    for (const Case& test : op.cases())
      for (const std::vector<std::byte>& given : with_and_without_options(op, test))
        for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16})
          if (const auto args = with_dtype(op, given, dtype)) {
            want(*args, {});
            for (const KernelRequest& kernel : kernel_requests(op, args->data(), arch, all_configs))
              wanted.emplace(code_name(kernel.request), kernel.request);
            if (!all_configs || !op.configs) continue;
            for (const OpConfig& config : configs_of(op, args->data(), {.gpu = true})) want(*args, config);
          }
  }
  return compile_fresh(wanted);
}

}  // namespace heddle::cuda
