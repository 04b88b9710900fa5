// A prompt may be cut into steps, and its earlier positions into pages, in any way: no bit of its attention
// changes. This holds on every executor, for steps of many rows.
#include <gtest/gtest.h>

#include "heddle/ir/cases.h"
#include "heddle/ir/registry.h"
#include "heddle/ops/attention/attention.h"
#include "tests/support/case_memory.h"
#include "tests/support/case_program.h"
#include "tests/support/space_mirror.h"

namespace heddle {
namespace {

constexpr i32 kText = 230, kHeads = 4, kKvHeads = 2;

// Rows [start, end) of the text in one step.
struct Cut {
  i32 start, end, page_size, block_rows;
};

// Element i of the query, key or value of a position.
double element(u32 kind, i32 position, i32 i) {
  u32 bits = kind * 0x9e3779b9u + u32(position) * 0x85ebca6bu + u32(i) * 0xc2b2ae35u;
  bits = (bits ^ bits >> 15) * 0x2c1b3c6du;
  return double((bits ^ bits >> 13) >> 8) * 0x1p-23 - 1;
}

class AttentionOfCut {
 public:
  AttentionOfCut(const Cut& cut, i32 head_dim, i32 window)
      : cut_(cut), step_{{{cut.start, cut.end - cut.start}}, cut.page_size} {
    const i32 rows = step_.rows(), blocks = (rows + cut.block_rows - 1) / cut.block_rows;
    args_ = {.step = step_.host(), .state = step_.state()};
    args_.q = input(DType::kBf16, {rows, kHeads * head_dim});
    args_.k = args_.v = input(DType::kBf16, {rows, kKvHeads * head_dim});
    args_.keys = args_.values = input(DType::kBf16, {step_.pages(), kKvHeads, cut.page_size, head_dim});
    args_.heads = kHeads, args_.kv_heads = kKvHeads, args_.block_heads = kHeads / kKvHeads;
    args_.scale = 0.3f, args_.window = window;
    args_.block_rows = cut.block_rows, args_.max_blocks = blocks, args_.split_unit = 64;
  }

  // The attention output by row, head and dimension.
  std::vector<double> run(const ExecutorSpec& executor) {
    const OpSpec& op = get_op("attention");
    Part part{&op, std::vector<std::byte>(sizeof(Attention))};
    auto& args = *new (part.args.data()) Attention(args_);
    op.infer(part.args.data());
    allocate(op, part.args.data(), memory_);
    fill(args);
    const auto axes = op.axes(part.args.data(), TilingTarget{});
    const Program program = one_call({.name = op.name, .parts = {part}}, memory_.buffers, axes);
    if (executor.space) {
      SpaceMirror mirror(memory_, executor.space(0));
      executor.create(program, mirror.memory(), ExecutorOptions{})->run(1);
      mirror.fetch();
    } else {
      executor.create(program, memory_.memory, ExecutorOptions{})->run(1);
    }
    return memory_.read(args.part);
  }

 private:
  void fill(const Attention& a) {
    const StepHost& host = step_.fill_host(memory_.bytes(a.step.buffer));
    step_.fill_state(memory_.bytes(a.state.buffer));
    u32 kind = 0;
    for (const Tensor* rows : {&a.q, &a.k, &a.v}) {
      std::vector<double> values(size_t(elements(*rows)));
      for (size_t n = 0; n < values.size(); ++n)
        values[n] = element(kind, cut_.start + i32(n) / rows->last(), i32(n) % rows->last());
      memory_.write(*rows, values);
      ++kind;
    }
    kind = 1;
    for (const Tensor* pages : {&a.keys, &a.values}) {
      std::vector<double> values(size_t(elements(*pages)));
      for (i32 position = 0; position < cut_.start; ++position)
        for (i32 i = 0; i < a.k.last(); ++i) {
          const i32 page = host.pages(0)[position / cut_.page_size], dim = a.head_dim();
          const i64 slot = (page * kKvHeads + i / dim) * cut_.page_size + position % cut_.page_size;
          values[size_t(slot * dim + i % dim)] = element(kind, position, i);
        }
      memory_.write(*pages, values);
      ++kind;
    }
  }

  Cut cut_;
  StepExample step_;
  Attention args_;
  CaseMemory memory_;
};

class AttentionCuts : public testing::TestWithParam<std::string> {};

TEST_P(AttentionCuts, ChangeNoBit) {
  const ExecutorSpec& executor = get_executor(GetParam());
  if (std::string why = executor.unavailable(); !why.empty()) GTEST_SKIP() << executor.name << ": " << why;
  for (const i32 head_dim : {64, 128, 256})
    for (const i32 window : {0, 75}) {
      const auto wanted = AttentionOfCut({0, kText, 16, 64}, head_dim, window).run(executor);
      const size_t row = wanted.size() / kText;
      // Steps that end in the middle of an on-chip block; tails of two rows; tiles with more and with fewer
      // rows.
      for (const Cut& cut :
           {Cut{70, kText, 8, 64}, {64, 131, 16, 16}, {101, 167, 4, 32}, {200, 202, 16, 16}}) {
        const auto got = AttentionOfCut(cut, head_dim, window).run(executor);
        const auto begin = wanted.begin() + i64(row) * cut.start;
        const std::vector<double> same(begin, begin + i64(row) * (cut.end - cut.start));
        EXPECT_TRUE(got == same) << head_dim << " dimensions, window " << window << ", rows from "
                                 << cut.start;
      }
    }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Backend* backend : all_backends())
    for (const ExecutorSpec& executor : backend->executors) names.emplace_back(executor.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Executors, AttentionCuts, testing::ValuesIn(names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace heddle
