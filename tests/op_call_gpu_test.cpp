// Single ops on a GPU, as callers use them: one kernel for any shape, on their streams, in their contexts, in
// graphs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "heddle/backend/cuda/device/standalone.h"
#include "heddle/backend/cuda/executors/gpu_test.h"
#include "heddle/backend/cuda/executors/op_call.h"
#include "heddle/backend/cuda/executors/standalone_kernels.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/float16.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/attention/attention.h"
#include "heddle/ops/copy/copy.h"
#include "heddle/ops/cross_entropy/cross_entropy.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/matmul/matmul.h"
#include "heddle/ops/rms_norm/rms_norm.h"
#include "heddle/ops/softcap/softcap.h"
#include "heddle/ops/softcap/softcap_backward.h"
#include "tests/support/count_allocations.h"

namespace heddle::cuda {
namespace {

constexpr float kPoison = -77;

// Floats on the device, poisoned unless values are given.
class Floats {
 public:
  explicit Floats(std::vector<float> values, const Device& device = Device::at(0))
      : device_(device), memory_(values.size() * 4, device), count_(values.size()) {
    const Stream stream(device);
    upload(memory_.data(), values.data(), count_ * 4, stream);
    stream.synchronize();
  }
  explicit Floats(size_t count) : Floats(std::vector<float>(count, kPoison)) {}

  std::vector<float> read() const {
    const Stream stream(device_);
    std::vector<float> values(count_);
    download(values.data(), memory_.data(), count_ * 4, stream);
    stream.synchronize();
    return values;
  }
  Tensor matrix(i64 rows, i64 columns) const {
    return tensor_of("test", "x", {.data = memory_.data(), .size = std::vector<i64>{rows, columns}});
  }
  Tensor row() const {
    return tensor_of("test", "x", {.data = memory_.data(), .size = std::vector<i64>{i64(count_)}});
  }

 private:
  const Device& device_;
  DeviceBuffer memory_;
  size_t count_;
};

template <class Args>
void call(const char* op, const Args& args, const CallSite& site = {}) {
  op_calls().run(get_op(op), reinterpret_cast<const std::byte*>(&args), site);
}
template <class Args>
CallNeeds needs(const char* op, const Args& args) {
  return op_calls().needs(get_op(op), reinterpret_cast<const std::byte*>(&args), {});
}
template <class Args>
void call_with_workspace(const char* op, const Args& args, void* stream = nullptr) {
  const i64 bytes = needs(op, args).workspace_bytes;
  const DeviceBuffer workspace(size_t(std::max<i64>(bytes, 1)), Device::at(0));
  call(op, args, {.stream = stream, .workspace = workspace.data(), .workspace_bytes = bytes});
  Device::at(0).synchronize();
}
Add add(const Floats& a, const Floats& b, const Floats& y, i64 rows, i64 columns) {
  return {.a = a.matrix(rows, columns), .b = b.matrix(rows, columns), .y = y.matrix(rows, columns)};
}

std::string message_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "no error";
}

class OpCallGpu : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) scope_.emplace(device());
  }

 private:
  std::optional<ContextScope> scope_;
};

TEST_F(OpCallGpu, OneKernelServesEveryShape) {
  std::mt19937 random(3);
  const Stream stream(device());
  const Floats weight(std::vector<float>(300, 2.0f));
  const size_t before = StandaloneKernels::of_process().count();
  const KernelTarget target = *op_calls().kernels({.stream = stream.handle()});
  std::set<std::string> kernels;  // the configurations that a whole kernel runs in, or the tiles
  for (int n = 0; n < 200; ++n) {
    const i64 rows = 1 + random() % 40, columns = 1 + random() % 300;
    const Floats x(std::vector<float>(size_t(rows * columns), 3.0f)), y(size_t(rows * columns));
    const RmsNorm norm{
        .x = x.matrix(rows, columns),
        .weight = tensor_of("test", "weight", {.data = weight.row().data, .size = std::vector<i64>{columns}}),
        .y = y.matrix(rows, columns),
        .eps = 0};
    const KernelPlan plan = get_op("rms_norm").kernel(reinterpret_cast<const std::byte*>(&norm), target, {});
    kernels.insert(plan.why_not.empty() ? plan.constants.text() : "tiles");
    call("rms_norm", norm, {.stream = stream.handle()});
    stream.synchronize();
    for (const float value : y.read()) ASSERT_NEAR(value, 2, 1e-5) << rows << " x " << columns;
  }
  EXPECT_EQ(StandaloneKernels::of_process().count(), before + kernels.size());
  EXPECT_LE(kernels.size(), 8u);
}

