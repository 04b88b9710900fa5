// Gives a device program, on a CPU, what CUDA has beyond C++. The emulated compiler puts this and cuda.h
// before every program. A CTA is one operating-system thread; its threads are fibers that take turns where
// they would wait. CTAs of a cooperative launch run at once. It shows faults of logic; neither timing nor
// weak memory is like a GPU's.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <sys/mman.h>

#if !defined(__x86_64__)
#error "the emulated GPU switches fibers on x86-64 only"
#endif

namespace emulated {

constexpr unsigned kWarp = 32;
constexpr size_t kStackBytes = 256 << 10;

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

struct Barrier {
  unsigned arrived = 0, generation = 0;
};

// A place where the lanes of a warp exchange values.
struct Exchange {
  uint64_t values[2][kWarp] = {};
  Barrier barrier;
};

struct Cta;
inline thread_local Cta* current = nullptr;

struct Cta {
  unsigned index = 0, threads = 0, multiprocessor = 0, running = 0;
  bool progress = false;
  const std::function<void()>* kernel = nullptr;
  std::vector<void*> places;  // stack pointers of fibers
  std::vector<bool> done;
  std::vector<const char*> waits_for;  // reason of each fiber's last yield
  void* scheduler = nullptr;
  Barrier barriers[16];
  std::vector<Exchange> warps;
  unsigned char* dynamic = nullptr;
  unsigned dynamic_bytes = 0;
};

}  // namespace emulated

struct EmulatedDim {
  unsigned x = 0, y = 0, z = 0;
};
inline thread_local EmulatedDim threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

// Lets the other threads of the CTA run, because this one waits for `what`.
inline void yield(const char* what) {
  current->waits_for[threadIdx.x] = what;
  emulated_switch(&current->places[threadIdx.x], current->scheduler);
}
[[noreturn]] inline void leave() {
  current->done[threadIdx.x] = true;
  current->progress = true;
  --current->running;
  for (;;) yield("nothing");
}
inline void enter() {
  (*current->kernel)();
  leave();
}

// Waits until `count` threads have come.
inline void meet(Barrier& barrier, unsigned count, const char* what) {
  const unsigned mine = barrier.generation;
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    ++barrier.generation;
    current->progress = true;
    return;
  }
  while (barrier.generation == mine) yield(what);
}

// Collects a value from each lane of this warp. Waits until all have come.
inline const uint64_t* exchange(uint64_t value) {
  Exchange& warp = current->warps[threadIdx.x / kWarp];
  uint64_t* values = warp.values[warp.barrier.generation & 1];
  values[threadIdx.x % kWarp] = value;
  meet(warp.barrier, kWarp, "its warp");
  return values;
}
template <class T>
T from_lane(T value, unsigned lane) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const uint64_t* all = exchange(bits);
  std::memcpy(&value, &all[lane % kWarp], sizeof value);
  return value;
}

// After this long without progress a CTA prints what its threads wait for and ends the process; a device
// would hang.
constexpr auto kPatience = std::chrono::seconds(60);

[[noreturn]] inline void give_up(const Cta& cta) {
  std::map<std::string, unsigned> waiting;
  for (unsigned t = 0; t < cta.threads; ++t)
    if (!cta.done[t]) ++waiting[cta.waits_for[t]];
  for (const auto& [what, threads] : waiting)
    std::fprintf(stderr, "emulated GPU: CTA %u is stuck: %u threads wait for %s\n", cta.index, threads,
                 what.c_str());
  std::abort();
}

// Runs the CTA's fibers in rotation until all have ended.
inline void run_fibers(Cta& cta, std::vector<unsigned char*>& stacks) {
  while (stacks.size() < cta.threads)
    stacks.push_back(static_cast<unsigned char*>(
        ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
  cta.places.resize(cta.threads);
  cta.done.assign(cta.threads, false);
  cta.waits_for.assign(cta.threads, "");
  for (unsigned t = 0; t < cta.threads; ++t) {
    auto* top = reinterpret_cast<void**>(stacks[t] + kStackBytes);
    *--top = nullptr;  // aligns the stack of `enter` as the ABI requires
    *--top = reinterpret_cast<void*>(&enter);
    cta.places[t] = top - 6;
  }
  cta.running = cta.threads;
  auto last_progress = std::chrono::steady_clock::now();
  while (cta.running > 0) {
    cta.progress = false;
    for (unsigned t = 0; t < cta.threads; ++t) {
      if (cta.done[t]) continue;
      threadIdx.x = t;
      emulated_switch(&cta.scheduler, cta.places[t]);
    }
    const auto now = std::chrono::steady_clock::now();
    if (cta.progress) last_progress = now;
    if (now - last_progress > kPatience) give_up(cta);
    if (!cta.progress) std::this_thread::yield();
  }
}

struct Grid {
  const std::function<void()>* kernel;
  unsigned ctas, threads, shared_bytes, at_once;
};

// Runs CTAs of a launch, numbered from `next`, on one operating-system thread.
inline void run_ctas(const Grid& grid, unsigned multiprocessor, std::atomic<unsigned>& next) {
  std::vector<unsigned char*> stacks;
  std::vector<unsigned char> memory(grid.shared_bytes + 128);
  for (unsigned index = next++; index < grid.ctas; index = next++) {
    Cta cta;
    cta.index = index, cta.threads = grid.threads, cta.multiprocessor = multiprocessor,
    cta.kernel = grid.kernel, cta.dynamic_bytes = grid.shared_bytes;
    cta.warps.resize((grid.threads + kWarp - 1) / kWarp);
    std::fill(memory.begin(), memory.end(), 0xff);  // NaNs, because nothing has written this memory
    cta.dynamic = memory.data() + (128 - reinterpret_cast<uintptr_t>(memory.data()) % 128) % 128;
    current = &cta;
    blockIdx.x = index, blockDim.x = grid.threads, gridDim.x = grid.ctas;
    run_fibers(cta, stacks);
  }
  for (unsigned char* stack : stacks) ::munmap(stack, kStackBytes);
}

template <class... Args, size_t... I>
std::function<void()>* bind_kernel(void (*kernel)(Args...), void** args, std::index_sequence<I...>) {
  auto copies = std::make_tuple(*static_cast<std::remove_cv_t<Args>*>(args[I])...);
  return new std::function<void()>([kernel, copies] { std::apply(kernel, copies); });
}
// A launch's kernel with copies of its arguments.
template <class... Args>
std::function<void()>* bind_kernel(void (*kernel)(Args...), void** args) {
  return bind_kernel(kernel, args, std::index_sequence_for<Args...>());
}

}  // namespace emulated

// Runs a whole launch. `at_once`: CTAs that run together; all of them in a cooperative launch.
extern "C" inline __attribute__((visibility("default"), used)) void emulated_run(
    const std::function<void()>* kernel, const unsigned* how) {
  const emulated::Grid grid{kernel, how[0], how[1], how[2], how[3]};
  std::atomic<unsigned> next = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::min(grid.at_once, grid.ctas); ++t)
    threads.emplace_back([&, t] { emulated::run_ctas(grid, t, next); });
  for (std::thread& thread : threads) thread.join();
}
