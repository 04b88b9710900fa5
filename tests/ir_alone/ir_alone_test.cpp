// The contracts without anything above them. This program links only heddle/ir; it makes an op at run time,
// builds a graph of it, and checks and prints a hand-made program.
#include <gtest/gtest.h>

#include "heddle/ir/check/check.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/graph.h"
#include "heddle/ir/program/print.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ir/tile_grid.h"

namespace heddle {
namespace {

// y = x * factor, [M, N].
OpSpec scale_op() {
  OpSpec op;
  op.name = "scale";
  op.doc = "y = x * factor";
  op.fields = {tensor_field("x", Access::kRead, "M, N"), tensor_field("y", Access::kWrite, "M, N"),
               attribute_field("factor", AttributeType::kFloat)};
  op.defaults = lay_out(op.fields);
  const std::vector<Field> fields = op.fields;
  op.infer = [fields](std::byte* args) {
    const Tensor& x = fields[0].tensor(args);
    require_rank("scale", "x", x, 2);
    set_output("scale", "y", fields[1].tensor(args), x.dtype, {x.size[0], x.size[1]});
  };
  op.axes = [fields](const std::byte* args, const TilingTarget&) {
    return row_axes(fields[0].tensor(args).size[0]);
  };
  op.flops = [](const std::byte*, const TileCoord& tile) { return double(tile[1] - tile[0]); };
  op.reference = [fields](const std::byte* args, Values& values) {
    std::vector<double> y = values.read(fields[0].tensor(args));
    for (double& value : y) value *= std::get<double>(get_attribute(fields[2], args));
    values.write(fields[1].tensor(args), y);
  };
  return op;
}

// One tile on one worker.
Program program_of(const Graph& graph) {
  Program program;
  program.name = "one";
  program.topology.workers = 1;
  for (const Buffer& buffer : graph.buffers()) program.buffers.push_back({buffer, -1});
  const Node& node = graph.nodes()[0];
  const OpSpec& op = *node.main_part().op;
  program.opcodes = {{{op.name}, 0, chain_hash({op.name}, 0)}};
  program.calls = {{.opcode = 0, .name = node.name, .args = {node.main_part().args}}};
  Instruction tile{.opcode = 0, .call = 0};
  const TileCoord whole = default_tiles(op.axes(node.main_part().args.data(), {}))[0];
  std::copy(std::begin(whole.at), std::end(whole.at), tile.tile);
  program.workers = {{tile, Instruction{}}};
  return program;
}

TEST(IrAlone, HasNoOpsAndNoBackends) {
  EXPECT_EQ(find_op("add"), nullptr);
  EXPECT_TRUE(all_backends().empty());
}

TEST(IrAlone, BuildsChecksAndPrintsAnOpMadeAtRunTime) {
  const OpSpec& op = add_op(scale_op());
  EXPECT_EQ(all_ops(), std::vector<const OpSpec*>{&op});
  Graph graph;
  std::vector<std::byte> args = op.defaults;
  op.fields[0].tensor(args.data()) = graph.add_tensor("x", BufferKind::kTable, DType::kF32, {4, 8});
  op.fields[1].tensor(args.data()) = graph.add_tensor("y", BufferKind::kOutput, DType::kF32, {4, 8});
  set_attribute(op.name, op.fields[2], args.data(), 2.5);
  graph.append("scale", "twice_and_a_half", args);
  const Program program = program_of(graph);
  const CheckReport report = check(program);
  EXPECT_TRUE(report.ok()) << report.faults[0].message;
  const std::string text = print_graph(graph);
  EXPECT_NE(text.find("scale(x f32 [4, 8] %0, factor = 2.5) -> y f32 [4, 8] %1"), std::string::npos) << text;
  EXPECT_NE(print_program(program).find("twice_and_a_half [scale]"), std::string::npos);
}

}  // namespace
}  // namespace heddle
