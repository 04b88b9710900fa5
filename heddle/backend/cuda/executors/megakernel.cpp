// The megakernel executor: one persistent kernel executes the packed instructions of all workers, one CTA for each,
// for any number of steps.
#include <optional>

#include "heddle/backend/cuda/executors/device_program.h"
#include "heddle/backend/cuda/executors/device_trace.h"
#include "heddle/backend/cuda/executors/host_ring.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/base/error.h"

namespace heddle {
namespace cuda {
namespace {

// Workers that fit on the device at once.
int workers_that_fit(const Kernel& kernel, const Launch& how, const Device& device) {
  return kernel.occupancy(how.block, how.shared) * device.multiprocessors();
}

class MegakernelExecutor : public Executor {
 public:
  MegakernelExecutor(const Program& program, const Memory& memory, const ExecutorOptions& options)
      : program_(program),
        memory_(memory),
        device_(program, memory, options, program.workers,
                megakernel_requests(program, Device::at(options.device).arch(), options.knowledge)),
        trace_(u32(program.workers.size()), options.trace_events, device_.device()),
        kernel_(device_.kernel(0, "megakernel")),
        how_{.grid = u32(program.workers.size()),
             .block = 32 * (kConsumerWarps + kHelperWarps),
             .shared = device_.shared_bytes(),
             .cooperative = true} {
    const int fit = workers_that_fit(kernel_, how_, device_.device());
    require(int(how_.grid) <= fit,
            "[megakernel] the program has {} workers; {} CTAs of {} threads with {} bytes fit on the device "
            "at once",
            how_.grid, fit, how_.block, how_.shared);
  }

  RunReport run(int steps) override {
    const ContextScope scope(device_.context());
    launch_steps(device_.params(epoch_ + 1, u32(steps)));
    return finish(steps);
  }
  RunReport run(int steps, const StepWatch& watch) override {
    require(u32(steps) <= HostRing::kSteps, "[megakernel] {} steps of a watched run; at most {}", steps,
            HostRing::kSteps);
    const ContextScope scope(device_.context());
    if (!ring_) ring_.emplace(program_, memory_, device_.device());
    KernelParams params = device_.params(epoch_ + 1, u32(steps));
    params.watch = ring_->begin(watch, device_.verdict());
    launch_steps(params);
    const RunReport report = finish(ring_->follow(watch, device_.stream()));
    ring_->rethrow();
    return report;
  }
  Trace trace() const override {
    const ContextScope scope(device_.context());
    return trace_.read(device_.stream());
  }

 private:
  void launch_steps(KernelParams params) {
    params.trace = trace_.params();
    trace_.clear(device_.stream());
    const void* args[] = {&params};
    launch(kernel_, how_, device_.stream(), args);
  }
  RunReport finish(int steps) {
    epoch_ += u32(steps);
    try {
      return device_.finish(steps, "megakernel");
    } catch (const Error&) {
      epoch_ = 0;  // counters begin anew
      throw;
    }
  }

  const Program& program_;
  const Memory memory_;
  DeviceProgram device_;
  DeviceTrace trace_;
  Kernel kernel_;
  Launch how_;
  std::optional<HostRingReader> ring_;  // once a run was watched
  u32 epoch_ = 0;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Executor> create_megakernel(const Program& program, const Memory& memory,
                                            const ExecutorOptions& options) {
  const cuda::ContextScope scope(cuda::Device::at(options.device).primary_context());
  return std::make_unique<cuda::MegakernelExecutor>(program, memory, options);
}

}  // namespace heddle
