#include "heddle/backend/cpu/describe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <hwy/highway.h>
#include <sys/mman.h>

#include "heddle/backend/cpu/simd.h"
#include "heddle/base/error.h"
#include "heddle/base/memory.h"
#include "heddle/base/parallel.h"

namespace heddle {
namespace {

constexpr size_t kBytesPerThread = size_t{128}
                                   << 20;  // a last-level cache of today holds a part of it at most
constexpr int kRounds = 4;

// Memory in large pages.
class LargeBlock {
 public:
  LargeBlock() {
    void* data = ::mmap(nullptr, kBytesPerThread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) fail_memory(kBytesPerThread, "a measurement of the read bandwidth");
    ::madvise(data, kBytesPerThread, MADV_HUGEPAGE);
    words_ = static_cast<u64*>(data);
  }
  ~LargeBlock() { ::munmap(words_, kBytesPerThread); }
  LargeBlock(const LargeBlock&) = delete;

  void touch() {
    for (size_t i = 0; i < kWords; i += 512) words_[i] = i;
  }

  // Several streams at once hide latency. The best number of streams and the best distance of prefetches differ
  // between processors.
  template <size_t kStreams, size_t kAheadBytes>
  u64 read() const {
    constexpr size_t kEach = kWords / kStreams;
    u64 sum[kStreams] = {};
    for (size_t i = 0; i < kEach; i += 8)
      for (size_t s = 0; s < kStreams; ++s) {
        const u64* at = words_ + s * kEach + i;
        __builtin_prefetch(at + kAheadBytes / 8);
        sum[s] ^= at[0] ^ at[1] ^ at[2] ^ at[3] ^ at[4] ^ at[5] ^ at[6] ^ at[7];
      }
    u64 all = 0;
    for (u64 each : sum) all ^= each;
    return all;
  }

 private:
  static constexpr size_t kWords = kBytesPerThread / 8;
  u64* words_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace

double measure_read_bandwidth(int threads) {
  if (threads == 0) threads = allowed_cores();
  std::vector<LargeBlock> memory(static_cast<size_t>(threads));
  std::atomic<int> ready = 0;
  std::atomic<u64> sink = 0;
  // All threads meet between two rounds, so that each round is a read of all at once.
  std::vector<std::chrono::steady_clock::time_point> ends(size_t(threads) * kRounds);
  std::vector<std::chrono::steady_clock::time_point> begins = ends;
  const int started = run_together(threads, [&](int thread, int all) {
    LargeBlock& block = memory[size_t(thread)];
    block.touch();
    for (int round = 0; round < kRounds; ++round) {
      ++ready;
      while (ready < all * (round + 1)) std::this_thread::yield();
      const size_t at = size_t(round * all + thread);
      begins[at] = std::chrono::steady_clock::now();
      sink ^= round % 2 == 0 ? block.read<8, 2048>() : block.read<4, 4096>();
      ends[at] = std::chrono::steady_clock::now();
    }
  });
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto from = begins.begin() + round * started, to = ends.begin() + round * started;
    const auto time = *std::max_element(to, to + started) - *std::min_element(from, from + started);
    best = std::max(best, double(kBytesPerThread) * started / std::chrono::duration<double>(time).count());
  }
  return best;
}

void require_cpu(i32 device) {
  require(device == 0, "[cpu] there is no device {}; the CPU is device 0, and the only one", device);
}

std::string name_cpu() {
  return fmt::format("{}, {} cores for this process; {}", processor_name(), allowed_cores(),
                     simd_levels().front().name);
}

std::string describe_cpu() {
  const int cores = allowed_cores();
  std::string levels;
  for (const SimdLevel& level : simd_levels())
    levels += fmt::format("{}{}", levels.empty() ? "" : ", ", level.name);
  return fmt::format(
      "cpu         {}, {}\n"
      "simd        {} (of {}; Highway {}.{}.{})\n"
      "memory      {:.1f} GB/s read by {} threads\n",
      processor_name(), describe_cores(), simd_levels().front().name, levels, HWY_MAJOR, HWY_MINOR, HWY_PATCH,
      measure_read_bandwidth(cores) * 1e-9, cores);
}

}  // namespace heddle
