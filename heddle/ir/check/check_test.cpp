#include "heddle/ir/check/check.h"

#include <limits>

#include <gtest/gtest.h>

#include "heddle/ir/check/expect.h"
#include "heddle/ir/check/test_programs.h"

namespace heddle::proof {
namespace {

TEST(Check, AcceptsTheDecoder) {
  Decoder d;
  const Program program = d.finish();
  expect_ok(program);
  const CheckReport report = check_with(program, find_test_op);
  EXPECT_EQ(report.instructions, 26u);
  EXPECT_EQ(report.waits, 28u);
}

TEST(Check, DroppedWait) {
  Decoder d;
  Program program = d.finish();
  on(program, 3, d.dot_h).waits[0].counter = kNoCounter;
  expect_first(program, FaultKind::kRace,
               {"worker 3 #1 (o_proj", "reads bytes [0, 256) of a", "worker 8 #0 (attention"});
}

TEST(Check, EveryWaitOfTheDecoderIsNeeded) {
  Decoder d;
  const Program program = d.finish();
  for (size_t w = 0; w < program.workers.size(); ++w)
    for (size_t i = 0; i < program.workers[w].size(); ++i)
      for (int k = 0; k < kMaxWaits; ++k) {
        // An edge inside a worker repeats stream order.
        const Instruction& instruction = program.workers[w][i];
        if (instruction.waits[k].counter == kNoCounter || instruction.wait_kind(k) == EdgeKind::kInSm)
          continue;
        Program mutated = program;
        mutated.workers[w][i].waits[k].counter = kNoCounter;
        EXPECT_FALSE(check_with(mutated, find_test_op).ok())
            << "worker " << w << " #" << i << " wait " << k << " " << program.describe(instruction);
      }
}

TEST(Check, LoweredAndRaisedTarget) {
  Decoder d;
  Program program = d.finish();
  on(program, 2, d.dot_mid).waits[0].target = 3;
  expect_first(program, FaultKind::kWaitInPart, {"worker 2 #3 (up", "worker 0 #2 (norm"});
  on(program, 2, d.dot_mid).waits[0].target = 5;
  expect_first(program, FaultKind::kWaitInPart, {"worker 2 #3 (up"});
}

TEST(Check, TotalThatIsNotTheSum) {
  Decoder d;
  Program program = d.finish();
  program.counters[d.c_q].total = 3;
  expect_first(program, FaultKind::kWaitInPart, {"counter 1", "qkv"});
  program.counters[d.c_q].total = 5;
  expect_first(program, FaultKind::kDeadlock, {"counter 1", "never fills", "qkv"});
}

TEST(Check, DroppedSignal) {
  Decoder d;
  Program program = d.finish();
  on(program, 1, d.down).signal.counter = kNoCounter;
  expect_first(program, FaultKind::kDeadlock, {"never fills", "down"});
}

TEST(Check, SwappedOrder) {
  Decoder d;
  Program program = d.finish();
  std::swap(on(program, 0, d.down), on(program, 0, d.sample));
  expect_first(program, FaultKind::kDeadlock, {"worker 0 #4 (sampler", "3 of 4 seen", "worker 0 #5 (down"});
}

TEST(Check, WaitForOneself) {
  Decoder d;
  Program program = d.finish();
  Instruction& attend = on(program, 8, d.attend);
  attend.waits[1] = {d.c_a, 1};
  attend.set_wait_kind(1, EdgeKind::kCounted);
  expect_first(program, FaultKind::kDeadlock, {"worker 8 #0 (attention"});
}

TEST(Check, WrongCounter) {
  Decoder d;
  Program program = d.finish();
  Instruction& down = on(program, 1, d.down);
  down.waits[0] = {d.c_a, 1};
  expect_first(program, FaultKind::kRace, {"worker 1 #4 (down", "of mid"});
}

TEST(Check, AliasedBuffer) {
  Decoder d;
  Program program = d.finish();
  program.buffers[d.logits.buffer].arena_offset = 256;  // over mid, which other workers still read
  expect_first(program, FaultKind::kLiveReuse, {"(down", "of mid", "of logits", "arena"});
}

TEST(Check, ArenaSlotReusedTooEarly) {
  Decoder d;
  Program program = d.finish();
  program.buffers[d.mid.buffer].arena_offset = 0;  // overlaps logits, where a was
  program.buffers[d.logits.buffer].arena_offset = 256;
  expect_ok(program);
  // The writes are in order, but the read sees the second one, not the one that it needs.
  program.buffers[d.p.buffer].arena_offset = 0;
  expect_fault(program, FaultKind::kLiveReuse, {"of p", "share arena bytes"});
}

TEST(Check, OverwrittenInOrderThenRead) {
  Builder b(1);
  const Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {1, 16});
  const Tensor u = b.activation("u", {1, 16}, 0), v = b.activation("v", {1, 16}, 0),
               y = b.activation("y", {1, 16});
  const u32 first = b.call("map", "first", TestMap{s, {}, u}),
            second = b.call("map", "second", TestMap{s, {}, v}),
            third = b.call("map", "third", TestMap{u, {}, y});
  for (u32 call : {first, second, third}) b.add(0, call, {{0, 1, 0, 16}});
  expect_first(b.finish(), FaultKind::kLiveReuse, {"third", "of u", "first", "second", "of v"});
}

TEST(Check, WrongEpoch) {
  Decoder d;
  Program program = d.finish();
  on(program, 3, d.dot_q).set_previous(0, true);
  expect_first(program, FaultKind::kRace, {"worker 3 #0 (qkv", "of x", "worker 7 #0 (embed"});
  program = d.finish();
  on(program, 7, d.look_up).set_previous(0, false);
  expect_first(program, FaultKind::kDeadlock, {"worker 7 #0 (embed", "0 of 1 seen", "(sampler"});
}

TEST(Check, MissingTile) {
  Decoder d;
  auto& stream = d.builder.program().workers[3];
  stream.erase(stream.begin());
  expect_first(d.finish(), FaultKind::kNotWritten, {"qkv", "no instruction computes M 0..1, N 48..49"});
}

TEST(Check, DuplicatedTile) {
  Decoder d;
  auto& stream = d.builder.program().workers[3];
  stream.insert(stream.begin(), stream[0]);
  expect_first(d.finish(), FaultKind::kComputedTwice, {"worker 3 #0 (qkv", "worker 3 #1 (qkv", "N 48..49"});
}

TEST(Check, ShiftedTile) {
  Decoder d;
  Instruction& tile = d.builder.program().workers[2][0];
  tile.tile[2] = 16, tile.tile[3] = 32;
  expect_first(d.finish(), FaultKind::kComputedTwice, {"worker 1 #0 (qkv", "worker 2 #0 (qkv"});
  expect_fault(d.finish(), FaultKind::kNotWritten, {"of q"});
}

TEST(Check, TruncatedStream) {
  Decoder d;
  Program program = d.finish();
  program.workers[2].pop_back();
  expect_first(program, FaultKind::kMalformed, {"worker 2", "without an end"});
  program.workers[2].back() = {};
  expect_first(program, FaultKind::kDeadlock, {"never fills", "down"});
}

// A body reads one tile too far: past the buffer, or past the written part.
TEST(Check, ReadsTooFar) {
  Decoder d;
  Program& program = d.builder.program();
  as<TestDot>(program.calls[d.dot_h].args[0].data()).x.size[1] = 80;
  program.buffers[d.a.buffer].arena_offset = 1024;
  program.arena_bytes = 4096;
  expect_first(d.finish(), FaultKind::kOutOfBounds, {"o_proj", "bytes [0, 320) of a, which has 256"});
  program.buffers[d.a.buffer].info.bytes = 320;
  expect_first(d.finish(), FaultKind::kNotWritten,
               {"o_proj", "reads bytes [0, 320) of a", "no instruction writes"});
}

TEST(Check, ArenasOfAnySize) {
  Decoder d;
  Program program = d.finish();
  program.buffers[d.a.buffer].arena_offset = std::numeric_limits<i64>::max() / 64 * 64;
  expect_fault(program, FaultKind::kOutOfBounds, {"[a] bytes [9223372036854775744, 9223372036854776000)"});
  program.buffers[d.a.buffer].arena_offset = 0;
  program.arena_bytes = std::numeric_limits<i64>::min();
  expect_fault(program, FaultKind::kOutOfBounds, {"[a] bytes [0, 256)"});
}

TEST(Check, TilePastItsAxis) {
  Decoder d;
  Program program = d.finish();
  on(program, 3, d.dot_q).tile[3] = 80;
  expect_first(program, FaultKind::kOutOfBounds, {"worker 3 #0 (qkv", "N 48..80"});
  on(program, 3, d.dot_q).tile[3] = 56;
  expect_first(program, FaultKind::kMalformed, {"worker 3 #0 (qkv", "multiples of 16"});
}

TEST(Check, KeysAndValuesOrderedBeforeNobody) {
  Decoder d;
  Program program = d.finish();
  on(program, 0, d.sample).waits[1].counter = kNoCounter;
  expect_fault(program, FaultKind::kRace, {"in step 2", "append", "in step 1"});

  // Appended rows come from the host, so only the pages can be wrong.
  Builder b(2);
  const Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {1, 16});
  const Tensor pages = b.tensor("pages", BufferKind::kPages, DType::kF32, {8, 16});
  const Tensor y = b.activation("y", {1, 16});
  const u32 append = b.call("scatter", "append", TestScatter{s, pages});
  const u32 attend = b.call("attend", "attention", TestAttend{s, pages, y});
  const u32 c = b.counter();
  b.add(0, append, {{0, 1}}).signal(c);
  b.add(1, attend, {{0, 1}});
  expect_first(b.finish(), FaultKind::kRace,
               {"worker 1 #0 (attention", "reads bytes [0, 512) of pages in step 2", "worker 0 #0 (append",
                "in step 1"});
  b.wait(c, EdgeKind::kCounted, true);
  expect_ok(b.finish());  // append may run a step early: each step writes other rows
}

