// Executors on a hand-made program: the same bits for any number of workers and threads, and hangs that end.
#include <chrono>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/backend/cpu/simd.h"
#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/runtime/kernel.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "tests/support/test_program.h"

namespace heddle {
namespace {

std::vector<float> run(i32 workers, int threads, const std::string& simd, int steps = 2) {
  TestProgram test(workers);
  ExecutorOptions options{.threads = threads, .simd = simd};
  auto executor = get_executor("threads").create(test.program, test.memory, options);
  const RunReport report = executor->run(steps);
  EXPECT_EQ(report.steps, steps);
  EXPECT_EQ(report.tiles_run, u64(steps * workers * TestProgram::kLayers));
  EXPECT_EQ(report.tiles_dead, 0u);
  return test.result();
}

TEST(Threads, SameBitsForAnyNumberOfWorkersAndThreads) {
  for (const SimdLevel& level : simd_levels()) {
    const auto wanted = run(1, 1, level.name);
    for (i32 workers : {1, 2, 3, 7})
      for (int threads : {1, 2, 3})
        EXPECT_EQ(run(workers, threads, level.name), wanted)
            << level.name << ", " << workers << " workers, " << threads << " threads";
  }
}

TEST(Threads, EveryLevelIsNearTheReference) {
  TestProgram test(3);
  get_executor("reference").create(test.program, test.memory, {})->run(1);
  const auto wanted = test.result();
  for (const SimdLevel& level : simd_levels()) {
    const auto got = run(3, 2, level.name);
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 0x1p-5 * (1 + std::abs(wanted[i]))) << level.name << " at " << i;
  }
}

TEST(Threads, ManyStepsWithWorkersThatRunAhead) {
  TestProgram test(5);
  auto executor = get_executor("threads").create(test.program, test.memory, {.threads = 2});
  const auto wanted = run(5, 2, "");
  for (int round = 0; round < 20; ++round) executor->run(50);
  EXPECT_EQ(test.result(), wanted);
}

TEST(Threads, ArePinnedOnlyWhereTheyAreAsManyAsTheCores) {
  const size_t all = allowed_core_ids().size();
  if (all < 2 || size_t(allowed_cores()) != all) GTEST_SKIP() << "here are " << describe_cores();
  for (const size_t threads : {all - 1, all, all + 1}) {
    TestProgram test(i32(all) + 1);
    std::mutex mutex;
    std::set<size_t> seen;  // how many cores a thread may run on
    ExecutorOptions options{.threads = int(threads), .tap = [&](const Instruction&, u32) {
                              std::lock_guard lock(mutex);
                              seen.insert(allowed_core_ids().size());
                            }};
    get_executor("threads").create(test.program, test.memory, options)->run(1);
    EXPECT_EQ(seen, std::set{threads == all ? size_t{1} : all})
        << threads << " threads on " << all << " cores";
  }
}

// A thread that others keep from its core for long is no hang.
TEST(Threads, WaitLongerThanTheLimitWhileOneWorks) {
  TestProgram test(3);
  ExecutorOptions options{.threads = 3, .hang_limit_ms = 5};
  options.tap = [tiles = 0](const Instruction&,
                            u32) mutable {  // the others wait for the last tile of the first layer
    if (++tiles == 3) std::this_thread::sleep_for(std::chrono::milliseconds(400));
  };
  EXPECT_EQ(get_executor("threads").create(test.program, test.memory, options)->run(2).steps, 2);
}

TEST(Threads, EndARunThatIsCancelled) {
  TestProgram test(3);
  bool cancel = true;
  ExecutorOptions options{.threads = 3, .cancelled = [&] { return cancel; }};
  options.tap = [](const Instruction&, u32) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const auto executor = get_executor("threads").create(test.program, test.memory, options);
  EXPECT_THROW(executor->run(100), Error) << "a step takes 360 ms";
  cancel = false;
  EXPECT_EQ(executor->run(1).steps, 1);
  EXPECT_EQ(test.result(), run(3, 3, "", 1));
}

TEST(Threads, UnknownLevelIsAnError) {
  TestProgram test(1);
  EXPECT_THROW(get_executor("threads").create(test.program, test.memory, {.simd = "mmx"}), Error);
}

TEST(CpuExecutors, HaveOneDevice) {
  TestProgram test(1);
  for (const char* name : {"threads", "reference"})
    for (const i32 device : {1, -1}) {
      std::string message;
      try {
        get_executor(name).create(test.program, test.memory, {.device = device});
      } catch (const Error& error) {
        message = error.what();
      }
      EXPECT_EQ(message,
                fmt::format("[cpu] there is no device {}; the CPU is device 0, and the only one", device));
    }
  EXPECT_THROW(backend_of("threads").device(1), Error);
  EXPECT_THROW(backend_of("threads").read_bandwidth(1, 1), Error);
}

class Traces : public testing::TestWithParam<const char*> {};

// A trace has what every worker did, in order, and waits end after the signals that they wait for.
TEST_P(Traces, NoteEveryInstruction) {
  const ExecutorSpec& spec = get_executor(GetParam());
  if (std::string why = spec.unavailable(); !why.empty()) GTEST_SKIP() << GetParam() << ": " << why;
  TestProgram test(3, spec.space ? &spec.space(0) : nullptr);
  const auto executor = spec.create(test.program, test.memory, {.threads = 2, .trace_events = 100});
  executor->run(2);
  executor->run(2);  // a trace covers the last run
  const Trace trace = executor->trace();
  size_t lanes = 0;
  std::set<u32> units;
  for (const TraceLane& lane : trace.lanes) {
    if (lane.role != TraceRole::kConsumers) continue;
    ++lanes;
    const size_t in_step = test.program.workers[lane.worker].size() - 1;
    ASSERT_EQ(lane.events.size(), 2 * in_step) << lane.worker;
    EXPECT_EQ(lane.lost, 0u);
    units.insert(lane.unit);
    for (size_t i = 0; i < lane.events.size(); ++i) {
      const TraceEvent& event = lane.events[i];
      EXPECT_EQ(event.instruction, i % in_step);
      EXPECT_EQ(event.epoch, 3 + i / in_step);
      EXPECT_LE(event.fetched, event.ready);
      EXPECT_LE(event.ready, event.computed);
      EXPECT_LE(event.computed, event.done);
      EXPECT_LE(i > 0 ? lane.events[i - 1].done : 0, event.fetched);
    }
  }
  EXPECT_EQ(lanes, test.program.workers.size());
  const size_t threads = std::string_view(GetParam()) == "threads" ? 2 : 1;  // the reference has one
  EXPECT_EQ(units.size(), spec.space ? lanes : threads) << "a worker has a multiprocessor for itself";
  const auto untraced = spec.create(test.program, test.memory, {.threads = 2});
  untraced->run(1);
  EXPECT_TRUE(untraced->trace().lanes.empty());
  const auto small = spec.create(test.program, test.memory, {.threads = 2, .trace_events = 1});
  small->run(1);
  EXPECT_EQ(small->trace().lanes[0].events.size(), 1u);
  EXPECT_GT(small->trace().lanes[0].lost, 0u);
}

INSTANTIATE_TEST_SUITE_P(Executors, Traces, testing::Values("threads", "reference", "megakernel"),
                         [](const auto& param) { return fmt::format("{}_trace", param.param); });

struct Hang {
  const char* name;
  void (*inject)(TestProgram&);
  std::vector<std::string> dump;         // parts that the message must contain
  std::vector<std::string> on_gpu = {};  // parts that the megakernel's message must contain as well
};

void PrintTo(const Hang& hang, std::ostream* out) {
  *out << hang.name;
}

class Hangs : public testing::TestWithParam<std::tuple<const char*, Hang>> {};

// The first part that is missing in the message of a run that hangs, with the message; empty: none is
// missing.
std::string lacking(Executor& hangs, const std::vector<std::string>& parts) {
  try {
    hangs.run(2);
    return "the run ended";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDevice) return error.what();
    for (const std::string& part : parts)
      if (std::string_view(error.what()).find(part) == std::string_view::npos)
        return part + " in\n" + error.what();
    return "";
  }
}

