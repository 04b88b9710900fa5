#include "heddle/backend/cuda/program/kernel_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/compiler/sources.h"
#include "heddle/backend/cuda/program/known_args.h"
#include "heddle/backend/cuda/program/program_source.h"

namespace heddle::cuda {

std::string kernel_name(const OpSpec& op, const KernelPlan& plan) {
  return fmt::format("{}_kernel.{}", op.name, plan.file);
}

KernelTarget kernel_target_of(const std::string& arch) {
  KernelTarget target{.multiprocessors = 132, .shared_bytes = i64(arch_of(arch).shared_kb) << 10};
  std::from_chars(arch.data() + arch.find('_') + 1, arch.data() + arch.size(), target.arch);
  target.tensor_maps = target.arch >= 90;
  for (const GpuModel& model : known_models())
    if (model.arch == arch) target.multiprocessors = model.multiprocessors;
  return target;
}

namespace {

// The kernel that kit makes of an op's tile body.
OpText text_of_body(const OpSpec& op) {
  constexpr const char* kHeader = "#include \"heddle/kit/value_kernel.cuh\"\n#include \"{}\"\n";
  constexpr const char* kBody =
      "namespace heddle::device {{\n"
      "#include \"{2}\"\n"
      "namespace {0} {{\n"
      "struct KernelConfig : ValueConfig {{}};\n"
      "template <class Config>\n"
      "using Kernel = ValueKernel<Config, Body, {1}>;\n"
      "}}  // namespace {0}\n"
      "}}  // namespace heddle::device\n";
  const std::string args = pascal_case(op.name);
  return {args, op.name, fmt::format(kHeader, op_source(op.name, ".h")),
          fmt::format(kBody, op.name, args, op_source(op.name, ".cuh"))};
}

// The op's struct and its namespace, and what declares the one and defines the other. An op that was made at run time has the
// code of its kernels in its texts, where HEDDLE_KERNEL_SM80 or HEDDLE_KERNEL_SM90 chooses it (python/heddle/own/kernel.py).
OpText text_of(const OpSpec& op, const KernelPlan& plan) {
  if (op.text) {
    OpText text = op.text();
    std::string file = plan.file;
    std::ranges::transform(file, file.begin(), [](char c) { return char(std::toupper(c)); });
    text.header =
        fmt::format("#define HEDDLE_KERNEL_{}\n#include \"heddle/kit/kernel_{}.cuh\"\n", file, plan.file) +
        text.header;
    text.body = "namespace heddle::device {\n" + text.body + "}  // namespace heddle::device\n";
    return text;
  }
  if (plan.of_body) return text_of_body(op);
  const std::string suffix = fmt::format("_kernel.{}.cuh", plan.file);
  const std::string_view file = op_source(op.name, suffix);
  if (file.empty()) fail(ErrorCode::kInternal, "[{}] has no file {}{}", op.name, op.name, suffix);
  return {pascal_case(op.name), op.name, fmt::format("#include \"{}\"\n", op_source(op.name, ".h")),
          fmt::format("#include \"{}\"\n", file)};
}

// Refuses a plan that has not as many threads as the kernel says: both are its author's.
std::string threads_check(const KernelLaunch& launch, const std::string& prefix, size_t number) {
  return fmt::format(
      "static_assert({0}Launch{1}::kThreads == {2}, \"the plan launches {3} with {2} threads; must be its "
      "kThreads\");\n",
      prefix, number, launch.threads, launch.name);
}

}  // namespace

KernelText kernel_text(const OpSpec& op, const std::byte* args, const KernelPlan& plan,
                       const std::string& prefix) {
  const OpText of = text_of(op, plan);
  std::string constants;
  for (const auto& [value, number] : plan.constants.values())
    constants += fmt::format("static constexpr decltype({0}::KernelConfig::k{1}) k{1} = {2};\n", of.scope,
                             pascal_case(value), number);
  KernelText text;
  text.common = "#include \"heddle/base/types.h\"\n" + of.header + of.body;
  text.own = fmt::format(
      "namespace heddle::device {{\n"
      "struct {0}Config : {1}::KernelConfig {{\n{2}"
      "static constexpr {3} types() {{\n{3} a{{}};\n{4}\nreturn a;\n}}\n"
      "}};\n"
      "}}  // namespace heddle::device\n"
      "using namespace heddle::device;\n",
      prefix, of.scope, constants, of.args, known_args(op, args, Knowledge::kTypes).front());
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const KernelLaunch& launch = plan.launches[i];
    text.own += fmt::format(
        "using {5}Launch{0} = {1}::{2}<{5}Config>;\n"
        "{6}"
        "extern \"C\" __global__ __launch_bounds__({5}Launch{0}::kThreads, ctas_of<{5}Launch{0}>())\n"
        "void {5}launch{0}(const __grid_constant__ heddle::{3} args, const __grid_constant__ "
        "heddle::TensorMaps<{4}> maps, heddle::u8* "
        "workspace) {{\n"
        "  {5}Launch{0}::run(args, maps.at, workspace);\n"
        "}}\n",
        i, of.scope, launch.name, of.args, std::max<size_t>(1, launch.maps.size()), prefix,
        op.text ? threads_check(launch, prefix, i) : "");
  }
  return text;
}

std::string kernel_source(const OpSpec& op, const std::byte* args, const KernelPlan& plan) {
  const KernelText text = kernel_text(op, args, plan, "");
  return text.common + text.own;
}

}  // namespace heddle::cuda
