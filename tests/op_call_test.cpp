// Every case of every op that needs no step record, called by itself on every backend that calls ops. On a GPU,
// HEDDLE_TEST_SCALE says how many of the cases: each compiles a kernel.
#include "heddle/backend/cpu/op_call.h"

#include <cmath>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/ir/call/op_call.h"
#include "heddle/ir/registry.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/copy/copy.h"
#include "heddle/ops/softmax/softmax.h"
#include "tests/support/call_runner.h"
#include "tests/support/count_allocations.h"
#include "tests/support/rounds.h"

namespace heddle {
namespace {

constexpr size_t kMostOnGpu = 60;  // cases of an op where the scale is small: each compiles a kernel

struct Run {
  const OpSpec* op;
  const Backend* backend;
};

std::vector<Run> all_runs() {
  std::vector<Run> runs;
  for (const OpSpec* op : all_ops())
    for (const Backend* backend : all_backends())
      if (backend->op_calls && !needs_step_record(*op)) runs.push_back({op, backend});
  return runs;
}

class OpCalls : public testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    if (std::string why = GetParam().backend->executors[0].unavailable(); !why.empty())
      GTEST_SKIP() << GetParam().backend->name << ": " << why;
  }
};

TEST_P(OpCalls, MatchReferenceWhereverTensorsLie) {
  const auto& [op, backend] = GetParam();
  const bool gpu = backend->executors[0].space != nullptr;
  const bool all_cases = !gpu || rounds(1) > 0;
  const std::vector<Case> cases = all_cases ? op->cases() : chosen(op->cases(), kMostOnGpu);
  const std::vector kinds = {CallLayoutKind::kDense, CallLayoutKind::kStrided, CallLayoutKind::kOffset};
  const bool all_kinds = rounds(kinds.size()) > 0;  // or one of them for each case, where the scale is small
  for (size_t i = 0; i < cases.size(); ++i)
    for (CallLayoutKind kind : all_kinds ? kinds : std::vector{kinds[i % kinds.size()]})
      EXPECT_EQ(run_call(*op, cases[i], *backend, kind), "")
          << op->name << " case " << i << " " << cases[i].name << ", " << name(kind) << ", on "
          << backend->name;
}

TEST_P(OpCalls, KeepNanAndInfinity) {
  const auto& [op, backend] = GetParam();
  const size_t most = backend->executors[0].space != nullptr ? 3 : 4;
  for (const Case& test : chosen(op->cases(), most))
    for (const Planted& planted : all_planted(*op, test.args.data()))
      EXPECT_EQ(run_call(*op, test, *backend, {.planted = planted}).problem, "")
          << op->name << " " << test.name << " with " << planted.value << " in " << planted.field << " on "
          << backend->name;
}

// An exception may not leave a thread.
std::string problem_of(const OpSpec& op, const Case& test, const Backend& backend) {
  try {
    return run_call(op, test, backend, CallLayoutKind::kDense);
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST_P(OpCalls, AreSafeFromAnyThread) {
  const auto& [op, backend] = GetParam();
  const Case test = op->cases().front();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, op = op, backend = backend] {
      for (int n = 0; n < 3; ++n) EXPECT_EQ(problem_of(*op, test, *backend), "") << op->name;
    });
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Ops, OpCalls, testing::ValuesIn(all_runs()), [](const auto& param) {
  return std::string(param.param.op->name) + "_" + param.param.backend->name;
});

Tensor matrix(std::vector<float>& values, i64 columns) {
  return tensor_of("test", "x",
                   {.data = values.data(), .size = std::vector<i64>{i64(values.size()) / columns, columns}});
}
template <class Args>
void call(const char* op, const Args& args, int threads = 1) {
  cpu_op_calls().run(get_op(op), reinterpret_cast<const std::byte*>(&args), {.threads = threads});
}
std::string message_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr i64 kRows = 500, kColumns = 300;

std::vector<float> softmax_input() {
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float((i * 7919) % 1000) / 100;
  return x;
}
std::vector<float> softmax(int threads) {
  std::vector<float> x = softmax_input(), y(x.size());
  call("softmax", Softmax{.x = matrix(x, kColumns), .y = matrix(y, kColumns)}, threads);
  return y;
}

TEST(CpuCalls, NumberOfThreadsChangesNoBit) {
  const std::vector<float> one = softmax(1);
  for (int threads : {2, 3, 8, 0}) EXPECT_EQ(softmax(threads), one) << threads;
}

TEST(CpuCalls, ManyCallersShareTheHelpers) {
  const std::vector<float> wanted = softmax(1);
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t)
    callers.emplace_back([&] {
      for (int n = 0; n < 10; ++n) EXPECT_EQ(softmax(4), wanted);
    });
  for (std::thread& caller : callers) caller.join();
}