TEST_P(Hangs, EndWithADumpAndTheNextRunWorks) {
  const auto& [executor_name, hang] = GetParam();
  const ExecutorSpec& spec = get_executor(executor_name);
  if (std::string why = spec.unavailable(); !why.empty()) GTEST_SKIP() << executor_name << ": " << why;
  TestProgram test(3, spec.space ? &spec.space(0) : nullptr);
  const auto good = test.program.workers;
  const auto create = [&](double hang_limit_ms) {
    return spec.create(test.program, test.memory, {.threads = 2, .hang_limit_ms = hang_limit_ms});
  };
  constexpr double kPatientMs = 120'000;
  const auto before = create(kPatientMs);
  before->run(2);
  const auto wanted = test.result();
  hang.inject(test);
  std::vector<std::string> parts = hang.dump;
  if (executor_name == std::string("megakernel")) {
    parts.push_back("consumers and loader of each worker:\n  worker 0: at #");
    parts.insert(parts.end(), hang.on_gpu.begin(), hang.on_gpu.end());
  }
  // On a busy machine a short limit may catch workers before they have reached their wait.
  std::string lack = "not run";
  for (int limit_ms = 150; limit_ms < kPatientMs && !lack.empty(); limit_ms *= 8) {
    const auto hangs = create(limit_ms);
    lack = lacking(*hangs, parts);
    if (lack.empty()) lack = lacking(*hangs, parts);  // counters start again
  }
  EXPECT_EQ(lack, "");
  test.program.workers = good;
  EXPECT_EQ(before->run(2).steps, 2);
  EXPECT_EQ(test.result(), wanted);
  EXPECT_EQ(create(kPatientMs)->run(2).steps, 2);
  EXPECT_EQ(test.result(), wanted);
}

