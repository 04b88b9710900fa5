// The threads executor: each thread owns the streams of several workers and runs whichever is ready. Edges
// are counters on cache lines of their own: a signal adds with release, a wait loads with acquire.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include "heddle/backend/cpu/describe.h"
#include "heddle/backend/cpu/simd.h"
#include "heddle/backend/cpu/tick_trace.h"
#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/thread.h"
#include "heddle/ir/executor/waits.h"
#include "heddle/ir/executor/watch.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // if it fails, the run is slower, not wrong
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Decides how a thread waits while none of its workers is ready. It spins for as long as a hand-over between cores
// takes, then lets others have the core, then sleeps. Threads that share a core do not spin, because the thread that
// must act may need this very core. Their sleeps grow with their number, so that a core does not spend its time on waking
// a thousand threads that have nothing to do.
class Patience {
 public:
  // `workers`: how many workers each turn looks at. `load`: threads on a core.
  Patience(size_t workers, size_t load)
      : spins_(load > 1 ? 0 : int(kLooks / std::max<size_t>(1, workers))),
        longest_(std::min<Microseconds>(int(load) * kSleep, kLongestSleep)) {}

  void wait() {
    if (sleeps()) {
      std::this_thread::sleep_for(sleep_);
      slept_ += sleep_;
      sleep_ = std::min(2 * sleep_, longest_);
      return;
    }
    ++turns_ <= spins_ ? relax() : std::this_thread::yield();
  }
  void reset() { turns_ = 0, sleep_ = kSleep, slept_ = {}; }
  bool sleeps() const { return turns_ >= spins_ + kYields; }
  // True as seldom as a look at all threads may be without taking the time of a core.
  bool wonders() {
    if (!sleeps() || slept_ < longest_) return false;
    slept_ = {};
    return true;
  }

