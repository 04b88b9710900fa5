// Calls on memory of the caller as one program: order by addresses, views, calls in place, other addresses.
#include "heddle/engine/memory_calls.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/add/add.h"
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

constexpr i32 kRows = 40, kCols = 6;

// A matrix of f32 that counts up from `first`.
struct Values {
  explicit Values(float first = 0) : memory(size_t(kRows) * kCols) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = first + float(i);
  }
  Tensor tensor() {
    Tensor all = dense(DType::kF32, {kRows, kCols});
    all.data = reinterpret_cast<u8*>(memory.data());
    return all;
  }
  // Columns [begin, begin + count).
  Tensor columns(i32 begin, i32 count) {
    Tensor part = tensor();
    part.data += begin * 4;
    part.size[1] = count;
    return part;
  }
  std::vector<float> memory;
};

MemoryCall add(const Tensor& a, const Tensor& b, const Tensor& y) {
  MemoryCall call{&get_op("add"), std::vector<std::byte>(sizeof(Add))};
  new (call.args.data()) Add{.a = a, .b = b, .y = y};
  return call;
}

void run(const MemoryGraph& calls, const char* executor, const std::string& scheduler) {
  const Program program = compile_calls(calls, executor, scheduler, 3);
  get_executor(executor).create(program, calls.memory, {.threads = 2})->run(1);
}

TEST(MemoryCalls, WaitForWhatTheyReadOnEveryScheduleAndInPlace) {
  for (const Scheduler* scheduler : all_schedulers())
    for (const char* executor : {"threads", "reference"}) {
      Values x, y, z;
      // y = 2 x; x = x + y = 3 x; z = y + x = 5 x
      const std::vector<MemoryCall> calls = {add(x.tensor(), x.tensor(), y.tensor()),
                                             add(x.tensor(), y.tensor(), x.tensor()),
                                             add(y.tensor(), x.tensor(), z.tensor())};
      run(graph_of_calls(calls), executor, scheduler->name);
      for (size_t i = 0; i < z.memory.size(); ++i)
        ASSERT_EQ(z.memory[i], 5 * float(i)) << scheduler->name << " " << executor << " " << i;
    }
}

TEST(MemoryCalls, ViewsOfOneMatrixLieInOneBuffer) {
  Values x, y;
  const std::vector<MemoryCall> calls = {add(x.columns(0, 2), x.columns(2, 2), y.columns(4, 2)),
                                         add(y.columns(4, 2), x.columns(0, 2), y.columns(0, 2))};
  const MemoryGraph graph = graph_of_calls(calls);
  EXPECT_EQ(graph.graph.buffers().size(), 2u);
  run(graph, "reference", kDefaultScheduler);
  EXPECT_EQ(y.memory[4], 2);      // 0 + 2
  EXPECT_EQ(y.memory[0], 2 + 0);  // reads the sum before
  EXPECT_EQ(y.memory[2], 2);      // nobody's: as it was
}

TEST(MemoryCalls, OneProgramServesOtherAddresses) {
  Values a, b, c, d;
  const auto graph = [](Values& x, Values& y) {
    const std::vector<MemoryCall> calls = {add(x.tensor(), x.tensor(), y.tensor())};
    return graph_of_calls(calls);
  };
  const MemoryGraph first = graph(a, b), second = graph(d, c);
  EXPECT_EQ(first.key, second.key);
  EXPECT_NE(first.memory.base, second.memory.base);
  EXPECT_NE(first.key, graph(a, a).key);  // in place
  const Program program = compile_calls(first, "threads", kDefaultScheduler, 2);
  get_executor("threads").create(program, second.memory, {.threads = 1})->run(1);
  EXPECT_EQ(c.memory[7], 14);
}

TEST(MemoryCalls, RefuseRowsThatOverlap) {
  Values x, y;
  Tensor one_row = x.tensor();
  one_row.stride[0] = 0;
  const std::vector<MemoryCall> calls = {add(one_row, x.tensor(), y.tensor())};
  try {
    graph_of_calls(calls);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[add] a has stride 0 in dimension 0"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace heddle
