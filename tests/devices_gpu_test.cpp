// Programs on the first and the last GPU of a machine: the same bits, in that GPU's memory, in whichever context
// the caller works.
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "heddle/backend/cuda/executors/gpu_test.h"
#include "heddle/base/error.h"
#include "tests/support/golden.h"
#include "tests/support/test_program.h"

namespace heddle::cuda {
namespace {

ContextHandle current_context() {
  ContextHandle current = nullptr;
  driver().context_get_current(&current);
  return current;
}

int device_of(const void* address) {
  int ordinal = -1;
  driver().pointer_get_attribute(&ordinal, PointerAttribute::kDeviceOrdinal,
                                 reinterpret_cast<DevicePointer>(address));
  return ordinal;
}

std::string message_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "no error";
}

class WithExecutor : public GpuTest, public testing::WithParamInterface<const char*> {
 protected:
  static const ExecutorSpec& spec() { return get_executor(GetParam()); }
};

class Devices : public WithExecutor {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && Device::count() < 2)
      GTEST_SKIP() << "there is one GPU here; programs on another one need two";
  }
  static i32 last() { return Device::count() - 1; }

  // The result of a few steps on a device. The executor is made in one context of the caller, and runs in another
  // one. Each call leaves the context as it was.
  static std::vector<float> run_on(i32 device, ContextHandle made_in, ContextHandle runs_in) {
    std::optional<ContextScope> scope(made_in);
    TestProgram test(3, &spec().space(device));
    for (const std::byte* address : test.memory.base) EXPECT_EQ(device_of(address), device);
    const auto executor = spec().create(test.program, test.memory, {.device = device, .trace_events = 100});
    EXPECT_EQ(current_context(), made_in);
    scope.reset();
    scope.emplace(runs_in);
    executor->run(1);
    const RunReport report = executor->run(2);
    EXPECT_EQ(current_context(), runs_in);
    EXPECT_EQ(report.tiles_run, u64(2 * 3 * TestProgram::kLayers));
    EXPECT_FALSE(executor->trace().lanes.at(2).events.empty());
    EXPECT_EQ(current_context(), runs_in);
    return test.result();
  }
};

TEST_P(Devices, GiveTheSameBitsFromAnyContext) {
  const ContextHandle first = Device::at(0).primary_context(), second = Device::at(last()).primary_context();
  ContextHandle own = nullptr, popped = nullptr;
  driver().context_create(&own, 0, last());
  driver().context_pop_current(&popped);
  const std::vector<float> wanted = run_on(0, first, first);
  EXPECT_EQ(run_on(0, second, second), wanted);
  EXPECT_EQ(run_on(0, first, own), wanted);
  EXPECT_EQ(run_on(last(), first, first), wanted);
  EXPECT_EQ(run_on(last(), own, second), wanted);
  EXPECT_EQ(run_on(last(), first, own), wanted);
  driver().context_destroy(own);
}

// An executor depends neither on the context in which it was made, nor on the thread.
TEST_P(Devices, ExecutorsOutliveTheCallersContext) {
  ContextHandle own = nullptr;
  driver().context_create(&own, 0, last());
  auto test = std::make_unique<TestProgram>(3, &spec().space(last()));
  auto executor = spec().create(test->program, test->memory, {.device = last()});
  driver().context_destroy(own);
  std::thread([&] {
    executor->run(3);
    EXPECT_EQ(current_context(), nullptr);
    const ContextHandle first = Device::at(0).primary_context();
    EXPECT_EQ(test->result(), run_on(0, first, first));
    executor.reset();
    test.reset();
  }).join();
}

