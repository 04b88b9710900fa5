// Every field of a program that can differ is reported: a changed program is never "the same".
#include "heddle/ir/program/compare.h"

#include <functional>

#include <gtest/gtest.h>

#include "heddle/base/file.h"

namespace heddle {
namespace {

Program seed() {
  const std::string path = HEDDLE_SOURCE_DIR "/tests/fuzz/program/linear.heddle";
  return parse_program(read_file(path), path);
}

// Stores the weight of the first call in a code.
void set_coding(Program& program, const Coding& coding) {
  Node node = program.node_of(program.calls[0]);
  for (const Field& field : node.main_part().op->fields)
    if (field.is_weight()) field.weight(node.main_part().args.data()).coding = coding;
  program.calls[0].args[node.main] = node.main_part().args;
}

TEST(Compare, AFileKeepsTheCodesOfWeights) {
  for (const Coding coding : {Coding{Code::kF8E4M3, 0}, {Code::kF8E4M3, 128}, {Code::kI4, 65535}, {}}) {
    Program program = seed();
    set_coding(program, coding);
    const Program again = parse_program(serialise_program(program), "again");
    EXPECT_EQ(print_differences(program, again), "") << name(coding.code) << " by " << coding.group;
  }
}

TEST(Compare, EqualProgramsDoNotDiffer) {
  EXPECT_EQ(print_differences(seed(), seed()), "");
}

TEST(Compare, EachTableIsNamed) {
  const std::pair<const char*, std::function<void(Program&)>> changes[] = {
      {"sizes", [](Program& p) { p.name += 'x'; }},
      {"sizes", [](Program& p) { p.arena_bytes += 16; }},
      {"sizes", [](Program& p) { ++p.shape.page_size; }},
      {"buffers", [](Program& p) { p.buffers[0].info.bytes += 1; }},
      {"buffers", [](Program& p) { p.buffers[0].info.name += 'x'; }},
      {"calls", [](Program& p) { p.calls[0].name += 'x'; }},
      {"arguments",
       [](Program& p) {
         Node node = p.node_of(p.calls[0]);
         Part& part = node.parts[0];
         part.op->fields[0].elements(part.args.data()).offset += 4;
         p.calls[0].args[0] = part.args;
       }},
      {"arguments",
       [](Program& p) {
         set_coding(p, {Code::kF8E4M3, 128});
       }},
      {"homes", [](Program& p) { p.homes.push_back({.buffer = 0, .begin = 3, .end = 4}); }},
      {"counters", [](Program& p) { p.counters.push_back({.total = 7}); }},
      {"streams", [](Program& p) { p.workers[0][0].stream_items += 1; }},
      {"tiles", [](Program& p) { p.workers[0][0].tile[2] += 1; }},
      {"order", [](Program& p) { p.workers[0][0].set_wait_kind(kMaxWaits - 1, EdgeKind::kCounted); }},
  };
  for (const auto& [part, change] : changes) {
    Program other = seed();
    change(other);
    const std::string text = print_differences(seed(), other);
    EXPECT_EQ(text.find(std::string("  ") + part), text.find_first_not_of('\n')) << part << " in\n" << text;
  }
}

TEST(Compare, ShowsNoMoreThanAskedFor) {
  Program other = seed();
  for (ProgramBuffer& buffer : other.buffers) buffer.info.name += 'x';
  const std::string text = print_differences(seed(), other, 1);
  EXPECT_NE(text.find(", ...\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle
