// Mixtures of experts over texts that take steps of many rows, on every executor: tokens take the experts that they
// take in fp32, wherever bf16 leaves the choice as it is, and logits are as near as bf16's.
#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "heddle/engine/written.h"
#include "heddle/ir/registry.h"
#include "heddle/ops/experts/route.h"
#include "tests/support/golden.h"
#include "tests/support/rounds.h"

namespace heddle {
namespace {

struct Results {
  std::vector<float> logits;            // [n, vocab]
  std::vector<std::vector<u8>> routes;  // each layer's [n, taken], each token's in rising order
};

// Adds the experts of the step that ran last to each layer's.
void add_routes(const Engine& engine, const Program& program, size_t rows, Results& results) {
  size_t layer = 0;
  for (const Written& one : written_by(program)) {
    const Node node = program.node_of(program.calls[one.call]);
    const Part& part = node.main_part();
    if (part.op != &get_op("route") || one.tensor.dtype != DType::kI32) continue;
    const auto taken = size_t(one.tensor.last());
    const std::vector<std::byte> bytes = one.of(engine.buffer(program, one.tensor.buffer));
    if (results.routes.size() <= layer) results.routes.emplace_back();
    std::vector<u8>& routes = results.routes[layer++];
    for (size_t row = 0; row < rows; ++row) {
      std::vector<i32> experts(taken);
      std::memcpy(experts.data(), &bytes[row * size_t(one.tensor.stride[0]) * sizeof(i32)],
                  taken * sizeof(i32));
      std::ranges::sort(experts);
      routes.insert(routes.end(), experts.begin(), experts.end());
    }
  }
}

// One sequence in steps of at most `chunk` rows.
Results run(Engine& engine, std::span<const i32> tokens, size_t chunk) {
  Results results;
  const SequenceId sequence = engine.open({});
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const StepRequest request{sequence, tokens.subspan(at, std::min(chunk, tokens.size() - at)), true};
    const StepResult step = engine.step(std::span(&request, 1));
    results.logits.insert(results.logits.end(), step.logits.begin(), step.logits.end());
    const size_t rows = request.tokens.size();
    add_routes(engine, engine.program(i32(rows), 1), rows, results);
  }
  engine.close(sequence);
  return results;
}

class Mixture : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [model, executor] = GetParam();
    if (const std::string why = get_executor(executor).unavailable(); !why.empty())
      GTEST_SKIP() << executor << ": " << why;
    engine = mixture_engine(
        model,
        {.executor = executor, .workers = 3, .max_sequences = 1, .keep_buffers = true, .all_logits = true});
  }

  static void expect_routes(const MixtureGolden& golden, const Results& results) {
    const size_t n = golden.tokens.size(), taken = size_t(golden.taken);
    ASSERT_EQ(results.routes.size(), golden.firm.size() / n);
    for (size_t layer = 0; layer < results.routes.size(); ++layer) {
      ASSERT_EQ(results.routes[layer].size(), n * taken);
      std::vector<size_t> others;
      for (size_t i = 0; i < n; ++i) {
        const u8* wanted = &golden.routes[(layer * n + i) * taken];
        if (golden.firm[layer * n + i] != 0 &&
            !std::equal(wanted, wanted + taken, &results.routes[layer][i * taken]))
          others.push_back(i);
      }
      EXPECT_TRUE(others.empty()) << "layer " << layer << ": other experts than fp32's at "
                                  << testing::PrintToString(others);
    }
  }

  static void expect_logits(const MixtureGolden& golden, const Results& results) {
    const size_t vocab = golden.logits.size() / golden.positions.size();
    ASSERT_EQ(results.logits.size(), golden.tokens.size() * vocab);
    std::vector<float> kept;
    for (i32 position : golden.positions) {
      const float* row = &results.logits[size_t(position) * vocab];
      kept.insert(kept.end(), row, row + vocab);
    }
    EXPECT_LE(largest_difference(kept, golden.logits), 1.2 * golden.bf16_error);
  }

  // `chunks`: rows of a step.
  void expect_matches(int length, std::initializer_list<size_t> chunks) {
    const MixtureGolden golden = load_mixture(std::get<0>(GetParam()), length);
    for (size_t chunk : chunks) {
      SCOPED_TRACE(std::to_string(length) + " tokens in steps of " + std::to_string(chunk));
      const Results results = run(*engine, golden.tokens, chunk);
      expect_routes(golden, results);
      expect_logits(golden, results);
    }
  }

  std::unique_ptr<Engine> engine;
};

// In one step, in steps of a few rows, and token by token.
TEST_P(Mixture, ShortTextMatchesTransformers) {
  expect_matches(17, {17, 7, 1});
}

// In steps of some rows, and in one. An emulated GPU takes long to compile the programs of a class of rows: it has one.
TEST_P(Mixture, LongTextMatchesTransformers) {
  expect_matches(300, {61});
  if (rounds(10) >= 10) expect_matches(300, {300});
}

// The node that leaves `made` as its y.
const Node& maker_of(const Graph& graph, const Tensor& made) {
  for (const Node& node : graph.nodes()) {
    Part part = node.main_part();
    if (const Tensor* y = argument(part, "y"); y && y->buffer == made.buffer) return node;
  }
  throw std::runtime_error("nothing makes " + graph.buffers()[made.buffer].name);
}

// Where vectors travel in bf16, and others read the norm that routers read, routers have one of their own.
TEST(MixtureGraph, RoutersReadF32) {
  for (const std::string& name : mixture_names())
    for (i32 rows : {1, 7}) {
      GraphRequest request;
      request.shape.rows = rows, request.travel_dtype = DType::kBf16;
      const ModelGraph made = open_mixture(name)->graph(request);
      int routers = 0;
      for (const Node& node : made.graph.nodes()) {
        Part part = node.main_part();
        if (part.op != &get_op("route")) continue;
        Part maker = maker_of(made.graph, *argument(part, "logits")).main_part();
        if (maker.op == &get_op("bias")) maker = maker_of(made.graph, *argument(maker, "x")).main_part();
        EXPECT_EQ(argument(maker, "x")->dtype, DType::kF32)
            << node.name << " of " << name << ", " << rows << " rows";
        ++routers;
      }
      EXPECT_GT(routers, 0) << name;
    }
}

std::vector<std::string> executors() {
  std::vector<std::string> names;
  for (const Backend* backend : all_backends())
    for (const ExecutorSpec& executor : backend->executors) names.push_back(executor.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Mixture,
                         testing::Combine(testing::ValuesIn(mixture_names()), testing::ValuesIn(executors())),
                         [](const auto& param) {
                           return std::get<0>(param.param) + "_" + std::get<1>(param.param);
                         });

}  // namespace
}  // namespace heddle
