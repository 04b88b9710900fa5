#include "heddle/backend/cuda/executors/call_trace.h"

namespace heddle::cuda {

CallTrace::CallTrace(const Program& program, u32 capacity, const Device& device)
    : device_(device), capacity_(capacity) {
  if (!on()) return;
  tiles_.resize(program.calls.size(), std::vector<std::vector<u32>>(program.workers.size()));
  for (size_t w = 0; w < program.workers.size(); ++w)
    for (u32 i = 0; i < program.workers[w].size(); ++i)
      if (const Instruction& instruction = program.workers[w][i]; instruction.opcode < kNopOpcode)
        tiles_[instruction.call][w].push_back(i);
}

void CallTrace::clear() {
  calls_.clear();
}

void CallTrace::begin(const Stream& stream) {
  if (!on()) return;
  calls_.emplace_back(device_);
  calls_.back().begin.record(stream);
}

void CallTrace::end(const Stream& stream, u32 step, u32 call) {
  if (!on()) return;
  calls_.back().step = step, calls_.back().call = call;
  calls_.back().end.record(stream);
}

Trace CallTrace::read() const {
  Trace trace;
  if (calls_.empty()) return trace;
  calls_.back().end.synchronize();
  const size_t workers = tiles_[0].size();
  for (u32 w = 0; w < workers; ++w) trace.lanes.push_back({.worker = w, .unit = w, .events = {}});
  for (const Noted& noted : calls_) {
    const double begin = 1e6 * noted.begin.elapsed_ms(calls_[0].begin),
                 length = 1e6 * noted.end.elapsed_ms(noted.begin);
    for (size_t w = 0; w < workers; ++w) {
      const std::vector<u32>& tiles = tiles_[noted.call][w];
      TraceLane& lane = trace.lanes[w];
      for (size_t i = 0; i < tiles.size(); ++i) {
        if (lane.events.size() == capacity_) {
          ++lane.lost;
          continue;
        }
        const double part = length / double(tiles.size());
        const u64 from = u64(begin + part * double(i)), to = u64(begin + part * double(i + 1));
        lane.events.push_back({.fetched = from,
                               .ready = from,
                               .computed = to,
                               .done = to,
                               .instruction = tiles[i],
                               .epoch = noted.step + 1});
      }
    }
  }
  return trace;
}

}  // namespace heddle::cuda