// Multiplies dy [terms, rows], all 3, and w [rows, columns], all 2.
void expect_product(const Stream& stream, i32 rows, i32 columns, i32 terms, const OpConfig* config) {
  const Floats w(std::vector<float>(size_t(rows * columns), 2.0f)),
      dy(std::vector<float>(size_t(terms * rows), 3.0f)), dx(size_t(terms * columns));
  const Matmul args{.a = {.data = dy.matrix(terms, rows)},
                    .b = {.data = w.matrix(rows, columns)},
                    .y = dx.matrix(terms, columns)};
  const i64 bytes =
      op_calls()
          .needs(get_op("matmul"), reinterpret_cast<const std::byte*>(&args), {.config = config})
          .workspace_bytes;
  const DeviceBuffer workspace(size_t(std::max<i64>(bytes, 1)), Device::at(0));
  call(
      "matmul", args,
      {.stream = stream.handle(), .workspace = workspace.data(), .workspace_bytes = bytes, .config = config});
  stream.synchronize();
  for (const float value : dx.read())
    ASSERT_EQ(value, float(6 * rows)) << terms << " x " << columns << " x " << rows;
}

TEST_F(OpCallGpu, AKernelOfEachConfigurationServesEveryShape) {
  const Stream stream(device());
  const auto run = [&](i32 rows, i32 columns, i32 terms, const OpConfig* config) {
    expect_product(stream, rows, columns, terms, config);
  };
  run(40, 70, 3, nullptr);
  const size_t before = StandaloneKernels::of_process().count();
  const Matmul args{.a = {.data = dense(DType::kF32, {3, 40})}, .b = {.data = dense(DType::kF32, {40, 70})}};
  const std::vector<OpConfig> configs =
      configs_of(get_op("matmul"), reinterpret_cast<const std::byte*>(&args), {.gpu = true});
  for (size_t n = 0; n < configs.size(); ++n) {
    for (const i32 rows : {40, 65, 7}) run(rows, 70, 3, &configs[n]);
    EXPECT_EQ(StandaloneKernels::of_process().count(), before + n + 1) << configs[n].text();
  }
  run(65, 9, 70, nullptr);  // no plan of a configuration is taken for the default
  EXPECT_EQ(StandaloneKernels::of_process().count(), before + configs.size());
}

// A CTA goes along a row of so many logits, with as many threads as the configuration says.
TEST_F(OpCallGpu, EachConfigurationOfALossOfWideRowsIsRight) {
  constexpr i64 kColumns = 20000;
  const Stream stream(device());
  const Floats logits(std::vector<float>(kColumns, 1.0f)), target(std::vector<float>{0}), loss(1), lse(1);
  Tensor of_target = target.row();
  of_target.dtype = DType::kI32;  // 0, as floats have it
  const CrossEntropy args{
      .logits = logits.matrix(1, kColumns), .target = of_target, .loss = loss.row(), .lse = lse.row()};
  const KernelTarget kernels = *op_calls().kernels({.stream = stream.handle()});
  const std::vector<OpConfig> configs = configs_of(
      get_op("cross_entropy"), reinterpret_cast<const std::byte*>(&args), {.gpu = true, .kernels = &kernels});
  EXPECT_GE(configs.size(), 2u);
  for (const OpConfig& config : configs) {
    call("cross_entropy", args, {.stream = stream.handle(), .config = &config});
    stream.synchronize();
    EXPECT_NEAR(loss.read()[0], std::log(double(kColumns)), 1e-4) << config.text();
  }
}

