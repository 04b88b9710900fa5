// Executors on a program made by hand: same bits for any number of workers and threads, and hangs that end.
#include <chrono>
#include <random>

#include <gtest/gtest.h>

#include "heddle/backend/cpu/simd.h"
#include "heddle/backend/cpu/test_program.h"
#include "heddle/base/error.h"
#include "heddle/base/float16.h"

namespace heddle {

TestProgram::TestProgram(i32 workers) {
  std::mt19937 random(5);
  const auto uniform = [&] { return float(random() >> 8) * 0x1p-23f - 1; };
  for (i32 l = 0; l <= kLayers; ++l)
    add_buffer("x" + std::to_string(l), BufferKind::kActivation, i64{kRows} * kCols * 4);
  const u32 scale = add_buffer("scale", BufferKind::kWeight, kCols * 4);
  const u32 weight = add_buffer("weight", BufferKind::kWeight, kCols * kCols * 2);
  for (u32 b : {0u, scale})
    for (i64 i = 0; i < program.buffers[b].info.bytes / 4; ++i)
      reinterpret_cast<float*>(memory.base[b])[i] = uniform();
  for (i32 i = 0; i < kCols * kCols; ++i)
    reinterpret_cast<u16*>(memory.base[weight])[i] = float_to_bf16(uniform());
  for (u64 p = 0; p < kCols / 16; ++p) panels_.push_back(p * 16 * kCols * 2);
  memory.panels[weight] = panels_.data();

  program.name = "test";
  program.opcodes = {{.ops = {"linear"}, .hash = chain_hash({"linear"}, 0)},
                     {.ops = {"rms_norm"}, .hash = chain_hash({"rms_norm"}, 0)}};
  program.counters.resize(kLayers);
  program.workers.resize(size_t(workers));
  for (i32 l = 0; l < kLayers; ++l) add_layer(l);
  for (auto& stream : program.workers) stream.emplace_back();
}

u32 TestProgram::add_buffer(const std::string& name, BufferKind kind, i64 bytes) {
  store_.emplace_back(size_t(bytes + 63) / 64);
  memory.base.push_back(store_.back()[0].bytes);
  memory.panels.push_back(nullptr);
  program.buffers.push_back({{.name = name, .kind = kind, .bytes = bytes}, -1});
  return u32(program.buffers.size() - 1);
}

namespace {

// Fills in a layer's arguments by name and kind.
struct FillLayer : ArgVisitor {
  u32 x = 0, y = 0, scale = 0, w = 0;

