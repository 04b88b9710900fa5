#include "tests/support/case_program.h"

#include <algorithm>

#include "heddle/ir/tile_grid.h"
#include "tests/support/case_memory.h"

namespace heddle {

Program one_call(const Node& node, std::vector<ProgramBuffer> buffers, std::span<const TileAxis> axes) {
  Program program;
  program.name = node.name;
  program.buffers = std::move(buffers);
  Opcode opcode{.main = node.main, .config = node.config};
  Call call{.opcode = 0, .name = node.name, .args = {}};
  for (const Part& part : node.parts) opcode.ops.push_back(part.op->name), call.args.push_back(part.args);
  opcode.hash = chain_hash(opcode.ops, opcode.main);
  program.opcodes = {opcode};
  program.calls = {call};
  program.workers.resize(1);
  program.shape.rows = 1024;  // enough for any tile
  for (const TileCoord& tile : default_tiles(axes)) {
    Instruction instruction{.opcode = 0, .stream_items = stream_items(node, tile)};
    std::copy(tile.at, tile.at + 4, instruction.tile);
    program.workers[0].push_back(instruction);
  }
  program.workers[0].push_back(Instruction{});
  return program;
}

Program program_of_case(const OpSpec& op, const Case& test) {
  CaseMemory memory;
  Part part{&op, test.args};
  op.infer(part.args.data());
  const std::vector<Output> outputs = allocate(op, part.args.data(), memory);
  if (test.prepare) test.prepare(part.args.data(), memory);
  for (ProgramBuffer& buffer : memory.buffers)
    if (buffer.info.kind == BufferKind::kActivation) buffer.info.kind = BufferKind::kTable;
  StepShape shape;
  for (const Output& output : outputs) {
    const u32 b = output.tensor.buffer;
    const bool state = output.tensor.dtype == DType::kU8;  // part of the step record
    memory.buffers[b].info.kind = state ? BufferKind::kStepDevice : BufferKind::kOutput;
    if (state) shape = reinterpret_cast<const StepDevice*>(memory.bytes(b))->shape;
  }
  const Node node{.name = op.name, .parts = {part}};
  const std::vector<TileAxis> axes = op.axes(part.args.data(), TilingTarget{});
  std::vector<Region> regions;
  for (const TileCoord& tile : default_tiles(axes)) NodeRule(node).append(tile, regions);
  for (const Region& region : regions)  // what it keeps from step to step
    if (BufferKind& kind = memory.buffers[region.buffer].info.kind;
        region.access == Access::kRead && kind == BufferKind::kOutput)
      kind = BufferKind::kPages;
  Program program = one_call(node, memory.buffers, axes);
  program.shape = shape;
  return program;
}

}  // namespace heddle
