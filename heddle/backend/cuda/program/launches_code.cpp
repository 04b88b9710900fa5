#include "heddle/backend/cuda/program/launches_code.h"

#include <map>

#include <fmt/ranges.h>

#include "heddle/backend/cuda/program/kernel_source.h"
#include "heddle/backend/cuda/program/program_source.h"

namespace heddle::cuda {

KernelPlan chain_plan(const Program& program, const Call& call, const std::string& arch, bool tensor_maps) {
  const Node node = program.node_of(call);
  const Part& main = node.main_part();
  if (!main.op->chain_kernel) return {};
  const OpConfig& config = program.opcodes[call.opcode].config;
  if (!config.values().empty()) return {.why_not = fmt::format("its tiles were chosen: {}", config.text())};
  if (node.main > 0) return {.why_not = fmt::format("{} is its prologue", node.parts[0].op->name)};
  i64 fold = 1;
  for (size_t i = 1; i < node.parts.size(); ++i) {
    const OpSpec& op = *node.parts[i].op;
    if (op.text) return {.why_not = fmt::format("epilogue {} was made at run time", op.name)};
    fold *= op.traits.columns_per_output;
  }
  KernelTarget target = kernel_target_of(arch);
  target.tensor_maps = tensor_maps;
  target.multiprocessors =
      i32(program.workers.size());  // so that the code is the same wherever the program runs
  return main.op->chain_kernel(main.args.data(), target, {{"fold", fold}});
}

LaunchesCode launches_code(const Program& program, const std::string& arch, bool tensor_maps,
                           Knowledge knowledge) {
  const KernelTraits traits = KernelTraits::of(program, arch);
  LaunchesCode code;
  std::vector<KnownArgs> known;
  for (size_t i = 0; i < program.opcodes.size(); ++i) known.push_back(known_args(program, i, knowledge));
  std::map<std::string, size_t> requests;  // by source
  for (const Call& call : program.calls) {
    const Opcode& opcode = program.opcodes[call.opcode];
    KernelPlan plan = chain_plan(program, call, arch, tensor_maps);
    const KnownArgs& args = known[call.opcode];
    const bool whole = !plan.launches.empty();
    const Node node = program.node_of(call);
    const Part& main = node.main_part();
    const KernelTraits own = traits.of(node);
    CompileRequest request{
        .name = fmt::format("{}, {} of {}", program.name, whole ? "whole kernel" : "kernel",
                            fmt::join(opcode.ops, "+")),
        .source = whole ? chain_kernel_source(opcode, own, args, main, plan) : call_source(opcode, own, args),
        .arch = arch,
        .options = {}};
    const auto [found, added] = requests.try_emplace(request.source, code.requests.size());
    if (added) code.requests.push_back(std::move(request));
    code.calls.push_back({found->second, std::move(plan)});
  }
  return code;
}

namespace {

std::string body_of(const OpSpec& op, const KernelPlan& plan) {
  if (plan.launches.empty())
    return plan.why_not.empty() ? "" : fmt::format("tiles; no whole kernel because {}", plan.why_not);
  const KernelLaunch& launch = plan.launches.front();
  std::string text = fmt::format("{} ({}), {} CTAs of {} threads", kernel_name(op, plan),
                                 plan.constants.text(), launch.grid, launch.threads);
  if (launch.cluster > 1) text += fmt::format(" in clusters of {}", launch.cluster);
  return text;
}

}  // namespace

std::vector<std::string> bodies_of(const Program& program, std::span<const CallCode> calls) {
  std::vector<std::string> bodies;
  for (size_t c = 0; c < calls.size(); ++c)
    bodies.push_back(body_of(*program.node_of(program.calls[c]).main_part().op, calls[c].plan));
  return bodies;
}

std::vector<std::string> bodies_on(const Program& program, const std::string& arch) {
  const bool tensor_maps = kernel_target_of(arch).tensor_maps;
  std::vector<CallCode> calls;
  for (const Call& call : program.calls)
    calls.push_back({.plan = chain_plan(program, call, arch, tensor_maps)});
  return bodies_of(program, calls);
}

}  // namespace heddle::cuda
