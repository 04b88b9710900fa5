// The check against planted faults: it refuses all of them, with a message that says where, and each of its
// rules is needed. HEDDLE_TEST_SCALE=15 plants more than 10,000 of nearly every kind.
#include <array>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/ir/check/check_with.h"
#include "heddle/ir/check/test_ops.h"
#include "heddle/ir/program/print.h"
#include "heddle/ir/registry.h"
#include "heddle/model/build/family.h"
#include "heddle/schedule/schedule.h"
#include "heddle/text/unicode/regex.h"
#include "tests/support/golden.h"
#include "tests/support/random_graph.h"
#include "tests/support/rounds.h"
#include "tests/support/seeded_faults.h"

namespace heddle {
namespace {

// Random graphs, and sometimes a model for a GPU: pages, parts by index, resident rows.
Program sound_program(u64 seed) {
  static const Program model = [] {
    EngineOptions options{.workers = 6, .max_context = 32, .max_sequences = 1, .page_size = 16};
    options.target = gpu_target(6);
    options.splits.unit = 8;
    return make_planner(open_model(load_golden("llama2-tiny").folder), options).program(1, 1);
  }();
  if (seed % 16 == 15) return model;
  const auto policies = all_schedulers();
  return RandomGraph(seed).program(policies[seed % policies.size()]->name);
}

// A message about two accesses names both instructions, their nodes and the bytes.
bool names_both(const Fault& fault) {
  static const Regex place(R"(worker \d+ #\d+ \(.+?\[.+?\] tile)");
  Regex::Scratch scratch;
  int places = 0;
  place.for_each_match(fault.message, scratch, [&](Regex::Span) { ++places; });
  return places >= 2 && fault.message.find(" bytes [") != std::string::npos;
}

bool says(const CheckReport& report, const PlantedFault& fault) {
  for (const Fault& found : report.faults) {
    bool all = found.kind != FaultKind::kRace || names_both(found);
    for (const std::string& word : fault.names) all &= found.message.find(word) != std::string::npos;
    if (all) return true;
  }
  return false;
}

std::string text_of(const CheckReport& report) {
  std::string text;
  for (const Fault& fault : report.faults) text += fmt::format("  {}: {}\n", name(fault.kind), fault.message);
  return text;
}

TEST(Faults, AreAllRefused) {
  // by kind of fault: counts by kind of edge, and for faults without an edge
  std::map<std::string, std::array<u64, 3>> planted;
  u64 all = 0;
  for (u64 seed = 0; seed < rounds(2000); ++seed) {
    const Program sound = sound_program(seed);
    std::mt19937_64 random(seed);
    for (const FaultSeed& kind : fault_seeds()) {
      Program program = sound;
      PlantedFault fault;
      if (!kind.plant(program, random, fault)) continue;
      const CheckReport report = check(program);
      const auto where = [&] {
        return fmt::format("seed {}, {}, must name {}\n{}{}", seed, kind.name,
                           fmt::join(fault.names, " and "), text_of(report), print_program(sound));
      };
      ASSERT_FALSE(report.ok()) << where();
      ASSERT_NE(std::find(fault.kinds.begin(), fault.kinds.end(), report.faults[0].kind), fault.kinds.end())
          << where();
      ASSERT_TRUE(says(report, fault)) << where();
      ++planted[kind.name][fault.edge < 0 ? 2 : size_t(fault.edge)];
      ++all;
    }
  }
  fmt::print("{:<28} {:>8} {:>8} {:>8}\n", "fault", "in SM", "counted", "no edge");
  for (const auto& [kind, count] : planted)
    fmt::print("{:<28} {:8} {:8} {:8}\n", kind, count[0], count[1], count[2]);
  fmt::print("{} faults, all refused\n", all);
  EXPECT_EQ(planted.size(), fault_seeds().size()) << "some kind was never planted";
}

// Exactly one rule is broken in these.
Program append_that_nobody_waits_for() {
  using namespace proof;
  proof::Builder b(2);
  const Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {1, 16});
  const Tensor pages = b.tensor("pages", BufferKind::kPages, DType::kF32, {8, 16});
  const Tensor y = b.activation("y", {1, 16});
  b.add(0, b.call("scatter", "append", TestScatter{s, pages}), {{0, 1}});
  b.add(1, b.call("attend", "attention", TestAttend{s, pages, y}), {{0, 1}});
  return b.finish();
}
Program part_that_nobody_waits_for() {
  using namespace proof;
  proof::Builder b(3);
  const Tensor s = b.tensor("s", BufferKind::kStepDevice, DType::kF32, {2, 16});
  const Tensor u = b.activation("u", {4, 16}), y = b.activation("y", {4, 16});
  const u32 scatter = b.call("scatter", "scatter", TestScatter{s, u}),
            read = b.call("map", "read", TestMap{u, {}, y});
  const u32 c = b.counter(), other = b.counter(), back = b.counter();
  b.add(0, scatter, {{0, 1}}).wait(back, EdgeKind::kCounted, true).signal(c);
  b.add(1, scatter, {{1, 2}}).wait(back, EdgeKind::kCounted, true).signal(other);
  b.add(2, read, {{0, 4, 0, 16}}).wait(c);
  b.nop(2).wait(other).signal(back);
  return b.finish();
}

// A check without a rule accepts some program that only that rule refuses.
TEST(Faults, EveryRuleIsNeeded) {
  using proof::Rule;
  std::map<int, std::string> passed;  // by rule: a fault that the check misses without it
  for (const auto& [rule, program] : {std::pair{Rule::kReadOfPages, append_that_nobody_waits_for()},
                                      {Rule::kReadAfterParts, part_that_nobody_waits_for()}}) {
    EXPECT_FALSE(proof::check_with(program, proof::find_test_op).ok());
    if (proof::check_with(program, proof::find_test_op, rule).ok()) passed[int(rule)] = "made by hand";
  }
  for (u64 seed = 0; seed < 500 && passed.size() < size_t(proof::kNumRules); ++seed) {
    const Program sound = sound_program(seed);
    std::mt19937_64 random(seed);
    for (const FaultSeed& kind : fault_seeds()) {
      Program program = sound;
      PlantedFault fault;
      if (!kind.plant(program, random, fault) || check(program).ok()) continue;
      for (int rule = 0; rule < proof::kNumRules; ++rule)
        if (!passed.contains(rule) && proof::check_with(program, find_op, Rule(rule)).ok())
          passed[rule] = fmt::format("{} (seed {})", kind.name, seed);
    }
  }
  for (int rule = 0; rule < proof::kNumRules; ++rule)
    EXPECT_TRUE(passed.contains(rule)) << "without rule " << rule << " nothing gets past the check";
  for (const auto& [rule, fault] : passed) fmt::print("without rule {}: {}\n", rule, fault);
}

}  // namespace
}  // namespace heddle
