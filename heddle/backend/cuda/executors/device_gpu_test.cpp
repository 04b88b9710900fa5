// The device layer on a GPU: programs, launches, graphs, memory, contexts and faults.
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/compiler/test_kernels.h"
#include "heddle/backend/cuda/executors/bandwidth.h"
#include "heddle/backend/cuda/executors/gpu_test.h"
#include "heddle/backend/cuda/runtime/kernel.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// The arguments of a launch, as addresses.
template <class... Args>
void run(const Kernel& kernel, const Launch& how, const Stream& stream, Args... args) {
  const void* const list[] = {&args...};
  launch(kernel, how, stream, list);
}

class DeviceLayer : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    cubin = compile(test_kernels(device().arch())).cubin;
  }

  template <class T>
  static std::vector<T> read(const std::byte* from, size_t count, const Stream& stream) {
    std::vector<T> values(count);
    download(values.data(), from, count * sizeof(T), stream);
    stream.synchronize();
    return values;
  }

  std::string cubin;
};

std::string message_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "no error";
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

TEST_F(DeviceLayer, KnowsTheDevice) {
  EXPECT_GE(Device::count(), 1);
  EXPECT_GE(device().compute_major(), 8);
  EXPECT_GT(device().multiprocessors(), 0);
  EXPECT_GE(device().shared_per_block_optin(), 99 << 10);
  EXPECT_GT(device().memory(), i64{1} << 30);
  EXPECT_GT(device().max_clock_khz(), 100'000);
  EXPECT_FALSE(device().name().empty());
  EXPECT_LE(memory_info(device()).free, memory_info(device()).total);
  expect_parts(message_of([] { Device::at(1000); }),
               {"invalid argument", "there is no device 1000; this machine has ", "(0 "});
}

TEST_F(DeviceLayer, RunsAKernel) {
  constexpr u32 kCount = 10'001;
  const Stream stream(device());
  Module module(cubin, device());
  Kernel kernel = module.kernel("saxpy");
  EXPECT_GT(kernel.attributes().registers, 0);
  EXPECT_GE(kernel.attributes().max_threads, 256);
  EXPECT_GE(kernel.occupancy(256, 0), 1);
  const DeviceBuffer x(kCount * 4, device()), y(kCount * 4, device());
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), 0.0f);
  upload(x.data(), values.data(), x.size(), stream);
  fill_words(y.data(), 0x3f800000u, kCount, stream);  // 1.0f
  const float factor = 2;
  const std::span<std::byte> variable = module.global("factor");
  ASSERT_EQ(variable.size(), 4u);
  upload(variable.data(), &factor, 4, stream);
  run(kernel, {.grid = (kCount + 255) / 256, .block = 256}, stream, 3.0f, x.data(), y.data(), kCount);
  const std::vector<float> result = read<float>(y.data(), kCount, stream);
  for (u32 i = 0; i < kCount; ++i) ASSERT_EQ(result[i], 6 * float(i) + 1) << i;
}

// Launches of one chain, with and without programmatic dependent launch, eager and recorded.
TEST_F(DeviceLayer, KeepsTheOrderOfAChainInEveryFormOfLaunch) {
  constexpr u32 kCount = 4096, kSteps = 12;
  const Stream stream(device());
  const Module module(cubin, device());
  const Kernel kernel = module.kernel("chain");
  const DeviceBuffer x(kCount * 4, device());
  u32 expected = 7;
  for (u32 step = 0; step < kSteps; ++step) expected = expected * 3 + step;
  for (const bool programmatic : {false, true}) {
    if (programmatic && device().compute_major() < 9) continue;
    const auto put = [&] {
      fill_words(x.data(), 7, kCount, stream);
      for (u32 step = 0; step < kSteps; ++step)
        run(kernel, {.grid = kCount / 128, .block = 128, .programmatic = programmatic && step > 0}, stream,
            x.data(), step);
    };
    put();
    EXPECT_EQ(read<u32>(x.data(), kCount, stream), std::vector<u32>(kCount, expected)) << programmatic;
    fill(x.data(), 0, x.size(), stream);
    stream.synchronize();
    GraphCapture capture(stream);
    EXPECT_TRUE(stream.capturing());
    put();
    const Graph graph = capture.end();
    EXPECT_FALSE(stream.capturing());
    EXPECT_EQ(read<u32>(x.data(), kCount, stream), std::vector<u32>(kCount, 0)) << "recorded, not run";
    for (int i = 0; i < 3; ++i) {
      fill(x.data(), 0, x.size(), stream);
      graph.launch(stream);
      EXPECT_EQ(read<u32>(x.data(), kCount, stream), std::vector<u32>(kCount, expected)) << programmatic;
    }
  }
}

