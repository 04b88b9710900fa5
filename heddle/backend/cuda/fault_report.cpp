#include "heddle/backend/cuda/fault_report.h"

#include <vector>

#include <fmt/format.h>

#include "heddle/ir/waits.h"

namespace heddle::cuda {
namespace {

// A role's instruction: "#3 linear layers.0.qkv tile [...] (step 2)".
std::string place_text(const Program& program, u32 worker, const WorkerPlace::At& at) {
  const auto& stream = program.workers[worker];
  if (at.epoch == 0 || at.instruction >= stream.size()) return "nowhere yet";
  const Instruction& instruction = stream[at.instruction];
  return fmt::format("#{} {} (step {})", at.instruction,
                     instruction.opcode == kEndOpcode ? "the end" : program.describe(instruction), at.epoch);
}

const char* text_of(LoaderWaits waits) {
  switch (waits) {
    case LoaderWaits::kInstruction:
      return "waits for an instruction";
    case LoaderWaits::kInputs:
      return "waits for what its consumers wait for, which says what to load";
    case LoaderWaits::kRoom:
      return "waits for room in the ring";
    case LoaderWaits::kNothing:
      break;
  }
  return "is done";
}

// Who makes an element of a tagged buffer; `place`: of the first byte of the element.
std::string maker_text(const Program& program, u32 buffer, i64 place) {
  std::vector<Region> regions;
  for (size_t w = 0; w < program.workers.size(); ++w)
    for (size_t i = 0; i < program.workers[w].size(); ++i) {
      const Instruction& instruction = program.workers[w][i];
      if (instruction.opcode >= kNopOpcode) continue;
      const Node node = program.node_of(program.calls[instruction.call]);
      regions.clear();
      const i32* at = instruction.tile;
      NodeRule(node).append({{at[0], at[1], at[2], at[3]}}, regions);
      for (const Region& region : regions)
        if (region.buffer == buffer && region.access == Access::kWrite && region.offset <= place &&
            place < region.end())
          return fmt::format("worker {} #{} {} makes it", w, i, program.describe(instruction));
    }
  return "nobody makes it";
}

// "element 7 of x, tag seen 2 wanted 3, at #3 norm ...; worker 1 #2 linear ... makes it"
std::string tag_text(const FaultReport& report) {
  const FaultRecord& fault = report.fault;
  const u32 buffer = report.tagged.buffers[fault.tensor];
  const i64 place = i64(fault.element) * report.tagged.tensors[fault.tensor].element;
  return fmt::format("element {} of {}, tag seen {} wanted {}, at {}; {}", fault.element,
                     report.program.buffers[buffer].info.name, fault.seen, fault.wanted,
                     place_text(report.program, fault.worker, report.places[fault.worker].consumers),
                     maker_text(report.program, buffer, place));
}

std::string fault_text(const FaultReport& report) {
  const FaultRecord& fault = report.fault;
  const std::string waited =
      fmt::format("worker {} waited longer than {:.0f} ms for", fault.worker, report.limit_ms);
  switch (fault.awaited) {
    case Awaited::kCounter:
      return fmt::format("{} counter {}, seen {} wanted {}", waited, fault.counter, fault.seen, fault.wanted);
    case Awaited::kVerdict:
      return fmt::format("{} the end of step {}, seen {}", waited, fault.wanted / 2, fault.seen / 2);
    case Awaited::kPanels:
      if (report.places.empty())
        return fmt::format("CTA {} waited longer than {:.0f} ms for weights", fault.worker, report.limit_ms);
      return fmt::format("{} weights at {}", waited,
                         place_text(report.program, fault.worker, report.places[fault.worker].consumers));
    case Awaited::kTag:
      return fmt::format("{} {}", waited, tag_text(report));
    case Awaited::kNothing:
      break;
  }
  return "the run was stopped";
}

// Whether a device counts a signal of this kind in memory.
bool is_counted(EdgeKind kind, bool has_tags) {
  return kind == EdgeKind::kCounted || (kind == EdgeKind::kTagged && !has_tags);
}

// Counters as all tiles that are done would have left them.
std::vector<u32> all_counters(const FaultReport& report) {
  std::vector<u32> counters(report.counters.begin(), report.counters.end());
  for (u32 w = 0; w < report.places.size(); ++w) {
    const auto [at, epoch] = report.places[w].consumers;
    const auto& stream = report.program.workers[w];
    for (u32 i = 0; i < stream.size() && epoch > 0; ++i)
      if (const Signal& signal = stream[i].signal;
          signal.counter != kNoCounter &&
          !is_counted(stream[i].signal_kind(), !report.tagged.tensors.empty()))
        counters[signal.counter] += signal.amount * (i < at ? epoch : epoch - 1);
  }
  return counters;
}

std::vector<BlockedWorker> blocked_workers(const FaultReport& report, std::span<const u32> counters) {
  std::vector<BlockedWorker> blocked;
  for (u32 w = 0; w < report.places.size(); ++w) {
    const auto [at, epoch] = report.places[w].consumers;
    const Instruction& instruction = report.program.workers[w][at];
    bool waits = false;
    for (int i = 0; i < kMaxWaits && instruction.opcode != kEndOpcode; ++i)
      waits |= blocked_by(instruction, i, epoch, counters);
    if (waits) blocked.push_back({w, at, epoch});
  }
  return blocked;
}

}  // namespace

std::string text_of(const FaultReport& report) {
  std::string text = fmt::format("[{}] {}", report.executor, fault_text(report));
  if (report.places.empty()) return text;
  const std::vector<u32> counters = all_counters(report);
  text += "; " + dump_blocked(report.program, blocked_workers(report, counters), counters);
  text += "\nconsumers and loader of each worker:";
  for (u32 w = 0; w < report.places.size(); ++w) {
    const WorkerPlace& place = report.places[w];
    text += fmt::format("\n  worker {}: at {}; the loader {}, at {}", w,
                        place_text(report.program, w, place.consumers), text_of(place.loader_waits),
                        place_text(report.program, w, place.loader));
  }
  return text;
}

}  // namespace heddle::cuda