const Hang kHangs[] = {
    {"dropped_signal",
     [](TestProgram& test) { test.at(1, 2).signal.counter = kNoCounter; },
     {"worker 0 #3", "layer3", "counter 2 seen 2 wanted 3", "worker 2 #3"}},
    {"signal_of_nothing",
     [](TestProgram& test) { test.at(1, 2).signal.amount = 0; },
     {"worker 0 #3", "layer3", "counter 2 seen 2 wanted 3"}},
    {"signal_to_another_counter",
     [](TestProgram& test) { test.at(1, 2).signal.counter = 5; },
     {"worker 1 #3", "layer3", "counter 2 seen 2 wanted 3"}},
    {"shared_counter",
     [](TestProgram& test) {
       for (size_t w : {0, 1, 2}) test.at(w, 3).signal.counter = 2;
     },
     {"worker 2 #4", "layer4", "counter 3 seen 0 wanted 3", "no instruction signals it"}},
    {"wrong_target",
     [](TestProgram& test) { test.at(2, 4).waits[0].target = 4; },
     {"worker 2 #4", "layer4", "counter 3 seen 3 wanted 4"}},
    {"missing_producer",
     [](TestProgram& test) { test.program.workers[0].erase(test.program.workers[0].begin()); },
     {"worker 1 #1", "layer1", "counter 0 seen 2 wanted 3"}},
    {"wrong_epoch",
     [](TestProgram& test) { test.at(0, 2).set_previous(1, false); },
     {"worker 0 #2", "layer2", "counter 3 seen 0 wanted 3"}},
    {"wait_for_itself",
     [](TestProgram& test) {
       test.at(0, 3).waits[0] = {3, 3};
     },
     {"worker 0 #3", "layer3", "counter 3 seen 2 wanted 3"}},
    {"swapped_order",
     [](TestProgram& test) { std::swap(test.at(0, 2), test.at(0, 3)); },
     {"worker 0 #2", "layer3", "counter 2 seen 2 wanted 3"}},
    {"stream_that_stops",
     [](TestProgram& test) { test.at(1, 3) = {}; },
     {"worker 0 #4", "layer4", "counter 3 seen 2 wanted 3", "2 signal it", "(step 2)"},
     {"worker 1: at #", "(step 2); the loader"}},
    {"stopped_worker",
     [](TestProgram& test) { test.program.workers[1].assign(1, {}); },
     {"worker 0 #1", "layer1", "counter 0 seen 2 wanted 3"},
     {"worker 1: at #0 the end (step 2); the loader"}},
    {"starved_loader",
     [](TestProgram& test) {
       test.at(1, 3).signal.counter = kNoCounter;
       for (size_t w : {0, 1, 2}) test.at(w, 4).stream_items = kItemsFromData;
     },
     {"worker 0 #4", "layer4", "counter 3 seen 2 wanted 3"},
     {"worker 2: at #4", "the loader waits for what its consumers wait for"}},
};

INSTANTIATE_TEST_SUITE_P(Executors, Hangs,
                         testing::Combine(testing::Values("threads", "reference", "megakernel"),
                                          testing::ValuesIn(kHangs)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param).name;
                         });