// The tokens that an engine chooses and tells, with its weights, its pages and its step record on a device.
TEST_P(Devices, EnginesChooseTheSameTokens) {
  const auto tokens_on = [&](i32 device, i32 callers) {
    const ContextScope scope(Device::at(callers).primary_context());
    EngineOptions options{
        .executor = GetParam(), .workers = 3, .max_context = 128, .max_sequences = 2, .page_size = 16};
    options.device = device;
    const auto engine = golden_engine("llama3-tiny", options);
    const Golden golden = load_golden("llama3-tiny");
    const StepRequest request{engine->open({.temperature = 0.8f, .seed = 11}),
                              std::span(golden.tokens).first(9), true};
    const i32 token = engine->step(std::span(&request, 1)).sampled[0];
    const StepRequest next{request.sequence, std::span(&token, 1), true};
    std::vector<i32> told = {token};
    engine->step(std::span(&next, 1), {.steps = 8, .logits = false, .on_tokens = [&](auto chosen) {
                                         told.insert(told.end(), chosen.begin(), chosen.end());
                                         return true;
                                       }});
    EXPECT_EQ(current_context(), Device::at(callers).primary_context());
    return told;
  };
  const std::vector<i32> wanted = tokens_on(0, last());
  EXPECT_EQ(wanted.size(), 9u);
  EXPECT_EQ(tokens_on(last(), 0), wanted);
}

INSTANTIATE_TEST_SUITE_P(Executors, Devices, testing::Values("launches", "megakernel"),
                         [](const auto& param) { return std::string(param.param); });

class NoSuchDevice : public WithExecutor {};

TEST_P(NoSuchDevice, IsRefusedByItsNumber) {
  for (const i32 device : {-1, Device::count()}) {
    const std::string refusal =
        fmt::format("invalid argument: [cuda] there is no device {}; this machine has {} (0 {}", device,
                    Device::count(), Device::at(0).name());
    const auto expect_refused = [&](auto&& work) {
      const std::string message = message_of(work);
      EXPECT_TRUE(message.starts_with(refusal)) << message;
    };
    expect_refused([&] { spec().space(device); });
    expect_refused([&] { (void)spec().workers(device); });
    expect_refused([&] { (void)backend_of(GetParam()).device(device); });
    expect_refused([&] { (void)backend_of(GetParam()).kind(device); });
    expect_refused([&] {
      TestProgram test(3, &spec().space(0));
      spec().create(test.program, test.memory, {.device = device});
    });
    EngineOptions options{.executor = GetParam(), .device = device, .workers = 3};
    expect_refused([&] { validate(options); });
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, NoSuchDevice, testing::Values("launches", "megakernel"),
                         [](const auto& param) { return std::string(param.param); });

// No other process takes the memory of an emulated GPU, so that each byte can be counted.
class OnEmulatedGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && Device::at(0).name() != "emulated GPU")
      GTEST_SKIP() << "counts the memory of the emulated GPUs";
  }
};

TEST_F(OnEmulatedGpu, AnExecutorTakesMemoryOfItsDeviceOnly) {
  for (const char* name : {"launches", "megakernel"})
    for (const i32 device : {0, 1}) {
      const ExecutorSpec& spec = get_executor(name);
      MemorySpace &own = spec.space(device), &other = spec.space(1 - device);
      const i64 own_before = own.available(), other_before = other.available();
      {
        const ContextScope scope(Device::at(1 - device));
        TestProgram test(3, &own);
        const i64 without = own.available();
        EXPECT_LT(without, own_before);
        const auto executor = spec.create(test.program, test.memory, {.device = device, .trace_events = 100});
        executor->run(1);
        EXPECT_LT(own.available(), without) << name << " on " << device;
        EXPECT_EQ(other.available(), other_before) << name << " on " << device;
      }
      EXPECT_EQ(own.available(), own_before);
    }
}

TEST_F(OnEmulatedGpu, EachDeviceHasItsOwnNumbers) {
  const Backend& backend = backend_of("megakernel");
  EXPECT_EQ(backend.kind(0).units, 16);
  EXPECT_EQ(backend.kind(1).units, 8);
  EXPECT_EQ(backend.device(1), "small emulated GPU");
  const ExecutorSpec& spec = get_executor("megakernel");
  EXPECT_EQ(target_of({.executor = "megakernel", .device = 1}).topology.workers, 8);
  TestProgram test(9, &spec.space(1));
  const std::string message = message_of([&] { spec.create(test.program, test.memory, {.device = 1}); });
  EXPECT_NE(message.find("the program has 9 workers; 8 CTAs"), std::string::npos) << message;
  EXPECT_NE(&spec.space(0), &spec.space(1));
  EXPECT_EQ(&spec.space(1), &get_executor("launches").space(1));
}

}  // namespace
}  // namespace heddle::cuda
