// Lists the code that is compiled for a program. Executors compile it when they are made; it can also be compiled
// ahead of time, for a device that need not be here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/ir/executor/executor.h"

namespace heddle::cuda {

// Requests the kernel `megakernel`.
std::vector<CompileRequest> megakernel_requests(const Program& program, const std::string& arch,
                                                Knowledge knowledge);

// Requests the kernel `standalone` of a call.
CompileRequest standalone_request(const OpSpec& op, const std::byte* args, const std::string& arch,
                                  const OpConfig& config = {});

// Requests the kernels `launch0`, `launch1`, ... of a call that runs as a whole kernel.
CompileRequest kernel_request(const OpSpec& op, const std::byte* args, const KernelPlan& plan,
                              const std::string& arch);
// Requests the whole kernels of such a call on `arch`: its default, or all of its configurations. Empty where none fits.
struct KernelRequest {
  std::vector<std::byte> args;  // what the plan was made for
  KernelPlan plan;
  CompileRequest request;
};
std::vector<KernelRequest> kernel_requests(const OpSpec& op, const std::byte* args, const std::string& arch,
                                           bool all_configs);

// Compiles the code of both executors. Throws Error(kUnsupported) where there is no compiler, Error(kInvalidArgument)
// for an architecture that heddle has no code for.
DeviceCode compile_ahead(std::span<const Program> programs, const std::string& arch);

// Compiles the kernels of calls of `ops`, as DeviceCompiler::compile_calls does. Throws as compile_ahead does.
DeviceCode compile_calls(std::span<const std::string> ops, const std::string& arch, bool all_configs);

}  // namespace heddle::cuda
