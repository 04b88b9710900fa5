#include "heddle/ir/executor/watch.h"

#include <algorithm>

#include "heddle/base/error.h"

namespace heddle {
namespace {

bool writes(const Program& program, const Call& call, u32 buffer) {
  const Node node = program.node_of(call);
  for (const Part& part : node.parts)
    for (const Field& field : part.op->fields)
      if (field.writes() && field.tensor(part.args.data()).buffer == buffer) return true;
  return false;
}

}  // namespace

WatchedRecord::WatchedRecord(const Program& program) {
  for (u32 b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].info.kind == BufferKind::kStepHost) host = b;
    if (program.buffers[b].info.kind == BufferKind::kStepDevice) device = b;
  }
  require(host != kNoBuffer && device != kNoBuffer,
          "[run] {} has no step record; only programs with one can be watched", program.name);
  u32 tiles = 0;
  for (u32 c = 0; c < program.calls.size(); ++c) {
    if (!writes(program, program.calls[c], device)) continue;
    for (u32 w = 0; w < program.workers.size(); ++w)
      for (const Instruction& instruction : program.workers[w])
        if (instruction.opcode < kNopOpcode && instruction.call == c) worker = w, ++tiles;
  }
  require(tiles == 1, "[run] {} tiles of {} choose tokens; a run is watched where one does", tiles,
          program.name);
}

RunReport run_by_steps(Executor& executor, int steps, const StepWatch& watch, const Program& program,
                       const Memory& memory, MemorySpace* space) {
  const WatchedRecord record(program);
  StepHost host;
  copy_from(space, &host, memory.base[record.host], sizeof host);
  std::vector<i32> chosen(size_t(host.sequences), 0);
  RunReport all;
  for (bool ends = false; !ends && all.steps < steps;) {
    const RunReport one = executor.run(1);
    ++all.steps, all.tiles_run += one.tiles_run, all.tiles_dead += one.tiles_dead;
    copy_from(space, chosen.data(), memory.base[record.device] + StepDevice::sampled_offset(program.shape),
              chosen.size() * sizeof(i32));
    ends = std::ranges::find_first_of(chosen, watch.ends) != chosen.end();
    if (!watch.on_step(chosen)) ends = true;
  }
  return all;
}

}  // namespace heddle
