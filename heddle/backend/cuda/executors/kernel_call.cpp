#include "heddle/backend/cuda/executors/kernel_call.h"

#include <cstring>

#include "heddle/backend/cuda/device/standalone.h"
#include "heddle/backend/cuda/executors/standalone_kernels.h"
#include "heddle/backend/cuda/program/kernel_source.h"

namespace heddle::cuda {
namespace {

constexpr u32 kCluster = 8;       // that every device takes
constexpr u32 kMostCluster = 16;  // that a function must allow

void require_launch(const OpSpec& op, const KernelLaunch& launch, const StandaloneKernel& kernel) {
  // The plan of an op that was made at run time is its author's.
  const ErrorCode code = op.text ? ErrorCode::kInvalidArgument : ErrorCode::kInternal;
  const auto hold = [&](bool holds, const char* what, i64 value, i64 most) {
    if (!holds)
      fail(code, "[{}] kernel {} asks for {} {}; the most is {}", op.name, launch.name, value, what, most);
  };
  hold(launch.shared_bytes <= kernel.chip_bytes, "bytes of shared memory", launch.shared_bytes,
       kernel.chip_bytes);
  hold(i32(launch.threads) <= kernel.max_threads, "threads a CTA", launch.threads, kernel.max_threads);
  hold(launch.cluster <= kMostCluster, "CTAs a cluster", launch.cluster, kMostCluster);
  if (launch.grid == 0 || launch.cluster == 0 || launch.grid % launch.cluster != 0)
    fail(code, "[{}] kernel {} has {} CTAs in clusters of {}", op.name, launch.name, launch.grid,
         launch.cluster);
}

// "softmax_kernel.sm80", and which of the file's kernels runs where it is not the first.
std::string body_of(const OpSpec& op, const KernelPlan& plan) {
  std::string body = kernel_name(op, plan);
  if (!plan.launches.empty() && plan.launches.front().name != KernelLaunch().name)
    body += " " + plan.launches.front().name;
  return plan.note.empty() ? body : body + ": " + plan.note;
}

}  // namespace

KernelTarget kernel_target(const Device& device) {
  constexpr i64 kFast = 4'500'000'000'000;  // an H100 has 3.35 TB/s, an H200 4.8
  return {.arch = 10 * device.compute_major() + device.compute_minor(),
          .multiprocessors = device.multiprocessors(),
          .shared_bytes = device.shared_per_block_optin(),
          .tensor_maps = device.attribute(DeviceAttribute::kTensorMaps) != 0,
          .fast_memory = device.memory_speed() >= kFast};
}

KernelCall::KernelCall(const OpSpec& op, const std::byte* args, KernelPlan plan, u64 context,
                       const Device& device)
    : plan_(std::move(plan)), body_(body_of(op, plan_)) {
  if (plan_.launches.empty())
    fail(ErrorCode::kInternal, "[{}] the plan of its kernel has no launch", op.name);
  const std::vector<StandaloneKernel> kernels =
      StandaloneKernels::of_process().of_plan(op, args, plan_, context, device);
  for (size_t i = 0; i < plan_.launches.size(); ++i) {
    const KernelLaunch& launch = plan_.launches[i];
    require_launch(op, launch, kernels[i]);
    if (launch.cluster > kCluster)
      driver().function_set_attribute(kernels[i].function, FunctionAttribute::kLargeClusters, 1);
    const size_t maps = std::max<size_t>(1, launch.maps.size());
    require(op.args_size() + maps * sizeof(TensorMap) + sizeof(u8*) + 128 <= kMostParamBytes,
            "[{}] its arguments are {} bytes, and {} tensor maps; a kernel takes {} bytes of both", op.name,
            op.args_size(), maps, kMostParamBytes);
    parts_.push_back({.function = kernels[i].function,
                      .maps = std::vector<TensorMap>(maps),
                      .addresses = std::vector<u64>(launch.maps.size())});
  }
}

void KernelCall::run(const OpSpec& op, const std::byte* args, const CallSite& site) {
  if (plan_.cleared_bytes > 0)
    driver().fill_bytes(reinterpret_cast<DevicePointer>(site.workspace), 0, size_t(plan_.cleared_bytes),
                        static_cast<StreamHandle>(site.stream));
  for (size_t i = 0; i < parts_.size(); ++i) launch(op, args, site, i);
}

void KernelCall::launch(const OpSpec& op, const std::byte* args, const CallSite& site, size_t number) {
  const KernelLaunch& launch = plan_.launches[number];
  Part& part = parts_[number];
  for (size_t m = 0; m < launch.maps.size(); ++m) {
    const KernelMap& map = launch.maps[m];
    u64 address = 0;
    if (map.in_workspace)
      address = reinterpret_cast<u64>(site.workspace);
    else
      std::memcpy(&address, args + map.address, sizeof address);
    address += u64(map.offset);
    if (address == part.addresses[m]) continue;
    part.maps[m] = make_tensor_map(map, address);
    part.addresses[m] = address;
  }
  LaunchAttribute cluster{.id = LaunchAttributeId::kClusterSize};
  cluster.size[0] = launch.cluster, cluster.size[1] = cluster.size[2] = 1;
  LaunchConfig config;
  config.grid[0] = launch.grid, config.block[0] = launch.threads;
  config.shared_bytes = u32(launch.shared_bytes);
  config.stream = static_cast<StreamHandle>(site.stream);
  config.attributes = &cluster, config.attribute_count = launch.cluster > 1 ? 1 : 0;
  std::byte* workspace = site.workspace;
  void* params[] = {const_cast<std::byte*>(args), part.maps.data(), &workspace};  // the driver copies all
  const int status = driver().launch_kernel.try_call(&config, part.function, params, nullptr);
  if (status != kSuccess)
    fail(ErrorCode::kDevice,
         "[{}] cuLaunchKernelEx: {}: kernel {}, {} CTAs of {} threads in clusters of {}, {} bytes of shared "
         "memory",
         op.name, status_text(status), launch.name, launch.grid, launch.threads, launch.cluster,
         launch.shared_bytes);
}

}  // namespace heddle::cuda
