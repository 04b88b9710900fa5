// A call that runs as a whole kernel (ir/kernel.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/backend/cuda/runtime/device.h"
#include "heddle/backend/cuda/runtime/tensor_map.h"
#include "heddle/ir/call/op_call.h"

namespace heddle::cuda {

KernelTarget kernel_target(const Device& device);

// The launches of one shape's calls in one context. One thread uses it at a time.
class KernelCall {
 public:
  // Compiles and loads the kernel, if nobody has, in the current context, whose id in the driver is `context`.
  KernelCall(const OpSpec& op, const std::byte* args, KernelPlan plan, u64 context, const Device& device);

  const std::string& body() const {
    return body_;
  }  // "matmul_kernel.sm90", "softmax_kernel.sm80 ClusterKernel"
  i64 workspace_bytes() const { return plan_.workspace_bytes; }
  u32 tiles() const { return plan_.launches.back().grid; }
  // Launches on the site's stream. Tensor maps are made again only where an address has changed.
  void run(const OpSpec& op, const std::byte* args, const CallSite& site);

 private:
  struct Part {
    FunctionHandle function = nullptr;
    std::vector<TensorMap> maps;  // one at least
    std::vector<u64> addresses;   // which they are made for
  };

  void launch(const OpSpec& op, const std::byte* args, const CallSite& site, size_t number);

  KernelPlan plan_;
  std::string body_;
  std::vector<Part> parts_;
};

}  // namespace heddle::cuda
