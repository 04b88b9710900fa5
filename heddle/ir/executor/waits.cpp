#include "heddle/ir/executor/waits.h"

#include <fmt/format.h>

namespace heddle {

const StepHost* step_host(const Program& program, const Memory& memory) {
  for (size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].info.kind == BufferKind::kStepHost)
      return reinterpret_cast<const StepHost*>(memory.base[b]);
  return nullptr;
}

namespace {

std::string producers_of(const Program& program, u32 counter) {
  std::string text;
  int named = 0;
  for (size_t w = 0; w < program.workers.size(); ++w)
    for (size_t i = 0; i < program.workers[w].size(); ++i)
      if (program.workers[w][i].signal.counter == counter && named++ < 3)
        text += fmt::format("{}worker {} #{} {}", text.empty() ? "" : "; ", w, i,
                            program.describe(program.workers[w][i]));
  return text.empty() ? "no instruction signals it" : fmt::format("{} signal it: {}", named, text);
}

}  // namespace

std::string dump_blocked(const Program& program, std::span<const BlockedWorker> blocked,
                         std::span<const u32> counters) {
  constexpr size_t kMost = 8;
  std::string text = fmt::format("{} of {} workers wait:", blocked.size(), program.workers.size());
  for (size_t b = 0; b < blocked.size() && b < kMost; ++b) {
    const auto& [worker, next, epoch] = blocked[b];
    const Instruction& instruction = program.workers[worker][next];
    text += fmt::format("\n  worker {} #{} {} (step {})", worker, next, program.describe(instruction), epoch);
    for (int i = 0; i < kMaxWaits; ++i)
      if (blocked_by(instruction, i, epoch, counters)) {
        const Wait& wait = instruction.waits[i];
        text += fmt::format(": counter {} seen {} wanted {} ({})", wait.counter, counters[wait.counter],
                            wanted_count(wait.target, epoch, instruction.waits_previous(i)),
                            producers_of(program, wait.counter));
      }
  }
  if (blocked.size() > kMost) text += fmt::format("\n  and {} more", blocked.size() - kMost);
  return text;
}

}  // namespace heddle
