#include "heddle/backend/cuda/executors/standalone_kernels.h"

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/program/known_args.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// Makes loads of this thread happen at once, even while a stream is captured.
class LoadsInCapture {
 public:
  LoadsInCapture() { driver().exchange_capture_mode(&mode_); }
  ~LoadsInCapture() { driver().exchange_capture_mode.try_call(&mode_); }
  LoadsInCapture(const LoadsInCapture&) = delete;
  LoadsInCapture& operator=(const LoadsInCapture&) = delete;

 private:
  CaptureMode mode_ = CaptureMode::kRelaxed;
};

// Loads the kernels of a cubin into the current context.
std::vector<StandaloneKernel> load(const std::string& cubin, const OpSpec& op,
                                   const std::vector<std::string>& names, const Device& device) {
  const LoadsInCapture loads;
  ModuleHandle module = nullptr;
  if (const int status = driver().module_load_data.try_call(&module, cubin.data()); status != kSuccess)
    fail(ErrorCode::kDevice, "[{}] cuModuleLoadData: {}: its kernel of {} bytes for {} ({})", op.name,
         status_text(status), cubin.size(), device.name(), device.arch());
  std::vector<StandaloneKernel> kernels;
  for (const std::string& name : names) {
    StandaloneKernel kernel;
    driver().module_get_function(&kernel.function, module, name.c_str());
    int of_its_own = 0;
    driver().function_get_attribute(&of_its_own, FunctionAttribute::kSharedBytes, kernel.function);
    driver().function_get_attribute(&kernel.max_threads, FunctionAttribute::kMaxThreads, kernel.function);
    kernel.chip_bytes = device.shared_per_block_optin() - of_its_own;
    driver().function_set_attribute(kernel.function, FunctionAttribute::kMaxDynamicShared,
                                    int(kernel.chip_bytes));
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace

StandaloneKernels& StandaloneKernels::of_process() {
  static auto& kernels = *new StandaloneKernels;  // threads may call to the very end
  return kernels;
}

size_t StandaloneKernels::count() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::shared_ptr<StandaloneKernels::Entry> StandaloneKernels::entry_of(u64 context,
                                                                      const std::string& made_for) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& found = entries_[{context, made_for}];
  if (!found) found = std::make_shared<Entry>();
  return found;
}

StandaloneKernel StandaloneKernels::get(const OpSpec& op, const std::byte* args, const OpConfig& config,
                                        u64 context, const Device& device) {
  const std::shared_ptr<Entry> entry = entry_of(
      context, op.name + "\n" + config.text() + "\n" + known_args(op, args, Knowledge::kTypes).front());
  std::call_once(entry->once, [&] {
    const std::string cubin = compile(standalone_request(op, args, device.arch(), config)).cubin;
    entry->kernels = load(cubin, op, {"standalone"}, device);
  });
  return entry->kernels.front();
}

std::vector<StandaloneKernel> StandaloneKernels::of_plan(const OpSpec& op, const std::byte* args,
                                                         const KernelPlan& plan, u64 context,
                                                         const Device& device) {
  const CompileRequest request = kernel_request(op, args, plan, device.arch());
  const std::shared_ptr<Entry> entry = entry_of(context, request.source);
  std::call_once(entry->once, [&] {
    std::vector<std::string> names;
    for (size_t i = 0; i < plan.launches.size(); ++i) names.push_back(fmt::format("launch{}", i));
    entry->kernels = load(compile(request).cubin, op, names, device);
  });
  return entry->kernels;
}

}  // namespace heddle::cuda
