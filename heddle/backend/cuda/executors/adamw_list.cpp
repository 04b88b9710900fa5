#include "heddle/backend/cuda/executors/adamw_list.h"

#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/runtime/kernel.h"

namespace heddle::cuda {
namespace {

// As optimizers lay rows out in Python: eleven words.
static_assert(sizeof(AdamwRow) == 88 && offsetof(AdamwTensor, seed) == 72 && offsetof(AdamwRow, chunk) == 80);

constexpr const char* kSource = R"(
#include "heddle/backend/cuda/device/adamw_list.cuh"
extern "C" __global__ __launch_bounds__({}) void adamw_list(const heddle::AdamwList list) {{
  using namespace heddle;
  device::adamw_list::step_chunk<DType({}), DType({}), AdamwState({})>(list);
}}
)";

struct Loaded {
  Module module;
  Kernel kernel = module.kernel("adamw_list");
};

// The kernel of a kind of tensors. Kernels live as long as the process.
const Kernel& kernel_of(const AdamwStep& step, int number, const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::tuple<int, DType, DType, AdamwState>, Loaded>;
  const std::scoped_lock lock(mutex);
  const std::tuple key(number, step.param, step.grad, step.state);
  auto found = all.find(key);
  if (found == all.end()) {
    const std::string source =
        fmt::format(kSource, kAdamwThreads, int(step.param), int(step.grad), int(step.state));
    const std::string cubin = compile({"adamw of a list", source, device.arch(), {}}).cubin;
    found = all.emplace(key, Loaded{Module(cubin, device)}).first;
  }
  return found->second.kernel;
}

}  // namespace

void adamw_step(const AdamwTensors& tensors, const AdamwStep& step, int number, void* stream) {
  if (tensors.chunks == 0) return;
  const Device& device = Device::at(number);
  const ContextScope scope(device);
  const AdamwList list{.rows = tensors.rows,
                       .count = tensors.count,
                       .codes = tensors.codes,
                       .lr = step.lr,
                       .beta1 = step.beta1,
                       .beta2 = step.beta2,
                       .eps = step.eps,
                       .weight_decay = step.weight_decay,
                       .grad_scale = step.grad_scale,
                       .step = step.step};
  const void* args[] = {&list};
  launch(kernel_of(step, number, device), {.grid = u32(tensors.chunks), .block = kAdamwThreads},
         Stream::borrow(static_cast<StreamHandle>(stream), device), args);
}

}  // namespace heddle::cuda