// Consumers that wait for panels which no loader loads give up, and the device stays usable.
TEST(Panels, ThatDoNotComeAreAFault) {
  if (std::string why = get_executor("megakernel").unavailable(); !why.empty()) GTEST_SKIP() << why;
  const cuda::Device& device = cuda::Device::at(0);
  const std::string arch = device.arch();
  const TestProgram test(1);
  const u32 scratch = cuda::KernelTraits::of(test.program, arch).scratch_bytes;
  const std::string source = cuda::megakernel_source(test.program, arch) + R"(
extern "C" __global__ void starve(const __grid_constant__ heddle::KernelParams p) {
  const Cta cta(p);
  if (cta.is_loader()) return;
  for (int panel = 0; panel < 3; ++panel) wait_for_panels(cta.cursor(), 1, arch::thread() % 32);
  sync_consumers();
  if (arch::thread() == 0 && is_stopped(p.fault)) p.tiles[0] = 7;
})";
  const cuda::Module module(
      cuda::compile(std::vector<cuda::CompileRequest>{{"starve", source, arch, {}}})[0].cubin, device);
  const u32 shared = scratch + 2 * kRingSlotBytes;
  cuda::Kernel kernel = module.kernel("starve");
  kernel.set_max_shared(int(shared));
  const cuda::Stream stream(device);
  struct {
    FaultRecord fault;
    u32 tiles[2] = {};
  } report;
  const cuda::DeviceBuffer memory(sizeof report, device);
  cuda::upload(memory.data(), &report, sizeof report, stream);
  KernelParams params;
  params.fault = reinterpret_cast<FaultRecord*>(memory.data());
  params.tiles = reinterpret_cast<u32*>(memory.data() + sizeof(FaultRecord));
  params.ring_slots = 2;
  params.panel_limit = u64(20 * device.max_clock_khz());
  const void* args[] = {&params};
  launch(kernel, {.block = 32 * (kConsumerWarps + 1), .shared = shared}, stream, args);
  cuda::download(&report, memory.data(), sizeof report, stream);
  stream.synchronize();
  EXPECT_EQ(report.fault.awaited, Awaited::kPanels);
  EXPECT_EQ(report.fault.stop, 1u);
  EXPECT_EQ(report.tiles[0], 7u) << "all consumers go on together";
}

class Fits : public testing::TestWithParam<const char*> {};

// All workers of a program run on the device at once; otherwise it is refused before it runs.
TEST_P(Fits, TooManyWorkersAreRefused) {
  const ExecutorSpec& spec = get_executor(GetParam());
  if (std::string why = spec.unavailable(); !why.empty()) GTEST_SKIP() << GetParam() << ": " << why;
  TestProgram test(3, &spec.space(0));
  test.program.workers.resize(20000, {Instruction{}});
  try {
    spec.create(test.program, test.memory, {});
    FAIL() << "it was taken";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("the program has 20000 workers; "), std::string::npos) << text;
    EXPECT_NE(text.find("fit on the device at once"), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, Fits, testing::Values("megakernel"),
                         [](const auto& param) { return fmt::format("{}_fits", param.param); });

// Kernels that know forms, or sizes, give the same bits as kernels that know nothing.
class Specialised : public testing::TestWithParam<std::string> {};

TEST_P(Specialised, KernelsGiveTheSameBits) {
  const ExecutorSpec& spec = get_executor(GetParam());
  if (std::string why = spec.unavailable(); !why.empty()) GTEST_SKIP() << GetParam() << ": " << why;
  const auto run = [&](Knowledge knowledge) {
    TestProgram test(3, &spec.space(0));
    ExecutorOptions options;
    options.knowledge = knowledge;
    const RunReport report = spec.create(test.program, test.memory, options)->run(2);
    EXPECT_EQ(report.tiles_run, u64(2 * 3 * TestProgram::kLayers));
    return test.result();
  };
  const auto wanted = run(Knowledge::kNothing);
  for (Knowledge knowledge : {Knowledge::kForms, Knowledge::kSizes}) EXPECT_EQ(run(knowledge), wanted);
}

INSTANTIATE_TEST_SUITE_P(Executors, Specialised, testing::Values("launches", "megakernel"),
                         [](const auto& param) { return param.param; });

TEST(Threads, AFailureInATileIsThrownByRun) {
  TestProgram test(3);
  int calls = 0;
  ExecutorOptions options{.threads = 2, .tap = [&](const Instruction&, u32) {
                            if (++calls == 4) fail(ErrorCode::kInternal, "[tap] enough");
                          }};
  auto executor = get_executor("threads").create(test.program, test.memory, options);
  EXPECT_THROW(executor->run(1), Error);
  executor->run(1);
  EXPECT_EQ(test.result(), run(3, 1, ""));
}

}  // namespace
}  // namespace heddle
