// Runs the CTAs of a launch on an emulated GPU: fibers, barriers, copies that land late.
#include "tests/emulated_gpu/device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// NOLINTNEXTLINE(readability-identifier-naming): CUDA's names
constinit thread_local EmulatedDim threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

constinit thread_local Cta* current = nullptr;

namespace {

constexpr size_t kStackBytes = emulated::kStacksBytes / 1024;

// Saves the registers that a function must keep, switches stacks, and continues where `to` stopped.
extern "C" void emulated_switch(void** from, void* to);
asm(R"(
.pushsection .text
.local emulated_switch
.type emulated_switch, @function
emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.popsection
)");

// A place where the lanes of a warp exchange values.
struct Exchange {
  uint64_t values[2][kWarp] = {};
  Barrier barrier;
};

struct Fiber {
  void* place = nullptr;  // stack pointer
  bool done = false;
  const char* waits_for = "";  // reason of its last yield
  // It has come to this barrier, and need not run while the generation lasts; null: at no barrier.
  const Barrier* barrier = nullptr;
  unsigned generation = 0;
  std::vector<std::vector<std::unique_ptr<Work>>> groups[2];  // the last one is not complete yet
};

constexpr unsigned kMostCluster = 16;

// CTAs that run at once. Each has an operating-system thread, and they go from cluster to cluster together.
struct Cluster {
  unsigned char* dynamics[kMostCluster] = {};
  std::atomic<unsigned long long> arrived = 0;  // threads, at all barriers so far
};

struct RunningCta : Cta {
  Work* kernel = nullptr;
  Cluster* cluster = nullptr;
  unsigned cluster_threads = 0;
  unsigned running = 0;
  void* scheduler = nullptr;
  std::vector<Fiber> fibers;
  std::vector<Exchange> warps;
  std::vector<RingCopy> ring_copies;
  unsigned random = 1;
};

RunningCta& cta() {
  return static_cast<RunningCta&>(*current);
}
Fiber& fiber() {
  return cta().fibers[threadIdx.x];
}
auto& groups_of(Later kind) {
  auto& groups = fiber().groups[size_t(kind)];
  if (groups.empty()) groups.emplace_back();
  return groups;
}

void enter() {
  cta().kernel->run();
  leave();
}

// After this long without progress a CTA prints what its threads wait for and ends the process; a device
// would hang.
constexpr auto kPatience = std::chrono::seconds(60);
constexpr std::chrono::microseconds kLongestPause{500};

[[noreturn]] void give_up(const RunningCta& cta) {
  std::map<std::string, unsigned> waiting;
  for (const Fiber& fiber : cta.fibers)
    if (!fiber.done) ++waiting[fiber.waits_for];
  for (const auto& [what, threads] : waiting)
    std::fprintf(stderr, "emulated GPU: CTA %u is stuck: %u threads wait for %s\n", cta.index, threads,
                 what.c_str());
  std::abort();
}

// Runs the CTA's fibers in rotation until all have ended.
void run_fibers(RunningCta& cta, unsigned char* stacks) {
  cta.fibers.resize(cta.threads);
  for (unsigned t = 0; t < cta.threads; ++t) {
    auto* top = reinterpret_cast<void**>(stacks + (t + 1) * kStackBytes);
    *--top = nullptr;  // aligns the stack of `enter` as the ABI requires
    *--top = reinterpret_cast<void*>(&enter);
    cta.fibers[t].place = top - 6;
  }
  cta.running = cta.threads;
  auto last_progress = std::chrono::steady_clock::now();
  std::chrono::microseconds pause{0};
  while (cta.running > 0) {
    cta.progress = false;
    for (unsigned t = 0; t < cta.threads; ++t) {
      Fiber& next = cta.fibers[t];
      if (next.done || (next.barrier && next.barrier->generation == next.generation)) continue;
      threadIdx.x = t;
      emulated_switch(&cta.scheduler, next.place);
    }
    const auto now = std::chrono::steady_clock::now();
    if (cta.progress) {
      last_progress = now;
      pause = {};
      continue;
    }
    if (now - last_progress > kPatience) give_up(cta);
    // There are more CTAs than cores: those that wait for another leave the core to it.
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause + std::chrono::microseconds(10), kLongestPause);
  }
}

struct Grid {
  Work* kernel;
  unsigned ctas, threads, shared_bytes, at_once, cluster;
  Stacks* stacks;
};

// Dynamic shared memory of a CTA.
class Chip {
 public:
  explicit Chip(size_t bytes) : memory_(bytes + 128) {}
  unsigned char* begin() {
    return memory_.data() + (128 - reinterpret_cast<uintptr_t>(memory_.data()) % 128) % 128;
  }
  void forget() { std::fill(memory_.begin(), memory_.end(), 0xff); }  // NaNs, because nothing has written it

 private:
  std::vector<unsigned char> memory_;
};