  static Tensor tensor_of(u32 buffer, DType dtype, bool matrix) {
    constexpr i32 kRows = TestProgram::kRows, kCols = TestProgram::kCols;
    Tensor value{.buffer = buffer, .dtype = dtype, .rank = u8(matrix ? 2 : 1)};
    value.size[0] = matrix ? (dtype == DType::kBf16 ? kCols : kRows) : kCols;
    value.size[1] = matrix ? kCols : 0;
    value.stride[0] = matrix ? kCols : 1;
    value.stride[1] = matrix ? 1 : 0;
    return value;
  }
  void tensor(const char* name, Tensor& value, const char*, Access access) override {
    const bool is_scale = name == std::string("weight");
    value = tensor_of(is_scale ? scale : access == Access::kRead ? x : y, DType::kF32, !is_scale);
  }
  void weight(const char*, Weight& value, const char*) override {
    value.data = tensor_of(w, DType::kBf16, true);
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

}  // namespace

void TestProgram::add_layer(i32 layer) {
  const i32 opcode = layer % 2, workers = i32(program.workers.size());
  const OpSpec& op = get_op(program.opcodes[size_t(opcode)].ops[0]);
  std::vector<std::byte> args(op.args_size);
  op.construct(args.data());
  FillLayer fill;
  fill.x = u32(layer), fill.y = u32(layer + 1), fill.scale = kLayers + 1, fill.w = kLayers + 2;
  op.visit(args.data(), fill);
  program.node_names.push_back("layer" + std::to_string(layer));
  program.calls.push_back({.opcode = u16(opcode), .node = u32(layer), .args = {args}});
  for (i32 w = 0; w < workers; ++w) {
    const auto share = [&](i32 units) { return std::array{units * w / workers, units * (w + 1) / workers}; };
    Instruction instruction;
    instruction.opcode = u16(opcode);
    instruction.call = u32(layer);
    if (opcode == 0) {
      const auto panels = share(kCols / 16);
      const TileCoord tile{0, kRows, panels[0] * 16, panels[1] * 16};
      std::copy(tile.at, tile.at + 4, instruction.tile);
    } else {
      const auto rows = share(kRows);
      instruction.tile[0] = rows[0], instruction.tile[1] = rows[1];
    }
    if (layer > 0) instruction.waits[0] = {u32(layer - 1), u32(workers)};
    if (layer + 1 < kLayers) {
      instruction.waits[1] = {u32(layer + 1), u32(workers)};
      instruction.set_previous(1, true);
    }
    instruction.signal = {u32(layer), 1};
    instruction.tag = u32(layer);
    program.workers[size_t(w)].push_back(instruction);
  }
  program.counters[size_t(layer)].total = u32(workers);
}

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

TEST(Threads, UnknownLevelIsAnError) {
  TestProgram test(1);
  EXPECT_THROW(get_executor("threads").create(test.program, test.memory, {.simd = "mmx"}), Error);
}

struct Hang {
  const char* name;
  void (*inject)(TestProgram&);
  std::vector<std::string> dump;  // what the message must say
};

void PrintTo(const Hang& hang, std::ostream* out) {
  *out << hang.name;
}

class Hangs : public testing::TestWithParam<std::tuple<const char*, Hang>> {};

TEST_P(Hangs, EndWithADumpAndTheNextRunWorks) {
  const auto& [executor_name, hang] = GetParam();
  TestProgram test(3);
  const auto good = test.program.workers;
  auto executor =
      get_executor(executor_name).create(test.program, test.memory, {.threads = 2, .hang_limit_ms = 150});
  executor->run(3);
  const auto wanted = test.result();
  hang.inject(test);
  const auto begin = std::chrono::steady_clock::now();
  try {
    executor->run(2);
    FAIL() << "the run ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
    for (const std::string& part : hang.dump)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in\n" << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  test.program.workers = good;
  EXPECT_EQ(executor->run(2).steps, 2);
  EXPECT_EQ(test.result(), wanted);
}

const Hang kHangs[] = {
    {"dropped_signal",
     [](TestProgram& test) { test.at(1, 2).signal.counter = kNoCounter; },
     {"worker 0 #3", "layer3", "counter 2 seen 11 wanted 12", "worker 2 #3"}},
    {"wrong_target",
     [](TestProgram& test) { test.at(2, 4).waits[0].target = 4; },
     {"worker 2 #4", "layer4", "counter 3 seen 12 wanted 16"}},
    {"missing_producer",
     [](TestProgram& test) { test.program.workers[0].erase(test.program.workers[0].begin()); },
     {"worker 1 #1", "layer1", "counter 0 seen 11 wanted 12"}},
    {"wrong_epoch",
     [](TestProgram& test) { test.at(0, 2).set_previous(1, false); },
     {"worker 0 #2", "layer2", "counter 3 seen 9 wanted 12"}},
    {"stream_that_stops",
     [](TestProgram& test) { test.at(1, 3) = {}; },
     {"worker 0 #4", "layer4", "counter 3 seen 11 wanted 12", "2 signal it", "(step 5)"}},
};

INSTANTIATE_TEST_SUITE_P(Executors, Hangs,
                         testing::Combine(testing::Values("threads", "reference"), testing::ValuesIn(kHangs)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param).name;
                         });

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