TEST_F(DeviceLayer, MemoryInStreamOrderWorksInsideAndOutsideOfGraphs) {
  const Stream stream(device());
  const DeviceBuffer result(4096, device());
  const auto put = [&] {
    const DeviceBuffer scratch(4096, stream);
    fill(scratch.data(), 0x5a, 4096, stream);
    copy(result.data(), scratch.data(), 4096, stream);
  };
  put();
  EXPECT_EQ(read<u8>(result.data(), 4096, stream), std::vector<u8>(4096, 0x5a));
  GraphCapture capture(stream);
  put();
  const Graph graph = capture.end();
  for (int i = 0; i < 3; ++i) {
    fill(result.data(), 0, 4096, stream);
    graph.launch(stream);
    EXPECT_EQ(read<u8>(result.data(), 4096, stream), std::vector<u8>(4096, 0x5a));
  }
}

TEST_F(DeviceLayer, HostAndKernelTalkThroughPinnedMemory) {
  const Stream stream(device());
  const Module module(cubin, device());
  const PinnedBuffer words(64, device());
  volatile u32* host = words.as<u32>();
  EXPECT_EQ(host[0], 0u);
  Event begin(device()), end(device());
  begin.record(stream);
  run(module.kernel("wait_for"), {}, stream, words.device_data(), words.device_data() + 4);
  end.record(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(stream.done());
  EXPECT_FALSE(end.done());
  host[0] = 41;
  stream.synchronize();
  EXPECT_TRUE(stream.done());
  EXPECT_TRUE(end.done());
  EXPECT_EQ(host[1], 42u);
  EXPECT_GT(end.elapsed_ms(begin), 10);
}

TEST_F(DeviceLayer, AnEventHoldsAnotherStream) {
  const Stream first(device()), second(device());
  const Module module(cubin, device());
  const PinnedBuffer words(64, device());
  const DeviceBuffer result(4, device());
  fill(result.data(), 0, 4, second);
  run(module.kernel("wait_for"), {}, first, words.device_data(), words.device_data() + 4);
  Event event(device());
  event.record(first);
  event.hold(second);
  fill(result.data(), 1, 4, second);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(second.done());
  *static_cast<volatile u32*>(words.as<u32>()) = 1;
  EXPECT_EQ(read<u32>(result.data(), 1, second), std::vector<u32>{0x01010101});
}

TEST_F(DeviceLayer, AllSharedMemoryOfABlockCanBeHad) {
  const Stream stream(device());
  const Module module(cubin, device());
  Kernel kernel = module.kernel("use_shared");
  const u32 bytes = u32(device().shared_per_block_optin()), grid = 4;
  const DeviceBuffer out(grid * 4, device());
  expect_parts(message_of([&] {
                 run(kernel, {.grid = grid, .block = 64, .shared = bytes}, stream, out.data(), bytes / 4);
               }),
               {"device: ", "use_shared", std::to_string(bytes)});
  kernel.set_max_shared(int(bytes));
  EXPECT_EQ(kernel.occupancy(64, bytes), 1);
  run(kernel, {.grid = grid, .block = 64, .shared = bytes}, stream, out.data(), bytes / 4);
  EXPECT_EQ(read<u32>(out.data(), grid, stream), std::vector<u32>(grid, bytes / 4 - 1));
  expect_parts(message_of([&] { kernel.set_max_shared(int(bytes) + 1); }),
               {"cuFuncSetAttribute", "use_shared"});
}

TEST_F(DeviceLayer, ACooperativeGridFitsOrIsRefused) {
  const Stream stream(device());
  const Module module(cubin, device());
  const Kernel kernel = module.kernel("mark_ctas");
  const u32 fit = u32(kernel.occupancy(1024, 0) * device().multiprocessors());
  const DeviceBuffer out((fit + 1) * 4, device());
  run(kernel, {.grid = fit, .block = 1024, .cooperative = true}, stream, out.data());
  stream.synchronize();
  expect_parts(message_of([&] {
                 run(kernel, {.grid = fit + 1, .block = 1024, .cooperative = true}, stream, out.data());
               }),
               {"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "mark_ctas", "cooperative"});
}

TEST_F(DeviceLayer, ReadBandwidthIsMeasured) {
  const double bandwidth = measure_read_bandwidth(device());
  RecordProperty("read_gigabytes_per_second", int(bandwidth * 1e-9));
  std::printf("reads %.0f GB/s\n", bandwidth * 1e-9);
  EXPECT_GT(bandwidth, 0);
  EXPECT_TRUE(std::isfinite(bandwidth));
}

TEST_F(DeviceLayer, ErrorsAreDecoded) {
  const Stream stream(device());
  const Module module(cubin, device());
  expect_parts(message_of([&] { run(module.kernel("write_at"), {.block = 5000}, stream, nullptr); }),
               {"device: ", "cuLaunchKernelEx", "CUDA_ERROR_INVALID_VALUE", "write_at", "5000 threads"});
  expect_parts(message_of([&] { (void)module.kernel("nothing"); }),
               {"invalid argument", "no kernel nothing"});
  expect_parts(message_of([&] { (void)module.global("nothing"); }),
               {"invalid argument", "no variable nothing"});
  expect_parts(message_of([] { const Module bad("this is no program", device()); }),
               {"cuModuleLoadData", "CUDA_ERROR_"});
  expect_parts(message_of([] { const DeviceBuffer much(size_t{1} << 50, device()); }),
               {"CUDA_ERROR_OUT_OF_MEMORY", "1125899906842624 bytes asked for", "free"});
  stream.synchronize();  // none of these harms what follows
}

TEST_F(DeviceLayer, ACaptureThatIsDroppedLeavesTheStreamUsable) {
  const Stream stream(device());
  const DeviceBuffer x(16, device());
  fill(x.data(), 1, 16, stream);
  {
    GraphCapture capture(stream);
    fill(x.data(), 2, 16, stream);
  }
  EXPECT_EQ(read<u8>(x.data(), 16, stream), std::vector<u8>(16, 1));
}

ContextHandle current_context() {
  ContextHandle current = nullptr;
  driver().context_get_current(&current);
  return current;
}

TEST_F(DeviceLayer, TheCallersContextIsUsedAndLeftAsItWas) {
  const ContextHandle before = current_context(), primary = device().context();
  ContextHandle own = nullptr;
  driver().context_create(&own, 0, 0);
  ASSERT_EQ(current_context(), own);
  EXPECT_EQ(device().context(), own);
  {
    const Stream stream(device());
    EXPECT_EQ(stream.context(), own);
    const Module module(cubin, device());
    const DeviceBuffer x(256 * 4, device());
    fill_words(x.data(), 1, 256, stream);
    run(module.kernel("chain"), {.grid = 2, .block = 128}, stream, x.data(), 5u);
    EXPECT_EQ(read<u32>(x.data(), 256, stream), std::vector<u32>(256, 8));
    EXPECT_EQ(current_context(), own);
    // A thread without a context uses what was made here, and has none afterwards.
    std::thread([&] {
      EXPECT_EQ(current_context(), nullptr);
      run(module.kernel("chain"), {.grid = 2, .block = 128}, stream, x.data(), 1u);
      EXPECT_EQ(read<u32>(x.data(), 256, stream), std::vector<u32>(256, 25));
      EXPECT_EQ(current_context(), nullptr);
      EXPECT_EQ(device().context(), primary);
    }).join();
    const Stream borrowed = Stream::borrow(nullptr, device());  // the context's default stream
    fill_words(x.data(), 2, 256, borrowed);
    EXPECT_EQ(read<u32>(x.data(), 256, borrowed), std::vector<u32>(256, 2));
    EXPECT_EQ(current_context(), own);
  }
  driver().context_destroy(own);
  EXPECT_EQ(current_context(), before);
}

// A fault spoils the context, so it happens in a process of its own.
TEST_F(DeviceLayer, AFaultOfAKernelIsAnErrorOfTheNextCall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Stream stream(device());
        const Module module(cubin, device());
        run(module.kernel("write_at"), {}, stream, reinterpret_cast<u32*>(16));
        const std::string message = message_of([&] { stream.synchronize(); });
        std::fprintf(stderr, "%s\n", message.c_str());
        std::_Exit(3);
      },
      testing::ExitedWithCode(3), "device: \\[cuda\\] cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
}

}  // namespace
}  // namespace heddle::cuda
