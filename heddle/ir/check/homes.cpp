#include "heddle/ir/check/homes.h"

#include <algorithm>

namespace heddle::proof {
namespace {

class CheckHomes {
 public:
  CheckHomes(const Form& form, Faults& faults) : form_(form), program_(*form.program), faults_(faults) {}

  void run() {
    gather();
    for (u32 id = 0; id < form_.size() && !faults_.full(); ++id)
      for (const Region& region : form_.regions_of(id)) check_access(id, region);
    check_memory();
  }

 private:
  // Collects the shares of each buffer, by address inside their period. Adjacent shares of one worker are
  // joined.
  void gather() {
    shares_.resize(program_.buffers.size());
    for (const Home& home : program_.homes)
      if (home.begin < home.end) shares_[home.buffer].push_back(home);
    for (auto& shares : shares_) {
      std::sort(shares.begin(), shares.end(), [](const Home& a, const Home& b) { return a.begin < b.begin; });
      std::vector<Home> joined;
      for (const Home& home : shares) {
        if (home.period != shares[0].period)
          faults_.add(Rule::kHomesAlike, FaultKind::kMalformed,
                      "[homes] those of {} repeat every {} bytes and every {}",
                      form_.buffer(home.buffer).name, shares[0].period, home.period);
        if (!joined.empty() && home.begin < joined.back().end)
          faults_.add(Rule::kOneHome, FaultKind::kResidency,
                      "[homes] bytes [{}, {}) of {} have two homes, workers {} and {}", home.begin,
                      std::min(home.end, joined.back().end), form_.buffer(home.buffer).name,
                      joined.back().worker, home.worker);
        if (!joined.empty() && joined.back().worker == home.worker && joined.back().end >= home.begin)
          joined.back().end = std::max(joined.back().end, home.end);
        else
          joined.push_back(home);
      }
      shares = std::move(joined);
    }
  }

  void check_access(u32 id, const Region& region) {
    const Buffer& buffer = form_.buffer(region.buffer);
    const auto& shares = shares_[region.buffer];
    if (region.run == 0 || (shares.empty() && !buffer.resident)) return;
    // A look-up may read a weight's rows at any home: all workers can reach that memory.
    if (region.indexed && is_immutable(buffer.kind)) return;
    if (region.indexed) {
      check_run(id, region, region.offset, region.end());
      return;
    }
    // Runs that are whole periods apart have the same owner.
    const bool alike = !shares.empty() && shares[0].period > 0 && region.stride[0] % shares[0].period == 0;
    for (i64 i = 0; i < (alike ? 1 : region.count[0]); ++i)
      for (i64 j = 0; j < region.count[1]; ++j) {
        const i64 begin = region.offset + i * region.stride[0] + j * region.stride[1];
        if (!check_run(id, region, begin, begin + region.run)) return;
      }
  }

  // Checks that [begin, end) of the buffer belongs to the worker. It may span several periods only if one
  // worker owns whole periods.
  bool check_run(u32 id, const Region& region, i64 begin, i64 end) {
    const auto& shares = shares_[region.buffer];
    if (const i64 period = shares.empty() ? 0 : shares[0].period; period > 0) {
      const i64 length = end - begin;
      begin %= period;
      end = begin + length;
      if (end > period) begin = 0, end = period;
    }
    auto after = std::upper_bound(shares.begin(), shares.end(), begin,
                                  [](i64 at, const Home& home) { return at < home.begin; });
    const Home* home = after == shares.begin() ? nullptr : &*std::prev(after);
    if (home && home->end >= end && home->worker == form_.worker_of[id]) return true;
    const bool foreign = home && begin < home->end && home->worker != form_.worker_of[id];
    const i64 wrong = home && !foreign ? std::max(begin, home->end) : begin;
    const Home* owner = foreign ? home : after != shares.end() && after->begin <= wrong ? &*after : nullptr;
    faults_.add(Rule::kAtHome, FaultKind::kResidency, "{} {} bytes [{}, {}) of {}; the home of byte {} is {}",
                form_.place(id), region.access == Access::kRead ? "reads" : "writes", begin, end,
                form_.buffer(region.buffer).name, wrong,
                owner ? fmt::format("worker {}", owner->worker) : "nowhere");
    return false;
  }

  i64 scratch_of(u32 id) const {
    const Instruction& instruction = form_.instruction(id);
    if (instruction.opcode == kNopOpcode) return 0;
    const Node& node = form_.calls[instruction.call].node;
    TileCoord tile;
    std::copy(std::begin(instruction.tile), std::end(instruction.tile), tile.at);
    i64 bytes = 0;
    for (size_t i = 0; i < node.parts.size(); ++i)
      if (const Part& part = node.parts[i]; part.op->scratch)
        bytes += part.op->scratch(part.args.data(), part_tile(node, i, tile));
    return bytes;
  }

  void check_memory() {
    const Topology& topology = program_.topology;
    if (topology.worker_memory == 0) return;
    std::vector<i64> resident(form_.workers(), 0);
    for (const Home& home : program_.homes)
      if (const Buffer& buffer = form_.buffer(home.buffer); buffer.resident)
        resident[home.worker] += (home.end - home.begin) * (home.period > 0 ? buffer.bytes / home.period : 1);
    for (u32 worker = 0; worker < form_.workers(); ++worker) {
      i64 scratch = 0;
      u32 largest = form_.first[worker];
      for (u32 id = form_.first[worker]; id < form_.first[worker + 1]; ++id)
        if (const i64 bytes = scratch_of(id); bytes > scratch) scratch = bytes, largest = id;
      if (resident[worker] + topology.ring_bytes + scratch <= topology.worker_memory) continue;
      faults_.add(
          Rule::kWorkerMemory, FaultKind::kDoesNotFit,
          "[worker {}] resident rows of {} bytes, a ring of {} and scratch of {}{} are more than the {} "
          "of a worker",
          worker, resident[worker], topology.ring_bytes, scratch,
          scratch > 0 ? " for " + form_.place(largest) : "", topology.worker_memory);
    }
  }

  const Form& form_;
  const Program& program_;
  Faults& faults_;
  std::vector<std::vector<Home>> shares_;
};

}  // namespace

void check_homes(const Form& form, Faults& faults) {
  CheckHomes(form, faults).run();
}

}  // namespace heddle::proof