TEST(Check, OverwrittenWhileASlowWorkerReads) {
  Decoder d;
  Program program = d.finish();
  on(program, 0, d.sample).waits[2].counter = kNoCounter;
  expect_first(
      program, FaultKind::kRace,
      {"worker 7 #0 (embed", "writes bytes [0, 256) of x in step 2", "worker 5 #0 (probe", "in step 1"});
}

TEST(Check, Homes) {
  Decoder d;
  Program program = d.finish();
  std::swap(program.homes[0].worker, program.homes[1].worker);
  expect_first(program, FaultKind::kResidency, {"worker 0 #1 (o_proj", "of h", "worker 1"});
  program = d.finish();
  std::swap(program.homes[6].worker, program.homes[7].worker);
  expect_first(program, FaultKind::kResidency, {"worker 2 #4 (down", "bytes [4096, 6144) of wd", "worker 3"});
  program = d.finish();
  program.homes[7].begin += 64;
  expect_first(program, FaultKind::kResidency, {"worker 3 #4 (down", "byte 6144", "nowhere"});
  program = d.finish();
  program.homes[7].begin -= 64;
  expect_first(program, FaultKind::kResidency, {"two homes"});
}

TEST(Check, WorkerMemory) {
  Decoder d;
  Program program = d.finish();
  program.topology.ring_bytes += 1;
  expect_first(program, FaultKind::kDoesNotFit, {"worker 0", "qkv", "4097"});
  program.topology.worker_memory = 0;
  expect_ok(program);
}

TEST(Check, StepRecord) {
  Decoder d;
  Program program = d.finish();
  program.shape = {};
  program.buffers[d.tokens.buffer].info.bytes = StepDevice::bytes(program.shape);
  expect_ok(program);
  program.buffers[d.tokens.buffer].info.bytes += 1;
  expect_first(program, FaultKind::kOutOfBounds, {"tokens", "309 bytes", "has 308"});
  for (i32 wrong : {0, -1, 1 << 25}) {
    program = d.finish();
    program.shape.page_size = wrong;
    expect_first(program, FaultKind::kMalformed, {"page_size", std::to_string(wrong)});
  }
  program.shape.page_size = program.shape.pages_per_sequence = 1 << 20;
  expect_first(program, FaultKind::kDoesNotFit, {"1048576 pages of 1048576"});
}

TEST(Check, OutputIsWrittenWhole) {
  Decoder d;
  d.builder.program().buffers[d.out.buffer].info.bytes = 8;
  expect_first(d.finish(), FaultKind::kNotWritten, {"out", "[4, 8)"});
}

}  // namespace
}  // namespace heddle::proof