TEST_F(OpCallGpu, AKnownShapeAllocatesNothing) {
  const Stream stream(device());
  const Floats a({1, 2}), b({3, 4}), y(2), copy(2);
  Add args = add(a, b, y, 1, 2);
  args.copy = copy.matrix(1, 2);  // so that the body runs, which is launched below
  call("add", args, {.stream = stream.handle()});
  const size_t before = allocations_here;
  call("add", args, {.stream = stream.handle()});
  const size_t of_call = allocations_here - before;
  stream.synchronize();
  EXPECT_EQ(y.read(), std::vector<float>({4, 6}));
  // A launch of that kernel by the driver alone, which may allocate.
  unsigned long long context = 0;
  driver().context_get_id(stream.context(), &context);
  const StandaloneKernel kernel = StandaloneKernels::of_process().get(
      get_op("add"), reinterpret_cast<const std::byte*>(&args), {}, context, device());
  OpGrid grid;
  grid.axes[0] = {.extent = 1, .step = 1}, grid.axes[1] = {.extent = 2, .step = 2};
  LaunchConfig config;
  config.block[0] = kStandaloneThreads, config.stream = stream.handle();
  void* params[] = {&grid, &args};
  const size_t before_launch = allocations_here;
  driver().launch_kernel(&config, kernel.function, params, nullptr);
  const size_t of_launch = allocations_here - before_launch;
  stream.synchronize();
  EXPECT_EQ(of_call, of_launch);
}

TEST_F(OpCallGpu, IsCapturedWithItsAddresses) {
  const Stream stream(device());
  const Floats a({1, 2, 3}), b({10, 20, 30}), first(3), second(3);
  const auto record = [&](const Floats& y) {
    GraphCapture capture(stream);  // the first call of all is recorded too
    call("add", add(a, b, y, 3, 1), {.stream = stream.handle()});
    return capture.end();
  };
  const Graph one = record(first), other = record(second);
  EXPECT_EQ(first.read(), std::vector<float>(3, kPoison));
  other.launch(stream);
  stream.synchronize();
  EXPECT_EQ(first.read(), std::vector<float>(3, kPoison));
  EXPECT_EQ(second.read(), std::vector<float>({11, 22, 33}));
  for (int n = 0; n < 3; ++n) one.launch(stream);
  stream.synchronize();
  EXPECT_EQ(first.read(), std::vector<float>({11, 22, 33}));
}

TEST_F(OpCallGpu, RunsOnTheCallersStream) {
  const Stream streams[] = {Stream(device()), Stream(device())};
  const Floats a({1, 2}), b({3, 4}), y0(2), y1(2), z0(2), z1(2);
  for (int n = 0; n < 8; ++n) {
    call("add", add(a, b, y0, 1, 2), {.stream = streams[0].handle()});
    call("add", add(a, a, y1, 1, 2), {.stream = streams[1].handle()});
    call("add", add(y0, b, z0, 1, 2), {.stream = streams[0].handle()});
    call("add", add(y1, b, z1, 1, 2), {.stream = streams[1].handle()});
  }
  for (const Stream& stream : streams) stream.synchronize();
  EXPECT_EQ(z0.read(), std::vector<float>({7, 10}));
  EXPECT_EQ(z1.read(), std::vector<float>({5, 8}));
}

TEST_F(OpCallGpu, RunsInTheContextThatIsCurrent) {
  for (int n = 0; n < 2; ++n) {  // the second may have the address of the first
    ContextHandle own = nullptr;
    driver().context_create(&own, 0, 0);
    {
      const Floats a({1, 2}), b({3, 4}), y(2);
      call("add", add(a, b, y, 1, 2));
      device().synchronize();
      EXPECT_EQ(y.read(), std::vector<float>({4, 6}));
      // A thread without a context uses the stream's.
      const Stream stream(device());
      std::thread([&] { call("add", add(a, a, y, 1, 2), {.stream = stream.handle()}); }).join();
      stream.synchronize();
      EXPECT_EQ(y.read(), std::vector<float>({2, 4}));
    }
    driver().context_destroy(own);
  }
  const Floats a({1, 2}), b({3, 4}), y(2);
  call("add", add(a, b, y, 1, 2));
  device().synchronize();
  EXPECT_EQ(y.read(), std::vector<float>({4, 6}));
  // So does a call that names the device.
  std::thread([&] { call("add", add(a, a, y, 1, 2), {.device = 0}); }).join();
  device().synchronize();
  EXPECT_EQ(y.read(), std::vector<float>({2, 4}));
  std::string message;
  std::thread([&] { message = message_of([&] { call("add", add(a, b, y, 1, 2)); }); }).join();
  EXPECT_NE(message.find("no current context"), std::string::npos) << message;
}