// Runs CTAs of a launch on one operating-system thread: of rank `rank` in every `step`-th cluster from `first` on.
void run_ctas(const Grid& grid, unsigned first, unsigned step, unsigned rank, Cluster& cluster, Chip& chip) {
  unsigned char* stacks = grid.stacks->take();
  for (unsigned number = first; number < grid.ctas / grid.cluster; number += step) {
    const unsigned index = number * grid.cluster + rank, multiprocessor = first * grid.cluster + rank;
    RunningCta cta;
    cta.rank = rank, cta.dynamics = cluster.dynamics, cta.cluster = &cluster;
    cta.cluster_threads = grid.cluster * grid.threads;
    cta.index = index, cta.threads = grid.threads, cta.multiprocessor = multiprocessor,
    cta.kernel = grid.kernel;
    cta.random = index * 2654435761u + 1;
    cta.dynamic_bytes = grid.shared_bytes;
    cta.warps.resize((grid.threads + kWarp - 1) / kWarp);
    chip.forget();
    cta.dynamic = chip.begin();
    current = &cta;
    blockIdx.x = index, blockDim.x = grid.threads, gridDim.x = grid.ctas;
    run_fibers(cta, stacks);
  }
  grid.stacks->give(stacks);
}

}  // namespace

void yield(const char* what) {
  Fiber& self = fiber();
  self.waits_for = what;
  emulated_switch(&self.place, cta().scheduler);
}
[[noreturn]] void leave() {
  fiber().done = true;
  current->progress = true;
  --cta().running;
  for (;;) yield("nothing");
}

void meet(Barrier& barrier, unsigned count, const char* what) {
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    ++barrier.generation;
    current->progress = true;
    return;
  }
  Fiber& self = fiber();
  self.barrier = &barrier, self.generation = barrier.generation;
  yield(what);
  self.barrier = nullptr;
}

void meet_cluster() {
  const RunningCta& self = cta();
  std::atomic<unsigned long long>& arrived = self.cluster->arrived;
  const unsigned long long all = (arrived++ / self.cluster_threads + 1) * self.cluster_threads;
  while (arrived < all) yield("its cluster");
  current->progress = true;
}

const uint64_t* exchange(uint64_t value) {
  Exchange& warp = cta().warps[threadIdx.x / kWarp];
  uint64_t* values = warp.values[warp.barrier.generation & 1];
  values[threadIdx.x % kWarp] = value;
  meet(warp.barrier, kWarp, "its warp");
  return values;
}

void do_later(Later kind, Work* work) {
  groups_of(kind).back().emplace_back(work);
}
void end_group(Later kind) {
  groups_of(kind).emplace_back();
}
void wait_groups(Later kind, unsigned left) {
  auto& groups = groups_of(kind);
  while (groups.size() > size_t{left} + 1) {
    for (const auto& work : groups.front()) work->run();
    groups.erase(groups.begin());
  }
}

void add_ring_copy(const RingCopy& copy) {
  cta().ring_copies.push_back(copy);
}
bool take_ring_copy(RingCopy& copy) {
  RunningCta& self = cta();
  self.random = self.random * 1664525 + 1013904223;
  if (self.ring_copies.empty() || self.random >> 30 != 0) return false;
  const size_t which = (self.random >> 8) % self.ring_copies.size();
  copy = self.ring_copies[which];
  self.ring_copies.erase(self.ring_copies.begin() + std::ptrdiff_t(which));
  return true;
}
void check_copy(const void* to, const void* from) {
  const auto on_chip = [](const void* at) {
    return at >= current->dynamic && at < current->dynamic + current->dynamic_bytes;
  };
  if (on_chip(to) && !on_chip(from) && reinterpret_cast<uintptr_t>(from) % 16 == 0) return;
  std::fprintf(stderr,
               "emulated GPU: a copy from %p to %p; the first must be in memory, the second on chip, %u "
               "bytes from %p\n",
               from, to, current->dynamic_bytes, static_cast<void*>(current->dynamic));
  std::abort();
}

}  // namespace emulated

extern "C" [[noreturn]] void __assertfail(const char* text, const char* file, unsigned, const char*, size_t) {
  std::fprintf(stderr, "%s: assertion `%s` failed\n", file, text);
  std::abort();
}

// Runs a whole launch. how: CTAs, threads, bytes of shared memory, CTAs that run together (all of them in a cooperative
// launch), CTAs of a cluster.
extern "C" __attribute__((visibility("default"), used)) void emulated_run(emulated::Work* kernel,
                                                                          const unsigned* how,
                                                                          emulated::Stacks* stacks) {
  const emulated::Grid grid{kernel, how[0], how[1], how[2], how[3], how[4], stacks};
  const unsigned clusters = std::max(1u, std::min(grid.at_once, grid.ctas) / grid.cluster);
  std::vector<emulated::Cluster> running(clusters);
  std::vector<emulated::Chip> chips;
  for (unsigned t = 0; t < clusters * grid.cluster; ++t) {
    chips.emplace_back(grid.shared_bytes);
    running[t / grid.cluster].dynamics[t % grid.cluster] = chips.back().begin();
  }
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < clusters * grid.cluster; ++t)
    threads.emplace_back([&, t] {
      emulated::run_ctas(grid, t / grid.cluster, clusters, t % grid.cluster, running[t / grid.cluster],
                         chips[t]);
    });
  for (std::thread& thread : threads) thread.join();
}
