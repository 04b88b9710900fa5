// Gives a device program, on a CPU, what CUDA has beyond C++. The emulated compiler puts this and cuda.h before every
// program, and links device.cpp, so that what all programs share is compiled once. A CTA is one operating-system thread;
// its threads are fibers that take turns where they would wait. CTAs of a cooperative launch run at once. It shows faults
// of logic; neither timing nor weak memory is like a GPU's.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <tuple>

#if !defined(__x86_64__)
#error "the emulated GPU switches fibers on x86-64 only"
#endif

namespace emulated {

constexpr unsigned kWarp = 32;

// Work that is done later: a launch's kernel with its arguments, a copy, a product.
struct Work {
  virtual ~Work() = default;
  virtual void run() = 0;
};
template <class F>
struct WorkOf final : Work {
  F f;
  explicit WorkOf(F work) : f(static_cast<F&&>(work)) {}
  void run() override { f(); }
};
template <class F>
Work* work_of(F f) {
  return new WorkOf<F>(static_cast<F&&>(f));
}

// Memory for the stacks of a CTA's threads, at most 1,024. The driver keeps it from launch to launch.
constexpr size_t kStacksBytes = size_t{256} << 20;
struct Stacks {
  virtual ~Stacks() = default;
  virtual unsigned char* take() = 0;
  virtual void give(unsigned char* stacks) = 0;
};

struct Barrier {
  unsigned arrived = 0, generation = 0;
};

// A CTA, as far as programs see it.
struct Cta {
  unsigned index = 0, threads = 0, multiprocessor = 0;
  bool progress = false;
  Barrier barriers[16];
  unsigned char* dynamic = nullptr;
  unsigned dynamic_bytes = 0;
  unsigned rank = 0;                   // in its cluster
  unsigned char** dynamics = nullptr;  // `dynamic` of each CTA of the cluster
};
extern constinit thread_local Cta* current;

// Lets the other threads of the CTA run, because this one waits for `what`.
void yield(const char* what);
[[noreturn]] void leave();
// Waits until `count` threads have come.
void meet(Barrier& barrier, unsigned count, const char* what);
// Waits until all threads of the cluster have come.
void meet_cluster();
// Collects a value from each lane of this warp. Waits until all have come.
const uint64_t* exchange(uint64_t value);

// Work of this thread in groups, which is done when the thread waits for its group, as late as possible.
enum class Later { kCopies, kProducts };
void do_later(Later kind, Work* work);
void end_group(Later kind);
void wait_groups(Later kind, unsigned left);  // until so many groups are left

// Copies into a ring that have not landed yet. At random times one of them lands, in any order.
struct RingCopy {
  void* to;
  const void* from;
  unsigned bytes;
  void* barrier;
};
void add_ring_copy(const RingCopy& copy);
bool take_ring_copy(RingCopy& copy);
// Copies go from global to shared memory, in whole words; anything else would be a fault on a device.
void check_copy(const void* to, const void* from);

template <class T>
T from_lane(T value, unsigned lane) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const uint64_t* all = exchange(bits);
  std::memcpy(&value, &all[lane % kWarp], sizeof value);
  return value;
}

// A launch's kernel with copies of its arguments.
template <class... Args>
Work* bind_kernel(void (*kernel)(Args...), void** args) {
  auto copy = [args, i = 0]<class T>(T*) mutable { return *static_cast<T*>(args[i++]); };
  return work_of(
      [kernel, copies = std::tuple<std::remove_cv_t<Args>...>{
                   copy(static_cast<std::remove_cv_t<Args>*>(nullptr))...}] { std::apply(kernel, copies); });
}

}  // namespace emulated

struct EmulatedDim {
  unsigned x = 0, y = 0, z = 0;
};
// NOLINTNEXTLINE(readability-identifier-naming): CUDA's names
extern constinit thread_local EmulatedDim threadIdx, blockIdx, blockDim, gridDim;
