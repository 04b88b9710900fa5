#include "heddle/backend/cuda/program/requests.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
std::vector<CompileRequest> launches_requests(const Program& program, const std::string& arch,
                                              Knowledge knowledge) {
  const KernelTraits traits = KernelTraits::of(program, arch);
  std::vector<CompileRequest> requests;
  for (size_t i = 0; i < program.opcodes.size(); ++i)
    requests.push_back({fmt::format("{}, kernel of {}", program.name, fmt::join(program.opcodes[i].ops, "+")),
                        call_source(program.opcodes[i], traits, arch, known_args(program, i, knowledge)),
                        arch,
                        {}});
  return requests;
}

std::vector<CompileRequest> megakernel_requests(const Program& program, const std::string& arch,
                                                Knowledge knowledge) {
  // The kernel is made for one program alone only where steps have few rows. For many rows, the whole kernel takes
  // long to compile.
  if (program.shape.rows > kStreamRows) knowledge = std::min(knowledge, Knowledge::kForms);
  return {{program.name + ", megakernel", megakernel_source(program, arch, knowledge), arch, {}}};
}

DeviceCode compile_ahead(std::span<const Program> programs, const std::string& arch) {
  require_known_arch(arch);
  std::map<std::string, CompileRequest> wanted;  // programs of other sizes share kernels
  const auto want = [&](const std::vector<CompileRequest>& requests) {
    for (const CompileRequest& request : requests) wanted.emplace(code_name(request), request);
  };
  for (const Program& program : programs) {
    want(launches_requests(program, arch, Knowledge::kSizes));
    if (program.shape.rows < kManyStepRows) want(megakernel_requests(program, arch, Knowledge::kSizes));
  }
  std::vector<CompileRequest> requests;
  for (const auto& [name, request] : wanted) requests.push_back(request);
  const std::vector<Compiled> compiled = compile(requests);
  DeviceCode code;
  for (size_t i = 0; i < requests.size(); ++i) code.emplace(code_name(requests[i]), compiled[i].cubin);
  return code;
}

}  // namespace heddle::cuda
