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

// Loads a kernel into the current context.
StandaloneKernel load(const std::string& cubin, const OpSpec& op, const Device& device) {
  const LoadsInCapture loads;
  ModuleHandle module = nullptr;
  if (const int status = driver().module_load_data.try_call(&module, cubin.data()); status != kSuccess)
    fail(ErrorCode::kDevice, "[{}] cuModuleLoadData: {}: its kernel of {} bytes for {} ({})", op.name,
         status_text(status), cubin.size(), device.name(), device.arch());
  StandaloneKernel kernel;
  driver().module_get_function(&kernel.function, module, "standalone");
  int of_its_own = 0;
  driver().function_get_attribute(&of_its_own, FunctionAttribute::kSharedBytes, kernel.function);
  kernel.chip_bytes = device.shared_per_block_optin() - of_its_own;
  driver().function_set_attribute(kernel.function, FunctionAttribute::kMaxDynamicShared,
                                  int(kernel.chip_bytes));
  return kernel;
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

StandaloneKernel StandaloneKernels::get(const OpSpec& op, const std::byte* args, const OpConfig& config,
                                        u64 context, const Device& device) {
  std::shared_ptr<Entry> entry;
  {
    const std::string made_for =
        op.name + "\n" + config.text() + "\n" + known_args(op, args, Knowledge::kTypes).front();
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& found = entries_[{context, made_for}];
    if (!found) found = std::make_shared<Entry>();
    entry = found;
  }
  std::call_once(entry->once, [&] {
    entry->kernel = load(compile(standalone_request(op, args, device.arch(), config)).cubin, op, device);
  });
  return entry->kernel;
}

}  // namespace heddle::cuda
