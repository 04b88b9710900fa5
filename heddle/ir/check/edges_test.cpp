// Faults of edges: kinds that do not fit, indexed writes, counters used again too early.
#include <gtest/gtest.h>

#include "heddle/ir/check/expect.h"
#include "heddle/ir/check/test_programs.h"
#include "heddle/ir/program/print.h"

namespace heddle::proof {
namespace {

TEST(CheckEdges, KindsOfWaitsAndSignals) {
  struct Case {
    EdgeKind signal, wait;
    u32 producer, waiter;
    bool ok;
  };
  using enum EdgeKind;
  const Case cases[] = {
      {kInSm, kInSm, 0, 0, true},     {kCounted, kInSm, 0, 0, true},    {kInSm, kInSm, 0, 1, false},
      {kCounted, kInSm, 0, 1, false}, {kCounted, kCounted, 0, 2, true}, {kCounted, kCounted, 0, 0, true},
      {kInSm, kCounted, 0, 0, false}, {kInSm, kCounted, 0, 1, false},
  };
  for (const Case& c : cases) {
    Builder b(4);
    const u32 counter = b.counter(), back = b.counter();
    b.nop(0).wait(back, kCounted, true);
    b.nop(c.producer).signal(counter, c.signal);
    b.nop(c.waiter).wait(counter, c.wait);
    b.nop(c.waiter).signal(back);
    const Program program = b.finish();
    if (c.ok) {
      expect_ok(program);
    } else {
      expect_first(program, FaultKind::kBadEdge,
                   {fmt::format("worker {} #", c.waiter), "worker 0 #1", name(c.wait), name(c.signal)});
    }
  }
}

TEST(CheckEdges, ProducersOfOneCounterInTwoKinds) {
  Decoder d;
  Program program = d.finish();
  on(program, 1, d.down).set_signal_kind(EdgeKind::kInSm);
  expect_first(program, FaultKind::kBadEdge, {"worker 0 #4 (down", "worker 1 #4 (down", "counted and in-SM"});
}

TEST(CheckEdges, CounterThatNobodySignals) {
  Decoder d;
  Program program = d.finish();
  program.counters.push_back({});
  on(program, 1, d.down).waits[1] = {u32(program.counters.size() - 1), 0};
  expect_first(program, FaultKind::kWaitInPart, {"worker 1 #4 (down", "no instruction signals"});
}

// A writes v and then t; B waits for t and reads v. The edge orders both.
TEST(CheckEdges, AnEdgeCarriesAllThatCameBefore) {
  Builder b{2};
  const Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {1, 16});
  const Tensor v = b.activation("v", {1, 16}), t = b.activation("t", {1, 16}), y = b.activation("y", {1, 16});
  const u32 write_v = b.call("map", "write_v", TestMap{s, {}, v}),
            write_t = b.call("map", "write_t", TestMap{s, {}, t}),
            read_v = b.call("map", "read_v", TestMap{v, {}, y});
  const u32 c_t = b.counter(), c_back = b.counter();
  const TileCoord tile{{0, 1, 0, 16}};
  b.add(0, write_v, tile).wait(c_back, EdgeKind::kCounted, true);
  b.add(0, write_t, tile).signal(c_t);
  b.add(1, read_v, tile).wait(c_t).signal(c_back);
  expect_ok(b.finish());
  b.program().workers[1][0].waits[0] = {};
  expect_first(b.finish(), FaultKind::kRace,
               {"worker 1 #0 (read_v", "of v", "nothing orders it", "worker 0 #0 (write_v"});
}

// A worker that has the step record reads pages before its waits. So the record must be written after its
// previous readers are done.
TEST(CheckEdges, RecordIsWrittenAfterItsReaders) {
  Builder b{2};
  const Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {1, 16});
  const Tensor t = b.activation("t", {1, 16});
  const u32 read_s = b.call("map", "read_s", TestMap{s, {}, t}),
            write_s = b.call("map", "write_s", TestMap{t, {}, s});
  const u32 c_t = b.counter(), c_back = b.counter();
  b.add(0, read_s, {{0, 1, 0, 16}}).wait(c_back, EdgeKind::kCounted, true).signal(c_t);
  b.add(1, write_s, {{0, 1, 0, 16}}).wait(c_t).signal(c_back);
  expect_ok(b.finish());
  b.program().workers[0][0].waits[0] = {};
  expect_first(b.finish(), FaultKind::kRace, {"worker 0 #0 (read_s", "of s", "worker 1 #0 (write_s"});
}

