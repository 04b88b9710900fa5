#include "tests/support/step_order.h"

#include <algorithm>

namespace heddle {

StepOrder::StepOrder(const Program& program) : producers_(program.counters.size()) {
  for (const auto& stream : program.workers) first_.push_back(count_), count_ += stream.size() - 1;
  after_.resize(2 * count_), reached_.resize(2 * count_);
  for (u32 w = 0; w < program.workers.size(); ++w)
    for (size_t i = 0; i + 1 < program.workers[w].size(); ++i)
      if (const u32 counter = program.workers[w][i].signal.counter; counter != kNoCounter)
        producers_[counter].push_back(id(w, i));
  for (u32 w = 0; w < program.workers.size(); ++w) {
    const size_t length = program.workers[w].size() - 1;
    if (length > 0) after_[id(w, length - 1, 0)].push_back(id(w, 0, 1));
    for (u32 step = 0; step < 2; ++step)
      for (size_t i = 0; i < length; ++i) {
        if (i > 0) after_[id(w, i - 1, step)].push_back(id(w, i, step));
        const Instruction& instruction = program.workers[w][i];
        for (int k = 0; k < kMaxWaits; ++k) {
          if (instruction.waits[k].counter == kNoCounter || (instruction.waits_previous(k) && step == 0))
            continue;
          for (size_t p : producers_[instruction.waits[k].counter])
            after_[in_step(p, instruction.waits_previous(k) ? 0 : step)].push_back(id(w, i, step));
        }
      }
  }
}

bool StepOrder::reaches(size_t a, size_t b) const {
  auto& reached = reached_[a];
  if (reached.empty()) {
    reached.assign(after_.size(), false);
    std::vector<size_t> open = {a};
    reached[a] = true;
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (size_t next : after_[at])
        if (!reached[next]) reached[next] = true, open.push_back(next);
    }
  }
  return reached[b];
}

std::vector<Region> regions_of(const Program& program, const Instruction& instruction) {
  TileCoord tile;
  std::copy(std::begin(instruction.tile), std::end(instruction.tile), tile.at);
  return node_regions(program.node_of(program.calls[instruction.call]), tile);
}

namespace {

// True if they share a byte.
bool overlap(const Program& program, const Region& a, const Region& b) {
  const i64 at = program.buffers[a.buffer].arena_offset, bt = program.buffers[b.buffer].arena_offset;
  if (a.buffer != b.buffer && (at < 0 || bt < 0)) return false;
  const auto pieces = [](const Region& r, i64 base) {
    std::vector<i64> begins;
    for (i64 i = 0; i < r.count[0]; ++i)
      for (i64 j = 0; j < r.count[1]; ++j)
        begins.push_back(std::max<i64>(base, 0) + r.offset + i * r.stride[0] + j * r.stride[1]);
    return begins;
  };
  const auto ours = pieces(a, at), theirs = pieces(b, bt);
  for (i64 x : ours)
    for (i64 y : theirs)
      if (x < y + b.run && y < x + a.run) return true;
  return false;
}

}  // namespace

bool conflict(const Program& program, const Instruction& a, const Instruction& b, bool previous) {
  for (const Region& x : regions_of(program, a))
    for (const Region& y : regions_of(program, b)) {
      const bool pages = program.buffers[x.buffer].info.kind == BufferKind::kPages;
      if (pages && !(previous && x.access == Access::kWrite && y.access == Access::kRead)) continue;
      if (x.indexed && y.indexed && !pages && a.call == b.call) continue;
      if ((x.access == Access::kWrite || y.access == Access::kWrite) && overlap(program, x, y)) return true;
    }
  return false;
}

}  // namespace heddle
