// Speed of the CPU matrix kernels: bandwidth of weights and arithmetic for each SIMD level, by shape and
// rows.
//   bench_matrix [LEVEL] [THREADS]
// Each thread has its own weights; together they exceed the caches. Times are those of the threads'
// processors, so that a busy machine disturbs them less. A plain read of the same weights is measured for
// comparison.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <vector>

#include <sys/mman.h>

#include "heddle/backend/cpu/simd.h"
#include "heddle/base/float16.h"
#include "heddle/base/parallel.h"

namespace heddle {
namespace {

constexpr size_t kBytesPerThread = size_t{192} << 20;

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Seconds of the slowest of `threads` that run `work(thread)` at once; the best of three.
double seconds(int threads, const std::function<void(int)>& work) {
  double best = 1e30;
  for (int round = 0; round < 3; ++round) {
    std::vector<double> each(static_cast<size_t>(threads));
    run_together(threads, [&](int t, int) {
      const double begin = thread_seconds();
      work(t);
      each[size_t(t)] = thread_seconds() - begin;
    });
    best = std::min(best, *std::max_element(each.begin(), each.end()));
  }
  return best;
}

// Packed bf16 panels of k columns, more than a cache holds, in pages as large as the system gives.
struct Weights {
  explicit Weights(i32 k) {
    w.data = {.dtype = DType::kBf16, .rank = 2, .size = {kPanelRows, k}, .stride = {k, 1}};
    const auto bytes = size_t(w.panel_bytes());
    memory = static_cast<u8*>(
        mmap(nullptr, kBytesPerThread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(memory, kBytesPerThread, MADV_HUGEPAGE);
    for (size_t i = 0; i < kBytesPerThread / 2; ++i)
      reinterpret_cast<u16*>(memory)[i] = float_to_bf16(float(i % 97) / 97 - 0.5f);
    for (size_t p = 0; p < kBytesPerThread / bytes; ++p) table.push_back(p * bytes);
    w.data.size[0] = i32(table.size()) * kPanelRows;
    w.data.data = memory;
    w.table = table.data();
  }
  ~Weights() { munmap(memory, kBytesPerThread); }
  Weights(const Weights&) = delete;

  u8* memory;
  std::vector<u64> table;
  Weight w;
};

// All panels, 16 at a time as tiles take them.
void multiply(MatrixKernel kernel, const Weights& weights, const u8* x, i64 stride, i32 rows, float* out) {
  constexpr i32 kPanels = 16;
  for (i32 p = 0; p + kPanels <= i32(weights.table.size()); p += kPanels)
    kernel({x, stride, rows, &weights.w, p, kPanels, out, kPanels * kPanelRows});
}

// Sums of words, in as many streams as hide latency.
void read_all(const Weights& weights) {
  constexpr size_t kStreams = 4, kWords = kBytesPerThread / 8 / kStreams;
  u64 sum[8 * kStreams] = {};
  const auto* words = reinterpret_cast<const u64*>(weights.memory);
  for (size_t i = 0; i < kWords; i += 8)
    for (size_t s = 0; s < kStreams; ++s) {
      __builtin_prefetch(words + s * kWords + i + 256);
      for (size_t j = 0; j < 8; ++j) sum[8 * s + j] ^= words[s * kWords + i + j];
    }
  volatile u64 sink = 0;
  for (u64 each : sum) sink = sink ^ each;
}

void measure(const SimdLevel& level, int threads, i32 k) {
  std::deque<Weights> weights;
  for (int t = 0; t < threads; ++t) weights.emplace_back(k);
  const size_t groups = weights[0].table.size() / 16;
  const double bytes = double(16 * groups) * double(weights[0].w.panel_bytes());
  const double read = seconds(threads, [&](int t) { read_all(weights[size_t(t)]); });
  std::printf("%-12s k %5d plain read: %6.1f GB/s\n", level.name, k, threads * bytes / read * 1e-9);
  for (i32 rows : {1, 2, 3, 4, 8, 16, 64, 256}) {
    const bool narrow = level.kernels.narrow != nullptr;
    const i64 stride = i64(k) * (narrow ? 2 : 4) + 64;
    const i32 padded = round_up(rows, kOperandRows);
    std::vector<std::vector<float>> x(size_t(threads), std::vector<float>(size_t(padded * stride / 4 + 16)));
    std::vector<std::vector<float>> out(size_t(threads), std::vector<float>(size_t(padded) * 256 + 16));
    const auto aligned = [](std::vector<float>& v) {
      auto* base = reinterpret_cast<u8*>(v.data());
      return base + (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
    };
    const double time = seconds(threads, [&](int t) {
      multiply(narrow ? level.kernels.narrow : level.kernels.wide, weights[size_t(t)], aligned(x[size_t(t)]),
               stride, rows, reinterpret_cast<float*>(aligned(out[size_t(t)])));
    });
    std::printf("%-12s k %5d rows %4d: %6.1f GB/s of weights, %7.0f GFLOP/s%s\n", level.name, k, rows,
                threads * bytes / time * 1e-9, threads * bytes * rows / time * 1e-9, narrow ? " (bf16)" : "");
  }
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  const char* wanted = argc > 1 ? argv[1] : "";
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  for (const SimdLevel& level : simd_levels())
    if (!*wanted || !std::strcmp(wanted, level.name))
      for (i32 k : {2048, 8192}) measure(level, threads, k);
}
