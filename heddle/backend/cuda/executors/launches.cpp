// The launches executor: one kernel for each call of a program, in the order of the calls. Waits and signals are not
// looked at. The honest rival of the megakernel, and the path of steps of many rows.
#include <algorithm>
#include <optional>

#include "heddle/backend/cuda/executors/call_trace.h"
#include "heddle/backend/cuda/executors/device_program.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/ir/watch.h"

namespace heddle {
namespace cuda {
namespace {

// The tiles of each call, in the order of the calls.
std::vector<std::vector<Instruction>> tiles_of_calls(const Program& program) {
  std::vector<std::vector<Instruction>> calls(program.calls.size());
  for (const auto& worker : program.workers)
    for (const Instruction& instruction : worker)
      if (instruction.opcode < kNopOpcode) calls[instruction.call].push_back(instruction);
  return calls;
}

class LaunchesExecutor : public Executor {
 public:
  LaunchesExecutor(const Program& program, const Memory& memory, const ExecutorOptions& options)
      : LaunchesExecutor(program, memory, options, tiles_of_calls(program)) {}

  RunReport run(int steps) override {
    const ContextScope scope(device_.context());
    trace_.clear();
    if (mode_ != LaunchMode::kEager && !graph_) {
      GraphCapture capture(device_.stream());
      launch_calls(0);
      graph_ = capture.end();
    }
    for (int step = 0; step < steps; ++step)
      if (graph_)
        graph_->launch(device_.stream());
      else
        launch_calls(u32(step));
    return device_.finish(steps, "launches");
  }
  RunReport run(int steps, const StepWatch& watch) override {
    const ContextScope scope(device_.context());
    return run_by_steps(*this, steps, watch, program_, memory_, &device_space(device_.device()));
  }
  Trace trace() const override {
    const ContextScope scope(device_.context());
    return trace_.read();
  }

 private:
  struct CallLaunch {
    size_t kernel;  // opcode
    u32 call;
    CallParams params;
    u32 tiles;
  };

  LaunchesExecutor(const Program& program, const Memory& memory, const ExecutorOptions& options,
                   const std::vector<std::vector<Instruction>>& tiles)
      : program_(program),
        memory_(memory),
        mode_(options.trace_events > 0 ? LaunchMode::kEager
                                       : options.launch_mode),  // events tell calls apart
        device_(program, memory, options, tiles,
                launches_requests(program, Device::at(options.device).arch(), options.knowledge)),
        trace_(program, options.trace_events, device_.device()) {
    for (size_t i = 0; i < program.opcodes.size(); ++i) kernels_.push_back(device_.kernel(i, "call"));
    u32 first = 0;
    for (size_t c = 0; c < tiles.size(); ++c) {
      const CallParams call{.first = first, .args = device_.args_of(c), .live = program.calls[c].live};
      if (!tiles[c].empty()) calls_.push_back({program.calls[c].opcode, u32(c), call, u32(tiles[c].size())});
      first += u32(tiles[c].size());
    }
  }

  void launch_calls(u32 step) {
    KernelParams params = device_.params(1, 1);
    for (CallLaunch& call : calls_) {
      const void* args[] = {&params, &call.params};
      trace_.begin(device_.stream());
      launch(kernels_[call.kernel],
             {.grid = call.tiles,
              .block = call_threads(program_.shape.rows),
              .shared = device_.shared_bytes(),
              .programmatic = mode_ == LaunchMode::kDependent},
             device_.stream(), args);
      trace_.end(device_.stream(), step, call.call);
    }
  }

  const Program& program_;
  const Memory memory_;
  LaunchMode mode_;
  DeviceProgram device_;
  CallTrace trace_;
  std::vector<Kernel> kernels_;  // by opcode
  std::vector<CallLaunch> calls_;
  std::optional<Graph> graph_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Executor> create_launches(const Program& program, const Memory& memory,
                                          const ExecutorOptions& options) {
  const cuda::ContextScope scope(cuda::Device::at(options.device).primary_context());
  return std::make_unique<cuda::LaunchesExecutor>(program, memory, options);
}

}  // namespace heddle
