// The launches executor: one kernel for each call of a program, in the order of the calls. Waits and signals are not
// looked at. The honest rival of the megakernel, and the path of steps of many rows.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>

#include "heddle/backend/cuda/executors/call_trace.h"
#include "heddle/backend/cuda/executors/device_program.h"
#include "heddle/backend/cuda/executors/device_space.h"
#include "heddle/backend/cuda/executors/kernel_call.h"
#include "heddle/backend/cuda/program/launches_code.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/runtime/tensor_map.h"
#include "heddle/ir/executor/watch.h"

namespace heddle {
namespace cuda {
namespace {

// The tiles of each call, in the order of the calls. CTAs begin in the order of the tiles. Those of causal attention, whose second
// coordinate is a block of rows, take longer the later their rows: they come first, so that the last ones to end are short.
std::vector<std::vector<Instruction>> tiles_of_calls(const Program& program) {
  std::vector<std::vector<Instruction>> calls(program.calls.size());
  for (const auto& worker : program.workers)
    for (const Instruction& instruction : worker)
      if (instruction.opcode < kNopOpcode) calls[instruction.call].push_back(instruction);
  for (size_t c = 0; c < calls.size(); ++c)
    if (!program.node_of(program.calls[c]).main_part().op->traits.main)
      std::ranges::stable_sort(calls[c], std::greater(),
                               [](const Instruction& instruction) { return instruction.tile[1]; });
  return calls;
}

class LaunchesExecutor : public Executor {
 public:
  LaunchesExecutor(const Program& program, const Memory& memory, const ExecutorOptions& options)
      : LaunchesExecutor(
            program, memory, options, tiles_of_calls(program),
            launches_code(program, Device::at(options.device).arch(),
                          kernel_target(Device::at(options.device)).tensor_maps, options.knowledge)) {}

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
  std::vector<std::string> bodies() const override { return bodies_; }

 private:
  struct CallLaunch {
    size_t kernel;  // request
    u32 call;
    CallParams params;
    Launch launch;
    std::array<TensorMap, kMostChainMaps> maps = {};  // whole kernels have them
  };

  LaunchesExecutor(const Program& program, const Memory& memory, const ExecutorOptions& options,
                   const std::vector<std::vector<Instruction>>& tiles, LaunchesCode code)
      : program_(program),
        memory_(memory),
        mode_(options.trace_events > 0 ? LaunchMode::kEager
                                       : options.launch_mode),  // events tell calls apart
        device_(program, memory, options, tiles, code.requests),
        trace_(program, options.trace_events, device_.device()) {
    load_kernels(code);
    bodies_ = bodies_of(program, code.calls);
    const std::vector<BoundCall> bound = bind_calls(program, memory);
    u32 first = 0;
    for (size_t c = 0; c < tiles.size(); ++c) {
      const auto count = u32(tiles[c].size());
      const CallParams params{
          .first = first, .tiles = count, .args = device_.args_of(c), .live = program.calls[c].live};
      first += count;
      if (count == 0) continue;
      CallLaunch call{.kernel = code.calls[c].request, .call = u32(c), .params = params, .launch = {}};
      if (const KernelPlan& plan = code.calls[c].plan; !plan.launches.empty())
        set_whole(call, plan.launches.front(), bound[c].args[program.opcodes[program.calls[c].opcode].main]);
      else
        call.launch = {
            .grid = count, .block = call_threads(program.shape.rows), .shared = device_.shared_bytes()};
      call.launch.programmatic = mode_ == LaunchMode::kDependent;
      calls_.push_back(call);
    }
  }

  // Kernels of tiles share out memory on chip; a whole kernel says how much it takes.
  void load_kernels(const LaunchesCode& code) {
    std::vector<i64> whole(code.requests.size());  // bytes on chip; 0: of tiles
    for (const CallCode& call : code.calls)
      for (const KernelLaunch& launch : call.plan.launches) whole[call.request] = launch.shared_bytes;
    for (size_t i = 0; i < code.requests.size(); ++i)
      kernels_.push_back(whole[i] > 0 ? device_.whole_kernel(i, "call", whole[i])
                                      : device_.kernel(i, "call"));
  }

  static void set_whole(CallLaunch& call, const KernelLaunch& plan, const std::vector<std::byte>& args) {
    call.launch = {
        .grid = plan.grid, .block = plan.threads, .cluster = plan.cluster, .shared = u32(plan.shared_bytes)};
    for (size_t m = 0; m < plan.maps.size(); ++m) {
      u64 address = 0;
      std::memcpy(&address, args.data() + plan.maps[m].address, sizeof address);
      call.maps[m] = make_tensor_map(plan.maps[m], address + u64(plan.maps[m].offset));
    }
  }

  void launch_calls(u32 step) {
    KernelParams params = device_.params(1, 1);
    for (CallLaunch& call : calls_) {
      const void* args[] = {&params, &call.params, call.maps.data()};  // kernels of tiles have no maps
      trace_.begin(device_.stream());
      launch(kernels_[call.kernel], call.launch, device_.stream(), args);
      trace_.end(device_.stream(), step, call.call);
    }
  }

  const Program& program_;
  const Memory memory_;
  LaunchMode mode_;
  DeviceProgram device_;
  CallTrace trace_;
  std::vector<Kernel> kernels_;  // by request
  std::vector<CallLaunch> calls_;
  std::vector<std::string> bodies_;
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
