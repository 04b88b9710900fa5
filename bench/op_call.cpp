// Measures what a single op call costs the host, besides the op's own work: on a CPU, and on a GPU if there
// is one with a compiler. Figures are medians of nine repetitions; --benchmark_out=FILE writes JSON.
//   cpu/OP        a call of one small row        cpu/OP/work   its tile alone
//   cpu/OP/empty  a call of no rows: the look-up alone
//   gpu/OP        a call whose kernel is there   gpu/OP/launch the same launch by the driver alone
//   ninja bench_op_call && build/release/bench/bench_op_call
#include "heddle/backend/cpu/op_call.h"

#include <chrono>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "heddle/backend/cpu/simd.h"
#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/device/standalone.h"
#include "heddle/backend/cuda/executors/op_call.h"
#include "heddle/backend/cuda/executors/standalone_kernels.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/engine/builtins.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/tile_grid.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/rms_norm/rms_norm.h"

namespace heddle {
namespace {

constexpr i64 kColumns = 64;

Tensor tensor(float* data, std::vector<i64> size) {
  return tensor_of("bench", "tensor", {.data = data, .dtype = DType::kF32, .size = size});
}
// Arguments for `rows` rows in memory of three times that size.
RmsNorm args_of(RmsNorm, float* memory, i64 rows) {
  return {.x = tensor(memory, {rows, kColumns}),
          .weight = tensor(memory + kColumns, {kColumns}),
          .y = tensor(memory + 2 * kColumns, {rows, kColumns})};
}
Add args_of(Add, float* memory, i64 rows) {
  return {.a = tensor(memory, {rows, kColumns}),
          .b = tensor(memory + kColumns, {rows, kColumns}),
          .y = tensor(memory + 2 * kColumns, {rows, kColumns})};
}

template <class Args>
const std::byte* bytes_of(const Args& args) {
  return reinterpret_cast<const std::byte*>(&args);
}

template <class Args>
void on_cpu(const std::string& name) {
  const OpSpec& op = get_op(name);
  static std::vector<float> memory(3 * kColumns, 1.0f);
  const auto call = [&op](benchmark::State& state, i64 rows) {
    const Args args = args_of(Args(), memory.data(), rows);
    OpCaller& caller = cpu_op_calls();
    for (auto _ : state) caller.run(op, bytes_of(args), {});
  };
  benchmark::RegisterBenchmark(("cpu/" + name).c_str(), [=](benchmark::State& s) { call(s, 1); });
  benchmark::RegisterBenchmark(("cpu/" + name + "/empty").c_str(), [=](benchmark::State& s) { call(s, 0); });
  benchmark::RegisterBenchmark(("cpu/" + name + "/work").c_str(), [&op](benchmark::State& state) {
    const Args args = args_of(Args(), memory.data(), 1);
    const TileGrid grid(op.axes(bytes_of(args), TilingTarget{}));
    const OpTiles& tiles = op_tiles();
    const void* body = tiles.body_of(op.name);
    for (auto _ : state) tiles.run(body, bytes_of(args), grid[0]);
  });
}

constexpr int kRounds =
    200;  // on a GPU: only part of a round is timed, so time cannot say how many are enough

// Host time of `work`, in portions so small that the device's queue never fills.
template <class Work>
void time_launches(benchmark::State& state, const cuda::Stream& stream, Work&& work) {
  constexpr int kBatch = 128;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    stream.synchronize();
    state.SetIterationTime(time.count() / kBatch);
  }
}

template <class Args>
void on_gpu(const std::string& name) {
  const OpSpec& op = get_op(name);
  benchmark::RegisterBenchmark(
      ("gpu/" + name).c_str(),
      [&op](benchmark::State& state) {
        const cuda::Device& device = cuda::Device::at(0);
        const cuda::ContextScope scope(device);
        const cuda::Stream stream(device);
        const cuda::DeviceBuffer memory(3 * kColumns * sizeof(float), device);
        const Args args = args_of(Args(), reinterpret_cast<float*>(memory.data()), 1);
        OpCaller& caller = cuda::op_calls();
        caller.run(op, bytes_of(args), {.stream = stream.handle()});
        time_launches(state, stream, [&] { caller.run(op, bytes_of(args), {.stream = stream.handle()}); });
      })
      ->UseManualTime()
      ->Iterations(kRounds);
  benchmark::RegisterBenchmark(
      ("gpu/" + name + "/launch").c_str(),
      [&op](benchmark::State& state) {
        const cuda::Device& device = cuda::Device::at(0);
        const cuda::ContextScope scope(device);
        const cuda::Stream stream(device);
        const cuda::DeviceBuffer memory(3 * kColumns * sizeof(float), device);
        Args args = args_of(Args(), reinterpret_cast<float*>(memory.data()), 1);
        unsigned long long context = 0;
        cuda::driver().context_get_id(device.context(), &context);
        const cuda::StandaloneKernel kernel =
            cuda::StandaloneKernels::of_process().get(op, bytes_of(args), {}, context, device);
        OpGrid grid;
        const TileGrid tiles(op.axes(bytes_of(args), {.gpu = true}));
        for (size_t a = 0; a < tiles.axes().size(); ++a)
          grid.axes[a] = {tiles.axes()[a].extent, tiles.axes()[a].step, tiles.axes()[a].tiles};
        cuda::LaunchConfig config;
        config.block[0] = cuda::kStandaloneThreads, config.stream = stream.handle();
        void* params[] = {&grid, &args};
        time_launches(state, stream,
                      [&] { cuda::driver().launch_kernel(&config, kernel.function, params, nullptr); });
      })
      ->UseManualTime()
      ->Iterations(kRounds);
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  register_builtins();
  std::string repetitions = "--benchmark_repetitions=9", medians = "--benchmark_report_aggregates_only=true";
  std::vector<char*> args(argv, argv + argc);
  args.insert(args.begin() + 1, {repetitions.data(), medians.data()});
  int count = int(args.size());
  on_cpu<RmsNorm>("rms_norm");
  on_cpu<Add>("add");
  if (cuda::why_unavailable().empty() && cuda::why_no_compiler().empty()) {
    on_gpu<RmsNorm>("rms_norm");
    on_gpu<Add>("add");
  } else {
    benchmark::AddCustomContext("gpu", "none: " + cuda::why_unavailable() + cuda::why_no_compiler());
  }
  benchmark::Initialize(&count, args.data());
  if (benchmark::ReportUnrecognizedArguments(count, args.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
