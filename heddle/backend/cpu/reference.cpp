// The reference executor: one thread, any legal interleaving, every access compared with what the op
// declared. The oracle for all other executors, and the debugger.
#include <algorithm>
#include <optional>
#include <random>

#include "heddle/backend/cpu/call_regions.h"
#include "heddle/backend/cpu/describe.h"
#include "heddle/backend/cpu/images.h"
#include "heddle/backend/cpu/scalar_block.h"
#include "heddle/backend/cpu/tile_runner.h"
#include "heddle/base/stopwatch.h"
#include "heddle/ir/executor/waits.h"
#include "heddle/ir/executor/watch.h"

namespace heddle {
namespace {

class ReferenceExecutor : public Executor {
 public:
  ReferenceExecutor(const Program& program, Memory memory, ExecutorOptions options)
      : program_(program),
        memory_(std::move(memory)),
        options_(std::move(options)),
        random_(options_.seed),
        counters_(program.counters.size()),
        rules_(program) {
    if (options_.stale_reads) images_.emplace(program_, memory_);
    for (size_t w = 0; w < (images_ ? program_.workers.size() : 1); ++w) {
      bases_.push_back(images_ ? images_->memory(u32(w)) : memory_);
      runners_.emplace_back(program_, bases_.back(), scalar_bodies());
    }
    host_ = step_host(program_, memory_);
    if (options_.trace_events > 0)
      for (u32 w = 0; w < program_.workers.size(); ++w) trace_.lanes.push_back({.worker = w});
  }

  RunReport run(int steps) override {
    report_ = {};
    if (images_) images_->begin();
    positions_.assign(program_.workers.size(), {0, epoch_ + 1, 0});
    for (TraceLane& lane : trace_.lanes) lane.events.clear(), lane.lost = 0;
    watch_ = {};
    stop_after_ = epoch_ + u32(steps);
    priorities();
    try {
      while (advance()) {
      }
    } catch (...) {
      std::fill(counters_.begin(), counters_.end(), 0u);
      epoch_ = 0;
      throw;
    }
    epoch_ = stop_after_;
    if (images_) images_->finish();
    report_.steps = steps;
    return report_;
  }
  RunReport run(int steps, const StepWatch& watch) override {
    return run_by_steps(*this, steps, watch, program_, memory_);
  }
  Trace trace() const override { return trace_; }

 private:
  struct Position {
    size_t next;
    u32 epoch;
    u64 since;  // traced: when the worker was through with the instruction before
  };

  void priorities() {
    order_.resize(program_.workers.size());
    for (u32 w = 0; w < order_.size(); ++w) order_[w] = w;
    std::shuffle(order_.begin(), order_.end(), random_);
  }

  const Instruction& at(u32 worker) const { return program_.workers[worker][positions_[worker].next]; }
  bool finished(u32 worker) const { return positions_[worker].epoch > stop_after_; }

  bool ready(u32 worker) const {
    const Instruction& instruction = at(worker);
    for (int i = 0; i < kMaxWaits; ++i)
      if (blocked_by(instruction, i, positions_[worker].epoch, counters_)) return false;
    return true;
  }

  // Runs one instruction of one worker; false when all have finished. Adversarial: always the first ready
  // worker of a fixed random order, so that the last of it starves; else a random ready one.
  bool advance() {
    std::vector<u32> able;
    bool all_done = true;
    for (u32 worker : order_) {
      if (finished(worker)) continue;
      if (at(worker).opcode == kEndOpcode) {
        positions_[worker] = {0, positions_[worker].epoch + 1, positions_[worker].since};
        return true;
      }
      all_done = false;
      if (!ready(worker)) continue;
      able.push_back(worker);
      if (options_.adversarial) break;
    }
    if (all_done) return false;
    if (able.empty()) hang();
    execute(able[random_() % able.size()]);
    return true;
  }

