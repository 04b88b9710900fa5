#include "heddle/backend/cuda/executors/fault_report.h"

#include <vector>

#include <fmt/format.h>

#include "heddle/ir/executor/waits.h"

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
    case Awaited::kNothing:
      break;
  }
  return "the run was stopped";
}

// Counters as all tiles that are done would have left them.
std::vector<u32> all_counters(const FaultReport& report) {
  std::vector<u32> counters(report.counters.begin(), report.counters.end());
  for (u32 w = 0; w < report.places.size(); ++w) {
    const auto [at, epoch] = report.places[w].consumers;
    const auto& stream = report.program.workers[w];
    for (u32 i = 0; i < stream.size() && epoch > 0; ++i)
      if (const Signal& signal = stream[i].signal;
          signal.counter != kNoCounter && stream[i].signal_kind() != EdgeKind::kCounted)
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