// If one producer may run a step before the others, the count is full too early.
TEST(CheckEdges, CounterUsedAgainTooEarly) {
  Builder b(3);
  const u32 c = b.counter(), back = b.counter();
  b.nop(0).signal(c);
  b.nop(1).signal(c);
  b.nop(2).wait(c).signal(back);
  expect_first(b.finish(), FaultKind::kLiveReuse, {"signals counter 0", "in step 2", "in step 1"});
  Builder ordered(3);
  ordered.counter(), ordered.counter();
  ordered.nop(0).wait(back, EdgeKind::kCounted, true).signal(c);
  ordered.nop(1).wait(back, EdgeKind::kCounted, true).signal(c);
  ordered.nop(2).wait(c).signal(back);
  expect_ok(ordered.finish());
}

// Two tiles of one call write by index and together form a partition. Worker 2 reads what they wrote.
struct Scattered {
  Builder b{3};
  Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {2, 16});
  Tensor u = b.activation("u", {4, 16}), y = b.activation("y", {4, 16});
  u32 scatter = b.call("scatter", "scatter", TestScatter{s, u}),
      read = b.call("map", "read", TestMap{u, {}, y});
  u32 c = b.counter(), back = b.counter();
  TileCoord whole{{0, 4, 0, 16}};

  void writers(u32 second_signal) {
    b.add(0, scatter, {{0, 1}}).wait(back, EdgeKind::kCounted, true).signal(c);
    b.add(1, scatter, {{1, 2}}).wait(back, EdgeKind::kCounted, true).signal(second_signal);
  }
};

TEST(CheckEdges, IndexedWritesOfOneCallDoNotConflict) {
  Scattered g;
  g.writers(g.c);
  g.b.add(2, g.read, g.whole).wait(g.c).signal(g.back);
  expect_ok(g.b.finish());
}

TEST(CheckEdges, IndexedWritesAreReadAfterTheLast) {
  Scattered g;
  g.writers(g.b.counter());
  g.b.add(2, g.read, g.whole).wait(g.c).signal(g.back);
  expect_first(g.b.finish(), FaultKind::kRace, {"worker 2 #0 (read", "of u", "worker 1 #0 (scatter"});
}

TEST(CheckEdges, IndexedWritesOfTwoCallsConflict) {
  Scattered g;
  const u32 other = g.b.call("scatter", "other", TestScatter{g.s, g.u});
  g.writers(g.c);
  g.b.add(2, other, {{0, 2}}).wait(g.back, EdgeKind::kCounted, true).signal(g.c);
  g.b.add(2, g.read, g.whole).wait(g.c).signal(g.back);
  expect_first(g.b.finish(), FaultKind::kRace, {"(scatter", "(other", "of u"});
}

TEST(CheckEdges, WaitForTheStepBeforeCarriesNothingInTheFirst) {
  Builder b(2);
  const Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {1, 16});
  const Tensor u = b.tensor("u", BufferKind::kStepDevice, DType::kF32, {1, 16}),
               y = b.activation("y", {1, 16});
  const u32 read = b.call("map", "read", TestMap{u, {}, y}),
            write = b.call("map", "write", TestMap{s, {}, u});
  const u32 wrote = b.counter(), has_read = b.counter();
  const TileCoord tile{{0, 1, 0, 16}};
  b.add(0, read, tile).wait(wrote, EdgeKind::kCounted, true).signal(has_read);
  b.add(1, write, tile).wait(has_read).signal(wrote);
  expect_ok(b.finish());
  b.program().workers[0][0].set_previous(0, false);
  expect_first(b.finish(), FaultKind::kDeadlock, {"worker 0 #0 (read", "worker 1 #0 (write"});
  b.program().workers[0][0].set_previous(0, true);
  b.program().workers[1][0].set_previous(0, true);
  expect_first(b.finish(), FaultKind::kRace, {"worker 0 #0 (read", "worker 1 #0 (write"});
}

}  // namespace
}  // namespace heddle::proof