 private:
  using Microseconds = std::chrono::microseconds;
  static constexpr int kLooks = 4000, kYields = 1000;
  static constexpr Microseconds kSleep{50}, kLongestSleep{10'000};
  const int spins_;
  const Microseconds longest_;
  Microseconds sleep_ = kSleep, slept_{};
  int turns_ = 0;
};

struct alignas(128) Counter {
  std::atomic<u32> value{0};
};

struct Position {
  size_t next = 0;
  u32 epoch = 0;
};

constexpr u64 kNotIdle = ~u64{0}, kFinished = kNotIdle - 1;  // values of Crew::idle_at

// The workers that one thread owns (thread, thread + threads, ...), and the thread's state.
struct alignas(128) Crew {
  std::vector<u32> workers;
  std::vector<Position> positions;
  std::atomic<u64> progress{0};  // instructions done, which other threads watch
  // Instructions that all threads had done when this one last began a look at its workers that found none ready.
  std::atomic<u64> idle_at{kNotIdle};
  RunReport report;
  u64 tick = 0;  // traced: when the thread last ended an instruction or found none ready
  std::exception_ptr failure;
};

class ThreadsExecutor : public Executor {
 public:
  ThreadsExecutor(const Program& program, const Memory& memory, const ExecutorOptions& options)
      : program_(program),
        memory_(memory),
        host_(step_host(program, memory)),
        hang_limit_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double, std::milli>(options.hang_limit_ms))),
        tap_(options.tap),
        cancelled_(options.cancelled),
        counters_(program.counters.size()) {
    const size_t cores = size_t(allowed_cores());
    size_t count = size_t(std::max(options.threads, 0));
    if (count == 0) count = cores;
    count = std::min(count, std::max<size_t>(1, program.workers.size()));
    load_ = (count + cores - 1) / cores;
    // Threads that have a core each and all cores are pinned: prompts of a small model take a third of the time (storyteller,
    // 128 tokens, 16 cores of an H200's host: 2 ms and 7 ms). Otherwise the system places them better: pinned threads of
    // two processes share cores while other cores idle, and their steps take twice the time (8 threads each, same host).
    // A quota of less than the cores means sharing, too.
    std::vector<int> cpus = allowed_core_ids();
    if (cpus.size() != cores || count != cores) cpus.clear();
    trace_.emplace(program, u32(count), options.trace_events);
    tiles_ = create_tiles(simd_level(options.simd), program, memory, int(count));
    crews_ = std::vector<Crew>(count);
    for (u32 w = 0; w < program.workers.size(); ++w) crews_[w % count].workers.push_back(w);
    try {
      start(count, cpus);
    } catch (...) {
      leave();
      throw;
    }
  }

  ~ThreadsExecutor() override { leave(); }

  RunReport run(int steps) override {
    stop_after_ = epoch_ + u32(steps);
    trace_->begin(epoch_ + 1);
    for (Crew& crew : crews_) {
      crew.positions.assign(crew.workers.size(), {0, epoch_ + 1});
      crew.report = {};
      crew.failure = nullptr;
      crew.idle_at.store(kNotIdle, std::memory_order_relaxed);
    }
    abort_.store(false, std::memory_order_relaxed);
    {
      std::unique_lock lock(mutex_);
      ++job_;
      running_ = threads_.size();
      start_.notify_all();
      wait_for_end(lock);
    }
    trace_->end();
    if (abort_.load(std::memory_order_relaxed)) give_up();
    epoch_ = stop_after_;
    RunReport report{.steps = steps};
    for (const Crew& crew : crews_) {
      report.tiles_run += crew.report.tiles_run;
      report.tiles_dead += crew.report.tiles_dead;
    }
    return report;
  }
  RunReport run(int steps, const StepWatch& watch) override {
    return run_by_steps(*this, steps, watch, program_, memory_);
  }
  Trace trace() const override { return trace_->read(); }

 private:
  void start(size_t count, const std::vector<int>& cpus) {
    threads_.reserve(count);
    for (size_t t = 0; t < count; ++t) {
      Result<Thread> started =
          Thread::try_start([this, t, cpu = cpus.empty() ? -1 : cpus[t % cpus.size()]] { live(t, cpu); });
      if (!started)
        fail(ErrorCode::kUnsupported, "[threads] {}",
             threads_refused(count, threads_.size(), started.message()));
      threads_.push_back(std::move(started).value());
    }
  }

  void wait_for_end(std::unique_lock<std::mutex>& lock) {
    const auto ended = [&] { return running_ == 0; };
    if (!cancelled_) return done_.wait(lock, ended);
    while (!done_.wait_for(lock, std::chrono::milliseconds(50), ended))
      if (cancelled_()) was_cancelled_ = true, abort_.store(true, std::memory_order_relaxed);
  }

  // Lets the threads end and waits for them.
  void leave() {
    {
      std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    start_.notify_all();
    threads_.clear();  // joins them
  }

  // Runs each job on one thread and parks it between jobs, until the executor goes.
  void live(size_t index, int cpu) {
    if (cpu >= 0) pin(cpu);
    for (u64 seen = 0;;) {
      {
        std::unique_lock lock(mutex_);
        start_.wait(lock, [&] { return leaving_ || job_ != seen; });
        if (leaving_) return;
        seen = job_;
      }
      try {
        trace_->on() ? work<true>(int(index), crews_[index]) : work<false>(int(index), crews_[index]);
      } catch (...) {
        crews_[index].failure = std::current_exception();
        abort_.store(true, std::memory_order_relaxed);
      }
      std::lock_guard lock(mutex_);
      if (--running_ == 0) done_.notify_one();
    }
  }

  template <bool kTraced>
  void work(int thread, Crew& crew) {
    Patience patience(crew.workers.size(), load_);
    u64 seen = 0;
    Clock::time_point limit{};
    if (kTraced) crew.tick = TickTrace::ticks();
    while (!abort_.load(std::memory_order_relaxed)) {
      const bool wonders = patience.wonders();
      const u64 before = wonders ? progress() : 0;
      bool moved = false, left = false;
      for (size_t i = 0; i < crew.workers.size(); ++i) {
        moved |= advance<kTraced>(thread, crew, i);
        left |= crew.positions[i].epoch <= stop_after_;
      }
      if (!left) {
        crew.idle_at.store(kFinished, std::memory_order_release);
        return;
      }
      if (moved) {
        patience.reset();
        limit = {};
        continue;
      }
      if (wonders) {
        crew.idle_at.store(before, std::memory_order_release);
        if (limit == Clock::time_point{} || before != seen)
          seen = before, limit = Clock::now() + hang_limit_;
        else if (Clock::now() > limit && all_idle(before))
          abort_.store(true, std::memory_order_relaxed);
      }
      patience.wait();
      if (kTraced) crew.tick = TickTrace::ticks();
    }
  }

  // True if every thread has looked at its workers since the last instruction was done and found none ready. Then none
  // ever will be. Time alone does not tell a hang: a thread may wait long for a core that others keep busy. An
  // instruction counts as done before it signals, so that no thread can find a worker ready and still pass for idle.
  bool all_idle(u64 done) const {
    for (const Crew& crew : crews_) {
      const u64 at = crew.idle_at.load(std::memory_order_acquire);
      if (at != done && at != kFinished) return false;
    }
    return progress() == done;
  }

  // Counts the instructions done by all threads.
  u64 progress() const {
    u64 sum = 0;
    for (const Crew& crew : crews_) sum += crew.progress.load(std::memory_order_relaxed);
    return sum;
  }

  // Runs a worker's instructions until one must wait. Returns false if the first had to.
  template <bool kTraced>
  bool advance(int thread, Crew& crew, size_t index) {
    const std::vector<Instruction>& stream = program_.workers[crew.workers[index]];
    Position& position = crew.positions[index];
    bool moved = false;
    while (position.epoch <= stop_after_) {
      const Instruction& instruction = stream[position.next];
      if (instruction.opcode == kEndOpcode) {
        position = {0, position.epoch + 1};
        moved = true;
        continue;
      }
      if (abort_.load(std::memory_order_relaxed) || !ready(instruction, position.epoch)) return moved;
      const u64 begin = crew.tick;  // since then the thread only looked at its other workers
      bool worked = false;
      if (instruction.opcode != kNopOpcode) worked = run_tile(thread, crew, instruction, crew.workers[index]);
      const u64 computed = kTraced ? TickTrace::ticks() : 0;
      crew.progress.store(crew.progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      if (instruction.signal.counter != kNoCounter)
        counters_[instruction.signal.counter].value.fetch_add(instruction.signal.amount,
                                                              std::memory_order_release);
      if (kTraced) {
        crew.tick = TickTrace::ticks();
        trace_->note(crew.workers[index], begin, computed, !worked, crew.tick);
      }
      ++position.next;
      moved = true;
    }
    return moved;
  }

  bool ready(const Instruction& instruction, u32 epoch) const {
    for (int i = 0; i < kMaxWaits; ++i) {
      const Wait& wait = instruction.waits[i];
      if (wait.counter == kNoCounter) continue;
      const u32 seen = counters_[wait.counter].value.load(std::memory_order_acquire);
      if (!reached(seen, wanted_count(wait.target, epoch, instruction.waits_previous(i)))) return false;
    }
    return true;
  }

  // Returns false if the tile had no work.
  bool run_tile(int thread, Crew& crew, const Instruction& instruction, u32 worker) {
    TileCoord tile;
    std::copy(instruction.tile, instruction.tile + 4, tile.at);
    if (host_ && !clamp_to_live(program_.calls[instruction.call].live, *host_, tile)) {
      ++crew.report.tiles_dead;
      return false;
    }
    const bool worked = tiles_->run(thread, instruction.call, tile);
    ++(worked ? crew.report.tiles_run : crew.report.tiles_dead);
    if (tap_) tap(instruction, worker);
    return worked;
  }

  // Taps see one tile at a time.
  void tap(const Instruction& instruction, u32 worker) {
    std::lock_guard lock(tap_mutex_);
    tap_(instruction, worker);
  }

  // Throws after an abort, when all threads are parked: the first failure, or else a dump of the workers that wait.
  // Sets the counters back to zero.
  [[noreturn]] void give_up() {
    std::vector<u32> counters;
    for (Counter& counter : counters_) {
      counters.push_back(counter.value.load(std::memory_order_relaxed));
      counter.value.store(0, std::memory_order_relaxed);
    }
    epoch_ = 0;
    for (const Crew& crew : crews_)
      if (crew.failure) std::rethrow_exception(crew.failure);
    if (std::exchange(was_cancelled_, false))
      throw Cancelled("[threads] the run was cancelled; what it computed is lost");
    std::vector<BlockedWorker> blocked;
    for (const Crew& crew : crews_)
      for (size_t i = 0; i < crew.workers.size(); ++i)
        if (crew.positions[i].epoch <= stop_after_)
          blocked.push_back({crew.workers[i], crew.positions[i].next, crew.positions[i].epoch});
    std::sort(blocked.begin(), blocked.end(),
              [](const BlockedWorker& a, const BlockedWorker& b) { return a.worker < b.worker; });
    const double limit = std::chrono::duration<double, std::milli>(hang_limit_).count();
    fail(ErrorCode::kDevice, "[threads] nothing moved for {:.0f} ms; {}", limit,
         dump_blocked(program_, blocked, counters));
  }

  const Program& program_;
  const Memory memory_;
  const StepHost* host_;
  const Clock::duration hang_limit_;
  std::function<void(const Instruction&, u32)> tap_;
  std::mutex tap_mutex_;
  const std::function<bool()> cancelled_;
  std::optional<TickTrace> trace_;
  std::vector<Counter> counters_;
  std::unique_ptr<Tiles> tiles_;
  std::vector<Crew> crews_;
  size_t load_ = 1;  // threads on a core
  u32 epoch_ = 0, stop_after_ = 0;
  std::atomic<bool> abort_{false};

  std::mutex mutex_;  // guards what follows
  std::condition_variable start_, done_;
  u64 job_ = 0;
  size_t running_ = 0;
  bool leaving_ = false, was_cancelled_ = false;
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<Executor> create_threads(const Program& program, const Memory& memory,
                                         const ExecutorOptions& options) {
  require_cpu(options.device);
  return std::make_unique<ThreadsExecutor>(program, memory, options);
}

}  // namespace heddle
