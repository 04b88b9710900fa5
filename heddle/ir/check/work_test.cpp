// The check on programs of full size: the faults that it finds, and how much work it does.
#include <gtest/gtest.h>

#include "heddle/ir/check/expect.h"

namespace heddle::proof {
namespace {

// A decoder with the shapes of Llama-3.1-8B: each phase waits for all tiles of the one before it.
class Llama {
 public:
  static constexpr i32 kHidden = 4096, kQkv = 6144, kInner = 14336, kVocab = 128256;

  Llama(u32 workers, i32 rows, i32 layers) : b_(i32(workers)), workers_(workers), rows_(rows) {
    const Tensor tokens = b_.tensor("tokens", BufferKind::kStepDevice, DType::kI32, {rows});
    const Tensor out = b_.tensor("out", BufferKind::kOutput, DType::kI32, {rows});
    x_ = b_.activation("x", {rows, kHidden});
    const u32 embed =
        b_.call("look_up", "embed", TestLookUp{tokens, b_.weight("table", kVocab, kHidden), x_});
    const u32 sampled = b_.counter();
    b_.add(0, embed, {{0, rows}}).wait(sampled, EdgeKind::kCounted, true);
    next_phase();
    b_.signal(phase_);
    for (i32 layer = 0; layer < layers; ++layer) add_layer(layer);
    const Tensor logits = b_.activation("logits", {rows, kVocab}, kInnerAt);
    matmul("head", x_, kVocab, {}, logits);
    const u32 sample = b_.call("sample", "sample", TestSample{logits, tokens, out});
    b_.add(0, sample, {{0, rows}}).wait(phase_).signal(sampled);
  }

  Program finish() { return b_.finish(); }

 private:
  static constexpr i64 kSlot = i64{1} << 28;
  static constexpr i64 kQkvAt = 0, kAttendedAt = kSlot, kInnerAt = 2 * kSlot;  // offsets in the arena

  void next_phase() {
    before_ = phase_;
    phase_ = b_.counter();
  }

  void add_layer(i32 layer) {
    const auto named = [&](const char* name) { return fmt::format("layers.{}.{}", layer, name); };
    const Tensor qkv = b_.activation(named("q"), {rows_, kQkv}, kQkvAt);
    const Tensor a = b_.activation(named("a"), {rows_, kHidden}, kAttendedAt);
    const Tensor inner = b_.activation(named("inner"), {rows_, kInner}, kInnerAt);
    const Tensor pages = b_.tensor(named("pages"), BufferKind::kPages, DType::kF32, {4096, 1024});
    matmul(named("qkv"), x_, kQkv, {}, qkv);
    const i32 heads = 32 * rows_;
    const u32 append = b_.call("scatter", named("append"), TestScatter{qkv, pages});
    b_.add(u32(layer) % workers_, append, {{0, rows_}}).wait(phase_);
    Tensor queries = qkv, attended = a;  // one row per head
    queries.size[0] = attended.size[0] = heads;
    queries.size[1] = attended.size[1] = kHidden / 32;
    queries.stride[0] = attended.stride[0] = kHidden / 32;
    const u32 attend = b_.call("attend", named("attention"), TestAttend{queries, pages, attended});
    next_phase();
    for (i32 head = 0; head < heads; head += rows_)
      b_.add(u32(head / rows_) % workers_, attend, {{head, head + rows_}}).wait(before_).signal(phase_);
    matmul(named("o"), a, kHidden, x_, x_);
    matmul(named("up"), x_, kInner, {}, inner);
    matmul(named("down"), inner, kHidden, x_, x_);
  }

  // Columns in shares of whole panels, rows in blocks of 256.
  void matmul(const std::string& name, Tensor x, i32 columns, Tensor residual, Tensor y) {
    const u32 call =
        b_.call("dot", name, TestDot{x, b_.weight(name + ".w", columns, x.size[1]), residual, y});
    next_phase();
    const i32 panels = columns / 16;
    for (i32 row = 0; row < rows_; row += 256)
      for (u32 w = 0; w < workers_; ++w) {
        const i32 begin = 16 * i32(i64(panels) * w / workers_),
                  end = 16 * i32(i64(panels) * (w + 1) / workers_);
        if (begin < end)
          b_.add(w, call, {{row, std::min(row + 256, rows_), begin, end}}).wait(before_).signal(phase_);
      }
  }

  Builder b_;
  u32 workers_;
  i32 rows_;
  Tensor x_;
  u32 before_ = 0, phase_ = 0;
};

// At most this many clocks and cells per instruction: a tenth more than measured when this was written.
void expect_work(const Program& program, double most_clocks, double most_cells) {
  const CheckReport report = check_with(program, find_test_op);
  EXPECT_TRUE(report.ok()) << text_of(report);
  const double clocks = double(report.work.clocks) / double(report.instructions);
  const double cells = double(report.work.cells) / double(report.instructions);
  fmt::print("{} instructions, {} waits, each instruction with {:.2f} clocks and {:.2f} cells\n",
             report.instructions, report.waits, clocks, cells);
  EXPECT_LE(clocks, most_clocks);
  EXPECT_LE(cells, most_cells);
}

TEST(CheckWork, OfDecodeOn132Workers) {
  Program program = Llama(132, 1, 32).finish();
  EXPECT_GT(program.num_instructions(), 17000u);
  expect_work(program, 15, 11);
  // A fault in the middle of the program is found.
  Instruction& victim = program.workers[77][90];
  const std::string node = program.calls[victim.call].name;
  victim.waits[0].counter = kNoCounter;
  EXPECT_FALSE(check_with(program, find_test_op).ok()) << node;
}

TEST(CheckWork, OfPrefillOf512Rows) {
  expect_work(Llama(132, 512, 32).finish(), 23, 190);
}

// Twice as many layers take at most twice the work.
TEST(CheckWork, GrowsWithTheProgramAlone) {
  const auto work = [](i32 layers) { return check_with(Llama(132, 1, layers).finish(), find_test_op).work; };
  const CheckWork once = work(8), twice = work(16);
  EXPECT_LE(double(twice.clocks), 2.1 * double(once.clocks));
  EXPECT_LE(double(twice.cells), 2.1 * double(once.cells));
}

}  // namespace
}  // namespace heddle::proof