  [[noreturn]] void hang() {
    std::vector<BlockedWorker> blocked;
    for (u32 worker = 0; worker < positions_.size(); ++worker)
      if (!finished(worker)) blocked.push_back({worker, positions_[worker].next, positions_[worker].epoch});
    throw Error(ErrorCode::kDevice,
                "[reference] no worker can go on; " + dump_blocked(program_, blocked, counters_));
  }

  void execute(u32 worker) {
    const Instruction& instruction = at(worker);
    TraceEvent event{.fetched = positions_[worker].since, .ready = trace_time()};
    if (images_)
      for (int i = 0; i < kMaxWaits; ++i)
        if (instruction.waits[i].counter != kNoCounter) images_->wait(worker, instruction.waits[i].counter);
    if (instruction.opcode != kNopOpcode) event.dead = !run_tile(worker, instruction);
    event.computed = trace_time();
    if (instruction.signal.counter != kNoCounter) {
      counters_[instruction.signal.counter] += instruction.signal.amount;
      if (images_) images_->signal(worker, instruction.signal.counter);
    }
    event.done = trace_time();
    note(worker, event);
    ++positions_[worker].next;
  }

  // Nanoseconds since the run began; 0 where it is not traced.
  u64 trace_time() const { return trace_.lanes.empty() ? 0 : u64(watch_.seconds() * 1e9); }
  void note(u32 worker, TraceEvent event) {
    if (trace_.lanes.empty()) return;
    Position& position = positions_[worker];
    position.since = event.done;
    TraceLane& lane = trace_.lanes[worker];
    event.instruction = u32(position.next), event.epoch = position.epoch;
    if (lane.events.size() < options_.trace_events)
      lane.events.push_back(event);
    else
      ++lane.lost;
  }

  // False: the tile had no work.
  bool run_tile(u32 worker, const Instruction& instruction) {
    const size_t image = images_ ? worker : 0;
    const Call& call = program_.calls[instruction.call];
    TileCoord tile;
    std::copy(instruction.tile, instruction.tile + 4, tile.at);
    if (host_ ? !clamp_to_live(call.live, *host_, tile) : false) {
      ++report_.tiles_dead;
      return false;
    }
    regions_.clear();
    rules_.append(instruction.call, tile, regions_);
    guard_.begin(program_.describe(instruction), regions_, bases_[image].base);
    block_.begin();
    run_body(runners_[image], instruction.call, tile);
    ++(block_.was_dead() ? report_.tiles_dead : report_.tiles_run);
    if (images_) images_->stored(worker, guard_.stores());
    if (options_.tap) options_.tap(instruction, worker);
    return !block_.was_dead();
  }

  void run_body(const TileRunner<ScalarBlock>& runner, u32 call, const TileCoord& tile) {
    const OpSpec* const own = runner.own_op(call);
    if (own && own->watched_body) return own->watched_body(runner.own_args(call), tile, guard_.hook());
    runner.run(block_, call, tile);
    if (own) guard_.store_declared();
  }

  const Program& program_;
  Memory memory_;
  ExecutorOptions options_;
  std::mt19937_64 random_;
  std::vector<u32> counters_;
  CallRegions rules_;
  std::optional<Images> images_;
  std::vector<Memory> bases_;
  std::vector<TileRunner<ScalarBlock>> runners_;
  const StepHost* host_ = nullptr;
  AccessGuard guard_;
  ScalarBlock block_{guard_};
  std::vector<Region> regions_;
  std::vector<Position> positions_;
  std::vector<u32> order_;
  u32 epoch_ = 0, stop_after_ = 0;
  RunReport report_;
  Trace trace_;
  Stopwatch watch_;
};

}  // namespace

std::unique_ptr<Executor> create_reference(const Program& program, const Memory& memory,
                                           const ExecutorOptions& options) {
  require_cpu(options.device);
  return std::make_unique<ReferenceExecutor>(program, memory, options);
}

}  // namespace heddle