TEST_F(OpCallGpu, IsSafeFromAnyThread) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      const ContextScope scope(device());
      const Stream stream(device());
      for (i64 rows = 1; rows < 12; ++rows) {
        const Floats a(std::vector<float>(size_t(rows * 5), float(t))), y(size_t(rows * 5));
        call("add", add(a, a, y, rows, 5), {.stream = stream.handle()});
        call("copy", Copy{.x = a.matrix(rows, 5), .y = a.matrix(rows, 5)}, {.stream = stream.handle()});
        stream.synchronize();
        for (const float value : y.read()) EXPECT_EQ(value, float(2 * t));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(OpCallGpu, EmptyTensorsLaunchNothing) {
  const Floats y(4);
  const Tensor nothing = tensor_of("test", "x", {.size = std::vector<i64>{0, 4}});
  call("add", Add{.a = nothing, .b = nothing, .y = nothing});
  device().synchronize();
}

TEST_F(OpCallGpu, ReachesMoreThanTwoBillionElements) {
  constexpr i64 kApart = (i64{1} << 30) + 8;  // elements of bf16
  const DeviceBuffer memory(size_t(2 * (2 * kApart + 4)), device());
  const Stream stream(device());
  std::vector<u16> row = {0x3f80, 0x4000, 0x4040, 0x4080};  // 1, 2, 3, 4
  fill(memory.data() + 2 * 2 * kApart, 0, 8, stream);
  upload(memory.data() + 2 * 2 * kApart, row.data(), 8, stream);
  fill(memory.data(), 0, 8, stream);
  fill(memory.data() + 2 * kApart, 0, 8, stream);
  const Floats y(12);
  const std::vector<i64> size = {3, 4}, stride = {kApart, 1};
  call("copy",
       Copy{.x = tensor_of("test", "x",
                           {.data = memory.data(), .dtype = DType::kBf16, .size = size, .stride = stride}),
            .y = y.matrix(3, 4)},
       {.stream = stream.handle()});
  stream.synchronize();
  EXPECT_EQ(y.read(), std::vector<float>({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}));
}

// A matrix of -1, 0 and 1 on the device: sums of a few are exact in every type.
class Signs {
 public:
  Signs(DType type, i64 rows, i64 columns, u32 seed)
      : values(size_t(rows * columns)), memory_(values.size() * size_t(size_of(type)), Device::at(0)) {
    std::mt19937 random(seed);
    std::vector<std::byte> stored(memory_.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = int(random() % 3) - 1;
      store_number(type, stored.data(), i64(i), values[i]);
    }
    const Stream stream(Device::at(0));
    upload(memory_.data(), stored.data(), stored.size(), stream);
    stream.synchronize();
    tensor = tensor_of("test", "x",
                       {.data = memory_.data(), .dtype = type, .size = std::vector<i64>{rows, columns}});
  }
  double read(size_t i, const std::vector<std::byte>& stored) const {
    return load_number(tensor.dtype, stored.data(), i64(i));
  }
  std::vector<std::byte> stored() const {
    const Stream stream(Device::at(0));
    std::vector<std::byte> bytes(memory_.size());
    download(bytes.data(), memory_.data(), bytes.size(), stream);
    stream.synchronize();
    return bytes;
  }

  Tensor tensor;
  std::vector<int> values;

 private:
  DeviceBuffer memory_;
};

// Enough tiles for tiles of 128 x 128, with a tail in each dimension.
TEST_F(OpCallGpu, MultipliesMatricesInLargeTiles) {
  constexpr i32 kM = 1540, kN = 1010, kK = 72;
  for (const DType type : {DType::kF32, DType::kBf16})
    for (const bool transposed : {false, true}) {
      const Signs a(type, transposed ? kK : kM, transposed ? kM : kK, 1);
      const Signs b(type, transposed ? kN : kK, transposed ? kK : kN, 2), y(type, kM, kN, 3);
      call_with_workspace("matmul", Matmul{.a = {.data = a.tensor, .transposed = transposed},
                                           .b = {.data = b.tensor, .transposed = transposed},
                                           .y = y.tensor});
      Device::at(0).synchronize();
      const std::vector<std::byte> got = y.stored();
      for (i32 m = 0; m < kM; ++m)
        for (i32 n = 0; n < kN; ++n) {
          int sum = 0;
          for (i32 k = 0; k < kK; ++k)
            sum += a.values[size_t(transposed ? k * kM + m : m * kK + k)] *
                   b.values[size_t(transposed ? n * kK + k : k * kN + n)];
          ASSERT_EQ(y.read(size_t(m) * kN + size_t(n), got), sum) << name(type) << " " << m << ", " << n;
        }
    }
}

TEST_F(OpCallGpu, SaysWhatIsWrong) {
  const Floats a({1, 2, 3, 4}), b({1, 2, 3, 4}), y(4);
  const Add good = add(a, b, y, 2, 2);
  struct Fault {
    const char* what;
    void (*make)(Add&);
  };
  static std::vector<float> host(4);
  const Fault faults[] = {
      {"[add] b has no address; its tensor is f32 [2, 2]", [](Add& x) { x.b.data = nullptr; }},
      {"must be a multiple of 4 for f32 [2, 2]", [](Add& x) { x.a.data += 2; }},
      {"[add] y is missing; it is f32 [2, 2]", [](Add& x) { x.y = {}; }},
      {"memory of the host; must be memory of GPU 0",
       [](Add& x) { x.a.data = reinterpret_cast<u8*>(host.data()); }},
      {"[add] b is f32 [1, 2]", [](Add& x) { x.b.size[0] = 1; }},
      {"with stride 1 in dimension 0; must be 2 or more", [](Add& x) { x.y.stride[0] = 1; }},
  };
  for (const Fault& fault : faults) {
    Add args = good;
    fault.make(args);
    // If the GPU can use the host's memory, this is not an error.
    if (std::strstr(fault.what, "of the host") && device().attribute(DeviceAttribute::kPageableMemoryAccess))
      continue;
    const std::string message = message_of([&] { call("add", args); });
    EXPECT_NE(message.find(fault.what), std::string::npos) << message;
  }
  const std::string message = message_of([] { call("attention", Attention{}); });
  EXPECT_EQ(message,
            "unsupported: [attention] reads the step record of a program; it cannot be called by itself");
  device().synchronize();
  EXPECT_EQ(y.read(), std::vector<float>(4, kPoison));
}

TEST_F(OpCallGpu, WorkspaceIsTheCallers) {
  Linear args{.x = dense(DType::kF32, {16, 8}), .y = dense(DType::kF32, {16, 4})};
  args.w.data = dense(DType::kBf16, {4, 8});
  const DeviceBuffer x(16 * 8 * 4, device()), w(size_t(args.w.bytes()) + 64, device()),
      table(64 * 8, device()), y(16 * 4 * 4, device());
  args.x.buffer = args.y.buffer = args.w.data.buffer = 0;
  args.x.data = reinterpret_cast<u8*>(x.data()), args.y.data = reinterpret_cast<u8*>(y.data());
  args.w.data.data = reinterpret_cast<u8*>(w.data());
  args.w.table = reinterpret_cast<const u64*>(table.data());
  const CallNeeds wanted = needs("linear", args);
  EXPECT_GT(wanted.workspace_bytes, 0);
  EXPECT_EQ(wanted.body, "linear");
  const std::string message = message_of([&] { call("linear", args); });
  EXPECT_NE(message.find("[linear] the call has 0 bytes of workspace; needs"), std::string::npos) << message;
}

TEST_F(OpCallGpu, NamesTheBodyThatRuns) {
  const Floats x(65), weight(64), y(64);
  RmsNorm norm{.x = x.matrix(1, 64), .weight = weight.row(), .y = y.matrix(1, 64)};
  const CallNeeds aligned = needs("rms_norm", norm);
  EXPECT_EQ(aligned.body, aligned.why_no_kernel.empty() ? "rms_norm_kernel.sm80" : "rms_norm.sm80");
  norm.x.data += sizeof(float);
  const CallNeeds shifted = needs("rms_norm", norm);
  EXPECT_EQ(shifted.body, "rms_norm.sm80");
  EXPECT_EQ(shifted.why_no_kernel, "a tensor does not begin at a multiple of 16 bytes");
  Add sum = add(x, weight, y, 1, 64);
  const CallNeeds whole = needs("add", sum);
  EXPECT_EQ(whole.body, whole.why_no_kernel.empty() ? "add_kernel.sm80" : "add");
  sum.copy = y.matrix(1, 64);
  EXPECT_EQ(needs("add", sum).body, "add");
  const Softcap cap{.x = x.matrix(1, 64), .y = y.matrix(1, 64), .cap = 1};
  const CallNeeds made = needs("softcap", cap);  // set_value_kernel makes it
  EXPECT_EQ(made.body, made.why_no_kernel.empty() ? "softcap_kernel.sm80" : "softcap");
  const SoftcapBackward slope{.x = x.matrix(1, 64), .dy = y.matrix(1, 64), .dx = y.matrix(1, 64), .cap = 1};
  EXPECT_EQ(needs("softcap_backward", slope).body, "softcap_backward");
  EXPECT_EQ(needs("softcap_backward", slope).why_no_kernel, "");
}

// Tiles whose sums leave the slabs less than they want, with and without memory off chip.
TEST_F(OpCallGpu, TilesOfAnyShapeHaveTheMemoryOfTheirSums) {
  const Stream stream(device());
  const OpConfig large{{"rows", 128}, {"columns", 128}};
  for (const i32 m : {1, 32, 33, 40, 47, 64, 65, 97, 128, 130})
    for (const i32 n : {1, 64, 65, 97, 128, 190}) expect_product(stream, 8, n, m, &large);
}

// A product of matrices of 1 on memory that begins `shift` bytes after a multiple of 256, with `pad` elements between rows.
struct Ones {
  static constexpr i32 kM = 70, kN = 136, kK = 200;
  DeviceBuffer memory{1 << 20, Device::at(0)};
  Matmul args;

  explicit Ones(i64 shift = 0, i64 pad = 0) {
    const Stream stream(Device::at(0));
    std::vector<u16> ones((1 << 20) / 2, 0x3f80);
    upload(memory.data(), ones.data(), 1 << 20, stream);
    stream.synchronize();
    const auto matrix = [&](i64 at, i64 rows, i64 columns) {
      return tensor_of("test", "x",
                       {.data = memory.data() + at + shift,
                        .dtype = DType::kBf16,
                        .size = std::vector<i64>{rows, columns},
                        .stride = std::vector<i64>{columns + pad, 1}});
    };
    args = {.a = {.data = matrix(0, kM, kK)},
            .b = {.data = matrix(1 << 18, kN, kK), .transposed = true},
            .y = matrix(1 << 19, kM, kN)};
  }
  std::vector<u16> read() const {
    const Stream stream(Device::at(0));
    std::vector<u16> row(kN);
    const u8* const last = args.y.data + (kM - 1) * args.y.stride[0] * 2;
    download(row.data(), reinterpret_cast<const std::byte*>(last), kN * 2, stream);
    stream.synchronize();
    return row;
  }
};
constexpr u16 kTwoHundred = 0x4348;  // in bf16

TEST_F(OpCallGpu, RunsAWholeKernelWhereItFits) {
  const Stream stream(device());
  const bool has_kernels = op_calls().kernels({.stream = stream.handle()})->tensor_maps;
  const Ones fits, shifted(8), narrow(0, 2);
  for (const Ones* ones : {&fits, &shifted, &narrow, &fits}) {
    const CallNeeds wanted = needs("matmul", ones->args);
    const char* const kernel = ones == &fits ? "matmul_kernel.sm90" : "matmul_kernel.sm90 CopyKernel";
    EXPECT_EQ(wanted.body, has_kernels ? kernel : "matmul.sm80");
    EXPECT_EQ(wanted.why_no_kernel.empty(), has_kernels) << wanted.why_no_kernel;
    call_with_workspace("matmul", ones->args, stream.handle());
    stream.synchronize();
    EXPECT_EQ(ones->read(), std::vector<u16>(Ones::kN, kTwoHundred)) << wanted.body;
  }
}

// The norm of the rows of a matrix of bf16, with `pad` elements between them, and what lies between the rows of y.
std::vector<u16> norm_of_rows(const Stream& stream, const std::vector<u16>& values, i64 rows, i64 pad) {
  const i64 columns = i64(values.size()) / rows, stride = columns + pad;
  const Device& device = Device::at(0);
  const size_t bytes = size_t(rows * stride) * 2;
  DeviceBuffer x(bytes, device), y(bytes, device);
  const Floats weight(std::vector<float>(size_t(columns), 1.5f));
  std::vector<u16> padded(size_t(rows * stride), 0x7fc0);  // NaN
  for (i64 i = 0; i < rows * columns; ++i)
    padded[size_t(i / columns * stride + i % columns)] = values[size_t(i)];
  upload(x.data(), padded.data(), bytes, stream);
  upload(y.data(), padded.data(), bytes, stream);
  const auto matrix = [&](const DeviceBuffer& memory) {
    return tensor_of("test", "x",
                     {.data = memory.data(),
                      .dtype = DType::kBf16,
                      .size = std::vector<i64>{rows, columns},
                      .stride = std::vector<i64>{stride, 1}});
  };
  call("rms_norm", RmsNorm{.x = matrix(x), .weight = weight.row(), .y = matrix(y)},
       {.stream = stream.handle()});
  download(padded.data(), y.data(), bytes, stream);
  stream.synchronize();
  std::vector<u16> made;
  for (i64 i = 0; i < rows * stride; ++i)
    if (i % stride < columns)
      made.push_back(padded[size_t(i)]);
    else
      EXPECT_EQ(padded[size_t(i)], 0x7fc0) << "stored after row " << i / stride;
  return made;
}

// Rows that begin anywhere in a word of 16 bytes have the bits of those that begin with one, and leave their neighbours alone.
TEST_F(OpCallGpu, ANormHasTheSameBitsWhereverItsRowsBegin) {
  const Stream stream(device());
  for (const i64 columns : {1, 3, 7, 9, 17, 61, 131, 1001, 3001}) {
    std::vector<u16> values(size_t(9 * columns));
    for (size_t i = 0; i < values.size(); ++i) values[i] = float_to_bf16(float(i * 37 % 101) / 16 - 3);
    const std::vector<u16> aligned = norm_of_rows(stream, values, 9, (8 - columns % 8) % 8);
    for (const i64 pad : {0, 1, 2, 5})
      EXPECT_EQ(norm_of_rows(stream, values, 9, pad), aligned) << columns << " columns, " << pad << " apart";
  }
}

TEST_F(OpCallGpu, AWholeKernelIsCapturedWithItsMaps) {
  const Stream stream(device());
  const Ones first, second;
  const auto record = [&](const Ones& ones) {
    GraphCapture capture(stream);
    call("matmul", ones.args, {.stream = stream.handle()});
    return capture.end();
  };
  const Graph one = record(first), other = record(second);
  EXPECT_EQ(first.read().front(), 0x3f80);
  other.launch(stream);
  stream.synchronize();
  EXPECT_EQ(first.read().front(), 0x3f80);
  EXPECT_EQ(second.read(), std::vector<u16>(Ones::kN, kTwoHundred));
  one.launch(stream);
  stream.synchronize();
  EXPECT_EQ(first.read(), std::vector<u16>(Ones::kN, kTwoHundred));
}

}  // namespace
}  // namespace heddle::cuda