// Helpers of the parent are no threads of the child.
TEST(CpuCalls, SurviveAFork) {
  const std::vector<float> wanted = softmax(4);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(softmax(4) == wanted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(softmax(4), wanted);
}

TEST(CpuCalls, AKnownShapeAllocatesNothing) {
  std::vector<float> x = softmax_input(), y(x.size());
  const Softmax args{.x = matrix(x, kColumns), .y = matrix(y, kColumns)};
  for (int threads : {1, 4}) {
    call("softmax", args, threads);
    const size_t before = allocations_here;
    call("softmax", args, threads);
    EXPECT_EQ(allocations_here, before) << threads;
  }
}

TEST(CpuCalls, ReachMoreThanTwoBillionElements) {
  constexpr i64 kApart = (i64{1} << 30) + 8;
  const size_t bytes = size_t(4 * (2 * kApart + 4));
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  float* const last = static_cast<float*>(memory) + 2 * kApart;
  for (int i = 0; i < 4; ++i) last[i] = float(i + 1);
  std::vector<float> y(12, -77);
  const std::vector<i64> size = {3, 4}, stride = {kApart, 1};
  const Tensor apart = tensor_of("test", "x", {.data = memory, .size = size, .stride = stride});
  call("copy", Copy{.x = apart, .y = matrix(y, 4)});
  EXPECT_EQ(y, std::vector<float>({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}));
  y[8] = 9;
  call("copy", Copy{.x = matrix(y, 4), .y = apart});
  EXPECT_EQ(last[0], 9);
  ::munmap(memory, bytes);
}

TEST(CpuCalls, SayWhatIsWrong) {
  std::vector<float> x(8), y(8);
  const Add good{.a = matrix(x, 4), .b = matrix(x, 4), .y = matrix(y, 4)};
  call("add", good);
  struct Fault {
    const char* what;
    void (*make)(Add&);
  };
  const Fault faults[] = {
      {"[add] b has no address; its tensor is f32 [2, 4]", [](Add& a) { a.b.data = nullptr; }},
      {"must be a multiple of 4 for f32 [2, 4]", [](Add& a) { a.a.data += 2; }},
      {"[add] y is missing; it is f32 [2, 4]", [](Add& a) { a.y = {}; }},
      {"[add] a is missing; the op reads a [M, N]", [](Add& a) { a.a = {}; }},
      {"[add] a is i32 [2, 4]; must be f32 or f16 or bf16", [](Add& a) { a.a.dtype = DType::kI32; }},
      {"[add] b is f32 [2, 3]", [](Add& a) { a.b.size[1] = 3; }},
      {"[add] a is f32 [4]; must have 2 dimensions", [](Add& a) { a.a.rank = 1, a.a.size[0] = 4; }},
      {"[add] b is f32 [2, 4] with stride 2 in its last dimension; must be 1",
       [](Add& a) { a.b.stride[1] = 2; }},
      {"[add] y is f32 [2, 4] with stride 3 in dimension 0; must be 4 or more",
       [](Add& a) { a.y.stride[0] = 3; }},
      {"[add] b is f32 [2, 4]; dimension 0 must be 0, as a has none of it", [](Add& a) { a.a.size[0] = 0; }},
  };
  for (const Fault& fault : faults) {
    Add args = good;
    fault.make(args);
    const std::string message = message_of([&] { call("add", args); });
    EXPECT_NE(message.find(fault.what), std::string::npos) << "no \"" << fault.what << "\" in: " << message;
  }
  EXPECT_NE(message_of([&] { call("add", good, -1); }).find("[add] threads = -1"), std::string::npos);
  call("add", good);  // and the call is as good as it was
}

TEST(CpuCalls, InputsMayRepeatRows) {
  std::vector<float> row = {1, 2, 3, 4}, y(12);
  Tensor rows = matrix(row, 4);
  rows.size[0] = 3, rows.stride[0] = 0;
  call("copy", Copy{.x = rows, .y = matrix(y, 4)});
  EXPECT_EQ(y, std::vector<float>({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(CpuCalls, EmptyTensorsRunNothing) {
  const Tensor nothing = tensor_of("test", "x", {.size = std::vector<i64>{0, 4}});
  call("add", Add{.a = nothing, .b = nothing, .y = nothing});
  const Tensor no_columns = tensor_of("test", "x", {.size = std::vector<i64>{4, 0}});
  call("softmax", Softmax{.x = no_columns, .y = no_columns});
}

}  // namespace
}  // namespace heddle
