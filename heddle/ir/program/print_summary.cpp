#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/ir/program/print.h"

namespace heddle {
namespace {

constexpr int kEdgeKinds = 2;

// Counts what the streams of a program hold.
struct Counts {
  std::array<size_t, kEdgeKinds> waits = {};
  size_t previous = 0, nops = 0, signals = 0;
  std::vector<size_t> calls, tiles;  // by opcode

  explicit Counts(const Program& program) : calls(program.opcodes.size()), tiles(program.opcodes.size()) {
    for (const Call& call : program.calls)
      if (call.opcode < calls.size()) ++calls[call.opcode];
    for (const auto& stream : program.workers)
      for (const Instruction& instruction : stream) add(instruction);
  }

 private:
  void add(const Instruction& instruction) {
    if (instruction.opcode == kEndOpcode) return;
    if (instruction.opcode < tiles.size()) ++tiles[instruction.opcode];
    if (instruction.opcode == kNopOpcode) ++nops;
    if (instruction.signal.counter != kNoCounter) ++signals;
    for (int i = 0; i < kMaxWaits; ++i) {
      if (instruction.waits[i].counter == kNoCounter) continue;
      ++waits[size_t(instruction.wait_kind(i))];
      if (instruction.waits_previous(i)) ++previous;
    }
  }
};

std::string streams_text(const Program& program, const Counts& counts) {
  size_t least = SIZE_MAX, most = 0;
  for (const auto& stream : program.workers) {
    const size_t length = stream.empty() ? 0 : stream.size() - 1;
    least = std::min(least, length), most = std::max(most, length);
  }
  std::string waits;
  for (int kind = 0; kind < kEdgeKinds; ++kind)
    if (const size_t n = counts.waits[size_t(kind)]; n > 0)
      waits += fmt::format("{}{} {}", waits.empty() ? "" : ", ", n, name(EdgeKind(kind)));
  return fmt::format("  streams   {} to {} instructions a worker, {} of all without work\n",
                     program.workers.empty() ? 0 : least, most, counts.nops) +
         fmt::format("  waits     {}; {} of them for the step before\n", waits.empty() ? "none" : waits,
                     counts.previous) +
         fmt::format("  signals   {} on {} counters\n", counts.signals, program.counters.size());
}

std::string memory_text(const Program& program) {
  std::array<i64, kBufferKinds> bytes = {};
  std::array<size_t, kBufferKinds> buffers = {};
  for (const ProgramBuffer& buffer : program.buffers) {
    const Buffer& info = buffer.info;
    const size_t kind = size_t(info.kind);
    if (kind >= size_t(kBufferKinds) || buffer.arena_offset >= 0) continue;
    // Neither in the arena nor on its own: a chain passes it on as a fragment and never stores it.
    if (info.kind == BufferKind::kActivation && !info.resident) continue;
    ++buffers[kind];
    bytes[kind] += info.bytes;
  }
  std::string text = fmt::format("  memory    arena {} bytes", program.arena_bytes);
  for (size_t kind = 0; kind < size_t(kBufferKinds); ++kind)
    if (buffers[kind] > 0)
      text += fmt::format("; {} {} {} bytes", buffers[kind], name(BufferKind(kind)), bytes[kind]);
  return text + "\n";
}

std::string opcodes_text(const Program& program, const Counts& counts) {
  std::string text = "  opcode  calls  tiles  chain of ops\n";
  for (size_t i = 0; i < program.opcodes.size(); ++i)
    text += fmt::format("  {:>6} {:>6} {:>6}  {}\n", i, counts.calls[i], counts.tiles[i],
                        fmt::join(program.opcodes[i].ops, " + "));
  return text;
}

}  // namespace

std::string print_summary(const Program& program) {
  const Counts counts(program);
  return print_header(program) + streams_text(program, counts) + memory_text(program) +
         opcodes_text(program, counts);
}

}  // namespace heddle
